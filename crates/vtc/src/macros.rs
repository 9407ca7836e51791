//! Macros: `${name}` and `${name,argument…}` in the words of a script.
//!
//! Most are texts that a command has defined (`${s1_addr}`); two are functions: `${date}` and
//! `${string,repeat,N,text}`. The result of an expansion is not expanded again. Shared by all
//! threads of a test, under one lock. Source: vtc(7), MACROS.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::lex::macro_words;

/// Largest expansion of one macro, in bytes.
const EXPANSION_BYTES_MAX: usize = 64 << 20;

/// The macros of one test.
#[derive(Debug, Default)]
pub struct Macros {
    texts: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Macros {
    /// The macros that exist from the start.
    #[must_use]
    pub fn new(given: impl IntoIterator<Item = (String, String)>) -> Macros {
        let texts = given.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
        Macros { texts: Mutex::new(texts) }
    }

    fn texts(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Defines or redefines a macro.
    pub fn define(&self, name: &str, text: &[u8]) {
        self.texts().insert(name.to_owned(), text.to_vec());
    }

    /// Removes a macro; true if it existed.
    pub fn forget(&self, name: &str) -> bool {
        self.texts().remove(name).is_some()
    }

    /// The value of a macro without arguments.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.texts().get(name).cloned()
    }

    /// Replaces every macro in `text`. With `keep_unknown`, unknown ones stay unchanged.
    ///
    /// # Errors
    /// The error in a macro.
    pub fn expand(&self, text: &[u8], keep_unknown: bool) -> Result<Vec<u8>, String> {
        let mut expanded = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = find(rest, b"${") {
            let Some(length) = rest[open..].iter().position(|byte| *byte == b'}') else { break };
            let inside = &rest[open + 2..open + length];
            expanded.extend_from_slice(&rest[..open]);
            let failed = |reason: &str| Err(format!("Macro ${{{}}} {reason}", String::from_utf8_lossy(inside)));
            match self.value(inside) {
                Ok(Some(value)) => expanded.extend_from_slice(&value),
                Ok(None) if keep_unknown => expanded.extend_from_slice(&rest[open..=open + length]),
                Ok(None) => return failed("not found"),
                Err(reason) => return failed(&format!("failed: {reason}")),
            }
            if expanded.len() > EXPANSION_BYTES_MAX {
                return failed("makes too long a text");
            }
            rest = &rest[open + length + 1..];
        }
        expanded.extend_from_slice(rest);
        Ok(expanded)
    }

    fn value(&self, inside: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let words = macro_words(inside)?;
        let Some((name, arguments)) = words.split_first() else { return Err("it has no name".to_owned()) };
        let name = String::from_utf8_lossy(name);
        let text = self.get(&name);
        match (name.as_ref(), text) {
            (_, Some(_)) | ("date", None) if !arguments.is_empty() => Err("macro does not take arguments".to_owned()),
            (_, Some(text)) => Ok(Some(text)),
            ("date", None) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Ok(Some(semantics::date::text(now.as_secs_f64()).into_bytes()))
            }
            ("string", None) => string(arguments).map(Some),
            (_, None) => Ok(None),
        }
    }
}

/// `${string,repeat,N,text}`.
fn string(arguments: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let Some((action, arguments)) = arguments.split_first() else { return Err("missing action".to_owned()) };
    if action != b"repeat" {
        return Err("unknown action".to_owned());
    }
    let [count, text] = arguments else { return Err("repeat takes 2 arguments".to_owned()) };
    let count = std::str::from_utf8(count).ok().and_then(|count| count.parse::<usize>().ok());
    let count = count.ok_or("invalid number of repetitions")?;
    if count.saturating_mul(text.len()) > EXPANSION_BYTES_MAX {
        return Err(format!("more than {EXPANSION_BYTES_MAX} bytes"));
    }
    Ok(text.repeat(count))
}

/// The first position of `wanted`.
pub(crate) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() {
        return Some(0);
    }
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, keep_unknown: bool) -> Result<String, String> {
        let macros = Macros::new([("s1_port".to_owned(), "80".to_owned()), ("a".to_owned(), "${b}".to_owned())]);
        macros.expand(text.as_bytes(), keep_unknown).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn macros_are_replaced_once() {
        assert_eq!(expand("x${s1_port}y${ s1_port }", false).unwrap(), "x80y80");
        assert_eq!(expand("${a}", false).unwrap(), "${b}");
        assert_eq!(expand("${s1_port", false).unwrap(), "${s1_port");
        assert_eq!(expand("$ {} ${unknown,x}", true).unwrap(), "$ {} ${unknown,x}");
    }

    #[test]
    fn unknown_macro_is_an_error_that_names_it() {
        assert_eq!(expand("${unknown}", false).unwrap_err(), "Macro ${unknown} not found");
        assert!(expand("${}", false).is_err() && expand("${\"}", false).is_err());
        assert!(expand("${s1_port,1}", false).unwrap_err().contains("does not take arguments"));
    }

    #[test]
    fn functions_make_text() {
        assert_eq!(expand("${string,repeat,3,ab}", false).unwrap(), "ababab");
        assert_eq!(expand("${string,repeat,0,ab}", false).unwrap(), "");
        for wrong in
            ["${string}", "${string,shout}", "${string,repeat,2}", "${string,repeat,x,a}", "${string,repeat,-1,a}"]
        {
            assert!(expand(wrong, false).is_err(), "{wrong}");
        }
        assert!(expand("${string,repeat,99999999999,abc}", false).is_err());
        assert_eq!(expand("${date}", false).unwrap().len(), 29);
        assert!(expand("${date,x}", false).is_err());
    }
}
