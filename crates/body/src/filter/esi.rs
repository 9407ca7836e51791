//! `esi` and `esi_gzip`: a page is parsed while it is stored. The machines are in `crate::esi`.
//!
//! Towards a client `esi` is only a name: the code that sends a page assembles it, and determines
//! the bytes sent. Compat: header changes of Varnish 7.1.1. A partial response is refused before
//! any filter is opened.

use super::{Coding, Effect, Opened, Opening, Side};
use crate::esi::machine::{Esi, EsiGzip, Page};
use crate::esi::parser::Leniency;
use surface::counter::Main;
use surface::parameter::{debug, feature};

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let page = page(opening)?;
    Some(Opened { machine: Box::new(Esi::new(&page)), effect: Effect::of_length(opening.length) })
}

pub(super) fn open_gzip(opening: &mut Opening<'_>) -> Option<Opened> {
    let page = page(opening)?;
    opening.weaken_etag();
    opening.head.unset("Content-Length");
    opening.head.unset("Content-Encoding");
    opening.head.append("Content-Encoding", b"gzip");
    opening.vary_on_encoding();
    let level = u32::try_from(opening.parameters.gzip_level).unwrap_or(6);
    let effect = Effect { length: None, coding: Coding::Packed, counter: Some(Main::NGzip) };
    Some(Opened { machine: Box::new(EsiGzip::new(&page, level)), effect })
}

/// The page that is received from an origin; there is none in other directions.
fn page(opening: &mut Opening<'_>) -> Option<Page> {
    if opening.side != Side::Beresp {
        return None;
    }
    let features = opening.parameters.feature;
    let leniency = Leniency {
        any_page: features & feature::ESI_DISABLE_XML_CHECK != 0,
        within_tags: features & feature::ESI_IGNORE_OTHER_ELEMENTS != 0,
        byte_order_mark: features & feature::ESI_REMOVE_BOM != 0,
        https: features & feature::ESI_IGNORE_HTTPS != 0,
    };
    let is_chopped = opening.parameters.debug & debug::ESI_CHOP != 0;
    Some(Page { target: opening.head.target().to_vec(), leniency, is_chopped })
}
