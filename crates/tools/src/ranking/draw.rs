//! The display of `varnishtop`.

use surface::tag::TAGS;

use super::table::Entry;
use crate::live::LogFacts;
use crate::screen::{BOLD, Canvas, PLAIN};

/// The line of the first entry.
pub(super) const FIRST_LINE: usize = 2;

/// Draws the part above the entries.
pub(super) fn head(entries: usize, log: &LogFacts, canvas: &mut Canvas) {
    let right = if log.ended { format!("{} (EOF)", log.identity) } else { log.identity.clone() };
    canvas.put_before(canvas.width().saturating_sub(1), 0, &right, PLAIN);
    canvas.put(0, 0, &format!("list length {entries}"), PLAIN);
    canvas.put(0, 1, &log.notice, BOLD);
}

/// Draws the entries from number `top` on.
pub(super) fn entries(ranking: &[Entry], top: usize, canvas: &mut Canvas) {
    let width = TAGS.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let visible = canvas.height().saturating_sub(FIRST_LINE);
    for (line, entry) in ranking.iter().skip(top).take(visible).enumerate() {
        // No window is wider, so the text beyond is not examined.
        let text = &entry.text[..entry.text.len().min(4 * canvas.width())];
        let text = String::from_utf8_lossy(text);
        let line = FIRST_LINE + line;
        canvas.put(0, line, &format!("{:9.2} {:<width$} {text}", entry.count, entry.tag.name()), PLAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::drawn;
    use surface::tag::Tag;

    #[test]
    fn count_tag_and_text_stand_in_columns() {
        let ranking = [
            Entry { count: 12.5, tag: Tag::ReqURL, text: b"/a/long/path/that/is/cut" },
            Entry { count: 1.0, tag: Tag::BackendHealth, text: b"\x1b[2J\xff" },
            Entry { count: 1.0, tag: Tag::VCLCall, text: b"below" },
        ];
        let lines = drawn(40, 4, |canvas| {
            let log = LogFacts { identity: "host".to_owned(), notice: "Log overrun".to_owned(), ended: true };
            head(3, &log, canvas);
            entries(&ranking, 0, canvas);
        });
        assert_eq!(
            lines,
            [
                "list length 3                host (EOF)",
                "Log overrun",
                "    12.50 ReqURL         /a/long/path/th",
                "     1.00 Backend_health .[2J\u{fffd}",
            ]
        );
        let below = drawn(40, 3, |canvas| entries(&ranking, 2, canvas));
        assert_eq!(below[2], "     1.00 VCL_call       below");
        assert!(drawn(3, 1, |canvas| entries(&ranking, 0, canvas)).iter().all(String::is_empty));
    }
}
