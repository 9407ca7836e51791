//! Attributes of a backend for TLS: `.ssl` and those that begin with it.
//!
//! `.ssl`, `.ssl_sni`, `.ssl_nosni`, `.ssl_verify_peer`, `.ssl_noverify` and `.ssl_verify_host` are
//! those of Varnish 9, the others are Copal's own. Certificates and keys are read when the VCL is
//! loaded, with the same rights as includes. Compat: Varnish 9 verifies the host's name only if
//! `.ssl_verify_host` is on; under `http_policy=rfc`, and if `.ssl_name` is given, it is verified
//! unless that attribute is off.

use super::address::{is_address, without_port};
use super::{Checked, Checker};
use crate::diagnostic::Draft;
use crate::files::error_text;
use crate::source::Kind;
use crate::tree::{At, Field};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;
use surface::diagnostic::Code;
use surface::limits::ORIGIN_PEM_BYTES_MAX;
use tls::certificate::{CertificateError, Pem};
use tls::origin::is_host_name;
use vcl_run::program::{ClientIdentity, TlsDefinition};

/// The attributes, which the old dialects do not have.
pub(super) const TLS_FIELDS: &[&str] = &[
    "ssl",
    "ssl_sni",
    "ssl_nosni",
    "ssl_verify_peer",
    "ssl_noverify",
    "ssl_verify_host",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "ssl_name",
    "ssl_pin",
    "ssl_min_version",
    "http2",
];

/// The attributes that were set, with the place of the attribute's name, or of its value where that
/// may be wrong.
#[derive(Default)]
pub(super) struct TlsFields {
    ssl: Option<(bool, At)>,
    sni: Option<(bool, At)>,
    nosni: Option<(bool, At)>,
    verify_peer: Option<(bool, At)>,
    noverify: Option<(bool, At)>,
    verify_host: Option<(bool, At)>,
    authorities: Vec<Vec<u8>>,
    certificate: Option<(Vec<u8>, At)>,
    key: Option<(Vec<u8>, At)>,
    name: Option<String>,
    pin: Option<[u8; 32]>,
    only_tls13: bool,
    /// Requests are sent over HTTP/2.
    pub(super) http2: bool,
    /// The first attribute besides `.ssl` and `.http2`.
    detail: Option<At>,
}

impl TlsFields {
    /// The place of `.ssl`, if TLS is enabled.
    pub(super) fn is_on(&self) -> Option<At> {
        self.ssl.filter(|(is_on, _)| *is_on).map(|(_, place)| place)
    }
}

impl Checker<'_> {
    /// Reads one of [`TLS_FIELDS`].
    pub(super) fn tls_field(&mut self, field: &Field, set: &mut TlsFields) -> Checked<()> {
        let name = self.text(field.name);
        if !matches!(name, "ssl" | "http2") {
            set.detail.get_or_insert(field.name);
        }
        match name {
            "ssl" => set.ssl = Some((self.switch_field(field)?, field.name)),
            "ssl_sni" => set.sni = Some((self.switch_field(field)?, field.name)),
            "ssl_nosni" => set.nosni = Some((self.switch_field(field)?, field.name)),
            "ssl_verify_peer" => set.verify_peer = Some((self.switch_field(field)?, field.name)),
            "ssl_noverify" => set.noverify = Some((self.switch_field(field)?, field.name)),
            "ssl_verify_host" => set.verify_host = Some((self.switch_field(field)?, field.name)),
            "http2" => set.http2 = self.switch_field(field)?,
            "ssl_ca" => {
                let (bytes, place) = self.file_field(field)?;
                let read = Pem::read_authorities(&bytes);
                set.authorities = read.map_err(|why| self.bad_file(&why.to_string(), place))?;
            }
            "ssl_cert" => set.certificate = Some(self.file_field(field)?),
            "ssl_key" => set.key = Some(self.file_field(field)?),
            "ssl_name" => {
                let (written, place) = self.string_field(field)?;
                if !is_host_name(&written) || is_address(&written) {
                    return Err(self.error_at(Code::FieldValue, ".ssl_name must be a host name", place));
                }
                set.name = Some(written);
            }
            "ssl_pin" => {
                let (written, place) = self.string_field(field)?;
                let digest = written.strip_prefix("sha256/").and_then(|digits| STANDARD.decode(digits).ok());
                let Some(digest) = digest.and_then(|bytes| bytes.try_into().ok()) else {
                    let text = ".ssl_pin must be \"sha256/\" and the base64 of 32 bytes";
                    return Err(self.error_at(Code::FieldValue, text, place));
                };
                set.pin = Some(digest);
            }
            _ => {
                let (written, place) = self.string_field(field)?;
                set.only_tls13 = match written.as_str() {
                    "1.2" => false,
                    "1.3" => true,
                    _ => {
                        let text = ".ssl_min_version must be \"1.2\" or \"1.3\"";
                        return Err(self.error_at(Code::FieldValue, text, place));
                    }
                };
            }
        }
        Ok(())
    }

    /// The definition that all of them form together, for a backend with that `.host` and
    /// `.host_header`; `None` without TLS.
    pub(super) fn tls_definition(
        &mut self,
        set: &mut TlsFields,
        host: &str,
        host_header: &str,
    ) -> Checked<Option<Box<TlsDefinition>>> {
        let says_yes = |field: Option<(bool, At)>| field.is_some_and(|(is_on, _)| is_on);
        let pairs = [
            (set.sni, set.nosni, "ssl_sni", "ssl_nosni"),
            (set.verify_peer, set.noverify, "ssl_verify_peer", "ssl_noverify"),
        ];
        for (positive, negative, name, other) in pairs {
            if let (Some((yes, place)), Some((no, before))) = (positive, negative)
                && yes == no
            {
                let text = format!("Setting of field '{name}' conflicts with field '{other}'.");
                let draft = self.draft_at(Code::FieldValue, &text, place);
                return Err(self.error(place, draft.text("\n").at(self.token(before))));
            }
        }
        let client = self.client_identity(set)?;
        let Some(_) = set.is_on() else {
            if let (None, Some(detail)) = (set.ssl, set.detail) {
                let text = format!("'.{}' has no effect without .ssl = 1:", self.text(detail));
                let draft = self.draft_at(Code::WithoutEffect, &text, detail);
                self.warning(detail, draft);
            }
            return Ok(None);
        };
        let is_denied = |field: Option<(bool, At)>| field.is_some_and(|(is_on, _)| !is_on);
        let verify_peer = !is_denied(set.verify_peer) && !says_yes(set.noverify);
        let wanted = set.name.as_deref().unwrap_or(if host_header.is_empty() { host } else { host_header });
        let wanted = bare_host(wanted);
        let is_by_default = verify_peer && (self.options.follows_rfc || set.name.is_some());
        let verify_host = set.verify_host.map_or(is_by_default, |(is_on, _)| is_on);
        if verify_host && !is_host_name(&wanted) {
            let place = set.verify_host.or(set.ssl).map_or(0, |(_, place)| place);
            let text = format!("'{wanted}' is no host name that a certificate could have; .ssl_name names it:");
            return Err(self.error_at(Code::FieldValue, &text, place));
        }
        let is_named = !is_denied(set.sni) && !says_yes(set.nosni) && !is_address(&wanted) && is_host_name(&wanted);
        Ok(Some(Box::new(TlsDefinition {
            server_name: is_named.then(|| wanted.clone()),
            host: wanted,
            verify_peer,
            verify_host,
            authorities: std::mem::take(&mut set.authorities),
            client,
            pin: set.pin,
            only_tls13: set.only_tls13,
        })))
    }

    fn client_identity(&mut self, set: &TlsFields) -> Checked<Option<ClientIdentity>> {
        let (certificate, place) = match (&set.certificate, &set.key) {
            (Some(certificate), _) => certificate,
            (None, None) => return Ok(None),
            (None, Some((_, place))) => {
                return Err(self.error_at(Code::FieldValue, ".ssl_key without .ssl_cert", *place));
            }
        };
        let key = set.key.as_ref().map(|(bytes, _)| bytes.as_slice());
        match Pem::read(certificate, key) {
            Ok(loaded) => Ok(Some(ClientIdentity { chain: loaded.chain, key: loaded.key.bytes().to_vec() })),
            Err(why) => {
                let place = set.key.as_ref().map_or(*place, |(_, key)| if is_of_key(&why) { *key } else { *place });
                Err(self.bad_file(&why.to_string(), place))
            }
        }
    }

    /// The content of a file that an attribute names.
    fn file_field(&mut self, field: &Field) -> Checked<(Vec<u8>, At)> {
        let (path, place) = self.string_field(field)?;
        if !path.starts_with('/') {
            return Err(self.error_at(Code::FieldValue, "Must be an absolute path:", place));
        }
        match self.options.files.read(Path::new(&path)) {
            Ok(bytes) if bytes.len() > ORIGIN_PEM_BYTES_MAX => Err(self.bad_file("the file is too large", place)),
            Ok(bytes) => Ok((bytes, place)),
            Err(error) => {
                let text = format!("Cannot read file: {}", error_text(&error));
                Err(self.error_at(Code::FieldValue, &text, place))
            }
        }
    }

    fn bad_file(&mut self, why: &str, place: At) -> super::Reported {
        let draft = Draft::new(Code::FieldValue).text(format!("{}: {why}\n", self.shown(place))).at(self.token(place));
        self.error(place, draft)
    }

    /// A switch: 0 or 1, as Varnish 9 writes it, or false or true.
    pub(super) fn switch_field(&mut self, field: &Field) -> Checked<bool> {
        let mut value = self.field_value(field)?;
        let place = value.place();
        let is_on = match self.text(place) {
            "1" | "true" => true,
            "0" | "false" => false,
            _ => return Err(self.expected("0, 1, false or true", place)),
        };
        self.take_kind(
            &mut value,
            if self.token(place).kind == Kind::Word { Kind::Word } else { Kind::Integer },
            "CNUM",
        )?;
        self.finish(&value)?;
        Ok(is_on)
    }
}

/// A host as certificates name it: without brackets, port, or the period at its end.
fn bare_host(written: &str) -> String {
    let bare = match written.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None if written.parse::<std::net::IpAddr>().is_ok() => written,
        None => without_port(written),
    };
    bare.strip_suffix('.').unwrap_or(bare).to_owned()
}

/// True if the error is in the key's file.
fn is_of_key(why: &CertificateError) -> bool {
    use CertificateError::{BadKey, EncryptedKey, Mismatch, NoKey};
    matches!(why, NoKey | EncryptedKey | BadKey(_) | Mismatch)
}
