//! Default values of parameters, which depend on the command under which the daemon was started.

use surface::eviction::EvictionPolicy;
use surface::parameter::{Parameters, feature};
use surface::program::Called;

/// The defaults of Varnish for `varnishd`, those of RFC 9111 for `copal daemon`.
#[must_use]
pub fn default_parameters(called: Called) -> Parameters {
    let stock = Parameters::default();
    match called {
        Called::Stock => stock,
        Called::Copal => Parameters {
            http_policy: "rfc".to_owned(),
            eviction_policy: EvictionPolicy::S3Fifo.name().to_owned(),
            storage_placement: "tiers".to_owned(),
            feature: stock.feature | feature::HTTP2,
            backend_follow_dns: "system".to_owned(),
            backend_error_reasons: true,
            client_half_close: true,
            waiting_timeout: 300.0,
            ..stock
        },
    }
}
