//! Recordings of traffic with altered bytes.

use recording::{Item, Masks, Reader, Writer};

/// Reads arbitrary bytes as a recording. The first byte decides whether they are the file itself,
/// or the unpacked items of a valid frame.
///
/// # Panics
/// When items that were read, and masked, cannot be written and read again.
pub fn file(bytes: &[u8]) {
    let Some((form, rest)) = bytes.split_first() else { return };
    let packed = (form % 2 == 1).then(|| Writer::<Vec<u8>>::frame(rest));
    let Ok(mut reader) = Reader::open(packed.as_deref().unwrap_or(rest)) else { return };
    let masks = Masks::new([7; 32]);
    let mut written = Vec::new();
    let mut writer = Writer::begin(&mut written, reader.notes()).expect("memory takes what is written");
    let mut items = Vec::new();
    for mut item in reader.by_ref() {
        if let Item::Exchange(exchange) = &mut item {
            masks.apply(exchange);
        }
        writer.add(&item).expect("memory takes what is written");
        items.push(item);
    }
    writer.flush().expect("memory takes what is written");
    let again: Vec<Item> = Reader::open(&written[..]).expect("a recording that was written").collect();
    assert_eq!(again.len(), items.len());
    for (one, other) in items.iter().zip(&again) {
        let is_cut = matches!(other, Item::Exchange(exchange) if exchange.is_cut);
        // NaN is not equal to itself.
        assert!(is_cut || format!("{one:?}") == format!("{other:?}"));
    }
}
