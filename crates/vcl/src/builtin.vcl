# Default handling of requests.
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
    if (req.method != "GET" && req.method != "HEAD") {
        if (req.method !~ "^(PUT|POST|TRACE|OPTIONS|DELETE|PATCH)$") {
            # Unknown method: relay the bytes unread.
            return (pipe);
        }
        return (pass);
    }
}

# Responses for one user are not shared with others.
sub vcl_req_authorization {
    if (req.http.authorization) {
        return (pass);
    }
}

sub vcl_req_cookie {
    if (req.http.cookie) {
        return (pass);
    }
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

sub vcl_builtin_hash {
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
    set resp.http.Retry-After = "5";
    set resp.body = {"<!DOCTYPE html>
<html>
  <head>
    <title>"} + resp.status + " " + resp.reason + {"</title>
  </head>
  <body>
    <h1>Error "} + resp.status + " " + resp.reason + {"</h1>
    <p>"} + resp.reason + {"</p>
    <h3>Guru Meditation:</h3>
    <p>XID: "} + req.xid + {"</p>
    <hr>
    <p>Varnish cache server</p>
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
    if (beresp.ttl <= 0s) {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_cookie {
    if (beresp.http.Set-Cookie) {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_control {
    if (beresp.http.Surrogate-control ~ "(?i)no-store" ||
        (!beresp.http.Surrogate-Control && beresp.http.Cache-Control ~ "(?i:no-cache|no-store|private)")) {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_vary {
    if (beresp.http.Vary == "*") {
        call vcl_beresp_hitmiss;
    }
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
    set beresp.http.Retry-After = "5";
    set beresp.body = {"<!DOCTYPE html>
<html>
  <head>
    <title>"} + beresp.status + " " + beresp.reason + {"</title>
  </head>
  <body>
    <h1>Error "} + beresp.status + " " + beresp.reason + {"</h1>
    <p>"} + beresp.reason + {"</p>
    <h3>Guru Meditation:</h3>
    <p>XID: "} + bereq.xid + {"</p>
    <hr>
    <p>Varnish cache server</p>
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
