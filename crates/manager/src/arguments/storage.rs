//! `-s`: where objects are stored. This build stores in memory; `default` is the same.

use super::listen::split_name;
use surface::parameter::value::parse_bytes;

/// Names that are reserved for short-lived objects and request bodies.
pub const TRANSIENT: &str = "Transient";
/// Smallest storage that makes sense, in bytes.
const SIZE_BYTES_MIN: u64 = 4096;

/// One `-s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageArgument {
    /// Given, or `s0`.
    pub name: String,
    /// As written, for the identification: `default` or `malloc`.
    pub kind: String,
    /// Limit in bytes; `None` when none was given.
    pub limit_bytes: Option<u64>,
}

/// All storages of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storages {
    /// The one that holds the cache.
    pub cache: StorageArgument,
    /// The one for short-lived objects: what it may take of the cache's limit.
    pub transient: StorageArgument,
}

impl Storages {
    /// Names as VCL sees them.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        vec![self.cache.name.clone(), self.transient.name.clone()]
    }
}

/// Parses every `-s` in order.
///
/// # Errors
/// The message for the operator.
pub fn parse(arguments: &[String]) -> Result<Storages, String> {
    let mut cache = None;
    let mut transient = None;
    for text in arguments {
        let storage = parse_one(text)?;
        let slot = if storage.name == TRANSIENT { &mut transient } else { &mut cache };
        if let Some(earlier) = slot.as_ref() {
            let earlier: &StorageArgument = earlier;
            return Err(if earlier.name == storage.name {
                format!("(-s {text}) '{}' is already defined", storage.name)
            } else {
                format!("(-s {text}) only one storage besides {TRANSIENT} is supported, and '{}' is it", earlier.name)
            });
        }
        *slot = Some(storage);
    }
    let default = |name: &str| StorageArgument { name: name.to_owned(), kind: "default".to_owned(), limit_bytes: None };
    Ok(Storages {
        cache: cache.unwrap_or_else(|| default("s0")),
        transient: transient.unwrap_or_else(|| default(TRANSIENT)),
    })
}

fn parse_one(text: &str) -> Result<StorageArgument, String> {
    let (name, rest) = split_name(text, "-s")?;
    let mut fields = rest.split(',');
    let kind = fields.next().unwrap_or_default();
    match kind {
        "" => return Err("-s argument lacks strategy {malloc, file, ...}".to_owned()),
        "malloc" | "default" => {}
        "file" | "umem" | "debug" | "deprecated_persistent" | "persistent" => {
            return Err(format!("(-s {text}) storage method \"{kind}\" is not in this build, only \"malloc\" is"));
        }
        _ => return Err(format!("Unknown storage method \"{kind}\"")),
    }
    let size = fields.next().filter(|size| !size.is_empty());
    if fields.next().is_some() {
        return Err("(-smalloc) too many arguments".to_owned());
    }
    let limit_bytes = match size {
        None => None,
        Some(size) => {
            let bytes = parse_bytes(size).map_err(|reason| format!("(-smalloc) size \"{size}\": {reason}"))?;
            if bytes < SIZE_BYTES_MIN {
                let hint = "too small, did you forget to specify M or G?";
                return Err(format!("(-smalloc) size \"{size}\": {hint}"));
            }
            Some(bytes)
        }
    };
    Ok(StorageArgument { name: name.unwrap_or_else(|| "s0".to_owned()), kind: kind.to_owned(), limit_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_all(arguments: &[&str]) -> Result<Storages, String> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        parse(&arguments)
    }

    #[test]
    fn storages_have_names_and_sizes() {
        let none = parse_all(&[]).unwrap();
        assert_eq!(none.names(), ["s0", "Transient"]);
        assert_eq!(none.cache.limit_bytes, None);
        let both = parse_all(&["main=malloc,1.5g", "Transient=default,10M"]).unwrap();
        assert_eq!(both.names(), ["main", "Transient"]);
        assert_eq!(both.cache.limit_bytes, Some(3 << 29));
        assert_eq!(both.transient.limit_bytes, Some(10 << 20));
    }

    #[test]
    fn mistakes_get_one_clear_line() {
        let refuses = |arguments: &[&str], expected: &str| assert_eq!(parse_all(arguments).unwrap_err(), expected);
        refuses(&["foo"], "Unknown storage method \"foo\"");
        refuses(&["1x=malloc"], "invalid -s name \"1x\"=[...]");
        refuses(&["x="], "Empty named -s argument \"x=\"");
        refuses(&[""], "-s argument lacks strategy {malloc, file, ...}");
        refuses(&["malloc,1"], "(-smalloc) size \"1\": too small, did you forget to specify M or G?");
        refuses(&["malloc,foo"], "(-smalloc) size \"foo\": Invalid number");
        refuses(&["a=malloc,1z"], "(-smalloc) size \"1z\": Unknown BYTES unit of measurement ([KMGTP][B])");
        refuses(&["malloc,1m,2"], "(-smalloc) too many arguments");
        refuses(&["a=malloc", "a=malloc"], "(-s a=malloc) 'a' is already defined");
        refuses(
            &["a=malloc", "b=malloc"],
            "(-s b=malloc) only one storage besides Transient is supported, and 'a' is it",
        );
        refuses(&["file,/x,1G"], "(-s file,/x,1G) storage method \"file\" is not in this build, only \"malloc\" is");
    }
}
