//! `-o fleet=…` and its settings.
//!
//! Key files are read here, with the rights of the start; the other files are read by the agent.

use super::{ArgumentError, absolute, reason};
use fleet::NodeId;
use fleet::link::Key;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use surface::limits::{FLEET_NODE_NAME_BYTES_MAX, FLEET_SERVERS_MAX};
use surface::option::{
    FLEET, FLEET_CREDS, FLEET_KEY, FLEET_KEY_OLD, FLEET_NAME, FLEET_NAME_DEFAULT, FLEET_NKEY, FLEET_NODE, FLEET_TLS_CA,
    FLEET_ZONE,
};

/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Permissions that let others read a key.
const OTHERS: u32 = 0o077;

/// The fleet of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetArgument {
    /// The NATS servers, as given.
    pub servers: String,
    /// Its name.
    pub name: String,
    /// One or two keys; the first one signs.
    pub keys: Vec<Key>,
    /// `None` = made of the host's name.
    pub node: Option<NodeId>,
    /// Empty = none.
    pub zone: String,
    /// Credentials for NATS.
    pub credentials: Option<PathBuf>,
    /// An nkey for NATS.
    pub nkey: Option<PathBuf>,
    /// Issuers of the servers' certificates.
    pub tls_authorities: Option<PathBuf>,
    /// Lines for the operator.
    pub remarks: Vec<String>,
}

/// Takes the fleet out of the `-o` of a command line; `None` if there is none.
///
/// # Errors
/// One line that names the wrong option.
pub fn take(options: &mut Vec<String>) -> Result<Option<FleetArgument>, ArgumentError> {
    let is_ours = |option: &mut String| {
        let key = option.split('=').next().unwrap_or_default();
        key == FLEET || key.starts_with("fleet_")
    };
    let mut fleet = FleetArgument {
        servers: String::new(),
        name: FLEET_NAME_DEFAULT.to_owned(),
        keys: Vec::new(),
        node: None,
        zone: String::new(),
        credentials: None,
        nkey: None,
        tls_authorities: None,
        remarks: Vec::new(),
    };
    let (mut key, mut old, mut is_any) = (None, None, false);
    for option in options.extract_if(.., is_ours) {
        is_any = true;
        let (name, value) = option.split_once('=').unwrap_or((option.as_str(), ""));
        let wrong = |why: &str| ArgumentError::from(format!("-o {option}: {why}"));
        let file = || match value {
            "" => Err(wrong("a file is missing")),
            file => Ok(absolute(Path::new(file))),
        };
        match name {
            FLEET => {
                check_servers(value).map_err(|why| wrong(&why))?;
                value.clone_into(&mut fleet.servers);
            }
            FLEET_NAME => fleet.name = word(value).map_err(wrong)?,
            FLEET_ZONE => fleet.zone = word(value).map_err(wrong)?,
            FLEET_NODE => fleet.node = Some(NodeId::new(value).map_err(|error| wrong(&error.to_string()))?),
            FLEET_KEY => key = Some(read_key(&file()?, &mut fleet.remarks).map_err(|why| wrong(&why))?),
            FLEET_KEY_OLD => old = Some(read_key(&file()?, &mut fleet.remarks).map_err(|why| wrong(&why))?),
            FLEET_CREDS => fleet.credentials = Some(file()?),
            FLEET_NKEY => fleet.nkey = Some(file()?),
            FLEET_TLS_CA => fleet.tls_authorities = Some(file()?),
            _ => return Err(wrong("there is no such option")),
        }
    }
    if !is_any {
        return Ok(None);
    }
    if fleet.servers.is_empty() {
        return Err("-o fleet_name and the like need -o fleet=nats://HOST".into());
    }
    let Some(key) = key else {
        return Err("-o fleet needs -o fleet_key=FILE: 32 random bytes, the same on all nodes, as head -c 32 \
                    /dev/urandom makes them"
            .into());
    };
    if fleet.credentials.is_some() && fleet.nkey.is_some() {
        return Err("-o fleet_creds and -o fleet_nkey exclude each other".into());
    }
    fleet.keys = [Some(key), old].into_iter().flatten().collect();
    Ok(Some(fleet))
}

/// Checks a list of URLs; they become arguments of the agent.
fn check_servers(list: &str) -> Result<(), String> {
    let servers: Vec<&str> = list.split(',').collect();
    if servers.len() > FLEET_SERVERS_MAX {
        return Err(format!("{} servers are too many, {FLEET_SERVERS_MAX} are allowed", servers.len()));
    }
    for server in servers {
        let address = server.strip_prefix("nats://").or_else(|| server.strip_prefix("tls://"));
        let is_address = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
        };
        match address {
            Some(address) if address.contains('@') => {
                return Err("a password on the command line is visible to all users: use fleet_creds".to_owned());
            }
            Some(address) if is_address(address) => {}
            Some(_) | None => return Err(format!("'{server}' is not nats://HOST[:PORT] or tls://HOST[:PORT]")),
        }
    }
    Ok(())
}

/// A name that is one word on a terminal.
fn word(text: &str) -> Result<String, &'static str> {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    match text.len() {
        1..=FLEET_NODE_NAME_BYTES_MAX if is_word => Ok(text.to_owned()),
        _ => Err("a name has 1 to 64 letters, digits, '-' or '_'"),
    }
}

/// Reads a key: 32 bytes, or 64 hexadecimal digits.
fn read_key(path: &Path, remarks: &mut Vec<String>) -> Result<Key, String> {
    let mut file = File::open(path).map_err(|error| reason(&error))?;
    let found = file.metadata().map_err(|error| reason(&error))?;
    let mut bytes = Vec::new();
    file.by_ref().take(1024).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    if found.mode() & OTHERS != 0 {
        remarks.push(format!("others may read or change the key of the fleet ({}): chmod 600", path.display()));
    }
    let of_digits = |text: &str| -> Option<Vec<u8>> {
        let digits: Vec<u8> =
            text.trim_end().chars().map(|one| one.to_digit(16).map(|one| one as u8)).collect::<Option<_>>()?;
        (digits.len() == 2 * KEY_BYTES).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
    };
    let key = match std::str::from_utf8(&bytes).ok().and_then(of_digits) {
        Some(key) => key,
        None => bytes,
    };
    let length = key.len();
    let key: [u8; KEY_BYTES] = key.try_into().map_err(|_| {
        format!("a key has {KEY_BYTES} bytes, or {} hexadecimal digits, not {length} bytes", 2 * KEY_BYTES)
    })?;
    if key.iter().all(|byte| *byte == key[0]) {
        return Err("all bytes of the key are equal: make one with head -c 32 /dev/urandom".to_owned());
    }
    Ok(Key(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn taken(options: &[String]) -> Result<Option<FleetArgument>, String> {
        let mut options = options.to_vec();
        take(&mut options).map_err(|error| error.text)
    }

    fn key_file(folder: &Path, bytes: &[u8]) -> String {
        let path = folder.join(format!("{}-{:?}", bytes.len(), bytes.first()));
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        format!("fleet_key={}", path.display())
    }

    #[test]
    fn fleet_needs_servers_and_a_key_of_the_right_length() {
        let folder = tempfile::TempDir::new().unwrap();
        let servers = "fleet=nats://a,tls://b:4222,nats://[::1]:1".to_owned();
        let key: Vec<u8> = (0..32).collect();
        let good = key_file(folder.path(), &key);
        let fleet = taken(&[servers.clone(), good.clone()]).unwrap().unwrap();
        assert_eq!(
            (fleet.keys, fleet.name.as_str(), fleet.remarks.len()),
            (vec![Key(key.clone().try_into().unwrap())], "copal", 0)
        );
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let hexadecimal = key_file(folder.path(), format!("{digits}\n").as_bytes());
        assert_eq!(taken(&[servers.clone(), hexadecimal]).unwrap().unwrap().keys[0], Key(key.try_into().unwrap()));
        assert_eq!(taken(&[]), Ok(None));
        assert!(taken(std::slice::from_ref(&good)).unwrap_err().contains("need -o fleet="));
        assert!(taken(std::slice::from_ref(&servers)).unwrap_err().contains("needs -o fleet_key"));
        for (bytes, why) in [(&b"short"[..], "not 5 bytes"), (&[7; 32], "are equal"), (b"", "not 0 bytes")] {
            let error = taken(&[servers.clone(), key_file(folder.path(), bytes)]).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        for wrong in [
            "fleet=",
            "fleet=http://a",
            "fleet=nats://",
            "fleet=nats://u:p@a",
            "fleet=nats://a --x",
            "fleet_node=a.b",
            "fleet_zone=",
            "fleet_name=a b",
            "fleet_creds=",
            "fleet_key=/nowhere",
            "fleet_nodes=a",
        ] {
            assert!(taken(&[servers.clone(), good.clone(), wrong.to_owned()]).is_err(), "{wrong}");
        }
        let both = [servers, good, "fleet_creds=/a".to_owned(), "fleet_nkey=/b".to_owned()];
        assert!(taken(&both).unwrap_err().contains("exclude"));
    }

    #[test]
    fn key_that_others_may_read_is_remarked_upon() {
        let folder = tempfile::TempDir::new().unwrap();
        let option = key_file(folder.path(), &(0..32).collect::<Vec<u8>>());
        let path = option.strip_prefix("fleet_key=").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let fleet = taken(&["fleet=nats://a".to_owned(), option.clone()]).unwrap().unwrap();
        assert!(fleet.remarks[0].contains("chmod 600"));
        assert!(!format!("{fleet:?}").contains("1, 2, 3"), "the key is not shown");
    }
}
