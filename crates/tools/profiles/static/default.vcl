# A static site behind Copal. All visitors share everything. Purge after each deployment.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

import xkey;

# The web server. It is asked for a small file every 5 seconds; while that fails, visitors get the
# stored pages. The Host below must be the name of a site that the server knows.
probe health {
    .request = "HEAD / HTTP/1.1" "Host: www.example.com" "Connection: close";
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

# Who may purge: the machine that your deployment runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # One URL, or with X-Purge-Method: site everything.
    if (req.method == "PURGE") {
        if (client.ip !~ purgers || req.http.X-Forwarded-For ~ ",") {
            return (synth(403));
        }
        if (req.http.X-Purge-Method == "site") {
            xkey.purge("site:" + req.http.Host);
            return (synth(200, "Purged the site"));
        }
        return (purge);
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (synth(405));
    }
    # A part with a password is not shared.
    if (req.http.Authorization) {
        return (pass);
    }

    # Arguments of campaigns are for scripts in the browser: they need no copies of their own.
    if (req.url ~ "[?&](utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=") {
        set req.url = regsuball(req.url, "&(utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=[^&]*", "");
        set req.url = regsub(req.url, "\?(utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=[^&]*&?", "?");
        set req.url = regsub(req.url, "\?$", "");
    }

    # No file depends on a cookie.
    unset req.http.Cookie;
}

sub vcl_backend_response {
    # A failed refresh keeps the good page.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    unset beresp.http.Set-Cookie;
    if (beresp.status >= 400) {
        # A page that is missing may be there in a moment.
        set beresp.ttl = 10s;
    } else if (beresp.http.Cache-Control !~ "no-store|private") {
        if (bereq.url ~ "[.-](?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}\.[a-z0-9]+$") {
            # The name has a hash of the content.
            set beresp.ttl = 365d;
        } else if (beresp.ttl < 1h) {
            # Until the next deployment purges it, at most this long.
            set beresp.ttl = 1h;
        }
    }
    # Visitors get a file up to this old while a new one is fetched, or while the server is down.
    set beresp.grace = 7d;

    # For purges of the site. A purge of a URL removes all variants, so the scheme is one.
    set beresp.http.xkey = "site:" + bereq.http.Host;
    if (!beresp.http.Vary) {
        set beresp.http.Vary = "X-Forwarded-Proto";
    } else if (beresp.http.Vary !~ "X-Forwarded-Proto") {
        set beresp.http.Vary = beresp.http.Vary + ", X-Forwarded-Proto";
    }
}

sub vcl_deliver {
    unset resp.http.xkey;
}
