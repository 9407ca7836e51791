//! `-o acme…`: certificates from an authority (ACME), and the names of a listener that they are
//! for.
//!
//! `-o acme=MAIL` enables it; the other keys name the authority, the folder and the challenge type.
//! The host names are given with their listener: `-a :443,https,acme=example.org+www.example.org`,
//! one certificate for each `acme=`.

use super::{ArgumentError, absolute, reason};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use surface::limits::{ACME_CERTIFICATES_MAX, ACME_NAMES_MAX};
use surface::option;
use tls::certificate::Pem;

/// Challenge type that proves control of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// A file over HTTP on port 80 (RFC 8555 §8.3).
    #[serde(rename = "http-01")]
    Http,
    /// A special certificate on port 443 (RFC 8737).
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn,
}

impl Way {
    /// Name of the challenge type in ACME.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Http => "http-01",
            Way::TlsAlpn => "tls-alpn-01",
        }
    }
}

/// The options `-o acme…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeArgument {
    /// Contact address for the authority; `None` = none is given.
    pub contact: Option<String>,
    /// The authority's directory, an https URL.
    pub directory: String,
    /// The folder of account and certificates, absolute.
    pub folder: PathBuf,
    /// Trust anchors for the authority's own certificate, in DER; empty = the system's.
    pub authorities: Vec<Vec<u8>>,
    /// The only challenge type to use; `None` = any that works.
    pub way: Option<Way>,
}

/// Reads all `-o` of a command line; `None` if there are none.
///
/// # Errors
/// One line that names the wrong option.
pub fn parse(options: &[String]) -> Result<Option<AcmeArgument>, ArgumentError> {
    if options.is_empty() {
        return Ok(None);
    }
    let mut contact = None;
    let mut argument = AcmeArgument {
        contact: None,
        directory: option::ACME_AUTHORITIES[0].1.to_owned(),
        folder: PathBuf::from(option::ACME_FOLDER),
        authorities: Vec::new(),
        way: None,
    };
    for given in options {
        let (key, value) = given.split_once('=').ok_or_else(|| format!("-o lacks '=': \"{given}\""))?;
        match key {
            option::ACME => contact = Some(parse_contact(value)?),
            option::ACME_DIRECTORY => argument.directory = parse_directory(value)?,
            option::ACME_DIR => argument.folder = parse_folder(value)?,
            option::ACME_CA => argument.authorities = read_authorities(value)?,
            option::ACME_CHALLENGE => argument.way = parse_way(value)?,
            _ => {
                let meant = surface::nearest::did_you_mean(key, "", option::KEYS.into_iter());
                let keys = option::KEYS.join(", ");
                return Err(format!("Unknown -o \"{key}\"{meant}; there are {keys}").into());
            }
        }
    }
    argument.contact = contact.ok_or("-o acme=you@example.org is missing: the other -o need it")?;
    Ok(Some(argument))
}

fn parse_contact(value: &str) -> Result<Option<String>, String> {
    if value == option::ACME_NOBODY {
        return Ok(None);
    }
    let is_address = value.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
        && value.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b',' | b'?' | b'%'));
    if !is_address {
        let nobody = option::ACME_NOBODY;
        return Err(format!("-o acme takes a mail address, or {nobody} for no contact: \"{value}\""));
    }
    Ok(Some(value.to_owned()))
}

fn parse_directory(value: &str) -> Result<String, String> {
    if let Some((_, url)) = option::ACME_AUTHORITIES.iter().find(|(name, _)| *name == value) {
        return Ok((*url).to_owned());
    }
    let uri: Option<http::Uri> = value.parse().ok();
    let is_good =
        uri.is_some_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty()));
    if !is_good {
        let names: Vec<_> = option::ACME_AUTHORITIES.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        return Err(format!("-o acme_directory takes an https URL, or one of {names}: \"{value}\""));
    }
    Ok(value.to_owned())
}

fn parse_folder(value: &str) -> Result<PathBuf, String> {
    if value.is_empty() {
        return Err("-o acme_dir needs a folder".to_owned());
    }
    Ok(absolute(Path::new(value)))
}

fn read_authorities(value: &str) -> Result<Vec<Vec<u8>>, String> {
    let bytes =
        fs::read(value).map_err(|error| format!("Cannot read -o acme_ca file ({value}): {}", reason(&error)))?;
    Pem::read_authorities(&bytes).map_err(|error| format!("-o acme_ca file ({value}): {error}"))
}

fn parse_way(value: &str) -> Result<Option<Way>, String> {
    let ways = [Way::Http, Way::TlsAlpn];
    match ways.into_iter().find(|way| way.name() == value) {
        Some(way) => Ok(Some(way)),
        None if value == option::ACME_AUTO => Ok(None),
        None => Err(format!("-o acme_challenge is {}, http-01 or tls-alpn-01, not \"{value}\"", option::ACME_AUTO)),
    }
}

/// The names of one certificate, `example.org+www.example.org`, in lower case and in the given
/// order, each once.
///
/// # Errors
/// A name that no certificate can be ordered for, or too many.
pub fn parse_names(text: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for name in text.split('+') {
        let name = name.to_ascii_lowercase();
        check_name(&name)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > ACME_NAMES_MAX {
        return Err(format!("more than {ACME_NAMES_MAX} names for one certificate"));
    }
    Ok(names)
}

fn check_name(name: &str) -> Result<(), String> {
    if name.starts_with("*.") {
        return Err(format!(
            "\"{name}\": certificates for wildcards are proven in DNS (dns-01), which is not done; name the hosts, or \
             load a certificate"
        ));
    }
    if name.parse::<std::net::IpAddr>().is_ok() {
        return Err(format!("\"{name}\" is an address; certificates are ordered for names"));
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > 253 || !name.contains('.') || !name.split('.').all(is_label) {
        return Err(format!("\"{name}\" is not the full name of a host"));
    }
    Ok(())
}

/// The certificates that listeners need: names, and the listeners that use each. Listeners with the
/// same names share one.
///
/// # Errors
/// Two certificates with the same first name, too many, names without `-o acme`, or `-o acme`
/// without names.
pub fn wanted<'a>(
    argument: Option<&AcmeArgument>,
    listeners: impl Iterator<Item = (&'a str, &'a [Vec<String>])>,
) -> Result<Vec<Wanted>, ArgumentError> {
    let mut all: Vec<Wanted> = Vec::new();
    for (listener, sets) in listeners {
        for names in sets {
            match all.iter_mut().find(|wanted| wanted.names[0] == names[0]) {
                Some(wanted) if wanted.names == *names => wanted.listeners.push(listener.to_owned()),
                Some(_) => {
                    return Err(format!("Two certificates begin with {}: put its names together", names[0]).into());
                }
                None => all.push(Wanted { names: names.clone(), listeners: vec![listener.to_owned()] }),
            }
        }
    }
    match (argument, all.len()) {
        (None, 1..) => Err("acme= needs -o acme=you@example.org: whom the authority may write to".into()),
        (Some(_), 0) => Err("-o acme has nothing to order: -a :443,https,acme=example.org names what for".into()),
        (_, count) if count > ACME_CERTIFICATES_MAX => {
            Err(format!("More than {ACME_CERTIFICATES_MAX} certificates to order").into())
        }
        _ => Ok(all),
    }
}

/// A certificate to order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its host names, at least one. The first names it in messages.
    pub names: Vec<String>,
    /// The `-a` names of the listeners that serve it.
    pub listeners: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(given: &[&str]) -> Result<Option<AcmeArgument>, String> {
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        parse(&given).map_err(|error| error.text)
    }

    #[test]
    fn a_mail_address_is_all_that_is_needed() {
        assert_eq!(options(&[]), Ok(None));
        let argument = options(&["acme=you@example.org"]).unwrap().unwrap();
        assert_eq!(argument.contact.as_deref(), Some("you@example.org"));
        assert_eq!(argument.directory, "https://acme-v02.api.letsencrypt.org/directory");
        assert_eq!(argument.folder, Path::new("/var/lib/copal/acme"));
        assert_eq!(options(&["acme=none"]).unwrap().unwrap().contact, None);
        let staging = options(&["acme=none", "acme_directory=staging", "acme_challenge=tls-alpn-01"]).unwrap().unwrap();
        assert_eq!(staging.directory, "https://acme-staging-v02.api.letsencrypt.org/directory");
        assert_eq!(staging.way, Some(Way::TlsAlpn));
    }

    #[test]
    fn invalid_acme_options_are_reported() {
        for (given, said) in [
            (&["acme"][..], "lacks '='"),
            (&["acme=you"], "takes a mail address"),
            (&["acme=you@example.org,x"], "takes a mail address"),
            (&["acme_dir=/x"], "-o acme=you@example.org is missing"),
            (&["acme=none", "acme_directory=http://example.org/"], "takes an https URL"),
            (&["acme=none", "acme_directory=nobody"], "letsencrypt, staging"),
            (&["acme=none", "acme_challenge=dns-01"], "not \"dns-01\""),
            (&["acme=none", "acme_ca=/nowhere/ca.pem"], "No such file"),
            (&["akme=none"], "Unknown -o \"akme\""),
        ] {
            let error = options(given).unwrap_err();
            assert!(error.contains(said), "{given:?}: {error}");
        }
    }

    #[test]
    fn names_are_those_of_hosts() {
        assert_eq!(parse_names("Example.org+www.example.org+example.ORG").unwrap(), ["example.org", "www.example.org"]);
        assert!(parse_names("*.example.org").unwrap_err().contains("dns-01"));
        for wrong in
            ["", "localhost", "192.0.2.1", "a..b", "-a.b", "a.b-", "a_b.c", "../a.b", "a.b/c", ".a.b", "ä.b", "a.b+"]
        {
            assert!(parse_names(wrong).is_err(), "{wrong}");
        }
        assert!(parse_names(&vec!["x".repeat(63); 4].join(".")).is_err());
        let many: Vec<_> = (0..=ACME_NAMES_MAX).map(|number| format!("n{number}.example")).collect();
        assert!(parse_names(&many.join("+")).unwrap_err().contains("more than"));
    }

    #[test]
    fn listeners_with_the_same_names_share_a_certificate() {
        let argument = options(&["acme=none"]).unwrap();
        let sets = |all: &[&str]| all.iter().map(|text| parse_names(text).unwrap()).collect::<Vec<_>>();
        let (first, second) = (sets(&["a.example+b.example", "c.example"]), sets(&["c.example"]));
        let both = || [("a0", &first[..]), ("a1", &second[..])].into_iter();
        let all = wanted(argument.as_ref(), both()).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Wanted { names: vec!["c.example".into()], listeners: vec!["a0".into(), "a1".into()] });
        let error = |result: Result<Vec<Wanted>, ArgumentError>| result.unwrap_err().text;
        assert!(error(wanted(None, both())).contains("needs -o acme"));
        assert!(error(wanted(argument.as_ref(), std::iter::empty())).contains("nothing to order"));
        let other = sets(&["c.example+d.example"]);
        let clash = wanted(argument.as_ref(), [("a0", &first[..]), ("a1", &other[..])].into_iter());
        assert!(error(clash).contains("Two certificates begin with c.example"));
        assert_eq!(wanted(None, std::iter::empty()), Ok(Vec::new()));
    }
}
