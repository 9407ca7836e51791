//! `-a`: listening addresses for clients.

use super::{acme, address};
use nix::unistd::{Gid, Group, Uid, User};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Longest path of a Unix-domain socket, in bytes. Source: unix(7).
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Default listen address.
pub const DEFAULT_ADDRESS: &str = ":80";

/// Address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// TCP, with the addresses that the host resolves to; port 0 means any free port.
    Tcp(Vec<SocketAddr>),
    /// A Unix-domain socket.
    Unix {
        /// The path.
        path: PathBuf,
        /// Owner, if not the manager's.
        user: Option<u32>,
        /// Group, if not the manager's.
        group: Option<u32>,
        /// Permission bits; `None` = as the umask leaves them.
        mode: Option<u32>,
    },
}

/// One `-a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenArgument {
    /// Given, or `a` and its position among those without one.
    pub name: String,
    /// The address as written.
    pub endpoint: String,
    /// The address.
    pub address: ListenAddress,
    /// PROXY protocol expected.
    pub proxy: bool,
    /// TLS is enabled.
    pub tls: bool,
    /// The https port that plain requests are redirected to.
    pub redirect_port: Option<u16>,
    /// HTTP/3 is enabled on the UDP port of the same number.
    pub http3: bool,
    /// The certificates to order for it: the names of each.
    pub acme: Vec<Vec<String>>,
    /// A certificate is made for it at the start, for a trial.
    pub self_signed: bool,
}

/// The protocol words after the address.
#[derive(Default)]
struct Protocols {
    http: bool,
    https: bool,
    proxy: bool,
    http3: bool,
    self_signed: bool,
}

impl Protocols {
    /// Adds one word, in any case. Compat: Varnish allows one; here PROXY may be combined with
    /// https, as load balancers do, and h3 requires https.
    fn add(&mut self, word: &str) -> Result<(), String> {
        let known = match word.to_ascii_uppercase().as_str() {
            "HTTP" => &mut self.http,
            "HTTPS" => &mut self.https,
            "PROXY" => &mut self.proxy,
            "H3" => &mut self.http3,
            "SELF-SIGNED" => &mut self.self_signed,
            _ => return Err(format!("Unknown protocol '{word}'")),
        };
        let again = std::mem::replace(known, true);
        if again || self.http && (self.https || self.proxy || self.http3 || self.self_signed) {
            return Err(format!("Too many protocol sub-args in -a ({word})"));
        }
        Ok(())
    }

    fn check(&self, endpoint: &str, address: &ListenAddress) -> Result<(), String> {
        if self.self_signed && !self.https {
            return Err(format!("self-signed needs https too in -a ({endpoint})"));
        }
        if !self.http3 {
            return Ok(());
        }
        if !self.https {
            return Err(format!("h3 needs https too in -a ({endpoint})"));
        }
        if self.proxy {
            return Err(format!(
                "h3 and PROXY exclude each other in -a ({endpoint}): there is no such header over UDP"
            ));
        }
        if matches!(address, ListenAddress::Unix { .. }) {
            return Err(format!("h3 needs an IP address in -a ({endpoint})"));
        }
        Ok(())
    }
}

/// Parses one `-a`; `unnamed` counts those without a name.
///
/// # Errors
/// The message for the operator.
pub fn parse(text: &str, unnamed: &mut usize) -> Result<ListenArgument, String> {
    let (name, rest) = split_name(text, "-a")?;
    let mut fields = rest.split(',');
    let endpoint = fields.next().unwrap_or_default();
    let mut address = parse_address(endpoint)?;
    let mut protocols = Protocols::default();
    let mut certificates = Vec::new();
    let mut redirect_port = None;
    for field in fields {
        match field.split_once('=') {
            Some(("acme", names)) => {
                certificates.push(acme::parse_names(names).map_err(|why| format!("{why}, in -a"))?)
            }
            Some(("redirect", value)) => {
                if redirect_port.replace(parse_redirect(value)?).is_some() {
                    return Err(format!("Too many redirect sub-args in -a ({field})"));
                }
            }
            Some((key, value)) => set_permission(&mut address, field, key, value)?,
            None => protocols.add(field)?,
        }
    }
    protocols.check(endpoint, &address)?;
    let name = name.unwrap_or_else(|| next_name(unnamed));
    let Protocols { https, proxy, http3, self_signed, .. } = protocols;
    if !certificates.is_empty() && self_signed {
        return Err(format!("acme= and self-signed exclude each other in -a ({endpoint})"));
    }
    if !certificates.is_empty() && !https {
        return Err(format!("acme= needs https too in -a ({endpoint})"));
    }
    if redirect_port.is_some() && https {
        return Err(format!(
            "redirect= and https exclude each other in -a ({endpoint}): what comes here is https already"
        ));
    }
    let endpoint = endpoint.to_owned();
    Ok(ListenArgument {
        name,
        endpoint,
        address,
        proxy,
        tls: https,
        redirect_port,
        http3,
        acme: certificates,
        self_signed,
    })
}

/// `https`, or `https:PORT` for a port other than 443: the port of redirects.
fn parse_redirect(value: &str) -> Result<u16, String> {
    let port = match value.split_once(':').unwrap_or((value, "443")) {
        ("https", digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().unwrap_or(0),
        _ => 0,
    };
    if port == 0 {
        return Err(format!("redirect={value} in -a: say redirect=https or redirect=https:PORT"));
    }
    Ok(port)
}

/// The name of a listener without one.
pub fn next_name(unnamed: &mut usize) -> String {
    *unnamed += 1;
    format!("a{}", *unnamed - 1)
}

/// Splits `name=` off an argument of `-a` or `-s`.
///
/// # Errors
/// The name is invalid, or is not followed by anything.
pub fn split_name<'a>(text: &'a str, what: &str) -> Result<(Option<String>, &'a str), String> {
    let end = text.find([',', '=']).filter(|end| text[*end..].starts_with('='));
    let Some(end) = end else {
        return Ok((None, text));
    };
    let (name, rest) = (&text[..end], &text[end + 1..]);
    let mut letters = name.chars();
    let starts_well = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic());
    if !starts_well || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-') {
        return Err(format!("invalid {what} name \"{name}\"=[...]"));
    }
    if rest.is_empty() {
        return Err(format!("Empty named {what} argument \"{text}\""));
    }
    Ok((Some(name.to_owned()), rest))
}

/// Parses the address of a listener.
///
/// # Errors
/// The message for the operator.
pub fn parse_address(text: &str) -> Result<ListenAddress, String> {
    if text.starts_with('/') {
        if text.len() > SOCKET_PATH_BYTES_MAX {
            return Err(format!(
                "Got no socket(s) for {text}: the path of a socket has at most {SOCKET_PATH_BYTES_MAX} bytes"
            ));
        }
        return Ok(ListenAddress::Unix { path: PathBuf::from(text), user: None, group: None, mode: None });
    }
    if text.contains('/') {
        return Err(format!("Unix domain socket addresses must be absolute paths in -a ({text})"));
    }
    let none = format!("Got no socket(s) for {text}");
    if text.is_empty() {
        return Err(none);
    }
    address::resolve(&address::split(text), 80).map(ListenAddress::Tcp).map_err(|_| none)
}

/// `user=`, `group=` or `mode=`; the keys may be abbreviated.
fn set_permission(address: &mut ListenAddress, field: &str, key: &str, value: &str) -> Result<(), String> {
    let ListenAddress::Unix { user, group, mode, .. } = address else {
        return Err(format!("Invalid sub-arg {field} for IP addresses in -a"));
    };
    let Some(key) = ["user", "group", "mode"].into_iter().find(|known| !key.is_empty() && known.starts_with(key))
    else {
        return Err(format!("Invalid sub-arg {field} in -a"));
    };
    let (slot, number) = match key {
        "user" => {
            let found = User::from_name(value).ok().flatten();
            (user, found.map(|found| found.uid.as_raw()).ok_or(format!("Unknown user {value} in -a"))?)
        }
        "group" => {
            let found = Group::from_name(value).ok().flatten();
            (group, found.map(|found| found.gid.as_raw()).ok_or(format!("Unknown group {value} in -a"))?)
        }
        _ => (mode, parse_mode(value)?),
    };
    if slot.replace(number).is_some() {
        return Err(format!("Too many {key} sub-args in -a ({field})"));
    }
    Ok(())
}

fn parse_mode(value: &str) -> Result<u32, String> {
    if value.is_empty() {
        return Err("Empty mode sub-arg in -a".to_owned());
    }
    match i64::from_str_radix(value, 8) {
        // A socket without any permission is a mistake.
        Ok(mode @ 1..=0o777) => Ok(mode as u32),
        Ok(_) => Err(format!("Mode sub-arg {value} out of range in -a")),
        Err(_) => Err(format!("Invalid mode sub-arg {value} in -a")),
    }
}

/// Refuses two arguments with the same address.
///
/// # Errors
/// The message for the operator.
pub fn check_distinct(all: &[ListenArgument]) -> Result<(), String> {
    for (index, second) in all.iter().enumerate() {
        for first in &all[..index] {
            let same = match (&first.address, &second.address) {
                (ListenAddress::Tcp(a), ListenAddress::Tcp(b)) => {
                    a.iter().any(|address| address.port() != 0 && b.contains(address))
                }
                (ListenAddress::Unix { path: a, .. }, ListenAddress::Unix { path: b, .. }) => a == b,
                _ => false,
            };
            if same {
                let (first, second) = (&first.endpoint, &second.endpoint);
                return Err(format!("-a arguments {first} and {second} have same address"));
            }
            // Certificates are loaded for a listener by its name.
            if first.name == second.name && (first.tls || second.tls) {
                return Err(format!("-a arguments {} and {} have same name", first.endpoint, second.endpoint));
            }
        }
    }
    Ok(())
}

/// The parsed owner and group as nix needs them.
#[must_use]
pub fn owner(user: Option<u32>, group: Option<u32>) -> (Option<Uid>, Option<Gid>) {
    (user.map(Uid::from_raw), group.map(Gid::from_raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        assert_eq!(parse(text, &mut 0).unwrap_err(), expected, "{text}");
    }

    #[test]
    fn self_signed_certificate_needs_https_and_excludes_others() {
        let parse = |text: &str| parse(text, &mut 0);
        assert!(parse(":443,https,self-signed").unwrap().self_signed);
        assert!(parse(":443,https,h3,self-signed").unwrap().http3);
        assert!(!parse(":443,https").unwrap().self_signed);
        for (text, said) in [
            (":80,self-signed", "self-signed needs https too"),
            (":80,HTTP,self-signed", "Too many protocol sub-args"),
            (":443,https,self-signed,acme=a.example", "acme= and self-signed exclude each other"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn listeners_are_named_by_position_or_by_hand() {
        let mut unnamed = 0;
        let first = parse("127.0.0.1:0", &mut unnamed).unwrap();
        let second = parse("edge=[::1]:81,PROXY", &mut unnamed).unwrap();
        let third = parse(":82,http", &mut unnamed).unwrap();
        assert_eq!((first.name.as_str(), second.name.as_str(), third.name.as_str()), ("a0", "edge", "a1"));
        assert_eq!((first.proxy, second.proxy, third.proxy), (false, true, false));
        assert_eq!(second.endpoint, "[::1]:81");
    }

    #[test]
    fn protocols_are_parsed_in_any_case_and_order() {
        let spoken = |text: &str| {
            let argument = parse(text, &mut 0).unwrap();
            (argument.tls, argument.proxy, argument.http3)
        };
        assert_eq!(spoken("127.0.0.1:0"), (false, false, false));
        assert_eq!(spoken("127.0.0.1:0,HTTPS"), (true, false, false));
        assert_eq!(spoken("127.0.0.1:0,h3,Https"), (true, false, true));
        assert_eq!(spoken("127.0.0.1:0,PROXY,https"), (true, true, false));
        assert_eq!(spoken("/s,https,mode=600"), (true, false, false));
    }

    #[test]
    fn requests_in_clear_are_redirected_to_a_port() {
        let port = |text: &str| parse(text, &mut 0).unwrap().redirect_port;
        assert_eq!(port("127.0.0.1:0"), None);
        assert_eq!(port("127.0.0.1:0,redirect=https"), Some(443));
        assert_eq!(port("127.0.0.1:0,PROXY,redirect=https:8443"), Some(8443));
        assert_eq!(port("/s,mode=600,redirect=https"), Some(443));
    }

    #[test]
    fn sockets_take_owner_and_mode() {
        let argument = parse("/run/x.sock,PROXY,u=root,gr=root,mode=660", &mut 0).unwrap();
        let ListenAddress::Unix { path, user, group, mode } = argument.address else { panic!("not a socket") };
        assert_eq!((path.to_str(), user, group, mode), (Some("/run/x.sock"), Some(0), Some(0), Some(0o660)));
        assert!(argument.proxy);
    }

    #[test]
    fn mistakes_get_the_words_of_varnish() {
        refuses("foo/bar", "Unix domain socket addresses must be absolute paths in -a (foo/bar)");
        let long = format!("/{}", "s".repeat(SOCKET_PATH_BYTES_MAX));
        refuses(&long, &format!("Got no socket(s) for {long}: the path of a socket has at most 107 bytes"));
        refuses("@abs", "Got no socket(s) for @abs");
        refuses("", "Got no socket(s) for ");
        refuses("127.0.0.1:0,FOO", "Unknown protocol 'FOO'");
        refuses("127.0.0.1:0,PROXY,HTTP", "Too many protocol sub-args in -a (HTTP)");
        refuses("127.0.0.1:0,HTTPS,HTTP", "Too many protocol sub-args in -a (HTTP)");
        refuses("127.0.0.1:0,https,HTTPS", "Too many protocol sub-args in -a (HTTPS)");
        refuses("127.0.0.1:0,h3", "h3 needs https too in -a (127.0.0.1:0)");
        refuses("/s,https,h3", "h3 needs an IP address in -a (/s)");
        let why = "h3 and PROXY exclude each other in -a (127.0.0.1:0): there is no such header over UDP";
        refuses("127.0.0.1:0,https,PROXY,h3", why);
        refuses("127.0.0.1:0,redirect=http", "redirect=http in -a: say redirect=https or redirect=https:PORT");
        refuses("127.0.0.1:0,redirect=https:0", "redirect=https:0 in -a: say redirect=https or redirect=https:PORT");
        refuses("127.0.0.1:0,redirect=https:+1", "redirect=https:+1 in -a: say redirect=https or redirect=https:PORT");
        refuses("127.0.0.1:0,redirect=https,redirect=https", "Too many redirect sub-args in -a (redirect=https)");
        let why = "redirect= and https exclude each other in -a (127.0.0.1:0): what comes here is https already";
        refuses("127.0.0.1:0,https,redirect=https", why);
        refuses("127.0.0.1:0,mode=666", "Invalid sub-arg mode=666 for IP addresses in -a");
        refuses("/s,foo=1", "Invalid sub-arg foo=1 in -a");
        refuses("/s,mode=", "Empty mode sub-arg in -a");
        refuses("/s,mode=0", "Mode sub-arg 0 out of range in -a");
        refuses("/s,mode=-1", "Mode sub-arg -1 out of range in -a");
        refuses("/s,mode=9", "Invalid mode sub-arg 9 in -a");
        refuses("/s,mode=7777", "Mode sub-arg 7777 out of range in -a");
        refuses("/s,user=no-such-user", "Unknown user no-such-user in -a");
        refuses("/s,group=no-such-group", "Unknown group no-such-group in -a");
        refuses("/s,user=root,user=root", "Too many user sub-args in -a (user=root)");
        refuses("1a=127.0.0.1:0", "invalid -a name \"1a\"=[...]");
        refuses("a=", "Empty named -a argument \"a=\"");
        refuses("127.0.0.1:no-such-service", "Got no socket(s) for 127.0.0.1:no-such-service");
    }

    #[test]
    fn one_address_is_listened_on_once() {
        let parse_all =
            |texts: &[&str]| -> Vec<ListenArgument> { texts.iter().map(|text| parse(text, &mut 0).unwrap()).collect() };
        let same = check_distinct(&parse_all(&["127.0.0.1:81", "127.0.0.1:81"]));
        assert_eq!(same, Err("-a arguments 127.0.0.1:81 and 127.0.0.1:81 have same address".to_owned()));
        let same = check_distinct(&parse_all(&["x=127.0.0.1:81", "x=127.0.0.1:82,https"]));
        assert_eq!(same, Err("-a arguments 127.0.0.1:81 and 127.0.0.1:82 have same name".to_owned()));
        assert_eq!(check_distinct(&parse_all(&["127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:81", "127.0.0.2:81"])), Ok(()));
    }
}
