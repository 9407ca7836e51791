//! Certificates made at the start for listeners with `self-signed`: for a trial, since no client
//! trusts them unasked.
//!
//! One certificate for all of these listeners, made anew at every start, in two files of the work
//! directory. It is an ordinary certificate otherwise: an upgrade hands it over.

use crate::arguments::Arguments;
use crate::arguments::listen::ListenAddress;
use crate::tls::files::PemFiles;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Names of the files in the work directory.
const CERTIFICATE: &str = "self-signed.crt";
const KEY: &str = "self-signed.key";

/// Makes the certificate if a listener wants it.
///
/// # Errors
/// The message for the operator.
pub fn make(arguments: &Arguments) -> Result<Option<PemFiles>, String> {
    let listeners = || arguments.listeners.iter().filter(|listener| listener.self_signed);
    if listeners().next().is_none() {
        return Ok(None);
    }
    let fixed = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut names: BTreeSet<String> = fixed.into_iter().collect();
    let host = crate::platform::host_name();
    if host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
        names.insert(host);
    }
    for listener in listeners() {
        if let ListenAddress::Tcp(addresses) = &listener.address {
            let given = addresses.iter().map(|address| address.ip()).filter(|ip| !ip.is_unspecified());
            names.extend(given.map(|ip| ip.to_string()));
        }
    }
    let made = rcgen::generate_simple_self_signed(names.into_iter().collect::<Vec<_>>())
        .map_err(|error| format!("no self-signed certificate could be made: {error}"))?;
    let path = |name: &str| arguments.work_directory.join(name);
    let files = PemFiles { certificate: path(CERTIFICATE), key: Some(path(KEY)), ocsp: None };
    write(&path(KEY), 0o600, &made.signing_key.serialize_pem())?;
    write(&path(CERTIFICATE), 0o644, &made.cert.pem())?;
    Ok(Some(files))
}

/// Writes a new file: an existing one, which another user may have prepared, is removed first.
fn write(path: &Path, mode: u32, text: &str) -> Result<(), String> {
    let _ = fs::remove_file(path);
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| format!("{}: {error}", path.display()))
}
