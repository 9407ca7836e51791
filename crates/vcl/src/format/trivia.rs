//! Comments and line ends between two tokens.
//!
//! The lexer drops both, which makes the compiler faster. If lexing gave no errors, there are only
//! white space and comments between the tokens, so they can be found again from the spans of the
//! tokens on either side.

/// A comment in its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Comment {
    /// First byte.
    pub(crate) start: usize,
    /// One past the last byte; the end of the line is not part of it.
    pub(crate) end: usize,
    /// Number of line ends between the preceding text and the comment.
    pub(crate) newlines_before: usize,
    /// `#` or `//`: it ends with its line.
    pub(crate) to_line_end: bool,
}

/// Everything between two tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Gap {
    /// The comments, in order.
    pub(crate) comments: Vec<Comment>,
    /// Number of line ends after the last comment; if there is none, all of them.
    pub(crate) newlines_after: usize,
}

/// Reads the gap from `start` to `end`.
pub(crate) fn gap(text: &[u8], start: usize, end: usize) -> Gap {
    let mut gap = Gap::default();
    let (mut at, mut newlines) = (start, 0);
    while at < end {
        let rest = &text[at..end];
        let (len, to_line_end) = match rest {
            [b'#', ..] | [b'/', b'/', ..] => (rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()), true),
            [b'/', b'*', inner @ ..] => {
                let len = inner.windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |len| len + 4);
                (len, false)
            }
            _ => {
                newlines += usize::from(rest[0] == b'\n');
                at += 1;
                continue;
            }
        };
        gap.comments.push(Comment { start: at, end: at + len, newlines_before: newlines, to_line_end });
        newlines = 0;
        at += len;
    }
    gap.newlines_after = newlines;
    gap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_every_form_are_found_with_the_lines_around_them() {
        let text = b"  # one\n\n/* two\n */ // three\r\n\n";
        let gap = gap(text, 0, text.len());
        let shown: Vec<(&[u8], usize)> =
            gap.comments.iter().map(|found| (&text[found.start..found.end], found.newlines_before)).collect();
        assert_eq!(shown, [(&b"# one"[..], 0), (b"/* two\n */", 2), (b"// three\r", 0)]);
        assert_eq!(gap.newlines_after, 2);
    }
}
