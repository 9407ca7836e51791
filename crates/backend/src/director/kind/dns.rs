//! Dns: looks up the host of a request and uses the backend at one of its addresses. From Varnish
//! 2.1 and 3.0.
//!
//! Only addresses in the block's list, or of its members, are used; the healthy ones of a host take
//! turns. Names are looked up by [`crate::dns_names`] like all others: in the background, for as
//! long as requests use them. A request waits only for the first lookup of a name. Compat: Varnish
//! 3.0.7. Differences: an answer is renewed before it is needed rather than when it is needed; when
//! a later lookup fails, the addresses are unchanged; `.max_connections` of the list is respected.

use crate::backend::Backend;
use crate::director::choice::{Candidates, Member, ResolveContext};
use crate::director::interface::Director;
use crate::dns_names::DnsNames;
use crate::dns_names::domain::Domain;
use crate::dns_names::maker::Maker;
use crate::dns_names::settings::{Fixed, MakerSettings, Speaker};
use std::sync::Arc;
use vcl_run::acl::AclIndex;
use vcl_run::program::{AclDefinition, NamesBlock};
use vcl_run::value::DirectorId;

/// Port of the backends of a list that sets none.
const PORT: &str = "80";
/// A name unused for this many seconds is dropped, unless its answers are valid for longer.
const USAGE_SECONDS_MIN: f64 = 60.0;
/// Longest time that a request waits for the first lookup of a name, seconds.
const FIRST_LOOKUP_SECONDS: f64 = 10.0;

/// The director.
#[derive(Debug)]
pub struct Dns {
    names: Arc<DnsNames>,
    maker: Arc<Maker>,
    suffix: String,
    members: Arc<[Member]>,
}

impl Dns {
    /// The director of a block; `backends` are the program's backends.
    pub(crate) fn new(
        names: &Arc<DnsNames>,
        instance: u32,
        name: &str,
        block: &NamesBlock,
        backends: &[Arc<Backend>],
    ) -> Option<Dns> {
        let fixed: Vec<Fixed> = block
            .members
            .iter()
            .filter_map(|&index| {
                let backend = Arc::clone(backends.get(index as usize)?);
                Some(Fixed { id: DirectorId(index), backend })
            })
            .collect();
        let members = fixed.iter().map(|fixed| Member { director: fixed.id, weight: 1.0 }).collect();
        names.make(instance, settings(name, block, fixed));
        Some(Dns { names: Arc::clone(names), maker: names.maker(instance)?, suffix: block.suffix.clone(), members })
    }

    /// The name for this request; `None` if there is none, or it is too long to be looked up.
    fn domain(&self, context: &ResolveContext<'_>) -> Option<Arc<Domain>> {
        let host = context.host?.split(|byte| *byte == b':').next()?;
        let host = format!("{}{}", String::from_utf8_lossy(host), self.suffix).to_ascii_lowercase();
        self.names.domain(&self.maker, &host, None, None, context.now)
    }
}

impl Director for Dns {
    fn type_name(&self) -> &'static str {
        "dns"
    }

    fn members(&self) -> Arc<[Member]> {
        Arc::clone(&self.members)
    }

    fn choose(&self, _: DirectorId, _: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.domain(context).map(|domain| domain.id())
    }

    /// Always healthy while the host of the request is unknown.
    fn own_health(&self, changed: f64) -> Option<(bool, f64)> {
        Some((true, changed))
    }

    fn is_judged(&self) -> bool {
        false
    }

    fn first_lookup(&self, context: &ResolveContext<'_>) -> Option<Arc<Domain>> {
        self.domain(context).filter(|domain| domain.is_new())
    }
}

fn settings(name: &str, block: &NamesBlock, fixed: Vec<Fixed>) -> MakerSettings {
    let common = &block.common;
    let list = AclDefinition { name: name.to_owned(), log: false, entries: block.list.clone() };
    MakerSettings {
        port: if common.port.is_empty() { PORT.to_owned() } else { common.port.clone() },
        host_header: Some(common.host_header.clone()).filter(|header| !header.is_empty()),
        allowed: Some(Arc::new(AclIndex::new(&list))),
        ttl: block.ttl,
        connect_timeout: common.connect_timeout,
        first_byte_timeout: common.first_byte_timeout,
        between_bytes_timeout: common.between_bytes_timeout,
        domain_usage_timeout: block.ttl.max(USAGE_SECONDS_MIN),
        first_lookup_timeout: FIRST_LOOKUP_SECONDS,
        max_connections: common.max_connections,
        retry_after: block.ttl,
        speaker: Speaker::Block,
        fixed,
        ..MakerSettings::of(name)
    }
}
