//! Records in a file: length (32), CRC-32 (32), bytes.
//!
//! A process that is killed, or a machine that loses power, leaves an unfinished record at the end.
//! Anything else that is not a record is damage.

/// Bytes before each record.
pub(crate) const HEADER_BYTES: usize = 8;
/// Longest record, in bytes. Messages are shorter; a state with all members is too.
pub(crate) const RECORD_BYTES_MAX: usize = 128 << 10;

/// The end of the records of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// All bytes are records.
    Whole,
    /// The last record is unfinished.
    Torn,
    /// Other bytes follow.
    Damaged,
}

/// Appends a record to `out`.
pub(crate) fn push(out: &mut Vec<u8>, record: &[u8]) {
    debug_assert!(record.len() <= RECORD_BYTES_MAX);
    out.extend_from_slice(&(record.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(record).to_le_bytes());
    out.extend_from_slice(record);
}

/// The record at the beginning of `bytes`, and the rest; `None` if they do not begin with one.
pub(crate) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    // An empty record has the checksum 0: zeros, as a file system leaves them, are not records.
    (!record.is_empty() && crc32fast::hash(record) == u32::from_le_bytes(*checksum)).then_some((record, rest))
}

/// The records of a file with their offsets, the length that they take, and the end after them.
pub(crate) fn records(bytes: &[u8]) -> (Vec<(u64, &[u8])>, u64, End) {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while let Some((record, behind)) = split(rest) {
        found.push(((bytes.len() - rest.len()) as u64, record));
        rest = behind;
    }
    let end = match rest {
        [] => End::Whole,
        rest if rest.iter().all(|byte| *byte == 0) => End::Torn,
        // Complete, but altered: torn only if nothing follows it.
        rest => match rest.split_first_chunk::<4>() {
            None => End::Torn,
            Some((length, _)) => {
                let length = u32::from_le_bytes(*length) as usize;
                let is_torn = length <= RECORD_BYTES_MAX && rest.len() <= HEADER_BYTES + length;
                if is_torn { End::Torn } else { End::Damaged }
            }
        },
    };
    (found, (bytes.len() - rest.len()) as u64, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        [&b"one"[..], b"second", b"3"].iter().for_each(|record| push(&mut bytes, record));
        bytes
    }

    #[test]
    fn unfinished_record_is_torn_at_any_length() {
        let bytes = file();
        let last = bytes.len() - HEADER_BYTES - 1;
        for length in last + 1..bytes.len() {
            let (found, whole, end) = records(&bytes[..length]);
            assert_eq!((found.len(), whole, end), (2, last as u64, End::Torn), "{length}");
        }
        assert_eq!(records(&bytes).2, End::Whole);
        assert_eq!(records(&[&bytes[..], &[0; 100]].concat()).2, End::Torn, "a file may be longer than its data");
    }

    #[test]
    fn altered_record_with_others_behind_it_is_damage() {
        let mut bytes = file();
        bytes[HEADER_BYTES] ^= 1;
        assert_eq!((records(&bytes).0.len(), records(&bytes).2), (0, End::Damaged));
        let mut bytes = file();
        bytes[3] = 0xff;
        assert_eq!(records(&bytes).2, End::Damaged, "no record is that long");
    }
}
