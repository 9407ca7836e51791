//! `-s`: where objects are stored; may be given several times. In memory (`malloc`, and `default`
//! and `debug` mean the same), or with their bodies in a file (`storage/file.rs`).
//!
//! Transient is always in memory: its file is not made, and the size of the file is its limit.
//!
//! `policy=NAME` may follow the size, or replace it: the eviction policy of this storage. Varnish
//! has no such field.

pub mod file;

use self::file::{FileArgument, FileSize, METADATA_BYTES_MIN, POLICY};
use super::listen::split_name;
use surface::eviction::{EvictionPolicy, POLICIES};
use surface::limits::STORAGES_MAX;
use surface::nearest::did_you_mean;
use surface::option::letter::{STORAGE_KINDS, storage_kind};
use surface::parameter::value::parse_bytes;

/// Names that are reserved for short-lived objects and request bodies.
pub const TRANSIENT: &str = "Transient";
/// Kind of a storage with its bodies in a file.
const FILE: &str = "file";
/// Kind of a storage that Varnish has for tests.
const DEBUG: &str = "debug";
/// Smallest useful storage, in bytes.
const SIZE_BYTES_MIN: u64 = 4096;

/// One `-s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageArgument {
    /// As given, or `s0`, `s1`, … numbered among those without a name.
    pub name: String,
    /// As written, for the identification: `default`, `malloc`, `debug` or `file`.
    pub kind: String,
    /// Memory limit.
    pub size: Size,
    /// Its eviction policy; `None` = that of the parameter `eviction_policy`.
    pub policy: Option<EvictionPolicy>,
    /// File of its bodies, if they are not in memory.
    pub file: Option<FileArgument>,
}

impl StorageArgument {
    /// The kind as VCL, the log and `storage.list` name it.
    #[must_use]
    pub fn kind_shown(&self) -> &'static str {
        if self.file.is_some() { "file" } else { "malloc" }
    }
}

/// The limit of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the available memory.
    Percent(u64),
    /// The rest after all other storages.
    Rest,
    /// One part in 64 of its file, but no more than a quarter of the available memory.
    OfFile,
}

impl Size {
    /// The limit in bytes, given `usable_bytes` of memory, and `file_bytes` in the storage's file
    /// if it has one; `None` = the rest after all other storages.
    #[must_use]
    pub fn bytes_of(self, usable_bytes: u64, file_bytes: u64) -> Option<u64> {
        match self {
            Size::Bytes(bytes) => Some(bytes),
            Size::Percent(percent) => Some((usable_bytes / 100 * percent).max(SIZE_BYTES_MIN)),
            Size::OfFile => Some(self.beside(file_bytes).min(usable_bytes / 4).max(METADATA_BYTES_MIN)),
            Size::Rest => None,
        }
    }

    /// For a storage with a file of `file_bytes`: the memory for which the file is divided,
    /// independent of the memory available now.
    #[must_use]
    pub fn beside(self, file_bytes: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::OfFile | Size::Percent(_) | Size::Rest => (file_bytes / 64).max(METADATA_BYTES_MIN),
        }
    }

    /// The limit that was given in bytes, if it was.
    #[must_use]
    pub fn given_bytes(self) -> Option<u64> {
        match self {
            Size::Bytes(bytes) => Some(bytes),
            Size::Percent(_) | Size::Rest | Size::OfFile => None,
        }
    }
}

/// All storages of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storages {
    /// The storages that hold the cache, in the order given; at least one.
    pub cache: Vec<StorageArgument>,
    /// The Transient storage: its limit within that of the first storage.
    pub transient: StorageArgument,
}

impl Storages {
    /// All storages; Transient comes last, in whatever order they were given.
    pub fn all(&self) -> impl Iterator<Item = &StorageArgument> {
        self.cache.iter().chain([&self.transient])
    }

    /// One line for the operator if Transient was given a file.
    #[must_use]
    pub fn remark(&self) -> Option<&'static str> {
        (self.transient.kind == FILE).then_some(
            "-s Transient=file: Transient is kept in memory, in the first storage. No file is made; its size, if given, is the limit.",
        )
    }

    /// Names as VCL sees them, Transient last.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.all().map(|storage| storage.name.clone()).collect()
    }
}

/// Parses every `-s` in order.
///
/// # Errors
/// The message for the operator.
pub fn parse(arguments: &[String]) -> Result<Storages, String> {
    let mut cache: Vec<StorageArgument> = Vec::new();
    let mut transient: Option<StorageArgument> = None;
    // Only storages without a name of their own are numbered.
    let mut unnamed = 0;
    for text in arguments {
        let storage = parse_one(text, &mut unnamed)?;
        // VCL ignores case in the names of storages.
        let is_its = |earlier: &StorageArgument| earlier.name.eq_ignore_ascii_case(&storage.name);
        if cache.iter().chain(&transient).any(is_its) || is_misspelt_transient(&storage.name) {
            return Err(format!("(-s {text}) '{}' is already defined", storage.name));
        }
        let path = storage.file.as_ref().map(|file| &file.path);
        let has_it =
            |earlier: &&StorageArgument| path.is_some() && earlier.file.as_ref().map(|file| &file.path) == path;
        // A directory has room for a file of each storage. A file that is in use is refused when it
        // is opened.
        if let Some(earlier) = cache.iter().find(has_it).filter(|_| path.is_some_and(|path| !path.is_dir())) {
            return Err(format!("(-s {text}) the storage '{}' has that file", earlier.name));
        }
        if storage.name == TRANSIENT {
            transient = Some(storage);
        } else if cache.len() == STORAGES_MAX {
            return Err(format!("(-s {text}) more than {STORAGES_MAX} storages"));
        } else {
            cache.push(storage);
        }
    }
    let default = |name: &str| StorageArgument {
        name: name.to_owned(),
        kind: "default".to_owned(),
        size: Size::Rest,
        policy: None,
        file: None,
    };
    if cache.is_empty() {
        cache.push(default("s0"));
    }
    Ok(Storages { cache, transient: transient.unwrap_or_else(|| default(TRANSIENT)) })
}

fn is_misspelt_transient(name: &str) -> bool {
    name != TRANSIENT && name.eq_ignore_ascii_case(TRANSIENT)
}

fn parse_one(text: &str, unnamed: &mut usize) -> Result<StorageArgument, String> {
    let (name, rest) = split_name(text, "-s")?;
    let mut fields = rest.split(',');
    let kind = fields.next().unwrap_or_default();
    match storage_kind(kind) {
        _ if kind.is_empty() => return Err("-s argument lacks strategy {malloc, file, ...}".to_owned()),
        Some(_) if kind == FILE && name.as_deref() == Some(TRANSIENT) => {
            let size = transient_limit(text, fields)?;
            return Ok(StorageArgument {
                name: TRANSIENT.to_owned(),
                kind: kind.to_owned(),
                size,
                policy: None,
                file: None,
            });
        }
        Some(_) if kind == FILE => {
            let (file, metadata_bytes) = file::parse(text, fields)?;
            let (name, size) =
                (name.unwrap_or_else(|| number(unnamed)), metadata_bytes.map_or(Size::OfFile, Size::Bytes));
            return Ok(StorageArgument { name, kind: kind.to_owned(), size, policy: None, file: Some(file) });
        }
        Some(row) if row.is_here => {}
        Some(_) => {
            return Err(format!(
                "(-s {text}) storage method \"{kind}\" is not in this build, only \"malloc\" and \"file\" are"
            ));
        }
        None => {
            let names = STORAGE_KINDS.iter().filter(|row| row.is_here).map(|row| row.name);
            return Err(format!("Unknown storage method \"{kind}\"{}", did_you_mean(kind, "", names)));
        }
    }
    let method = if kind == DEBUG { DEBUG } else { "malloc" };
    let mut fields = fields.peekable();
    let is_size = |field: &&str| !field.starts_with(POLICY);
    let size = fields.next_if(is_size).filter(|size| !size.is_empty());
    if kind == DEBUG {
        // Compat: it makes Varnish allocate less than it is asked for, which has no effect here.
        fields.next_if_eq(&"lessspace");
    }
    let policy = fields.next().map(|field| policy_of(text, method, field)).transpose()?;
    if fields.next().is_some() {
        return Err(format!("(-s{method}) too many arguments"));
    }
    let size = match size {
        None => Size::Rest,
        Some(text) => match text.strip_suffix('%') {
            Some(_) if name.as_deref() == Some(TRANSIENT) => {
                return Err(format!("(-s{method}) size \"{text}\": Transient has no share of the memory"));
            }
            Some(percent) => match percent.parse() {
                Ok(percent @ 1..=100) => Size::Percent(percent),
                _ => return Err(format!("(-s{method}) size \"{text}\": a share is between 1% and 100%")),
            },
            None => Size::Bytes(bytes(method, text)?),
        },
    };
    let name = name.unwrap_or_else(|| number(unnamed));
    if name == TRANSIENT && policy.is_some() {
        // It is part of the first storage, whose policy also ranks its objects.
        return Err(format!("(-s {text}) {TRANSIENT} has no policy of its own"));
    }
    Ok(StorageArgument { name, kind: kind.to_owned(), size, policy, file: None })
}

/// The name of the next storage without one.
fn number(unnamed: &mut usize) -> String {
    *unnamed += 1;
    format!("s{}", *unnamed - 1)
}

/// The limit of Transient if it was given a file. Compat: Varnish needs no size if the file exists.
fn transient_limit<'a>(text: &str, fields: impl Iterator<Item = &'a str>) -> Result<Size, String> {
    let fields: Vec<&str> = fields.collect();
    if let [path] | [path, ""] = fields[..]
        && !path.is_empty()
    {
        return Ok(Size::Rest);
    }
    let (file, _) = file::parse(text, fields.into_iter())?;
    Ok(match file.size {
        FileSize::Bytes(bytes) => Size::Bytes(bytes),
        FileSize::Percent(_) => Size::Rest,
    })
}

/// The policy that a field names.
fn policy_of(text: &str, method: &str, field: &str) -> Result<EvictionPolicy, String> {
    let Some(name) = field.strip_prefix(POLICY) else { return Err(format!("(-s{method}) too many arguments")) };
    EvictionPolicy::named(name).ok_or_else(|| {
        let names = POLICIES.map(|row| row.name).join(", ");
        format!("(-s {text}) no policy is called \"{name}\", use one of: {names}")
    })
}

fn bytes(method: &str, size: &str) -> Result<u64, String> {
    let bytes = parse_bytes(size).map_err(|reason| format!("(-s{method}) size \"{size}\": {reason}"))?;
    if bytes < SIZE_BYTES_MIN {
        let hint = "too small, did you forget to specify M or G?";
        return Err(format!("(-s{method}) size \"{size}\": {hint}"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::closed_set::Advice;

    fn parse_all(arguments: &[&str]) -> Result<Storages, String> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        parse(&arguments)
    }

    #[test]
    fn storages_have_names_and_sizes() {
        let none = parse_all(&[]).unwrap();
        assert_eq!(none.names(), ["s0", "Transient"]);
        assert_eq!(none.cache[0].size, Size::Rest);
        let both = parse_all(&["main=malloc,1.5g", "Transient=default,10M"]).unwrap();
        assert_eq!(both.names(), ["main", "Transient"]);
        assert_eq!(both.cache[0].size, Size::Bytes(3 << 29));
        assert_eq!(both.transient.size, Size::Bytes(10 << 20));
    }

    #[test]
    fn a_share_is_one_of_what_there_is() {
        let share = parse_all(&["malloc,75%", "malloc,1%"]).unwrap();
        assert_eq!(share.cache[0].size.bytes_of(400 << 20, 0), Some(300 << 20));
        assert_eq!(share.cache[1].size.bytes_of(1000, 0), Some(SIZE_BYTES_MIN));
        assert_eq!(share.cache[0].size.given_bytes(), None);
    }

    #[test]
    fn a_storage_may_have_an_eviction_policy_of_its_own() {
        let storages = parse_all(&["a=malloc,1m,policy=sieve", "malloc,policy=tinylfu", "malloc,2m"]).unwrap();
        let found: Vec<_> = storages.cache.iter().map(|storage| (storage.size, storage.policy)).collect();
        let expected = [
            (Size::Bytes(1 << 20), Some(EvictionPolicy::Sieve)),
            (Size::Rest, Some(EvictionPolicy::TinyLfu)),
            (Size::Bytes(2 << 20), None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_those_without_a_name_are_numbered_and_transient_comes_last() {
        let many = parse_all(&["x=malloc,1m", "malloc,2m", "Transient=malloc,3m", "y=malloc", "malloc"]).unwrap();
        assert_eq!(many.names(), ["x", "s0", "y", "s1", "Transient"]);
        let limits: Vec<_> = many.all().map(|storage| storage.size.given_bytes()).collect();
        assert_eq!(limits, [Some(1 << 20), Some(2 << 20), None, None, Some(3 << 20)]);
    }

    #[test]
    fn transient_with_a_file_stays_in_memory_with_the_size_as_its_limit() {
        let given = [
            ("Transient=file,/x,10m", Some(10 << 20)),
            ("Transient=file,/x,10m,4k,random", Some(10 << 20)),
            ("Transient=file,/x", None),
            ("Transient=file,/x,", None),
            ("Transient=file,/x,80%", None),
        ];
        for (argument, bytes) in given {
            let storages = parse_all(&["malloc,1m", argument]).unwrap();
            let transient = &storages.transient;
            assert_eq!((transient.size.given_bytes(), &transient.file), (bytes, &None), "{argument}");
            assert_eq!((transient.kind.as_str(), transient.kind_shown()), ("file", "malloc"));
            assert!(storages.remark().is_some_and(|remark| remark.contains("No file is made")));
        }
        for argument in ["Transient=malloc,10m", "Transient=debug", "malloc"] {
            assert_eq!(parse_all(&[argument]).unwrap().remark(), None);
        }
        assert!(parse_all(&["file,/x,1m", "Transient=file,/x,1m"]).is_ok(), "no file is shared");
    }

    #[test]
    fn debug_is_malloc() {
        let storages = parse_all(&["debug,2m,lessspace", "x=debug", "Transient=debug,1m"]).unwrap();
        assert_eq!(storages.names(), ["s0", "x", "Transient"]);
        let sizes: Vec<_> = storages.all().map(|storage| (storage.size, storage.kind_shown())).collect();
        let expected = [Size::Bytes(2 << 20), Size::Rest, Size::Bytes(1 << 20)].map(|size| (size, "malloc"));
        assert_eq!(sizes, expected);
        assert_eq!(parse_all(&["debug,foo"]).unwrap_err(), "(-sdebug) size \"foo\": Invalid number");
        assert_eq!(parse_all(&["debug,1m,x"]).unwrap_err(), "(-sdebug) too many arguments");
        assert_eq!(parse_all(&["malloc,1m,lessspace"]).unwrap_err(), "(-smalloc) too many arguments");
    }

    #[test]
    fn there_is_a_most_of_storages() {
        let arguments = vec!["malloc,1m".to_owned(); STORAGES_MAX];
        assert_eq!(parse(&arguments).unwrap().cache.len(), STORAGES_MAX);
        let message = parse(&[arguments, vec!["malloc".to_owned()]].concat()).unwrap_err();
        assert_eq!(message, "(-s malloc) more than 64 storages");
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
        refuses(&["malloc,0%"], "(-smalloc) size \"0%\": a share is between 1% and 100%");
        refuses(&["malloc,101%"], "(-smalloc) size \"101%\": a share is between 1% and 100%");
        refuses(&["malloc,x%"], "(-smalloc) size \"x%\": a share is between 1% and 100%");
        refuses(&["Transient=malloc,10%"], "(-smalloc) size \"10%\": Transient has no share of the memory");
        refuses(&["malloc,1m,policy=sieve,2"], "(-smalloc) too many arguments");
        refuses(&["malloc,policy=sieve,1m"], "(-smalloc) too many arguments");
        let unknown = "(-s malloc,policy=arc) no policy is called \"arc\", use one of: lru, s3fifo, sieve, tinylfu";
        refuses(&["malloc,policy=arc"], unknown);
        refuses(
            &["Transient=malloc,1m,policy=lru"],
            "(-s Transient=malloc,1m,policy=lru) Transient has no policy of its own",
        );
        refuses(&["malloc,1m,2"], "(-smalloc) too many arguments");
        refuses(&["a=malloc", "a=malloc"], "(-s a=malloc) 'a' is already defined");
        refuses(&["malloc", "S0=malloc"], "(-s S0=malloc) 'S0' is already defined");
        refuses(&["s0=malloc", "malloc"], "(-s malloc) 's0' is already defined");
        refuses(&["transient=malloc"], "(-s transient=malloc) 'transient' is already defined");
        let umem = "(-s umem) storage method \"umem\" is not in this build, only \"malloc\" and \"file\" are";
        refuses(&["umem"], umem);
    }

    #[test]
    fn a_file_has_a_path_and_a_size_and_perhaps_more() {
        let storages =
            parse_all(&["file,/x,1G", "big=file,/y,80%,64k,sequential,meta=32M", "file,/z,512k,,normal"]).unwrap();
        assert_eq!(storages.names(), ["s0", "big", "s1", "Transient"]);
        let files: Vec<_> = storages.cache.iter().map(|storage| storage.file.clone().unwrap()).collect();
        assert_eq!((files[0].size, files[1].size), (FileSize::Bytes(1 << 30), FileSize::Percent(80)));
        assert_eq!((files[0].granularity_bytes, files[1].granularity_bytes), (4096, 64 << 10));
        assert_eq!(
            [files[0].advice, files[1].advice, files[2].advice],
            [Advice::Random, Advice::Sequential, Advice::Normal]
        );
        assert_eq!((storages.cache[0].size, storages.cache[1].size), (Size::OfFile, Size::Bytes(32 << 20)));
        assert_eq!((storages.cache[0].kind_shown(), storages.transient.kind_shown()), ("file", "malloc"));
    }

    #[test]
    fn a_file_takes_a_part_of_its_size_in_memory_but_never_much_of_what_there_is() {
        let bytes = |usable: u64, file: u64| Size::OfFile.bytes_of(usable, file).unwrap();
        assert_eq!(bytes(8 << 30, 64 << 30), 1 << 30);
        assert_eq!(bytes(2 << 30, 1 << 40), 512 << 20);
        assert_eq!(bytes(8 << 30, 1 << 20), 512 << 10);
        assert_eq!((Size::OfFile.beside(1 << 40), Size::Bytes(1 << 20).beside(1 << 40)), (16 << 30, 1 << 20));
    }

    #[test]
    fn mistakes_about_files_get_the_messages_of_varnish() {
        let refuses = |argument: &str, expected: &str| assert_eq!(parse_all(&[argument]).unwrap_err(), expected);
        let small = |size: &str| format!("(-sfile) size \"{size}\": too small, did you forget to specify M or G?");
        refuses("file", "(-sfile) path is mandatory");
        refuses("file,", "(-sfile) path is mandatory");
        refuses("file,/x", "(-sfile) no size specified");
        refuses("file,/x,", "(-sfile) no size specified");
        refuses("file,/x,1", &small("1"));
        refuses("file,/x,100k", &small("100k"));
        refuses("file,/x,1m,64k", &small("1m"));
        refuses("file,/x,foo", "(-sfile) size \"foo\": Invalid number");
        refuses("file,/x,1z", "(-sfile) size \"1z\": Unknown BYTES unit of measurement ([KMGTP][B])");
        refuses("file,/x,1m,foo", "(-sfile) granularity \"foo\": Invalid number");
        refuses("file,/x,1m,4k,foo", "(-s file) invalid advice: \"foo\"");
        refuses("file,/x,1m,4k,random,z", "(-sfile) too many arguments");
        // These are ours.
        refuses("file,/x,1m,3000", "(-sfile) granularity \"3000\": not a power of two between 512 and 1M");
        refuses("file,/x,0%", "(-sfile) size \"0%\": a share is between 1% and 100%");
        refuses("file,/x,1m,meta=4k", "(-sfile) meta \"4k\": at least 512k are needed");
        refuses("file,/x,1m,meta=1m,4k", "(-sfile) too many arguments");
        refuses("file,/x,1m,meta=1m,meta=1m", "(-sfile) too many arguments");
        refuses("file,/x,1m,policy=lru", "(-s file,/x,1m,policy=lru) a file is swept in order: it has no policy");
        refuses("Transient=file", "(-sfile) path is mandatory");
        refuses("Transient=file,/x,1", &small("1"));
        let twice = parse_all(&["a=file,/x,1m", "file,/x,2m"]).unwrap_err();
        assert_eq!(twice, "(-s file,/x,2m) the storage 'a' has that file");
        assert!(parse_all(&["a=file,/tmp,1m", "file,/tmp,1m"]).is_ok(), "a file of each in a directory");
    }
}
