# Default handling of requests, as in Varnish 1.1.
#
# Each subroutine of the user runs first; when no action ends it, the one here continues.

# Only responses to GET and HEAD are cached; those for one user are not.
sub vcl_recv {
    if (req.request != "GET" && req.request != "HEAD") {
        pipe;
    }
    if (req.http.Expect) {
        pipe;
    }
    if (req.http.Authenticate || req.http.Cookie) {
        pass;
    }
    lookup;
}

sub vcl_pipe {
    pipe;
}

sub vcl_pass {
    pass;
}

# An object is known by its URL and host.
sub vcl_hash {
    set req.hash += req.url;
    set req.hash += req.http.host;
    hash;
}

sub vcl_hit {
    if (!obj.cacheable) {
        pass;
    }
    deliver;
}

sub vcl_miss {
    fetch;
}

sub vcl_fetch {
    if (!obj.valid) {
        error;
    }
    if (!obj.cacheable) {
        pass;
    }
    if (obj.http.Set-Cookie) {
        pass;
    }
    insert;
}

sub vcl_deliver {
    deliver;
}
