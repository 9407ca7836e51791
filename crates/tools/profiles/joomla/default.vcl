# Joomla behind Copal. Guests share the pages that the plug-in "System - Page Cache" allows, with browser caching on.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

import xkey;

# The web server. It is asked for a small file every 5 seconds; while that fails, visitors get the
# stored pages. The Host below must be the name of a site that the server knows.
probe health {
    .request = "HEAD /media/system/images/arrow.png HTTP/1.1" "Host: www.example.com" "Connection: close";
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

# Who may purge: the machine that Joomla runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # Joomla itself purges nothing; scripts can, by URL or with X-Purge-Method: site.
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
    if ((req.method != "GET" && req.method != "HEAD") || req.http.Authorization) {
        return (pass);
    }

    # Arguments of campaigns are for scripts in the browser: they need no copies of their own.
    if (req.url ~ "[?&](utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=") {
        set req.url = regsuball(req.url, "&(utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=[^&]*", "");
        set req.url = regsub(req.url, "\?(utm_[a-z_]+|gclid|gbraid|wbraid|fbclid|msclkid|ttclid|mc_[ce]id|_ga)=[^&]*&?", "?");
        set req.url = regsub(req.url, "\?$", "");
    }

    # Styles, scripts, images and fonts are the same for everybody.
    if (req.url ~ "(?i)^[^?]*\.(css|js|mjs|map|png|jpe?g|gif|webp|avif|svg|ico|woff2?|ttf|eot)(\?|$)") {
        unset req.http.Cookie;
        return (hash);
    }

    # Administration, accounts, calls of scripts, and forms, which have a token of their visitor.
    if (req.url ~ "^/(administrator|api)(/|\?|$)"
        || req.url ~ "[?&/=](com_users|users|com_contact|contact|com_ajax|login|registration|com_config)([/?&=]|$)"
        || req.url ~ "[?&](task|format|layout|token)=") {
        return (pass);
    }

    # Guests have a session, too, so the session is no sign of a login: these two cookies are. Without
    # its session a request gets the page of a guest.
    if (req.http.Cookie ~ "(^|; ?)(joomla_user_state=logged_in|joomla_remember_me_[0-9a-f]+=)") {
        return (pass);
    }
    unset req.http.Cookie;
}

sub vcl_backend_response {
    # A failed refresh keeps the good page.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    if (bereq.url ~ "(?i)^[^?]*\.(css|js|mjs|map|png|jpe?g|gif|webp|avif|svg|ico|woff2?|ttf|eot)(\?|$)") {
        if (beresp.status == 200) {
            unset beresp.http.Set-Cookie;
            set beresp.ttl = 1d;
        }
    } else if (beresp.http.Cache-Control ~ "(max-age=[1-9]|public)" && beresp.http.Cache-Control !~ "no-store|private") {
        # The plug-in allows it: the new session is not for all.
        unset beresp.http.Set-Cookie;
    }
    # Visitors get a page up to this old while a new one is made, or while Joomla is down.
    set beresp.grace = 1d;

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
