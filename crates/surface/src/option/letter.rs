//! Letters of the daemon's command line: those of varnishd 7.1 with their support here, and those
//! of older generations.
//!
//! The parser takes its option string from [`LETTERS`], and its message about a removed letter from
//! [`FORMER_LETTERS`]; `copal preflight` uses the same rows, so that its verdict on a command line
//! matches the daemon. Source: `varnishd -x optstring` of 7.1.1; the manual pages varnishd(1) of
//! 1.1, 2.0, 2.1, 3.0 and 4.0.

/// Support of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSupport {
    /// Same effect as in Varnish.
    Same,
    /// Supported, with this difference.
    Differs(&'static str),
    /// Accepted without effect, for this reason.
    Idle(&'static str),
    /// Copal's own, or of a later Varnish than 7.1.
    Ours,
}

/// One letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterRow {
    /// The letter.
    pub letter: char,
    /// Description of its value; empty if it takes none.
    pub value: &'static str,
    /// Support of the letter.
    pub support: OptionSupport,
    /// Correction when its value is refused; empty if the message suffices.
    pub remedy: &'static str,
}

const fn same(letter: char, value: &'static str) -> LetterRow {
    LetterRow { letter, value, support: OptionSupport::Same, remedy: "" }
}

/// Every letter, in the order of `-x optstring`.
pub static LETTERS: &[LetterRow] = &[
    same('?', ""),
    LetterRow {
        remedy: "an address that does not resolve here resolves on the server, perhaps; write PROXY, HTTP or https behind it",
        ..same('a', "address")
    },
    LetterRow { support: OptionSupport::Ours, ..same('A', "file") },
    same('b', "backend"),
    LetterRow { support: OptionSupport::Differs("it prints the program that was compiled, not C"), ..same('C', "") },
    same('d', ""),
    LetterRow { remedy: "the file must be there, and the jail's user must be able to read it", ..same('f', "file") },
    same('F', ""),
    LetterRow { support: OptionSupport::Idle("there is one index, and it needs no choice"), ..same('h', "type") },
    same('i', "identity"),
    same('I', "file"),
    LetterRow { remedy: "write -j unix,user=USER; the worker is fenced in without -j too", ..same('j', "jail") },
    LetterRow {
        remedy: "one size, of the log; sizes behind a comma were those of Varnish 3 to 6",
        ..same('l', "size")
    },
    same('M', "address"),
    same('n', "directory"),
    LetterRow { support: OptionSupport::Ours, ..same('o', "key=value") },
    same('P', "file"),
    LetterRow {
        remedy: "drop the setting, or give a value that param.show of Copal allows",
        ..same('p', "parameter=value")
    },
    same('r', "parameters"),
    LetterRow { remedy: "make the file, readable for root: dd if=/dev/random of=FILE count=1", ..same('S', "file") },
    same('s', "storage"),
    same('T', "address"),
    same('t', "seconds"),
    same('V', ""),
    LetterRow { support: OptionSupport::Idle("connections wait on event loops"), ..same('W', "waiter") },
    same('x', "part"),
];

/// Option string in the form of getopt(3).
#[must_use]
pub fn optstring() -> String {
    LETTERS.iter().flat_map(|row| [Some(row.letter), (!row.value.is_empty()).then_some(':')]).flatten().collect()
}

/// The row of a letter.
#[must_use]
pub fn of(letter: char) -> Option<&'static LetterRow> {
    LETTERS.iter().find(|row| row.letter == letter)
}

/// A letter of other versions of varnishd that 7.1 lacks. Varnish 7.1 refuses it, and so does
/// Copal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerLetterRow {
    /// The letter.
    pub letter: char,
    /// Description of its former value; empty if it took none.
    pub value: &'static str,
    /// Version of Varnish that has it.
    pub of: &'static str,
    /// Replacement.
    pub instead: &'static str,
}

/// Letters of other versions.
pub static FORMER_LETTERS: &[FormerLetterRow] = &[
    FormerLetterRow { letter: 'u', value: "user", of: "Varnish 1 to 4.0", instead: "-j unix,user=USER" },
    FormerLetterRow {
        letter: 'g',
        value: "group",
        of: "Varnish 1 to 4.0",
        instead: "leave it out: with -j unix,user=USER the group is that user's",
    },
    FormerLetterRow {
        letter: 'w',
        value: "threads",
        of: "Varnish 1 to 3",
        instead: "leave it out: Copal has one event loop per core instead of thread pools",
    },
    FormerLetterRow {
        letter: 'E',
        value: "extension",
        of: "later versions of Varnish",
        instead: "leave it out: no shared objects are loaded; what there is, is built in",
    },
];

/// Row of a letter that 7.1 lacks.
#[must_use]
pub fn former(letter: char) -> Option<&'static FormerLetterRow> {
    FORMER_LETTERS.iter().find(|row| row.letter == letter)
}

/// A kind of storage, the first word of `-s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageKindRow {
    /// The word.
    pub name: &'static str,
    /// True if Copal has this kind of storage.
    pub is_here: bool,
    /// Replacement; empty if Copal has this kind.
    pub instead: &'static str,
}

/// Every kind of storage that a Varnish has had.
pub static STORAGE_KINDS: &[StorageKindRow] = &[
    StorageKindRow { name: "malloc", is_here: true, instead: "" },
    StorageKindRow { name: "default", is_here: true, instead: "" },
    StorageKindRow { name: "file", is_here: true, instead: "" },
    StorageKindRow { name: "debug", is_here: true, instead: "" },
    absent("umem", "-s malloc,SIZE"),
    absent("deprecated_persistent", KEPT),
    absent("persistent", KEPT),
];

const KEPT: &str = "-s malloc,SIZE: it outlives its worker; or -s file,PATH,SIZE, which outlives a reboot";

const fn absent(name: &'static str, instead: &'static str) -> StorageKindRow {
    StorageKindRow { name, is_here: false, instead }
}

/// The row of a kind of storage.
#[must_use]
pub fn storage_kind(name: &str) -> Option<&'static StorageKindRow> {
    STORAGE_KINDS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_string_is_that_of_varnish_and_our_two_letters() {
        let ours: String =
            LETTERS.iter().filter(|row| row.support == OptionSupport::Ours).map(|row| row.letter).collect();
        assert_eq!(ours, "Ao");
        assert_eq!(optstring().replace("A:", "").replace("o:", ""), "?a:b:Cdf:Fh:i:I:j:l:M:n:P:p:r:S:s:T:t:VW:x:");
    }

    #[test]
    fn a_letter_has_one_row() {
        let all = || LETTERS.iter().map(|row| row.letter).chain(FORMER_LETTERS.iter().map(|row| row.letter));
        for letter in all() {
            assert_eq!(all().filter(|other| *other == letter).count(), 1, "-{letter}");
        }
        assert!(FORMER_LETTERS.iter().all(|row| !row.instead.is_empty() && !row.of.is_empty()));
    }

    #[test]
    fn unsupported_storage_kinds_name_a_replacement() {
        for row in STORAGE_KINDS {
            assert_eq!(row.is_here, row.instead.is_empty(), "{}", row.name);
        }
    }
}
