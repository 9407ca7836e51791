//! `-s file,PATH,SIZE[,granularity[,advice]][,meta=SIZE]`: a storage with its bodies in a file.
//!
//! Messages are those of Varnish 7.1 where it has them. The path is not checked here:
//! `storage_files.rs` opens it. `meta=` is ours, and so is a size as a percentage of the disk.

use std::path::PathBuf;
use surface::closed_set::Advice;
use surface::parameter::value::parse_bytes;

/// Prefix of the name of an eviction policy.
pub(super) const POLICY: &str = "policy=";
/// Prefix of the memory size for everything except bodies.
const METADATA: &str = "meta=";
/// Default alignment of bodies: a page, in bytes.
const GRANULARITY_BYTES: u64 = 4096;
/// The smallest granularity, in bytes.
const GRANULARITY_BYTES_MIN: u64 = 512;
/// The largest one, in bytes.
const GRANULARITY_BYTES_MAX: u64 = 1 << 20;
/// A file has room for at least this many bodies of the smallest size. Compat: varnishd.
const BODIES_MIN: u64 = 128;
/// The least memory of a storage with a file, in bytes.
pub const METADATA_BYTES_MIN: u64 = 512 << 10;

/// Size of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSize {
    /// A number of bytes.
    Bytes(u64),
    /// Percentage of the free space on its disk when the file is made; an existing file keeps its
    /// length.
    Percent(u64),
}

/// Arguments of `-s file` besides the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileArgument {
    /// The file, or a directory in which it is made.
    pub path: PathBuf,
    /// Size of the file.
    pub size: FileSize,
    /// As written, for messages.
    pub size_text: String,
    /// Bodies begin at multiples of this many bytes.
    pub granularity_bytes: u64,
    /// Advice to the kernel about reads.
    pub advice: Advice,
}

impl FileArgument {
    /// The smallest length of this file, in bytes.
    #[must_use]
    pub fn bytes_min(&self) -> u64 {
        self.granularity_bytes * BODIES_MIN
    }
}

/// Parses the text that follows `file`; `text` is the whole argument. The number of bytes is that
/// of the memory for metadata, if given.
///
/// # Errors
/// The message for the operator.
pub fn parse<'a>(text: &str, fields: impl Iterator<Item = &'a str>) -> Result<(FileArgument, Option<u64>), String> {
    let (mut given, mut metadata_bytes) = (Vec::new(), None);
    for field in fields {
        match field.strip_prefix(METADATA) {
            _ if field.starts_with(POLICY) => {
                return Err(format!("(-s {text}) a file is swept in order: it has no policy"));
            }
            Some(_) if metadata_bytes.is_some() => return Err(too_many()),
            Some(size) => metadata_bytes = Some(metadata(size)?),
            // Named fields come last.
            None if metadata_bytes.is_some() => return Err(too_many()),
            None => given.push(field),
        }
    }
    let mut given = given.into_iter();
    let path = given.next().filter(|path| !path.is_empty()).ok_or("(-sfile) path is mandatory")?;
    let size_text = given.next().filter(|size| !size.is_empty()).ok_or("(-sfile) no size specified")?;
    let granularity_bytes = given.next().filter(|one| !one.is_empty()).map_or(Ok(GRANULARITY_BYTES), granularity)?;
    let advice = given.next().filter(|one| !one.is_empty()).map_or(Ok(Advice::default()), advice)?;
    if given.next().is_some() {
        return Err(too_many());
    }
    let size = size(size_text)?;
    let file = FileArgument { path: path.into(), size, size_text: size_text.to_owned(), granularity_bytes, advice };
    match size {
        FileSize::Bytes(bytes) if bytes < file.bytes_min() => Err(too_small(size_text)),
        FileSize::Bytes(_) | FileSize::Percent(_) => Ok((file, metadata_bytes)),
    }
}

/// The message for a file that is too small for its granularity.
#[must_use]
pub fn too_small(size: &str) -> String {
    format!("(-sfile) size \"{size}\": too small, did you forget to specify M or G?")
}

fn too_many() -> String {
    "(-sfile) too many arguments".to_owned()
}

fn size(text: &str) -> Result<FileSize, String> {
    let Some(percent) = text.strip_suffix('%') else {
        let bytes = parse_bytes(text).map_err(|reason| format!("(-sfile) size \"{text}\": {reason}"))?;
        return Ok(FileSize::Bytes(bytes));
    };
    match percent.parse() {
        Ok(percent @ 1..=100) => Ok(FileSize::Percent(percent)),
        _ => Err(format!("(-sfile) size \"{text}\": a share is between 1% and 100%")),
    }
}

fn granularity(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|reason| format!("(-sfile) granularity \"{text}\": {reason}"))?;
    if !bytes.is_power_of_two() || !(GRANULARITY_BYTES_MIN..=GRANULARITY_BYTES_MAX).contains(&bytes) {
        return Err(format!("(-sfile) granularity \"{text}\": not a power of two between 512 and 1M"));
    }
    Ok(bytes)
}

fn advice(text: &str) -> Result<Advice, String> {
    Advice::from_word(text).ok_or_else(|| format!("(-s file) invalid advice: \"{text}\""))
}

fn metadata(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|reason| format!("(-sfile) meta \"{text}\": {reason}"))?;
    if bytes < METADATA_BYTES_MIN {
        return Err(format!("(-sfile) meta \"{text}\": at least 512k are needed"));
    }
    Ok(bytes)
}
