//! Repeated lookup of the name of a backend, so that the backend follows it: [`follow_name`].
//!
//! The process runs one task for each such backend while its VCL is warm. An answer is valid for
//! its time to live, within bounds, or else for the time of the parameter `backend_dns_ttl`. When a
//! lookup fails, the addresses are unchanged and it is repeated after that time; the same holds for
//! those of one family, if only its half of the lookup fails. Changes and failures leave log
//! records outside transactions. Next file: `addresses.rs`.

use crate::backend::Backend;
use crate::dns_names::resolve::{Resolve, ResolveError, Source};
use shm::log::{LogId, LogRing};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::limits::{FOLLOWED_LOOKUP_SECONDS_MAX, FOLLOWED_TTL_SECONDS_MAX, FOLLOWED_TTL_SECONDS_MIN};
use surface::parameter::{NAMES_BY_DNS, Parameters};
use surface::tag::Tag;
use vcl_run::program::FollowedName;

/// The error number of a lookup that takes too long: that of getaddrinfo for a temporary failure.
const EAI_AGAIN: i32 = -3;

/// The parameters of lookups.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FollowSettings {
    /// The service that resolves names.
    pub source: Source,
    /// Time for which an answer without a time to live is valid, seconds.
    pub ttl: f64,
}

impl FollowSettings {
    /// The present values.
    #[must_use]
    pub fn of(parameters: &Parameters) -> FollowSettings {
        let source = if parameters.backend_follow_dns == NAMES_BY_DNS { Source::Dns } else { Source::System };
        FollowSettings { source, ttl: parameters.backend_dns_ttl }
    }
}

/// Follows the name of a backend until dropped; returns at once if it has none.
pub async fn follow_name(
    backend: Arc<Backend>,
    resolver: Rc<dyn Resolve>,
    settings: impl Fn() -> FollowSettings,
    ring: LogRing,
) {
    let Some(name) = backend.definition().follows.clone() else { return };
    let port = name.port.to_string();
    loop {
        let FollowSettings { source, ttl } = settings();
        let limit = Duration::from_secs(FOLLOWED_LOOKUP_SECONDS_MAX);
        let lookup = resolver.addresses(source, &name.host, &port);
        let answer = tokio::time::timeout(limit, lookup)
            .await
            .unwrap_or_else(|_| Err(ResolveError { code: EAI_AGAIN, text: "Timeout".to_owned() }));
        let seconds = match answer {
            Ok(mut answer) if !answer.list.is_empty() => {
                let unanswered = answer.keep_unanswered(backend.addresses()).cloned();
                if backend.set_addresses(&answer.list) {
                    log_addresses(&backend, &name, &ring);
                }
                match unanswered {
                    None => answer.ttl.unwrap_or(ttl),
                    Some(error) => {
                        log_failure(&backend, (&name, source), (&error, "addresses of one family"), &ring);
                        answer.ttl.map_or(ttl, |seconds| seconds.min(ttl))
                    }
                }
            }
            Ok(_) => {
                let none = ResolveError { code: 0, text: "no address".to_owned() };
                log_failure(&backend, (&name, source), (&none, "addresses"), &ring);
                ttl
            }
            Err(error) => {
                log_failure(&backend, (&name, source), (&error, "addresses"), &ring);
                ttl
            }
        };
        let seconds = seconds.max(FOLLOWED_TTL_SECONDS_MIN).min(FOLLOWED_TTL_SECONDS_MAX.max(ttl));
        tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or(limit)).await;
    }
}

fn log_addresses(backend: &Backend, name: &FollowedName, ring: &LogRing) {
    let list: Vec<String> = backend.addresses().iter().map(ToString::to_string).collect();
    let text = format!("backend {}: {} is now at {}", backend.display_name(), name.host, list.join(" "));
    ring.write_fmt(Tag::VCLLog, LogId::NONE, format_args!("{text}"));
}

fn log_failure(
    backend: &Backend,
    (name, source): (&FollowedName, Source),
    (error, what): (&ResolveError, &str),
    ring: &LogRing,
) {
    ring.write_fmt(
        Tag::Error,
        LogId::NONE,
        format_args!(
            "backend {}: {} {} {} ({}), its {what} stay as they were",
            backend.display_name(),
            name.host,
            source.name(),
            error.code,
            error.text
        ),
    );
}

#[cfg(test)]
mod tests;
