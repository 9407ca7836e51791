//! Messages of a fleet, and the files of a node, with altered bytes.

use fleet::envelope::signed;
use fleet::memory_folder::MemoryFolder;
use fleet::record::{Entry, Record};
use fleet::{Envelope, FleetId, Incarnation, Invalidation, Keeper, Keys, Position};

/// Opens arbitrary bytes as a message, as received and with a valid signature.
///
/// # Panics
/// When bytes without a signature are accepted, or an accepted message changes when it is sealed
/// and opened again.
pub fn envelope(bytes: &[u8]) {
    let keys = Keys::new(&[7; 32], None);
    let fleet = FleetId([1; 8]);
    assert!(Envelope::open(bytes, fleet, &keys).is_err(), "only a member can sign");
    let Ok(opened) = Envelope::open(&signed(bytes, &keys), fleet, &keys) else { return };
    if let fleet::message::Body::Entry { invalidation, .. } = &opened.body {
        let decoded = Invalidation::decode(invalidation);
        assert!(decoded.is_none_or(|decoded| Invalidation::decode(&decoded.encode()) == Some(decoded)));
    }
    if let Some(sealed) = opened.seal(&keys) {
        assert_eq!(Envelope::open(&sealed, fleet, &keys).as_ref(), Ok(&opened));
    }
}

/// Opens arbitrary bytes as the files of a node: the first byte divides the rest into the outbox
/// and the state.
///
/// # Panics
/// When opening fails, when an entry that is reported cannot be read, when the files cannot be used
/// or when they have another content after the next start.
pub fn files(bytes: &[u8]) {
    let Some((at, rest)) = bytes.split_first() else { return };
    let (outbox, state) = rest.split_at(usize::from(*at).min(rest.len()));
    let mut folder = MemoryFolder::default();
    folder.insert("outbox-00000000000000000001", outbox.to_vec());
    folder.insert("state", state.to_vec());
    let (mut keeper, kept) = Keeper::open(folder).expect("damage is no failure");
    let numbers = kept.first..kept.first + kept.entries.len() as u64;
    for counter in numbers.clone() {
        assert_eq!(keeper.read(counter).expect("an entry that was found").position.counter, counter);
    }
    let last = numbers.end.max(kept.state.floor.counter + 1);
    let position = Position { counter: last, incarnation: Incarnation(9) };
    let invalidation = Invalidation::Everything.encode();
    let entry = Entry { position, after: Incarnation(8), wall_ms: 0, invalidation };
    keeper.write(1, &Record::Entry(entry.clone()));
    assert_eq!(keeper.sync().len(), 1, "nothing failed");
    assert_eq!(keeper.read(last).ok().as_ref(), Some(&entry));
    let (again, _) = Keeper::open(keeper.into_folder()).expect("a second start");
    assert_eq!(again.read(last).ok(), Some(entry));
}
