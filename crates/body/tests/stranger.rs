//! A filter outside this crate: everything that it needs is public, and a chain accepts it.

use body::{Chain, FILTERS, FilterError, Flow, Gunzip, Gzip, Machine, Progress, RangeCut, Staging};
use surface::limits::FILTER_STEP_BYTES_MAX;

/// Replaces every letter with the one thirteen positions on. Refuses input that is not text.
struct Rot13;

impl Machine for Rot13 {
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let taken = out.copy_from(input.unwrap_or_default());
        for byte in out.bytes_mut() {
            *byte = match *byte {
                b'a'..=b'z' => (*byte - b'a' + 13) % 26 + b'a',
                b'A'..=b'Z' => (*byte - b'A' + 13) % 26 + b'A',
                0 => return Err(FilterError::new("no text")),
                other => other,
            };
        }
        Ok(Progress { taken, has_ended: input.is_none(), ..Progress::default() })
    }
}

/// Outputs every byte twice: the output does not fit into a step.
struct Stammer;

impl Machine for Stammer {
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let bytes = input.unwrap_or_default();
        let spare = out.spare();
        let taken = bytes.len().min(spare.len() / 2);
        for (pair, byte) in spare.chunks_exact_mut(2).zip(&bytes[..taken]) {
            pair.fill(*byte);
        }
        out.wrote(2 * taken);
        Ok(Progress { taken, has_ended: input.is_none(), ..Progress::default() })
    }
}

/// Never reports its end, or never takes anything.
struct Careless {
    takes: bool,
}

impl Machine for Careless {
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let taken = if self.takes { out.copy_from(input.unwrap_or_default()) } else { 0 };
        Ok(Progress { taken, ..Progress::default() })
    }
}

#[test]
fn a_careless_filter_ends_or_fails_but_does_not_go_on_for_ever() {
    let machine = |takes| -> Vec<Box<dyn Machine>> { vec![Box::new(Careless { takes })] };
    assert_eq!(pulled(b"some text", 4, machine(true)), Ok(b"some text".to_vec()));
    let stuck = pulled(b"some text", 4, machine(false));
    assert_eq!(stuck.map_err(FilterError::text), Err("A filter makes no progress"));
}

/// Pulls a body in pieces, and checks the bound of every step.
fn pulled(body: &[u8], piece: usize, machines: Vec<Box<dyn Machine>>) -> Result<Vec<u8>, FilterError> {
    let mut chain = Chain::default();
    for machine in machines {
        assert!(chain.push(machine));
    }
    let mut out = Vec::new();
    for mut rest in body.chunks(piece).map(Some).chain([None]) {
        loop {
            let step = chain.step(rest)?;
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
            out.extend_from_slice(step.bytes);
            rest = rest.map(|rest| &rest[step.taken..]);
            if step.flow != Flow::More {
                break;
            }
        }
    }
    assert!(chain.has_ended());
    Ok(out)
}

#[test]
fn a_filter_of_a_stranger_takes_its_place_among_the_others() {
    let text = b"Uryyb, jbeyq. ".repeat(20_000);
    for piece in [1, 1000, text.len()] {
        assert!(pulled(&text, piece, vec![Box::new(Rot13)]).unwrap() == b"Hello, world. ".repeat(20_000));
        let there_and_back: Vec<Box<dyn Machine>> =
            vec![Box::new(Gzip::new(6)), Box::new(Gunzip::new(None)), Box::new(Rot13), Box::new(Rot13)];
        assert!(pulled(&text, piece, there_and_back).unwrap() == text);
        let part: Vec<Box<dyn Machine>> = vec![Box::new(Rot13), Box::new(Stammer), Box::new(RangeCut::new(0, 5))];
        assert_eq!(pulled(&text, piece, part).unwrap(), b"HHeell");
    }
}

#[test]
fn methods_that_a_foreign_filter_omits_have_defaults() {
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(Stammer)));
    assert_eq!((chain.memory_bytes(), chain.missing_bytes()), (FILTER_STEP_BYTES_MAX, 0));
    let step = chain.step(Some(b"ab")).unwrap();
    assert_eq!((step.taken, step.bytes, step.flow), (2, &b"aabb"[..], Flow::More));
    let (passed, totals) = chain.passed(0);
    assert_eq!((passed.pieces_in, passed.bytes_in, passed.bytes_out, totals), (1, 2, 4, None));
}

#[test]
fn error_of_a_foreign_filter_is_reported_verbatim() {
    assert_eq!(pulled(b"a\0b", 9, vec![Box::new(Rot13)]).map_err(FilterError::text), Err("no text"));
}

#[test]
fn names_are_there_once_and_fit_into_a_list() {
    for (index, row) in FILTERS.iter().enumerate() {
        assert!(FILTERS[..index].iter().all(|other| other.name != row.name), "{} is there twice", row.name);
        assert!(!row.sides.is_empty() && body::filter::names(row.name.as_bytes()).eq([row.name.as_bytes()]));
        assert!(row.sides.iter().all(|side| body::filter::find(row.name.as_bytes(), *side).is_some()));
    }
}
