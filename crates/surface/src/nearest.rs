//! The word that was probably meant: the one place that decides which known word is near enough to
//! an unknown one.

/// Number of known words that are compared at most.
const CANDIDATES_MAX: usize = 2_000;
/// Number of bytes of the unknown word that are compared.
const WORD_BYTES_MAX: usize = 64;
/// Largest number of changed letters between two words that are near each other.
const DISTANCE_MAX: usize = 2;
/// Number of letters with which two words begin alike.
const BEGINNING_BYTES_MIN: usize = 3;

/// The known word that is nearest to an unknown one; `None` if none is near enough to be the one
/// that was meant.
pub fn nearest<'w>(word: &str, candidates: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    within((1 + word.len() / 4).min(DISTANCE_MAX), word, candidates)
}

/// The nearest of a few words that share a beginning with the unknown one, beyond the letters that
/// all of them begin with: `recieve` is near `recv`, since nothing else begins so.
pub fn nearest_of_few<'w>(word: &str, candidates: &[&'w str]) -> Option<&'w str> {
    let begins = |candidate: &&&str| {
        let letters = candidate.bytes().zip(word.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
        letters >= BEGINNING_BYTES_MIN
    };
    let alike = candidates.iter().filter(begins).copied();
    nearest(word, candidates.iter().copied()).or_else(|| within(DISTANCE_MAX + 1, word, alike))
}

fn within<'w>(allowed: usize, word: &str, candidates: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let word = &word.as_bytes()[..word.len().min(WORD_BYTES_MAX)];
    candidates
        .take(CANDIDATES_MAX)
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= allowed)
        .map(|candidate| (distance(word, candidate.as_bytes()), candidate))
        // In a word of two letters everything is near everything.
        .filter(|&(distance, candidate)| distance <= allowed && distance < candidate.len().min(word.len()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean --json?`, for the end of a message; `prefix` precedes the word. Empty if no
/// known word is near.
pub fn did_you_mean<'w>(word: &str, prefix: &str, candidates: impl Iterator<Item = &'w str>) -> String {
    nearest(word, candidates).map(|meant| format!("; did you mean {prefix}{meant}?")).unwrap_or_default()
}

/// True if one word becomes the other by one letter that is inserted, removed, replaced or swapped
/// with its neighbour, ignoring case. False for equal words and for long ones.
#[must_use]
pub fn is_one_letter_off(word: &str, other: &str) -> bool {
    let (word, other) = (word.as_bytes(), other.as_bytes());
    word.len().abs_diff(other.len()) <= 1 && word.len() <= WORD_BYTES_MAX && distance(word, other) == 1
}

/// Number of letters to insert, remove, replace or swap with their neighbour to turn one word into
/// the other, ignoring case.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let same = |i: usize, j: usize| a[i].eq_ignore_ascii_case(&b[j]);
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut least = (last[j] + usize::from(!same(i, j))).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j) {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_words_that_begin_alike_may_differ_more() {
        let words = ["recv", "hit", "synth", "backend_response"];
        for (word, meant) in [("recieve", Some("recv")), ("foo", None), ("hti", Some("hit")), ("responding", None)] {
            assert_eq!(nearest_of_few(word, &words), meant, "{word}");
        }
    }

    const WORDS: [&str; 5] = ["daemon", "log", "stat", "vcl.load", "vcl.list"];

    #[test]
    fn near_word_is_found_and_a_far_one_is_not() {
        for (word, meant) in [
            ("deamon", Some("daemon")),
            ("LOG", Some("log")),
            ("lgo", Some("log")),
            ("stats", Some("stat")),
            ("vcl.laod", Some("vcl.load")),
            ("vcl.lst", Some("vcl.list")),
            ("demon", Some("daemon")),
            ("purge", None),
            ("xy", None),
            ("", None),
            ("d\u{e4}mon", Some("daemon")),
        ] {
            assert_eq!(nearest(word, WORDS.into_iter()), meant, "{word}");
        }
        assert_eq!(did_you_mean("jsno", "--", ["json", "help"].into_iter()), "; did you mean --json?");
        assert_eq!(did_you_mean("purge", "--", ["json", "help"].into_iter()), "");
    }

    #[test]
    fn one_letter_of_difference_is_told_from_none_and_two() {
        assert!(is_one_letter_off("Cookies", "cookie") && is_one_letter_off("Accpet", "Accept"));
        assert!(!is_one_letter_off("Cookie", "cookie") && !is_one_letter_off("Cokies", "Cookie"));
        assert!(!is_one_letter_off(&"x".repeat(1 << 20), &"y".repeat(1 << 20)));
    }

    #[test]
    fn long_words_cost_a_bounded_time() {
        let long = "x".repeat(1 << 20);
        assert_eq!(nearest(&long, [long.as_str(), "y"].into_iter()), None);
    }
}
