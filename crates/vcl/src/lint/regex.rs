//! Readings of regular expressions, without compiling them.

/// Number of groups that capture.
pub(super) fn groups(pattern: &str) -> usize {
    let letters: Vec<char> = pattern.chars().collect();
    let captures = |at: usize| match letters.get(at + 1) {
        Some('?') => match (letters.get(at + 2), letters.get(at + 3)) {
            (Some('P' | '\''), _) => true,
            (Some('<'), Some(next)) => !['=', '!'].contains(next),
            _ => false,
        },
        Some('*') => false,
        _ => true,
    };
    plain(&letters).filter(|&at| letters[at] == '(' && captures(at)).count()
}

/// The highest group that a replacement names: `\1`.
pub(super) fn highest_group(replacement: &str) -> Option<usize> {
    let mut letters = replacement.chars().peekable();
    let mut highest = None;
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            let group = letters.next().and_then(|digit| digit.to_digit(10)).map(|digit| digit as usize);
            highest = highest.max(group);
        }
    }
    highest
}

/// The text that an expression of the form `^text$` matches; `None` for any other expression, and
/// for a text that a string in quotes cannot hold.
pub(super) fn fixed_text(pattern: &str) -> Option<String> {
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().filter(char::is_ascii_punctuation)?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => return None,
            _ => text.push(letter),
        }
    }
    (!text.is_empty() && !text.contains(['"', '\n', '\\', '%'])).then_some(text)
}

/// True for a repeated group that contains only one repeated item, such as `(a+)+` or `(.*)*`.
pub(super) fn is_exponential(pattern: &str) -> bool {
    let letters: Vec<char> = pattern.chars().collect();
    let mut open: Vec<usize> = Vec::new();
    for at in plain(&letters) {
        match letters[at] {
            '(' => open.push(at),
            ')' => {
                let Some(start) = open.pop() else { continue };
                let is_repeated = matches!(letters.get(at + 1), Some('+' | '*'));
                let is_possessive = matches!(letters.get(at + 2), Some('+'));
                if is_repeated && !is_possessive && is_one_repeated_item(&letters[start + 1..at]) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// True for one letter or class, followed by `+` or `*`.
fn is_one_repeated_item(letters: &[char]) -> bool {
    let letters = letters.strip_prefix(&['?', ':']).unwrap_or(letters);
    let item = match letters {
        ['\\', _, ..] => 2,
        ['[', ..] => match class_end(letters, 0) {
            Some(end) => end + 1,
            None => return false,
        },
        ['(' | ')', ..] | [] => return false,
        _ => 1,
    };
    matches!(&letters[item..], ['+' | '*'])
}

/// The places of letters that are neither escaped nor in a class.
fn plain(letters: &[char]) -> impl Iterator<Item = usize> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let here = at;
            match letters.get(here)? {
                '\\' => at += 2,
                '[' => at = class_end(letters, here)? + 1,
                _ => {
                    at += 1;
                    return Some(here);
                }
            }
        }
    })
}

/// The place of the bracket that ends a class.
fn class_end(letters: &[char], start: usize) -> Option<usize> {
    let mut at = start + 1;
    if letters.get(at) == Some(&'^') {
        at += 1;
    }
    if letters.get(at) == Some(&']') {
        // At the beginning it is an item of the class.
        at += 1;
    }
    while let Some(letter) = letters.get(at) {
        match letter {
            ']' => return Some(at),
            '\\' => at += 2,
            '[' if letters.get(at + 1) == Some(&':') => {
                let end = letters[at..].windows(2).position(|pair| pair == [':', ']'].as_slice())?;
                at += end + 2;
            }
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_without_those_that_do_not_capture() {
        for (pattern, count) in [
            ("(a)(b)", 2),
            (r"\(a\)", 0),
            ("[(](a)", 1),
            ("(?:a)(?i)(?<n>b)(?<=c)", 1),
            ("(?P<n>a)", 1),
            ("[]()]", 0),
            ("[[:alpha:](](a)", 1),
            ("(", 1),
            ("[", 0),
            ("", 0),
        ] {
            assert_eq!(groups(pattern), count, "{pattern}");
        }
        assert_eq!((highest_group(r"/\1\3"), highest_group(r"\\1"), highest_group("a\\")), (Some(3), None, None));
    }

    #[test]
    fn fixed_texts_are_recognised() {
        assert_eq!(fixed_text(r"^www\.example\.com$").as_deref(), Some("www.example.com"));
        for other in ["^a.c$", "^a", "a$", "^$", r"^\d$", "^a|b$", "(?i)^a$", r"^a\\$", "^\"$"] {
            assert_eq!(fixed_text(other), None, "{other}");
        }
    }

    #[test]
    fn only_a_repetition_of_a_repetition_is_exponential() {
        for pattern in ["(a+)+", "^(.*)*$", r"(\w+)*x", "(?:[^/]+)+", "x([[:alpha:]]*)+"] {
            assert!(is_exponential(pattern), "{pattern}");
        }
        for pattern in ["(a+;)+", "(a)+", "([^;]+;)*", "(a+)?", "(a+)", "(a+)++", "((a)+b)*", "(", ")", ""] {
            assert!(!is_exponential(pattern), "{pattern}");
        }
    }
}
