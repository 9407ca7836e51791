//! `Alt-Svc`: announces HTTP/3 to clients that connect over TLS.
//!
//! It is made before vcl_deliver and vcl_synth, so VCL may change or remove it; an `Alt-Svc` of the
//! origin about itself stays. Source: RFC 7838 §3, RFC 9114 §3.1.

use super::Run;
use crate::logged::{self, RESP};

impl Run<'_> {
    /// Adds `Alt-Svc` if the client's listener supports HTTP/3.
    #[inline]
    pub(super) fn add_alt_svc(&mut self) {
        if let Some(port) = self.session.peer.listener.http3_port {
            self.append_alt_svc(port);
        }
    }

    #[cold]
    fn append_alt_svc(&mut self, port: u16) {
        let (max_age, public) = {
            let parameters = self.context.engine.parameters.load();
            (parameters.alt_svc_max_age as u64, parameters.alt_svc_port)
        };
        let request = &mut *self.request;
        let task = &mut request.task;
        let is_inner = task.life.inclusion.is_some();
        if max_age == 0 || is_inner || self.session.peer.tls.is_none() || task.response.has("Alt-Svc") {
            return;
        }
        let port = if public == 0 { u64::from(port) } else { public };
        let value = format!("h3=\":{port}\"; ma={max_age}");
        logged::append(&mut request.log, RESP, &mut task.response, "Alt-Svc", &[value.as_bytes()]);
    }
}
