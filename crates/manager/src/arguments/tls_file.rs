//! `-A`: TLS listeners and certificates, in the grammar of hitch.conf.
//!
//! Settings at the top apply to every frontend that does not override them. Keys of hitch without a
//! meaning here are accepted with a note, so that a hitch.conf works unchanged. Certificates are
//! named here and read later; the grammar itself is in the crate `tls`. Compat: keys and messages
//! as Varnish 9 has them; `h3`, `acme`, `early-data` and `client-verify` (hitch's) are ours.

use super::listen::{ListenAddress, ListenArgument, next_name, parse_address};
use super::{absolute, acme};
use crate::system_error::reason;
use crate::tls::files::{self, PemFiles};
use crate::tls::registry::{Authorities, Settings};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tls::cipher_list;
use tls::hitch::{self, Assignment, Value};
use tls::table::ClientDemand;

/// Keys of hitch.conf without a meaning here.
const MEANINGLESS: &[&str] = &[
    "alpn-protos",
    "backend",
    "backend-connect-timeout",
    "backend-refresh",
    "backlog",
    "chroot",
    "daemon",
    "dhparam",
    "ecdh-curve",
    "engine",
    "group",
    "keepalive",
    "log-filename",
    "log-level",
    "ocsp-connect-tmo",
    "ocsp-dir",
    "ocsp-refresh-interval",
    "ocsp-resp-tmo",
    "ocsp-verify-staple",
    "proxy-client-cert",
    "proxy-tlv",
    "quiet",
    "recv-bufsize",
    "send-bufsize",
    "ssl-engine",
    "ssl-handshake-timeout",
    "syslog",
    "syslog-facility",
    "tcp-fastopen",
    "user",
    "workers",
    "write-ip",
    "write-proxy",
    "write-proxy-v1",
    "write-proxy-v2",
];

/// True for a key of hitch.conf that has no meaning here.
#[must_use]
pub fn is_meaningless(key: &str) -> bool {
    MEANINGLESS.contains(&key)
}

/// The port of a frontend that names none.
const DEFAULT_PORT: &str = "443";

/// Parsed `-A` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFile {
    /// The listeners, in order; at least one.
    pub frontends: Vec<TlsFrontend>,
    /// The certificates for all of them.
    pub certificates: Vec<PemArgument>,
    /// Notes about accepted settings that have no effect.
    pub notes: Vec<String>,
}

/// A frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFrontend {
    /// Its address and protocols.
    pub listener: ListenArgument,
    /// Its own certificates.
    pub certificates: Vec<PemArgument>,
    /// Global certificates are served in addition to its own.
    pub matches_global: bool,
    /// Handshake settings, except those for client certificates.
    pub settings: Settings,
    /// Trust anchors for client certificates; `None` = no client certificate is requested.
    pub authorities: Option<Authorities>,
}

/// A certificate of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemArgument {
    /// Its id, if it has one.
    pub name: Option<String>,
    /// Its files.
    pub files: PemFiles,
    /// It is the default of its level.
    pub is_default: bool,
}

/// Reads an `-A` file with our own rights; listeners without a name are numbered from `unnamed`.
///
/// # Errors
/// The message for the operator, which names the file.
pub fn read(path: &Path, unnamed: &mut usize) -> Result<TlsFile, String> {
    let (bytes, _) =
        files::read(path).map_err(|error| format!("Cannot read -A file '{}' ({})", path.display(), reason(&error)))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("-A file '{}' is no text", path.display()))?;
    parse(&text, &path.display().to_string(), unnamed)
}

/// Parses the text of an `-A` file; `file` is its name for messages.
///
/// # Errors
/// The message for the operator.
pub fn parse(text: &str, file: &str, unnamed: &mut usize) -> Result<TlsFile, String> {
    let mut reader = Reader { text, file, meaningless: Vec::new(), notes: Vec::new() };
    let assignments = hitch::parse(text).map_err(|error| reader.mistake(error.line, &error.what))?;
    // Settings at the top also apply to frontends that precede them.
    let (frontends, rest): (Vec<&Assignment>, Vec<&Assignment>) =
        assignments.iter().partition(|assignment| assignment.key == "frontend");
    let mut top = Level::default();
    for assignment in rest {
        reader.assign(&mut top, assignment, Place::Top)?;
    }
    let frontends: Vec<TlsFrontend> =
        frontends.into_iter().map(|assignment| reader.frontend(assignment, &top, unnamed)).collect::<Result<_, _>>()?;
    if frontends.is_empty() {
        return Err(format!("-A file '{file}' has no frontend"));
    }
    reader.meaningless.sort_unstable();
    reader.meaningless.dedup();
    if !reader.meaningless.is_empty() {
        reader.notes.push(format!("{file}: these mean nothing here: {}", reader.meaningless.join(", ")));
    }
    Ok(TlsFile { frontends, certificates: top.certificates(), notes: reader.notes })
}

/// Position of an assignment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Frontend,
}

/// Settings of one level.
#[derive(Clone, Default)]
struct Level {
    host: Option<String>,
    port: Option<String>,
    name: Option<String>,
    pem_files: Vec<PemArgument>,
    folder: Option<PathBuf>,
    glob: Option<String>,
    in_folder: Vec<PemArgument>,
    matches_global: bool,
    protocols: Option<(bool, bool)>,
    ciphers: Option<Vec<&'static str>>,
    suites: Option<Vec<&'static str>>,
    prefers_own_order: Option<bool>,
    aborts_unknown_names: Option<bool>,
    verify: Option<ClientDemand>,
    authorities: Option<PathBuf>,
    early_data: Option<bool>,
    http3: Option<bool>,
    proxy: Option<bool>,
    acme: Vec<Vec<String>>,
}

impl Level {
    /// The last one named by itself is the default, or else the first in the folder.
    fn certificates(&self) -> Vec<PemArgument> {
        let mut all = [self.in_folder.clone(), self.pem_files.clone()].concat();
        let default = if self.pem_files.is_empty() { all.first_mut() } else { all.last_mut() };
        if let Some(default) = default {
            default.is_default = true;
        }
        all
    }

    /// Handshake settings of this level, with defaults from `top`.
    fn settings(&self, top: &Level) -> Settings {
        let (tls12, tls13) = self.protocols.or(top.protocols).unwrap_or((true, true));
        let ciphers = self.ciphers.as_ref().or(top.ciphers.as_ref());
        let suites = self.suites.as_ref().or(top.suites.as_ref());
        let of = |chosen: Option<&Vec<&'static str>>, is_tls13: bool| -> Vec<String> {
            let all =
                || tls::suites::SUITES.iter().filter(|row| row.is_tls13() == is_tls13).map(|row| row.iana).collect();
            chosen.cloned().unwrap_or_else(all).into_iter().map(str::to_owned).collect()
        };
        let are_all = ciphers.is_none() && suites.is_none();
        Settings {
            aborts_unknown_names: self.aborts_unknown_names.or(top.aborts_unknown_names).unwrap_or(false),
            tls12,
            tls13,
            suites: if are_all { Vec::new() } else { [of(suites, true), of(ciphers, false)].concat() },
            prefers_own_order: self.prefers_own_order.or(top.prefers_own_order).unwrap_or(false),
            early_data: self.early_data.or(top.early_data).unwrap_or(false),
            ..Settings::default()
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    meaningless: Vec<String>,
    notes: Vec<String>,
}

impl Reader<'_> {
    fn mistake(&self, line: usize, what: &str) -> String {
        format!("-A file '{}' line {line}: {what}\n\t{}", self.file, hitch::line_of(self.text, line))
    }

    /// The single word of a key's value.
    fn word<'b>(&self, assignment: &'b Assignment) -> Result<&'b str, String> {
        match &assignment.value {
            Value::Words(words) if words.len() == 1 => Ok(&words[0]),
            _ => Err(self.mistake(assignment.line, &format!("'{}' takes one value", assignment.key))),
        }
    }

    fn truth(&self, assignment: &Assignment) -> Result<bool, String> {
        match self.word(assignment)?.to_ascii_lowercase().as_str() {
            "on" | "yes" | "true" | "y" | "t" => Ok(true),
            "off" | "no" | "false" | "n" | "f" => Ok(false),
            _ => Err(self.mistake(assignment.line, &format!("'{}' is on or off", assignment.key))),
        }
    }

    fn path(&self, assignment: &Assignment) -> Result<PathBuf, String> {
        match self.word(assignment)? {
            "" => Err(self.mistake(assignment.line, &format!("'{}' is empty", assignment.key))),
            word => Ok(absolute(Path::new(word))),
        }
    }

    fn assign(&mut self, level: &mut Level, assignment: &Assignment, place: Place) -> Result<(), String> {
        match assignment.key.as_str() {
            "host" if place == Place::Frontend => level.host = Some(self.word(assignment)?.to_owned()),
            "port" if place == Place::Frontend => level.port = Some(self.word(assignment)?.to_owned()),
            "name" if place == Place::Frontend => level.name = Some(self.name(assignment)?),
            "acme" if place == Place::Frontend => {
                let names = acme::parse_names(self.word(assignment)?);
                level.acme.push(names.map_err(|why| self.mistake(assignment.line, &why.to_string()))?);
            }
            "match-global-certs" if place == Place::Frontend => level.matches_global = self.truth(assignment)?,
            "pem-file" => level.pem_files.push(self.pem_file(assignment)?),
            "pem-dir" if place == Place::Top => {
                level.folder = Some(self.path(assignment)?);
                self.look_into_folder(level, assignment.line)?;
            }
            "pem-dir-glob" if place == Place::Top => {
                level.glob = Some(self.word(assignment)?.to_owned());
                self.look_into_folder(level, assignment.line)?;
            }
            "tls-protos" => level.protocols = Some(self.protocols(assignment)?),
            "ssl" | "tls" if place == Place::Top => self.meaningless.push(assignment.key.clone()),
            "ciphers" => level.ciphers = Some(self.ciphers(assignment)?),
            "ciphersuites" => level.suites = Some(self.suites(assignment)?),
            "prefer-server-ciphers" => level.prefers_own_order = Some(self.truth(assignment)?),
            "sni-nomatch-abort" => level.aborts_unknown_names = Some(self.truth(assignment)?),
            "client-verify" => level.verify = Some(self.verify(assignment)?),
            "client-verify-ca" => level.authorities = Some(self.path(assignment)?),
            "early-data" => level.early_data = Some(self.truth(assignment)?),
            "h3" => level.http3 = Some(self.truth(assignment)?),
            "proxy-proxy" if place == Place::Top => level.proxy = Some(self.truth(assignment)?),
            key if is_meaningless(key) => self.meaningless.push(key.to_owned()),
            key => return Err(self.mistake(assignment.line, &format!("unknown key '{key}'"))),
        }
        Ok(())
    }

    fn name(&self, assignment: &Assignment) -> Result<String, String> {
        let name = self.word(assignment)?;
        let is_good = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if name.is_empty() || !name.chars().all(is_good) {
            return Err(
                self.mistake(assignment.line, &format!("'{name}' is no name: letters, digits and _ - . make one"))
            );
        }
        Ok(name.to_owned())
    }

    fn protocols(&mut self, assignment: &Assignment) -> Result<(bool, bool), String> {
        let Value::Words(words) = &assignment.value else {
            return Err(self.mistake(assignment.line, "'tls-protos' takes a list"));
        };
        let (found, old) =
            protocols(words.iter().map(String::as_str)).map_err(|what| self.mistake(assignment.line, &what))?;
        if !old.is_empty() {
            self.notes.push(format!(
                "{} line {}: {} is not spoken any more",
                self.file,
                assignment.line,
                old.join(", ")
            ));
        }
        Ok(found)
    }

    fn ciphers(&self, assignment: &Assignment) -> Result<Vec<&'static str>, String> {
        let list = self.word(assignment)?;
        cipher_list::tls12(list).ok_or_else(|| self.mistake(assignment.line, "Invalid cipher list"))
    }

    fn suites(&self, assignment: &Assignment) -> Result<Vec<&'static str>, String> {
        let list = self.word(assignment)?;
        cipher_list::tls13(list).ok_or_else(|| self.mistake(assignment.line, "Invalid ciphersuites"))
    }

    fn verify(&self, assignment: &Assignment) -> Result<ClientDemand, String> {
        match self.word(assignment)? {
            "none" => Ok(ClientDemand::None),
            "optional" => Ok(ClientDemand::Optional),
            "required" => Ok(ClientDemand::Required),
            _ => Err(self.mistake(assignment.line, "'client-verify' is none, optional or required")),
        }
    }

    fn pem_file(&mut self, assignment: &Assignment) -> Result<PemArgument, String> {
        let mut argument = PemArgument {
            name: None,
            files: PemFiles { certificate: PathBuf::new(), key: None, ocsp: None },
            is_default: false,
        };
        let Value::Block(block) = &assignment.value else {
            argument.files.certificate = self.path(assignment)?;
            return Ok(argument);
        };
        for inner in block {
            match inner.key.as_str() {
                "cert" => argument.files.certificate = self.path(inner)?,
                "private-key" => argument.files.key = Some(self.path(inner)?),
                "ocsp-resp-file" => argument.files.ocsp = Some(self.path(inner)?),
                "name" => argument.name = Some(self.name(inner)?),
                "ciphers" => _ = self.ciphers(inner)?,
                "ciphersuites" => _ = self.suites(inner)?,
                "dhparam" => self.meaningless.push("dhparam".to_owned()),
                key => return Err(self.mistake(inner.line, &format!("unknown key '{key}' in a pem-file"))),
            }
            if inner.key.starts_with("cipher") {
                let text = "suites belong to frontends; those of a pem-file are checked and not used";
                self.notes.push(format!("{} line {}: {text}", self.file, inner.line));
            }
        }
        if argument.files.certificate.as_os_str().is_empty() {
            return Err(self.mistake(assignment.line, "'cert' is missing in a pem-file"));
        }
        Ok(argument)
    }

    /// Finds the certificates of `pem-dir`, in the order of their names.
    fn look_into_folder(&self, level: &mut Level, line: usize) -> Result<(), String> {
        let Some(folder) = &level.folder else { return Ok(()) };
        let failed = |error| self.mistake(line, &format!("Cannot read {}: {}", folder.display(), reason(&error)));
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let is_wanted = level.glob.as_ref().is_none_or(|glob| is_like(glob, &name));
            let is_staple = entry.path().extension().is_some_and(|extension| extension == "ocsp");
            if is_wanted && !is_staple && entry.path().is_file() {
                paths.push(entry.path());
            }
        }
        paths.sort_unstable();
        let argument = |certificate| PemArgument {
            name: None,
            files: PemFiles { certificate, key: None, ocsp: None },
            is_default: false,
        };
        level.in_folder = paths.into_iter().map(argument).collect();
        Ok(())
    }

    fn frontend(&mut self, assignment: &Assignment, top: &Level, unnamed: &mut usize) -> Result<TlsFrontend, String> {
        let mut level = Level::default();
        match &assignment.value {
            Value::Block(block) => {
                for inner in block {
                    self.assign(&mut level, inner, Place::Frontend)?;
                }
            }
            Value::Words(_) => self.short_frontend(&mut level, assignment)?,
        }
        let mistake = |what: &str| self.mistake(assignment.line, what);
        let host = level.host.as_deref().filter(|host| *host != "*").unwrap_or_default();
        let port = level.port.as_deref().unwrap_or(DEFAULT_PORT);
        let endpoint = if host.starts_with('/') {
            host.to_owned()
        } else if host.contains(':') && !host.starts_with('[') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        let address = parse_address(&endpoint).map_err(|what| mistake(&what))?;
        let proxy = top.proxy.unwrap_or(false);
        let http3 = level.http3.or(top.http3).unwrap_or(false);
        if http3 && proxy {
            return Err(mistake("h3 and proxy-proxy exclude each other: there is no such header over UDP"));
        }
        if http3 && matches!(address, ListenAddress::Unix { .. }) {
            return Err(mistake("h3 needs an IP address"));
        }
        let authorities = match (level.verify.or(top.verify), level.authorities.as_ref().or(top.authorities.as_ref())) {
            (None | Some(ClientDemand::None), _) => None,
            (Some(_), None) => return Err(mistake("'client-verify' needs 'client-verify-ca'")),
            (Some(demand), Some(file)) => Some(Authorities { file: file.clone(), demand }),
        };
        let name = level.name.clone().unwrap_or_else(|| next_name(unnamed));
        Ok(TlsFrontend {
            listener: ListenArgument {
                name,
                endpoint,
                address,
                proxy,
                tls: true,
                redirect_port: None,
                http3,
                acme: level.acme.clone(),
                self_signed: false,
            },
            certificates: level.certificates(),
            matches_global: level.matches_global,
            settings: level.settings(top),
            authorities,
        })
    }

    /// `frontend = "[HOST]:PORT+CERT"`.
    fn short_frontend(&self, level: &mut Level, assignment: &Assignment) -> Result<(), String> {
        let text = self.word(assignment)?;
        let (address, certificate) = match text.split_once('+') {
            Some((address, certificate)) => (address, Some(certificate)),
            None => (text, None),
        };
        match address.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
                level.host = (!host.is_empty()).then(|| host.to_owned());
                level.port = Some(port.to_owned());
            }
            _ => return Err(self.mistake(assignment.line, "a frontend is \"HOST:PORT\"")),
        }
        if let Some(certificate) = certificate {
            level.pem_files.push(PemArgument {
                name: None,
                files: PemFiles { certificate: absolute(Path::new(certificate)), key: None, ocsp: None },
                is_default: false,
            });
        }
        Ok(())
    }
}

fn is_like(glob: &str, name: &OsStr) -> bool {
    pattern::matches(glob.as_bytes(), name.as_bytes(), pattern::Flags::default())
}

/// The versions (TLS 1.2, 1.3) that a list of protocols enables, and its words that name old
/// versions.
///
/// # Errors
/// An unknown word, or no version remains.
pub fn protocols<'a>(words: impl Iterator<Item = &'a str>) -> Result<((bool, bool), Vec<&'a str>), String> {
    let (mut tls12, mut tls13, mut old) = (false, false, Vec::new());
    for word in words {
        match word {
            "TLSv1.2" => tls12 = true,
            "TLSv1.3" => tls13 = true,
            "SSLv3" | "TLSv1.0" | "TLSv1.1" => old.push(word),
            _ => return Err(format!("unknown protocol '{word}'")),
        }
    }
    if !tls12 && !tls13 {
        return Err("neither TLSv1.2 nor TLSv1.3 is allowed, and nothing older is spoken".to_owned());
    }
    Ok(((tls12, tls13), old))
}

#[cfg(test)]
mod tests;
