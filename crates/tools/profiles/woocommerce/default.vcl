# WooCommerce behind Copal. Visitors share pages until something is in their cart or they have logged in.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

import xkey;

# The web server. It is asked for a small file every 5 seconds; while that fails, visitors get the
# stored pages. The Host below must be the name of a site that the server knows.
probe health {
    .request = "HEAD /wp-includes/images/blank.gif HTTP/1.1" "Host: www.example.com" "Connection: close";
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

# Who may purge: the machine that WordPress runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # Proxy Cache Purge, W3 Total Cache and others send PURGE for each page that changes, and PURGE
    # with X-Purge-Method: regex for the whole site.
    if (req.method == "PURGE") {
        if (client.ip !~ purgers || req.http.X-Forwarded-For ~ ",") {
            return (synth(403));
        }
        if (req.http.X-Purge-Method == "regex") {
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

    # Dashboard, login, cron, previews, and searches, of which each is different.
    if (req.url ~ "^[^?]*/(wp-admin|wp-login\.php|wp-cron\.php|wp-signup\.php|wp-activate\.php|xmlrpc\.php)"
        || req.url ~ "[?&](preview|s|customize_changeset_uuid|doing_wp_cron)=") {
        return (pass);
    }

    # Cart, checkout, account, what changes a cart, and the interfaces of blocks and payments. If your
    # shop has other names for these pages, add them.
    if (req.url ~ "^[^?]*/(cart|checkout|my-account|wc-api|wc-auth|addons|wp-json/wc/store)(/|\?|$)"
        || req.url ~ "[?&](add-to-cart|remove_item|undo_item|removed_item|wc-ajax|wc-api|order|order_again)=") {
        return (pass);
    }

    # As for WordPress; in addition, a visitor with a cart or a session of the shop.
    if (req.http.Cookie ~ "(^|; ?)(wordpress_(logged_in|sec)_|wordpress_[0-9a-f]{32}|wp-postpass_|comment_author_)"
        || req.http.Cookie ~ "(^|; ?)(woocommerce_items_in_cart|woocommerce_cart_hash|wp_woocommerce_session_)") {
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
    } else if (beresp.status < 400 && !beresp.http.Cache-Control && !beresp.http.Set-Cookie
        && bereq.url !~ "^[^?]*/wp-json/") {
        # WordPress says nothing about the lifetime of pages. Plug-ins purge what changes, but not all
        # that the REST API shows.
        set beresp.ttl = 10m;
    }
    # Visitors get a page up to this old while a new one is made, or while WordPress is down.
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
