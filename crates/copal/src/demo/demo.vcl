vcl 4.1;

import std;

# The web server behind us. `copal demo` fills in the port of its built-in blog.
backend blog {
    .host = "127.0.0.1";
    .port = "@PORT@";
    .first_byte_timeout = 5s;
}

sub vcl_recv {
    # The desk is one page for everybody. Who is logged in sees a corner of their own in it: /corner, a request of its own, which
    # has the cookies that came with the page.
    if (req.url == "/desk") {
        unset req.http.Cookie;
        return (hash);
    }
    # Who is logged in gets pages made for them alone: never from the cache.
    if (req.http.Cookie ~ "(^|;\s*)login=") {
        return (pass);
    }
    # All other cookies are for statistics; the blog does not look at them.
    unset req.http.Cookie;
}

sub vcl_backend_fetch {
    # With this the blog leaves its corners to us.
    set bereq.http.Surrogate-Capability = "copal=ESI/1.0";
}

sub vcl_backend_response {
    # A page with corners that others fill in.
    if (beresp.http.Surrogate-Control ~ "ESI/1.0") {
        unset beresp.http.Surrogate-Control;
        set beresp.do_esi = true;
    }
    # The blog sets a visitor cookie on every page, which would make pages uncacheable.
    if (bereq.http.Cookie !~ "login=" && beresp.http.Cache-Control !~ "private") {
        unset beresp.http.Set-Cookie;
    }
    # A page that failed is asked for once more before anybody sees it.
    if (beresp.status >= 500 && bereq.retries == 0) {
        return (retry);
    }
    # While the blog is slow or down, visitors get the last good page.
    set beresp.grace = 1h;
}

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = "hit";
    } else {
        set resp.http.X-Cache = "miss";
    }
}
