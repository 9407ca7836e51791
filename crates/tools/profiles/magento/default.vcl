# Magento 2 behind Copal. Choose "Varnish Cache" as full page cache in Magento: it sends tags and lifetimes.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

import xkey;

# The web server. It is asked for a small file every 5 seconds; while that fails, visitors get the
# stored pages. The Host below must be the name of a site that the server knows.
probe health {
    .request = "HEAD /health_check.php HTTP/1.1" "Host: www.example.com" "Connection: close";
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

# Who may purge: the machine that Magento runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # Magento sends PURGE with a pattern of tags, ((^|,)cat_p_1(,|$))|((^|,)cat_c_2(,|$)), or .* for all.
    if (req.method == "PURGE") {
        if (client.ip !~ purgers || req.http.X-Forwarded-For ~ ",") {
            return (synth(403));
        }
        if (!req.http.X-Magento-Tags-Pattern) {
            return (purge);
        }
        if (req.http.X-Magento-Tags-Pattern == ".*") {
            xkey.purge("everything");
        } else {
            xkey.purge(regsuball(req.http.X-Magento-Tags-Pattern, "\(\(\^\|,\)([^()]+)\(,\|\$\)\)\|?", "\1 "));
        }
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
    # Static and media files are the same for everybody.
    if (req.url ~ "^/(pub/)?(media|static)/") {
        unset req.http.Cookie;
        return (hash);
    }
    # Cart, checkout, account. The administration has a path of your own, and sends no-store.
    if (req.url ~ "/(customer|checkout|multishipping|wishlist|sales|paypal|vault|rest|catalogsearch)(/|\?|$)") {
        return (pass);
    }
    # GraphQL is shared by those with the same context, which Magento names.
    if (req.url ~ "/graphql" && !req.http.X-Magento-Cache-Id) {
        return (pass);
    }
    # Group, currency and the like, but not the customer: scripts fill in what is personal. The cookie
    # goes to Magento, which may answer that a page is not for all.
    unset req.http.X-Context;
    if (req.http.Cookie ~ "(^|; ?)X-Magento-Vary=") {
        set req.http.X-Context = regsub(req.http.Cookie, "^(.*; ?)?X-Magento-Vary=([^;]+).*$", "\2");
    }
    return (hash);
}

sub vcl_hash {
    hash_data(req.http.X-Context);
    if (req.url ~ "/graphql") {
        hash_data(req.http.X-Magento-Cache-Id);
        hash_data(req.http.Store);
        hash_data(req.http.Content-Currency);
    }
}

sub vcl_backend_response {
    # A failed refresh keeps the good page.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    if (beresp.http.Content-Type ~ "^text/html") {
        set beresp.do_esi = true;
    }
    if (bereq.url ~ "^/(pub/)?(media|static)/") {
        if (beresp.status == 200) {
            unset beresp.http.Set-Cookie;
            set beresp.ttl = 7d;
        }
    } else if (beresp.http.Cache-Control ~ "public" && beresp.http.Cache-Control !~ "no-store|private") {
        # Magento says that the page is for all; the cookie is for the first visitor.
        unset beresp.http.Set-Cookie;
    }
    # Visitors get a page up to this old while a new one is made, or while Magento is down.
    set beresp.grace = 3d;
    set beresp.http.xkey = "everything " + regsuball(beresp.http.X-Magento-Tags, ",", " ");
    if (!beresp.http.Vary) {
        set beresp.http.Vary = "X-Forwarded-Proto";
    } else if (beresp.http.Vary !~ "X-Forwarded-Proto") {
        set beresp.http.Vary = beresp.http.Vary + ", X-Forwarded-Proto";
    }
}

sub vcl_deliver {
    unset resp.http.xkey;
    unset resp.http.X-Magento-Tags;
}
