//! Comparison of two texts in the form of `diff -u`.

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;
/// If the product of the line counts is larger, a changed part is shown as replaced as a whole.
const SEARCH_MAX: usize = 4_000_000;

/// A line and its change.
enum Line<'a> {
    Same(&'a [u8]),
    Gone(&'a [u8]),
    New(&'a [u8]),
}

/// The differences; empty if there are none.
pub(super) fn unified(old_name: &str, old: &[u8], new_name: &str, new: &[u8]) -> Vec<u8> {
    if old == new {
        return Vec::new();
    }
    let old: Vec<&[u8]> = old.split_inclusive(|&byte| byte == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|&byte| byte == b'\n').collect();
    let lines = compare(&old, &new);
    let mut out = format!("--- {old_name}\n+++ {new_name}\n").into_bytes();
    let changed: Vec<usize> = (0..lines.len()).filter(|&index| !matches!(lines[index], Line::Same(_))).collect();
    let mut next = 0;
    while let Some(&first) = changed.get(next) {
        let start = first.saturating_sub(CONTEXT_LINES);
        let mut last = first;
        while let Some(&index) = changed.get(next).filter(|&&index| index <= last + 2 * CONTEXT_LINES + 1) {
            last = index;
            next += 1;
        }
        hunk(&lines, start, (last + 1 + CONTEXT_LINES).min(lines.len()), &mut out);
    }
    out
}

fn hunk(lines: &[Line], start: usize, end: usize, out: &mut Vec<u8>) {
    let count = |part: &[Line], new: bool| {
        let counted = |line: &&Line| match line {
            Line::Same(_) => true,
            Line::Gone(_) => !new,
            Line::New(_) => new,
        };
        part.iter().filter(counted).count()
    };
    let (before, shown) = (&lines[..start], &lines[start..end]);
    let range = |new: bool| {
        let (first, len) = (count(before, new), count(shown, new));
        format!("{},{len}", if len == 0 { first } else { first + 1 })
    };
    out.extend_from_slice(format!("@@ -{} +{} @@\n", range(false), range(true)).as_bytes());
    for line in shown {
        let (mark, text) = match line {
            Line::Same(text) => (b' ', text),
            Line::Gone(text) => (b'-', text),
            Line::New(text) => (b'+', text),
        };
        out.push(mark);
        out.extend_from_slice(text);
        if !text.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// First finds the common beginning and end; then, in between, the longest common subsequence, with
/// a table of lengths.
fn compare<'a>(old: &[&'a [u8]], new: &[&'a [u8]]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<Line> = old[..head].iter().map(|line| Line::Same(line)).collect();
    if a.len().saturating_mul(b.len()) > SEARCH_MAX {
        lines.extend(a.iter().map(|line| Line::Gone(line)));
        lines.extend(b.iter().map(|line| Line::New(line)));
    } else {
        let width = b.len() + 1;
        let mut lengths = vec![0u32; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                lengths[i * width + j] = if a[i] == b[j] {
                    lengths[(i + 1) * width + j + 1] + 1
                } else {
                    lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                lines.push(Line::Same(a[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == b.len() || (i < a.len() && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) {
                lines.push(Line::Gone(a[i]));
                i += 1;
            } else {
                lines.push(Line::New(b[j]));
                j += 1;
            }
        }
    }
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}
