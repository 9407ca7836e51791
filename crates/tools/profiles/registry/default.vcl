# A package registry behind Copal. For npm, PyPI, Maven, Go, Cargo, Debian and container images that everyone may read.
# Test it with: copal vcl test default.vcl tests.toml
vcl 4.1;

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

# Who may purge: the machine that your registry runs on. What a proxy on it forwards may not.
acl purgers { "127.0.0.1"; "::1"; }

sub vcl_recv {
    # Pages differ between http and https: one spelling for each.
    if (req.http.X-Forwarded-Proto ~ "(?i)^https$") {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }

    # One URL, such as the index of a package after a release.
    if (req.method == "PURGE") {
        if (client.ip !~ purgers || req.http.X-Forwarded-For ~ ",") {
            return (synth(403));
        }
        return (purge);
    }
    # Publishing, and everything that needs a login: private packages are never shared.
    if ((req.method != "GET" && req.method != "HEAD") || req.http.Authorization) {
        return (pass);
    }

    unset req.http.Cookie;

    # Searches, audits, tokens and statistics are not packages.
    if (req.url ~ "^/(-/(v1|npm|user|whoami|ping)|search|pypi$|token|v2/token|v2/_catalog|api/v1/crates\?)") {
        return (pass);
    }
    # Files of one version never change. Indexes, tags and lists do.
    if (req.url ~ "(?i)(\.(tgz|tar\.[gbx]z2?|whl|crate|gem|nupkg|[dr]eb|rpm|apk|jar|pom|zip|mod|info)|/(blobs|manifests)/sha256:\w+)$"
        && req.url !~ "SNAPSHOT") {
        set req.http.X-Kind = "version";
    } else {
        set req.http.X-Kind = "index";
    }
}

sub vcl_backend_response {
    # A failed refresh keeps the good page.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    unset beresp.http.Set-Cookie;
    if (beresp.http.Cache-Control ~ "no-store|private" || beresp.http.WWW-Authenticate) {
        # The registry does not want it shared.
        set beresp.uncacheable = true;
    } else if (beresp.status == 200 && bereq.http.X-Kind == "version") {
        set beresp.ttl = 30d;
    } else if (beresp.status == 200) {
        if (!beresp.http.Cache-Control && !beresp.http.Expires) {
            set beresp.ttl = 1m;
        }
    } else if (beresp.status == 404 || beresp.status == 410) {
        # A version that is missing may be published in a moment.
        set beresp.ttl = 10s;
    } else {
        # Redirects to signed addresses, and errors.
        set beresp.uncacheable = true;
    }
    # Builds go on with what is stored while the registry is down.
    set beresp.grace = 7d;

    # Indexes come in several forms: the client names those that it can read.
    if (bereq.http.X-Kind == "index" && !beresp.http.Vary) {
        set beresp.http.Vary = "Accept";
    } else if (bereq.http.X-Kind == "index" && beresp.http.Vary !~ "(?i)(^|, ?)accept($|,)") {
        set beresp.http.Vary = beresp.http.Vary + ", Accept";
    }
    # A purge of a URL removes all variants, so the scheme is one.
    if (!beresp.http.Vary) {
        set beresp.http.Vary = "X-Forwarded-Proto";
    } else if (beresp.http.Vary !~ "X-Forwarded-Proto") {
        set beresp.http.Vary = beresp.http.Vary + ", X-Forwarded-Proto";
    }
}
