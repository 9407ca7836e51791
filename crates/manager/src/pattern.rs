//! Shell patterns for names: `*`, `?` and `[…]`, as fnmatch(3) takes them without flags.

/// Whether `name` matches `pattern`.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // Where to go on after the last star: its place in the pattern, and the name's letter that it swallows next.
    let mut star: Option<(usize, usize)> = None;
    let (mut at, mut letter) = (0, 0);
    while letter < name.len() {
        let step = match pattern.get(at) {
            Some('*') => {
                star = Some((at, letter));
                at += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => set(&pattern[at..], name[letter]),
            Some('\\') if pattern.get(at + 1) == Some(&name[letter]) => Some(2),
            Some(wanted) if *wanted == name[letter] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                at += length;
                letter += 1;
            }
            (None, Some((place, swallowed))) => {
                star = Some((place, swallowed + 1));
                at = place + 1;
                letter = swallowed + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// The length of the set at the start of `pattern` when it has `letter`; a set without an end is a plain bracket.
fn set(pattern: &[char], letter: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = 1 + usize::from(negated);
    let end = pattern.iter().skip(first + 1).position(|found| *found == ']').map(|place| place + first + 1);
    let Some(end) = end else {
        return (letter == '[').then_some(1);
    };
    let mut found = false;
    let mut at = first;
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            found |= (pattern[at]..=pattern[at + 2]).contains(&letter);
            at += 3;
        } else {
            found |= pattern[at] == letter;
            at += 1;
        }
    }
    (found != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_like_file_names() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("boot", "boot", true),
            ("boot", "boot1", false),
            ("*", "", true),
            ("b*t", "boot", true),
            ("b*o*t", "boot", true),
            ("*.vcl1", "a.vcl1.vcl1", true),
            ("v?", "v1", true),
            ("v?", "v", false),
            ("v[0-35]", "v2", true),
            ("v[0-35]", "v4", false),
            ("v[!0-3]", "v4", true),
            ("v[]]", "v]", true),
            ("v[", "v[", true),
            ("v\\*", "v*", true),
            ("v\\*", "vv", false),
            ("**********a", "bbbbbbbbbbbbbbbbbbbbbbbbb", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
