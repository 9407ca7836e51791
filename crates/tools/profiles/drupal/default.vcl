# Drupal behind Copal. Visitors share pages; whoever has a session does not. Modules purge by cache tags.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

import xkey;

# The web server. It is asked for a small file every 5 seconds; while that fails, visitors get the
# stored pages. The Host below must be the name of a site that the server knows.
probe health {
    .request = "HEAD /core/misc/favicon.ico HTTP/1.1" "Host: www.example.com" "Connection: close";
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

# Who may purge: the machine that Drupal runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # The modules Purge and Varnish Purger send BAN with tags separated by |, or PURGE for a URL.
    if (req.method == "BAN" || req.method == "PURGE") {
        if (client.ip !~ purgers || req.http.X-Forwarded-For ~ ",") {
            return (synth(403));
        }
        if (req.method == "PURGE") {
            return (purge);
        }
        xkey.purge(regsuball(req.http.Cache-Tags + " " + req.http.Purge-Cache-Tags, "[|,]", " "));
        return (synth(200, "Purged by tag"));
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

    # Administration, accounts, installation, cron, and parts of pages for a session.
    if (req.url ~ "^/(([a-z-]+/)?(admin|user|batch|system|history|big_pipe)|(core/)?(install|update|authorize|cron)\.php|cron)(/|\?|$)") {
        return (pass);
    }

    # Sessions are called SESS or SSESS and a hash; NO_CACHE is set after a form was sent. All other
    # cookies are for scripts in the browser, and are not sent to Drupal.
    if (req.http.Cookie ~ "(^|; ?)(S?SESS[0-9a-zA-Z]+|NO_CACHE)=") {
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
    } else if (beresp.status < 400 && !beresp.http.Cache-Control && !beresp.http.Set-Cookie) {
        set beresp.ttl = 5m;
    }
    # Drupal sends the lifetime of pages: Configuration, Performance, maximum age. Visitors get a page
    # up to this old while a new one is made, or while Drupal is down.
    set beresp.grace = 1d;

    # Parts of a page that BigPipe sends late arrive at once.
    if (beresp.http.Surrogate-Control ~ "BigPipe/1.0") {
        set beresp.do_stream = true;
        set beresp.do_gzip = false;
    }
    # The tags of the module Purge, or those that a module sends as Cache-Tags.
    if (beresp.http.Purge-Cache-Tags) {
        set beresp.http.xkey = beresp.http.Purge-Cache-Tags;
    } else if (beresp.http.Cache-Tags) {
        set beresp.http.xkey = beresp.http.Cache-Tags;
    }
    # A purge of a URL removes all variants, so the scheme is one.
    if (!beresp.http.Vary) {
        set beresp.http.Vary = "X-Forwarded-Proto";
    } else if (beresp.http.Vary !~ "X-Forwarded-Proto") {
        set beresp.http.Vary = beresp.http.Vary + ", X-Forwarded-Proto";
    }
}

sub vcl_deliver {
    unset resp.http.xkey;
    unset resp.http.Purge-Cache-Tags;
    unset resp.http.Cache-Tags;
}
