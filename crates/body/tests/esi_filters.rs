//! `esi` and `esi_gzip` by their VCL names: their changes of the head, and the values they take
//! from their context.

use body::esi::{Instruction, Plan};
use body::{Chain, Coding, Effect, Head, Opening, Side, filter};
use message::Message;
use semantics::ranges::RangeRules;
use surface::counter::Main;
use surface::parameter::{Parameters, debug, feature};

struct Origin {
    head: Message,
}

impl Head for Origin {
    fn message(&self) -> &Message {
        &self.head
    }

    fn request(&self) -> Option<&Message> {
        None
    }

    fn target(&self) -> &[u8] {
        b"/shop/page?id=1"
    }

    fn body_tail(&self) -> Option<[u8; 4]> {
        None
    }

    fn append(&mut self, name: &str, value: &[u8]) {
        self.head.append(name.as_bytes(), value);
    }

    fn set(&mut self, name: &str, value: &[u8]) {
        self.unset(name);
        self.append(name, value);
    }

    fn unset(&mut self, name: &str) {
        self.head.unset(name);
    }

    fn set_status(&mut self, status: u16) {
        self.head.set_status(status);
    }

    fn debug(&mut self, _text: &str) {}

    fn error(&mut self, text: &str) {
        panic!("{text}");
    }
}

fn origin(headers: &[(&str, &str)]) -> Origin {
    let mut head = Message::new();
    head.set_status(200);
    for (name, value) in headers {
        head.append(name.as_bytes(), value.as_bytes());
    }
    Origin { head }
}

/// Opens a filter for a body of ten bytes and gives it a page.
fn opened(name: &str, side: Side, origin: &mut Origin, parameters: &Parameters) -> Option<(Effect, Chain)> {
    let row = filter::find(name.as_bytes(), side).unwrap();
    let opened = (row.open)(&mut Opening {
        side,
        head: origin,
        length: Some(10),
        is_filtered: false,
        parameters,
        ranges: RangeRules::Varnish,
    })?;
    let mut chain = Chain::default();
    assert!(chain.push(opened.machine));
    Some((opened.effect, chain))
}

/// The targets of the fragments of a page, and the notes about it.
fn parsed(parameters: &Parameters, page: &str) -> (Vec<String>, Vec<String>) {
    let (_, mut chain) = opened("esi", Side::Beresp, &mut origin(&[]), parameters).unwrap();
    let (mut rest, mut notes) = (page.as_bytes(), Vec::new());
    while !chain.has_ended() {
        let step = chain.step((!rest.is_empty()).then_some(rest)).unwrap();
        rest = &rest[step.taken..];
        notes.extend(std::iter::from_fn(|| chain.note()).map(|note| note.to_string()));
    }
    let plan = chain.annex().unwrap_or_default();
    let targets = Plan::decode(&plan).into_iter().flat_map(|plan| plan.instructions());
    let targets = targets.filter_map(|instruction| match instruction {
        Instruction::Include { target, .. } => Some(String::from_utf8_lossy(target).into_owned()),
        _ => None,
    });
    (targets.collect(), notes)
}

#[test]
fn a_page_that_is_stored_as_it_came_keeps_its_head() {
    let headers = [("ETag", "\"a\""), ("Content-Length", "10"), ("Content-Type", "text/html")];
    let mut origin = origin(&headers);
    let (effect, _) = opened("esi", Side::Beresp, &mut origin, &Parameters::default()).unwrap();
    assert_eq!(effect, Effect::of_length(Some(10)));
    assert!(headers.iter().all(|(name, value)| origin.head.get(name) == Some(value.as_bytes())));
}

#[test]
fn a_page_that_is_packed_has_the_head_of_a_gzipped_one() {
    let mut origin = origin(&[("ETag", "\"a\""), ("Content-Length", "10")]);
    let (effect, chain) = opened("esi_gzip", Side::Beresp, &mut origin, &Parameters::default()).unwrap();
    assert_eq!(effect, Effect { length: None, coding: Coding::Packed, counter: Some(Main::NGzip) });
    let head = &origin.head;
    assert_eq!(head.get("ETag"), Some(&b"W/\"a\""[..]));
    assert_eq!(head.get("Content-Encoding"), Some(&b"gzip"[..]));
    assert_eq!(head.get("Vary"), Some(&b"Accept-Encoding"[..]));
    assert!(!head.has("Content-Length"));
    assert!(chain.passed(0).1.is_some_and(|totals| totals.is_esi && totals.work == 'G'));
}

#[test]
fn only_what_an_origin_sends_is_a_page() {
    for (name, side) in [("esi", Side::Req), ("esi", Side::Resp), ("esi_gzip", Side::Req)] {
        assert!(opened(name, side, &mut origin(&[]), &Parameters::default()).is_none());
    }
    assert_eq!(filter::refusal_of_part(b"gunzip gzip"), None);
    let why = "Attempted ESI on partial (206) response";
    assert_eq!(filter::refusal_of_part(b"gunzip esi_gzip"), Some(("esi_gzip", why)));
    assert_eq!(filter::refusal_of_part(b" esi"), Some(("esi", why)));
}

#[test]
fn addresses_are_relative_to_what_the_origin_was_asked_for() {
    let (targets, _) = parsed(&Parameters::default(), "<esi:include src=\"part\"/><esi:include src=\"/part\"/>");
    assert_eq!(targets, ["/shop/part", "/part"]);
}

#[test]
fn parameters_say_what_may_be_done_with_a_page() {
    let pages = [
        (feature::ESI_DISABLE_XML_CHECK, "text <esi:include src=\"/x\"/>"),
        (feature::ESI_IGNORE_OTHER_ELEMENTS, "<p <esi:include src=\"/x\"/>>"),
        (feature::ESI_REMOVE_BOM, "\u{feff}<esi:include src=\"/x\"/>"),
        (feature::ESI_IGNORE_HTTPS, "<esi:include src=\"https://h/x\"/>"),
    ];
    for (bit, page) in pages {
        let mut parameters = Parameters::default();
        parameters.feature &= !pages.iter().fold(0, |bits, (bit, _)| bits | bit);
        assert!(parsed(&parameters, page).0.is_empty(), "{page}");
        parameters.feature |= bit;
        assert_eq!(parsed(&parameters, page).0, ["/x"], "{page}");
    }
}

#[test]
fn a_page_in_small_pieces_is_the_same_page() {
    let mut parameters = Parameters::default();
    let page = "<p>1<esi:include src=\"/x\"/>2<esi:bogus/>3";
    let at_once = parsed(&parameters, page);
    assert_eq!(at_once.1, ["ERR after 28 ESI 1.0 <esi:bogus> element"]);
    parameters.debug |= debug::ESI_CHOP;
    assert_eq!(parsed(&parameters, page), at_once);
}

#[test]
fn a_plan_of_bytes_that_a_later_filter_changes_is_dropped() {
    for (later, has_plan) in [("gzip", false), ("esi", true)] {
        let mut origin = origin(&[]);
        let mut chain = Chain::default();
        for name in ["esi", later] {
            let row = filter::find(name.as_bytes(), Side::Beresp).unwrap();
            let parameters = Parameters::default();
            let opened = (row.open)(&mut Opening {
                side: Side::Beresp,
                head: &mut origin,
                length: None,
                is_filtered: false,
                parameters: &parameters,
                ranges: RangeRules::Varnish,
            });
            assert!(chain.push(opened.unwrap().machine));
        }
        let mut rest = &b"<esi:include src='/x'/>"[..];
        while !chain.has_ended() {
            let step = chain.step((!rest.is_empty()).then_some(rest)).unwrap();
            rest = &rest[step.taken..];
        }
        assert_eq!(chain.annex().is_some(), has_plan, "esi {later}");
    }
}
