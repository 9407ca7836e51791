//! The values of VCL_call and VCL_return, in the form that the log takes: a hit has eight.

use shm::log::Word;
use surface::vcl::{Action, METHODS, Method};

static CALLS: [Word; METHODS.len()] = {
    let mut words = [Word::new(b""); METHODS.len()];
    let mut at = 0;
    while at < METHODS.len() {
        words[METHODS[at].method as usize] = Word::new(METHODS[at].log_name.as_bytes());
        at += 1;
    }
    words
};

static RETURNS: [Word; Action::ALL.len()] = {
    let mut words = [Word::new(b""); Action::ALL.len()];
    let mut at = 0;
    while at < Action::ALL.len() {
        words[Action::ALL[at] as usize] = Word::new(Action::ALL[at].name().as_bytes());
        at += 1;
    }
    words
};

/// The value of VCL_call for a method.
pub(crate) fn of_call(method: Method) -> &'static Word {
    &CALLS[method as usize]
}

/// The value of VCL_return for an action.
pub(crate) fn of_return(action: Action) -> &'static Word {
    &RETURNS[action as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_tables() {
        for row in METHODS {
            assert_eq!(of_call(row.method).text(), row.log_name.as_bytes());
        }
        for &action in Action::ALL {
            assert_eq!(of_return(action).text(), action.name().as_bytes());
        }
    }
}
