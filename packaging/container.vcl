# The VCL of the container image. The backend is COPAL_BACKEND; a VCL that is mounted over this one may name its own.

vcl 4.1;

sub vcl_recv {
    # A request has been read: change it, or return (pass), (synth(404)) and so on.
}

sub vcl_backend_response {
    # The origin has answered: set beresp.ttl, beresp.grace or beresp.uncacheable.
}

sub vcl_deliver {
    # The response is about to be sent.
}
