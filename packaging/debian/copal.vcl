# The VCL of the service. copal-reload loads this file again; copal vcl check finds its errors.

vcl 4.1;

# The web server behind Copal.
backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    # A request has been read: change it, or return (pass), (synth(404)) and so on.
}

sub vcl_backend_response {
    # The origin has answered: set beresp.ttl, beresp.grace or beresp.uncacheable.
}

sub vcl_deliver {
    # The response is about to be sent.
}
