# Discourse behind Copal. Files are shared; pages are not, since Discourse has a cache of its own for them.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

# The web server. It is asked for a small file every 5 seconds; while that fails, visitors get the
# stored pages. The Host below must be the name of a site that the server knows.
probe health {
    .request = "HEAD /srv/status HTTP/1.1" "Host: www.example.com" "Connection: close";
    .interval = 5s;
    .timeout = 3s;
    .window = 5;
    .threshold = 3;
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
    .probe = health;
}

# Who may purge: the machine that Discourse runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # Discourse purges nothing, since its files have names of their own; scripts can.
    if (req.method == "PURGE") {
        if (client.ip !~ purgers || req.http.X-Forwarded-For ~ ",") {
            return (synth(403));
        }
        return (purge);
    }
    if ((req.method != "GET" && req.method != "HEAD") || req.http.Authorization) {
        return (pass);
    }

    # Arguments of campaigns are for scripts in the browser: they need no copies of their own.
    if (req.url ~ "[?&](utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=") {
        set req.url = regsuball(req.url, "&(utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=[^&]*", "");
        set req.url = regsub(req.url, "\?(utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=[^&]*&?", "?");
        set req.url = regsub(req.url, "\?$", "");
    }

    # Files whose names change with their content, uploads, and avatars: the same for everybody.
    if (req.url ~ "^/(assets|stylesheets|theme-javascripts|javascripts|images|fonts|plugins|svg-sprite|highlight-js)/"
        || req.url ~ "^/(uploads/default|user_avatar|letter_avatar|letter_avatar_proxy|extra-locales|service-worker)") {
        unset req.http.Cookie;
        return (hash);
    }

    # Everything else depends on the login (_t), the session (_forum_session), the theme and the
    # language of a visitor. Discourse keeps pages for guests in memory for a minute. Messages for
    # open pages (/message-bus/) arrive as they are sent.
    return (pass);
}

sub vcl_backend_response {
    # A failed refresh keeps the good page.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    if (bereq.url ~ "^/(assets|stylesheets|theme-javascripts|javascripts|images|fonts|plugins|svg-sprite|highlight-js)/"
        || bereq.url ~ "^/(uploads/default|user_avatar|letter_avatar|letter_avatar_proxy|extra-locales|service-worker)") {
        if (beresp.status == 200) {
            unset beresp.http.Set-Cookie;
            if (beresp.ttl < 1h && beresp.http.Cache-Control !~ "no-store|private") {
                set beresp.ttl = 1h;
            }
        }
    }
    # Visitors get a file up to this old while a new one is fetched, or while Discourse is down.
    set beresp.grace = 1d;

    # A purge of a URL removes all variants, so the scheme is one.
    if (!beresp.http.Vary) {
        set beresp.http.Vary = "X-Forwarded-Proto";
    } else if (beresp.http.Vary !~ "X-Forwarded-Proto") {
        set beresp.http.Vary = beresp.http.Vary + ", X-Forwarded-Proto";
    }
}
