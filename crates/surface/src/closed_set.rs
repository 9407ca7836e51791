//! Closed sets of words: an enum, its words and the way back from a word, declared as one list.

/// Declares an enum whose variants each have one word, with `ALL`, `word` and `from_word`.
macro_rules! closed_set {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[$meaning:meta])* $variant:ident $word:literal,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$meaning])* $variant,)*
        }

        impl $name {
            /// All, in the order of their numbers.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// The word that users read and type.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The one with this word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.word() == word)
            }
        }
    };
}

pub(crate) use closed_set;

closed_set! {
    /// The state that an operator gives a VCL.
    VclState {
        /// Warm while used.
        Auto "auto",
        /// Never warm.
        Cold "cold",
        /// Always warm.
        Warm "warm",
    }
}

closed_set! {
    /// The access pattern of a storage's file that is announced to the kernel (`posix_fadvise`).
    #[derive(Default)]
    Advice {
        /// No particular pattern.
        Normal "normal",
        /// Pieces here and there: no read-ahead except for a body being delivered.
        #[default]
        Random "random",
        /// From one end to the other.
        Sequential "sequential",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_found_by_its_word() {
        assert!(VclState::ALL.into_iter().all(|state| VclState::from_word(state.word()) == Some(state)));
        assert!(Advice::ALL.into_iter().all(|advice| Advice::from_word(advice.word()) == Some(advice)));
        assert_eq!(VclState::from_word("AUTO"), None);
    }
}
