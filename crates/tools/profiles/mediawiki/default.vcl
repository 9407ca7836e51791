# MediaWiki behind Copal. Set $wgUseCdn = true, and $wgCdnServers to the address of Copal.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

# The web server. It is asked for a small file every 5 seconds; while that fails, visitors get the
# stored pages. The Host below must be the name of a site that the server knows.
probe health {
    .request = "HEAD /resources/assets/poweredby_mediawiki_88x31.png HTTP/1.1" "Host: www.example.com" "Connection: close";
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

# Who may purge: the machine that MediaWiki runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # MediaWiki sends PURGE for each URL of a page that changes.
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

    # Styles and scripts (load.php), images and thumbnails are the same for everybody.
    if (req.url ~ "^[^?]*/(load\.php|images/|resources/|skins/|extensions/)") {
        unset req.http.Cookie;
        return (hash);
    }

    # Special pages, forms, histories of a moment, and the interfaces of scripts.
    if (req.url ~ "[?&/:=](Special:(UserLog|CreateAcc|Preferences|Watchlist|Random|MyPage|MyTalk))"
        || req.url ~ "[?&]action=(edit|submit|delete|protect|watch|unwatch|rollback|purge|markpatrolled)"
        || req.url ~ "^[^?]*/(api|rest|thumb_handler|opensearch_desc)\.php") {
        return (pass);
    }

    # Logged in, or with a session because of an edit. All other cookies are for scripts in the browser,
    # and are not sent to MediaWiki.
    if (req.http.Cookie ~ "([sS]ession|Token|UserID)=") {
        return (pass);
    }
    unset req.http.Cookie;
}

sub vcl_backend_response {
    # A failed refresh keeps the good page.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    # MediaWiki sends s-maxage for the pages that may be shared, and purges them. It never stores a
    # page that belongs to a session.
    if (beresp.http.Cache-Control ~ "s-maxage=[1-9]" && beresp.http.Cache-Control !~ "private") {
        unset beresp.http.Set-Cookie;
    }
    # Visitors get a page up to this old while a new one is made, or while MediaWiki is down.
    set beresp.grace = 1d;

    # A purge of a URL removes all variants, so the scheme is one.
    if (!beresp.http.Vary) {
        set beresp.http.Vary = "X-Forwarded-Proto";
    } else if (beresp.http.Vary !~ "X-Forwarded-Proto") {
        set beresp.http.Vary = beresp.http.Vary + ", X-Forwarded-Proto";
    }
}
