# Default handling of requests under http_policy=rfc: RFC 9111 determines the storage of a response and its lifetime before
# vcl_backend_response runs; beresp.ttl, beresp.grace, beresp.keep and beresp.uncacheable contain the result.
#
# A response may be shared for a lifetime that is not explicit (a ttl or grace set here, or a heuristic one) only if nothing
# marks it as private: see vcl_beresp_cookie and vcl_beresp_control. That rule holds for any action of the VCL. A refused response
# becomes hit-for-miss for param.uncacheable_ttl, unless the VCL has: set beresp.uncacheable = false;
#
# Each vcl_ subroutine of the user runs first; when it returns no action, the one here continues. Every rule is a
# separate subroutine, so that it can be prepended to by defining one of the same name.

vcl 4.0;

#--- client side ---------------------------------------------------------------------------------------------------------

sub vcl_recv {
    call vcl_builtin_recv;
    return (hash);
}

sub vcl_builtin_recv {
    call vcl_req_host;
    call vcl_req_method;
    call vcl_req_authorization;
    call vcl_req_cookie;
}

# One object for all spellings of a host; HTTP/1.1 requires a Host.
sub vcl_req_host {
    if (req.http.host ~ "[[:upper:]]") {
        set req.http.host = req.http.host.lower();
    }
    if (req.esi_level == 0 && req.proto == "HTTP/1.1" && !req.http.host) {
        return (synth(400));
    }
}

sub vcl_req_method {
    if (req.method == "PRI") {
        # The preface of HTTP/2 on a connection without it.
        return (synth(405));
    }
    if (req.method != "GET" && req.method != "HEAD" && req.method != "QUERY") {
        return (pass);
    }
}

# The response determines if it may be shared.
sub vcl_req_authorization {
}

sub vcl_req_cookie {
}

sub vcl_pipe {
    call vcl_builtin_pipe;
    return (pipe);
}

sub vcl_builtin_pipe {
}

sub vcl_pass {
    call vcl_builtin_pass;
    return (fetch);
}

sub vcl_builtin_pass {
}

sub vcl_hash {
    call vcl_builtin_hash;
    return (lookup);
}

# The scheme is part of a URI: a response to http, such as a redirect to https, is not a response to https.
sub vcl_builtin_hash {
    hash_data(req.http.X-Forwarded-Proto);
    hash_data(req.url);
    if (req.http.host) {
        hash_data(req.http.host);
    } else {
        hash_data(server.ip);
    }
}

sub vcl_purge {
    call vcl_builtin_purge;
    return (synth(200, "Purged"));
}

sub vcl_builtin_purge {
}

sub vcl_hit {
    call vcl_builtin_hit;
    return (deliver);
}

sub vcl_builtin_hit {
}

sub vcl_miss {
    call vcl_builtin_miss;
    return (fetch);
}

sub vcl_builtin_miss {
}

sub vcl_deliver {
    call vcl_builtin_deliver;
    return (deliver);
}

sub vcl_builtin_deliver {
}

sub vcl_synth {
    call vcl_builtin_synth;
    return (deliver);
}

sub vcl_builtin_synth {
    set resp.http.Content-Type = "text/html; charset=utf-8";
    if (resp.status == 503) {
        set resp.http.Retry-After = "5";
    }
    set resp.body = {"<!DOCTYPE html>
<html>
  <head>
    <title>"} + resp.status + " " + resp.reason + {"</title>
  </head>
  <body>
    <h1>"} + resp.reason + {"</h1>
    <p>Status "} + resp.status + {", request "} + req.xid + {"</p>
    <hr>
    <p>Copal</p>
  </body>
</html>
"};
}

#--- backend side --------------------------------------------------------------------------------------------------------

sub vcl_backend_fetch {
    call vcl_builtin_backend_fetch;
    return (fetch);
}

sub vcl_builtin_backend_fetch {
    if (bereq.method == "GET") {
        unset bereq.body;
    }
}

# The origin has answered 304. Runs only if the VCL extends one of these four subroutines.
sub vcl_backend_refresh {
    call vcl_builtin_backend_refresh;
    return (merge);
}

sub vcl_builtin_backend_refresh {
    call vcl_refresh_valid;
    call vcl_refresh_conditions;
    call vcl_refresh_status;
}

sub vcl_refresh_valid {
    if (!obj_stale.is_valid) {
        return (error(503, "Stale object was removed"));
    }
}

sub vcl_refresh_conditions {
    if (!bereq.http.If-None-Match && !bereq.http.If-Modified-Since) {
        return (error(503, "304 to a request without conditions"));
    }
}

sub vcl_refresh_status {
    if (obj_stale.status != 200) {
        return (error(503, "Stale object is no 200"));
    }
}

sub vcl_backend_response {
    call vcl_builtin_backend_response;
    return (deliver);
}

sub vcl_builtin_backend_response {
    if (bereq.uncacheable) {
        return (deliver);
    }
    call vcl_beresp_stale;
    call vcl_beresp_cookie;
    call vcl_beresp_control;
    call vcl_beresp_vary;
}

sub vcl_beresp_stale {
}

# For a lifetime that is not explicit, a response with Set-Cookie is not shared, nor one to a request that the origin got with
# Cookie (unless Vary names it) or Authorization. Removing the field before the fetch, or Set-Cookie here, is enough.
sub vcl_beresp_cookie {
}

# Nor is a response with Cache-Control: no-cache, no-store or private. The field counts in the origin's form.
sub vcl_beresp_control {
}

sub vcl_beresp_vary {
}

# Removes Content-Range except from 206 and 416. Not called by the built-in VCL: another response with that field
# fails the fetch, unless the VCL calls this first.
sub vcl_beresp_range {
    if (beresp.status != 206 && beresp.status != 416) {
        unset beresp.http.Content-Range;
    }
}

# For some time, requests go to the backend without waiting for each other; a cacheable response ends that.
sub vcl_beresp_hitmiss {
    set beresp.ttl = param.uncacheable_ttl;
    set beresp.uncacheable = true;
    return (deliver);
}

sub vcl_backend_error {
    call vcl_builtin_backend_error;
    return (deliver);
}

sub vcl_builtin_backend_error {
    set beresp.http.Content-Type = "text/html; charset=utf-8";
    if (beresp.status == 503) {
        set beresp.http.Retry-After = "5";
    }
    set beresp.body = {"<!DOCTYPE html>
<html>
  <head>
    <title>"} + beresp.status + " " + beresp.reason + {"</title>
  </head>
  <body>
    <h1>"} + beresp.reason + {"</h1>
    <p>Status "} + beresp.status + {", request "} + bereq.xid + {"</p>
    <hr>
    <p>Copal</p>
  </body>
</html>
"};
}

#--- housekeeping --------------------------------------------------------------------------------------------------------

sub vcl_init {
    return (ok);
}

sub vcl_fini {
    return (ok);
}
