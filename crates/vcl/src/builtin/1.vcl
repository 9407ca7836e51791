# What happens to requests that no other VCL decides about, in the way of Varnish 1.1.
#
# Each subroutine of the user runs first; when no action ends it, the one here goes on.

# Only what is read with GET or HEAD is cached; what belongs to one user is not.
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
