//! No page takes more than its share of memory or of the plan; anything beyond is reported, and
//! sent unchanged.

use body::esi::{Esi, EsiGzip, Instruction, Leniency, NoteLevel, Page, Plan, PlanWriter};
use body::{Chain, Flow, Gunzip, Machine, whole};
use surface::limits::{
    ESI_GZIP_QUEUE_BYTES, ESI_INCLUDES_MAX, ESI_PLAN_BYTES_MAX, ESI_SRC_BYTES_MAX, FILTER_STEP_BYTES_MAX,
    GZIP_STATE_BYTES,
};

fn page() -> Page {
    Page { target: b"/".to_vec(), leniency: Leniency::default(), is_chopped: false }
}

/// The output, the plan, the notes, and the maximum memory used.
struct Pulled {
    body: Vec<u8>,
    plan: Option<Vec<u8>>,
    notes: Vec<(NoteLevel, String)>,
    held_bytes_max: usize,
}

fn pulled(machine: impl Machine + 'static, text: &[u8]) -> Pulled {
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(machine)));
    let mut pulled = Pulled { body: Vec::new(), plan: None, notes: Vec::new(), held_bytes_max: 0 };
    for mut rest in text.chunks(100_000).map(Some).chain([None]) {
        loop {
            let step = chain.step(rest).unwrap();
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
            pulled.body.extend_from_slice(step.bytes);
            rest = rest.map(|rest| &rest[step.taken..]);
            let flow = step.flow;
            pulled.notes.extend(std::iter::from_fn(|| chain.note()).map(|note| (note.level(), note.to_string())));
            pulled.held_bytes_max = pulled.held_bytes_max.max(chain.memory_bytes());
            if flow == Flow::Ended || (flow == Flow::Hungry && rest.is_some_and(<[u8]>::is_empty)) {
                break;
            }
        }
    }
    pulled.plan = chain.annex();
    pulled
}

/// The bytes that a plan sends, and the number of fragments.
fn sent(pulled: &Pulled) -> (Vec<u8>, usize) {
    let (mut sent, mut at, mut includes) = (Vec::new(), 0, 0);
    for instruction in Plan::decode(pulled.plan.as_deref().unwrap()).unwrap().instructions() {
        match instruction {
            Instruction::Verbatim { bytes, .. } => {
                sent.extend_from_slice(&pulled.body[at..][..bytes as usize]);
                at += bytes as usize;
            }
            Instruction::Skip { bytes } => at += bytes as usize,
            Instruction::Include { .. } => includes += 1,
        }
    }
    assert_eq!(at, pulled.body.len());
    (sent, includes)
}

#[test]
fn a_page_includes_a_number_of_fragments_and_the_rest_of_it_is_sent_as_it_stands() {
    let tag = "<esi:include src=\"/x\"/>";
    let text = tag.repeat(ESI_INCLUDES_MAX + 2) + "<esi:remove>z";
    let pulled = pulled(Esi::new(&page()), text.as_bytes());
    let (sent, includes) = sent(&pulled);
    assert_eq!(includes, ESI_INCLUDES_MAX);
    assert_eq!(String::from_utf8(sent).unwrap(), tag.to_owned() + "<esi:remove>z");
    let after = ESI_INCLUDES_MAX * tag.len();
    let why = format!("ERR after {after} ESI 1.0 Too many <esi:include>: the rest of the page is not processed");
    assert_eq!(pulled.notes, [(NoteLevel::Error, why)]);
}

#[test]
fn an_address_with_a_control_character_is_not_included() {
    for byte in (1..0x20).chain([0x7f]).filter(|byte| !b"\t\r\n".contains(byte)) {
        for (before, after) in [("/a", "b"), ("http://a", "/b"), ("a/", "")] {
            let text =
                [b"<p>1<esi:include src=\"", before.as_bytes(), &[byte], after.as_bytes(), b"\"/>2</p>"].concat();
            let pulled = pulled(Esi::new(&page()), &text);
            assert_eq!(sent(&pulled), (b"<p>12</p>".to_vec(), 0));
            let why = "ERR after 4 ESI 1.0 <esi:include> has control character in src= attribute";
            assert_eq!(pulled.notes, [(NoteLevel::Error, why.to_owned())]);
        }
    }
}

#[test]
fn a_plan_has_a_length_and_the_rest_of_the_page_is_sent_as_it_stands() {
    let source = "x".repeat(ESI_SRC_BYTES_MAX - 1);
    for part in ["a<esi:comment/>", "a<!--esi b-->", &format!("<esi:include src=\"/{source}\"/>")] {
        let text = "<p>".to_owned() + &part.repeat(6 * ESI_PLAN_BYTES_MAX / part.len());
        let text = text.as_bytes();
        let pulled = pulled(Esi::new(&page()), text);
        let plan_bytes = pulled.plan.as_ref().unwrap().len();
        assert!(plan_bytes <= ESI_PLAN_BYTES_MAX && plan_bytes > ESI_PLAN_BYTES_MAX - 10_000, "{plan_bytes}");
        assert!(pulled.held_bytes_max <= 2 * ESI_PLAN_BYTES_MAX + 30_000, "{}", pulled.held_bytes_max);
        let (sent, _) = sent(&pulled);
        assert!(sent.ends_with(&text[text.len() - 1000..]));
        let (level, why) = &pulled.notes[0];
        assert_eq!((*level, pulled.notes.len()), (NoteLevel::Error, 1));
        assert!(why.ends_with("the rest of the page is not processed"), "{why}");
    }
}

#[test]
fn overlong_src_is_not_included_and_the_page_continues() {
    let longest = "x".repeat(ESI_SRC_BYTES_MAX - 1);
    let text = format!("1<esi:include src=\"/{longest}\"/>2<esi:include src=\"/{longest}y\"/>3");
    let text = "<p>".to_owned() + &text;
    let pulled = pulled(Esi::new(&page()), text.as_bytes());
    assert_eq!(sent(&pulled), (b"<p>123".to_vec(), 1));
    assert_eq!(pulled.notes.len(), 1);
    assert!(pulled.notes[0].1.ends_with("ESI 1.0 <esi:include> has too long src= attribute"));
    assert!(pulled.held_bytes_max < 4 * ESI_SRC_BYTES_MAX);
}

#[test]
fn a_tag_of_megabytes_takes_no_memory() {
    let long = "x".repeat(2 << 20);
    for tag in [
        format!("<esi:include src=\"{long}\"/>"),
        format!("<esi:include onerror=\"{long}\"/>"),
        format!("<esi:include foo=\"{long}\"/>"),
        format!("<esi:include {long}/>"),
        format!("<esi:comment a=\"{long}\"/>"),
        format!("<esi:remove{}>{long}</esi:remove>", " ".repeat(2 << 20)),
        format!("<!--esi {long}-->"),
        format!("<{long}>"),
        format!("<!--{long}-->"),
        format!("<![CDATA[{long}]]>"),
        format!("<esi:{long}>"),
    ] {
        let pulled = pulled(Esi::new(&page()), format!("<p>{tag}<esi:comment/>").as_bytes());
        assert!(pulled.held_bytes_max < 3 * ESI_SRC_BYTES_MAX, "{} {}", &tag[..20], pulled.held_bytes_max);
        assert!(pulled.plan.is_some());
    }
}

#[test]
fn page_of_errors_is_read_to_its_end_and_every_error_reported() {
    let text = "<esi:>".repeat(100_000);
    let plain = pulled(Esi::new(&page()), text.as_bytes());
    assert_eq!(plain.notes.len(), 100_000);
    assert!(plain.held_bytes_max < 16 << 10, "{}", plain.held_bytes_max);
    assert_eq!(sent(&plain), (Vec::new(), 0));
    let packed = pulled(EsiGzip::new(&page(), 6), &text.as_bytes()[..60_000]);
    assert_eq!(packed.notes.len(), 10_000);
}

#[test]
fn untaken_notes_are_bounded() {
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(Esi::new(&page()))));
    let text = "<esi:>".repeat(100_000);
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let step = chain.step(Some(rest)).unwrap();
        rest = &rest[step.taken..];
    }
    assert!(chain.memory_bytes() < 16 << 10);
}

#[test]
fn memory_of_a_compressed_page_is_bounded_for_any_page() {
    let noise: Vec<u8> = (0..200_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let dense = b"a<esi:>".repeat(5_000);
    for text in [&noise, &dense, &vec![b'<'; 400_000]] {
        let text = [&b"<"[..], text].concat();
        for level in [0, 1, 6, 9] {
            let pulled = pulled(EsiGzip::new(&page(), level), &text);
            let fixed = GZIP_STATE_BYTES + ESI_GZIP_QUEUE_BYTES + FILTER_STEP_BYTES_MAX;
            assert!(pulled.held_bytes_max < fixed + 2 * ESI_PLAN_BYTES_MAX);
            let mut plain = Vec::new();
            whole(Gunzip::new(None), &pulled.body, usize::MAX, &mut plain).unwrap();
            assert!(plain == text);
        }
    }
}

#[test]
fn a_plan_that_was_not_written_like_this_is_none() {
    let mut writer = PlanWriter::new(true);
    writer.push(Instruction::Skip { bytes: 10 });
    writer.push(Instruction::Verbatim { bytes: 300, crc32: 0x0102_0304, plain_bytes: 70_000 });
    writer.push(Instruction::Include { host: Some(b"h"), target: b"/x", continues: true });
    writer.push(Instruction::Include { host: None, target: b"", continues: false });
    writer.push(Instruction::Verbatim { bytes: u64::MAX - 310, crc32: 0, plain_bytes: u64::MAX });
    let bytes = writer.finish();
    let plan = Plan::decode(&bytes).unwrap();
    assert_eq!((plan.is_gzipped(), plan.body_bytes(), plan.instructions().count()), (true, u64::MAX, 5));
    let whole_instructions = [2, 4, 14, 20, 22, bytes.len()];
    for length in 0..bytes.len() {
        assert_eq!(Plan::decode(&bytes[..length]).is_some(), whole_instructions.contains(&length), "{length}");
    }
    let damages: &[&[u8]] = &[
        &[],
        &[2, 0],
        &[1, 2],
        &[1, 0, 0],
        &[1, 0, 4],
        &[1, 0, 1, 0],
        &[1, 0, 2, 0],
        &[1, 0, 1, 5, 1, 5],
        &[1, 0, 2, 5, 2, 5],
        &[1, 0, 1, 0x85, 0],
        &[1, 0, 3, 2, b'/'],
        &[1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        &[1, 0, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        &[1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 1],
    ];
    for damaged in damages {
        assert_eq!(Plan::decode(damaged), None, "{damaged:?}");
    }
    let too_many = [&[1, 0][..], &[3, 0].repeat(ESI_INCLUDES_MAX + 1)].concat();
    assert_eq!(Plan::decode(&too_many), None);
    assert!(Plan::decode(&too_many[..too_many.len() - 2]).is_some());
    let too_long = [&[1, 0][..], &[2, 1, 1, 1].repeat(ESI_PLAN_BYTES_MAX / 4)].concat();
    assert_eq!(Plan::decode(&too_long), None);
}

#[test]
fn plan_contains_the_reaction_to_a_failed_fragment() {
    let text = "<esi:include src='/a' onerror='continue'/><esi:include src='/b'/>";
    let pulled = pulled(Esi::new(&page()), text.as_bytes());
    let plan = Plan::decode(pulled.plan.as_deref().unwrap()).unwrap();
    let includes = plan.instructions().filter_map(|instruction| match instruction {
        Instruction::Include { target, continues, .. } => Some((target, continues)),
        _ => None,
    });
    assert!(includes.eq([(&b"/a"[..], true), (b"/b", false)]));
}
