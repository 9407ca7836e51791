//! The parser of pages compared with varnishd 7.1.1, for any division of a page into pieces.

#[path = "esi_stock/pages.rs"]
mod stock;

use body::esi::join::{GzipSum, JOINED_HEADER, PlainFragment};
use body::esi::{Esi, EsiGzip, Instruction, Leniency, Page, Plan};
use body::{Chain, Flow, Gunzip, Machine, whole};
use stock::PAGES;

fn page(features: &str) -> Page {
    let has = |name| features.split(',').any(|feature| feature == name);
    let leniency = Leniency {
        any_page: has("esi_disable_xml_check"),
        within_tags: has("esi_ignore_other_elements"),
        byte_order_mark: has("esi_remove_bom"),
        https: has("esi_ignore_https"),
    };
    Page { target: b"/p/1".to_vec(), leniency, is_chopped: false }
}

/// Result of a filter for a page.
#[derive(PartialEq, Debug)]
struct Parsed {
    body: Vec<u8>,
    plan: Option<Vec<u8>>,
    notes: Vec<String>,
}

fn parsed(machine: impl Machine + 'static, page: &[u8], piece: usize) -> Parsed {
    let (mut chain, mut body, mut notes) = (Chain::default(), Vec::new(), Vec::new());
    assert!(chain.push(Box::new(machine)));
    for mut rest in page.chunks(piece).map(Some).chain([None]) {
        loop {
            let step = chain.step(rest).unwrap();
            body.extend_from_slice(step.bytes);
            rest = rest.map(|rest| &rest[step.taken..]);
            let flow = step.flow;
            notes.extend(std::iter::from_fn(|| chain.note()).map(|note| note.to_string()));
            if flow != Flow::More || rest == Some(&[]) {
                break;
            }
        }
    }
    while !chain.has_ended() {
        body.extend_from_slice(chain.step(None).unwrap().bytes);
    }
    Parsed { body, plan: chain.annex(), notes }
}

/// The client's view: the verbatim pieces, and fragments that are their own addresses; joined if
/// the page is gzipped.
fn delivered(body: &[u8], plan: Option<&[u8]>) -> Vec<u8> {
    let Some(plan) = plan else { return body.to_vec() };
    let plan = Plan::decode(plan).expect("a plan that was written is a plan");
    assert_eq!(plan.body_bytes(), body.len() as u64, "a plan covers the body");
    let (mut rest, mut out, mut sum) = (body, Vec::new(), GzipSum::default());
    if plan.is_gzipped() {
        out.extend_from_slice(&JOINED_HEADER);
    }
    for instruction in plan.instructions() {
        match instruction {
            Instruction::Verbatim { bytes, crc32, plain_bytes } => {
                let (sent, after) = rest.split_at(bytes as usize);
                out.extend_from_slice(sent);
                sum.append(GzipSum { crc32, plain_bytes });
                rest = after;
            }
            Instruction::Skip { bytes } => rest = &rest[bytes as usize..],
            Instruction::Include { host, target, .. } => {
                let host = host.map_or_else(Vec::new, |host| [host, b" "].concat());
                let fragment = [b"[", &host[..], target, b"]"].concat();
                if !plan.is_gzipped() {
                    out.extend(fragment);
                    continue;
                }
                let mut chain = Chain::default();
                assert!(chain.push(Box::new(PlainFragment::default())));
                out.extend_from_slice(chain.step(Some(&fragment)).unwrap().bytes);
                sum.append(chain.gzip_sum().unwrap());
            }
        }
    }
    if plan.is_gzipped() {
        out.extend_from_slice(&sum.trailer());
    }
    out
}

fn gunzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    whole(Gunzip::new(None), bytes, usize::MAX, &mut out).unwrap();
    out
}

/// Pages with a different result than in Varnish, and the reasons why that is right.
#[rustfmt::skip]
static DIFFERENT: &[stock::Row] = &[
    // This is the mark; the bytes that Varnish takes for one are not. Without a better word its
    // operators have no hint.
    ("", b"\xef\xbb\xbf<p><esi:include src=\"/a\"/>", b"\xef\xbb\xbf<p><esi:include src=\"/a\"/>", false,
        &["No ESI processing, first char not '<' but BOM. (See feature esi_remove_bom)"]),
    // Varnish leaves out a tag between the characters of an end mark, or not, depending on the
    // pieces in which the page is received.
    ("", b"<p>1<!--esi <b> 2--<b>>3-->4", b"<p>1 <b> 2--<b>3-->4", true, &[]),
    ("", b"<p>1<!--esi <b> 2-<b>->3-->4", b"<p>1 <b> 2-<b>3-->4", true, &[]),
    ("", b"<p>1<!--esi 2--<!---->>3-->4", b"<p>1 2--<!---->3-->4", true, &[]),
];

fn expected() -> impl Iterator<Item = stock::Row> {
    let is_same = |one: &stock::Row, other: &stock::Row| (one.0, one.1) == (other.0, other.1);
    PAGES.iter().map(move |row| *DIFFERENT.iter().find(|other| is_same(other, row)).unwrap_or(row))
}

#[test]
fn where_varnish_differs_is_among_its_pages() {
    assert!(DIFFERENT.iter().all(|row| PAGES.iter().any(|page| (page.0, page.1) == (row.0, row.1))));
}

#[test]
fn esi_pages_and_their_log_match_varnish() {
    for (features, text, sent, has_plan, notes) in expected() {
        let parsed = parsed(Esi::new(&page(features)), text, usize::MAX);
        assert_eq!(parsed.body, text, "the stored body is the page");
        let got = delivered(&parsed.body, parsed.plan.as_deref());
        let name = text.escape_ascii();
        assert_eq!(got.escape_ascii().to_string(), sent.escape_ascii().to_string(), "{features} {name}");
        assert_eq!(
            (parsed.plan.is_some(), &parsed.notes[..]),
            (has_plan, &notes.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
            "{features} {name}"
        );
    }
}

#[test]
fn the_pieces_in_which_a_page_comes_change_nothing() {
    for (features, text, ..) in expected() {
        let page = page(features);
        let at_once = parsed(Esi::new(&page), text, usize::MAX);
        for piece in [1, 2, 3, 5, 8, 13] {
            assert_eq!(parsed(Esi::new(&page), text, piece), at_once, "{} by {piece}", text.escape_ascii());
        }
        let chopped = Page { is_chopped: true, ..page };
        assert_eq!(parsed(Esi::new(&chopped), text, usize::MAX), at_once, "{} chopped", text.escape_ascii());
    }
}

#[test]
fn a_packed_page_is_the_page_and_its_pieces_are_those_of_the_plain_one() {
    for (features, text, sent, has_plan, notes) in expected() {
        for (piece, level) in [(usize::MAX, 6), (1, 9), (3, 1), (7, 0)] {
            let parsed = parsed(EsiGzip::new(&page(features), level), text, piece);
            let name = text.escape_ascii();
            assert_eq!(gunzipped(&parsed.body), text, "without ESI it is sent as it is stored");
            assert_eq!((parsed.plan.is_some(), parsed.notes.len()), (has_plan, notes.len()), "{name}");
            let got = gunzipped(&delivered(&parsed.body, parsed.plan.as_deref()));
            assert_eq!(got.escape_ascii().to_string(), sent.escape_ascii().to_string(), "{features} {name}");
        }
    }
}
