//! For tests: a [`Dial`] in memory. Each connect gets the next answer of the script.

use crate::connected::Connected;
use crate::dial::{Dial, DialTarget, Dialling, Ends, Stream, TlsFailure};
use crate::tls_settings::TlsSettings;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::DuplexStream;
use vcl_run::program::{BackendDefinition, Endpoint, ProbeDefinition, TlsDefinition};

/// The outcome of a connect.
pub(crate) enum Answer {
    /// It succeeds; the test holds the other end.
    Accept,
    /// It fails.
    Fail(io::ErrorKind),
    /// It never completes.
    Hang,
}

/// The dial; connects after the end of the script are accepted.
#[derive(Default)]
pub(crate) struct MemoryDial {
    script: RefCell<VecDeque<Answer>>,
    accepted: RefCell<VecDeque<DuplexStream>>,
    pub(crate) targets: RefCell<Vec<DialTarget>>,
    /// The reason why every handshake fails; `None` = the connection breaks.
    pub(crate) refusal: RefCell<Option<TlsFailure>>,
}

impl MemoryDial {
    pub(crate) fn new(script: impl IntoIterator<Item = Answer>) -> MemoryDial {
        MemoryDial { script: RefCell::new(script.into_iter().collect()), ..MemoryDial::default() }
    }

    /// The origin's end of the oldest connection not yet taken.
    pub(crate) fn accept(&self) -> Option<DuplexStream> {
        self.accepted.borrow_mut().pop_front()
    }

    pub(crate) fn connects(&self) -> usize {
        self.targets.borrow().len()
    }
}

impl Dial for MemoryDial {
    /// Performs no handshake.
    fn secure<'a>(
        &'a self,
        _: Box<dyn Stream>,
        _: &'a TlsSettings,
        _: &'a [&'static [u8]],
        _: Duration,
    ) -> Dialling<'a> {
        let refusal = self.refusal.borrow().clone();
        let broken = || io::ErrorKind::ConnectionReset.into();
        Box::pin(async move { Err(refusal.map_or_else(broken, io::Error::other)) })
    }

    fn dial<'a>(&'a self, target: &'a DialTarget, timeout: Duration) -> Dialling<'a> {
        Box::pin(async move {
            self.targets.borrow_mut().push(target.clone());
            let answer = self.script.borrow_mut().pop_front().unwrap_or(Answer::Accept);
            match answer {
                Answer::Accept => {
                    let (ours, theirs) = tokio::io::duplex(1 << 16);
                    self.accepted.borrow_mut().push_back(theirs);
                    let remote = match target {
                        DialTarget::Ip { v4, v6, prefer_v6 } => {
                            if *prefer_v6 {
                                v6.or(*v4)
                            } else {
                                v4.or(*v6)
                            }
                        }
                        DialTarget::Unix(_) => None,
                    };
                    let local = remote.map(|remote| (remote.ip(), 40_000).into());
                    Ok(Box::new(Connected { stream: ours, ends: Ends { remote, local, fd: 7 } }) as Box<dyn Stream>)
                }
                Answer::Fail(kind) => Err(kind.into()),
                Answer::Hang => {
                    tokio::time::sleep(timeout).await;
                    Err(io::ErrorKind::TimedOut.into())
                }
            }
        })
    }
}

/// A backend definition at 192.0.2.1:80.
pub(crate) fn definition(name: &str) -> BackendDefinition {
    BackendDefinition {
        host: "192.0.2.1".to_owned(),
        port: "80".to_owned(),
        host_header: "origin.example".to_owned(),
        ..BackendDefinition::new(name, Endpoint::Ip { v4: Some(([192, 0, 2, 1], 80).into()), v6: None })
    }
}

/// A probe definition with the defaults of VCL, except the window.
pub(crate) fn probe(initial: u32, window: u32, threshold: u32) -> ProbeDefinition {
    ProbeDefinition {
        name: String::new(),
        url: "/".to_owned(),
        request: String::new(),
        expected_response: 200,
        timeout: 2.0,
        interval: 5.0,
        initial,
        window,
        threshold,
        expect_close: true,
    }
}

/// TLS settings with full verification.
pub(crate) fn tls(host: &str) -> TlsDefinition {
    TlsDefinition {
        server_name: Some(host.to_owned()),
        host: host.to_owned(),
        verify_peer: true,
        verify_host: true,
        authorities: Vec::new(),
        client: None,
        pin: None,
        only_tls13: false,
    }
}
