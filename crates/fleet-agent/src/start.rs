//! The command line of the process, as the manager writes it (`fleet::link`).

use async_nats::ServerAddr;
use fleet::NodeId;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::str::FromStr;
use surface::limits::{FLEET_NODE_NAME_BYTES_MAX, FLEET_SERVERS_MAX};
use surface::option::OBSERVE_INHERITED;

/// Files that the look-up of names reads, and those of the system's issuers of certificates: the
/// library reads the latter for each connection with TLS, even if it is given others.
pub(crate) const READABLE: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ld.so.cache",
    "/run/systemd/resolve",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/var/lib/ca-certificates",
];
/// Port of the look-up of names, if an answer is long.
const DNS_PORT: u16 = 53;
/// Most copies of a stream that a server makes.
const REPLICAS_MAX: usize = 5;

/// The command line.
#[derive(Debug)]
pub(crate) struct Start {
    pub run_as: Option<(u32, u32)>,
    pub is_sandboxed: bool,
    pub folder: PathBuf,
    pub servers: Vec<ServerAddr>,
    pub fleet: String,
    pub node: NodeId,
    pub zone: String,
    pub address: String,
    pub creds: Option<PathBuf>,
    pub nkey: Option<PathBuf>,
    pub tls_ca: Option<PathBuf>,
    /// Copies of the stream; `None` = three, or one if the server is not in a cluster.
    pub replicas: Option<usize>,
}

impl Start {
    /// # Errors
    /// The message about the first wrong word.
    pub(crate) fn parse(arguments: &[OsString]) -> Result<Start, String> {
        let [mark, run_as, sandbox, options @ ..] = arguments else { return Err("there are too few words".into()) };
        if mark != OBSERVE_INHERITED {
            return Err(format!("the first word is not {OBSERVE_INHERITED}"));
        }
        let mut found = Options::default();
        let mut parser = lexopt::Parser::from_args(options.iter().cloned());
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            let lexopt::Arg::Long(name) = argument else { return Err(argument.unexpected().to_string()) };
            let name = name.to_owned();
            let value = parser.value().map_err(|error| error.to_string())?;
            found.take(&name, value)?;
        }
        let servers = found.servers.filter(|servers| !servers.is_empty()).ok_or("--servers is missing")?;
        Ok(Start {
            run_as: ids(run_as).ok_or("the second word is not USER:GROUP or -")?,
            is_sandboxed: match sandbox.to_str() {
                Some("sandbox") => true,
                Some("-") => false,
                _ => return Err("the third word is not sandbox or -".into()),
            },
            folder: found.folder.ok_or("--folder is missing")?,
            servers,
            fleet: found.fleet.ok_or("--fleet is missing")?,
            node: found.node.ok_or("--node is missing")?,
            zone: found.zone,
            address: found.address,
            creds: found.creds,
            nkey: found.nkey,
            tls_ca: found.tls_ca,
            replicas: found.replicas,
        })
    }

    /// The TCP ports to which it connects.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(ServerAddr::port).chain([DNS_PORT]).collect()
    }
}

/// `None` if it is neither `-` nor two numbers.
fn ids(word: &OsStr) -> Option<Option<(u32, u32)>> {
    match word.to_str()? {
        "-" => Some(None),
        ids => {
            let (user, group) = ids.split_once(':')?;
            Some(Some((user.parse().ok()?, group.parse().ok()?)))
        }
    }
}

#[derive(Default)]
struct Options {
    folder: Option<PathBuf>,
    servers: Option<Vec<ServerAddr>>,
    fleet: Option<String>,
    node: Option<NodeId>,
    zone: String,
    address: String,
    creds: Option<PathBuf>,
    nkey: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
    replicas: Option<usize>,
}

impl Options {
    fn take(&mut self, name: &str, value: OsString) -> Result<(), String> {
        let text = |value: OsString| value.into_string().map_err(|_| format!("--{name}: not text"));
        match name {
            "folder" => self.folder = Some(value.into()),
            "creds" => self.creds = Some(value.into()),
            "nkey" => self.nkey = Some(value.into()),
            "tls-ca" => self.tls_ca = Some(value.into()),
            "servers" => self.servers = Some(servers(&text(value)?)?),
            // One word of a subject and of the name of a stream, like the name of a node.
            "fleet" => {
                let fleet = text(value)?;
                NodeId::new(&fleet).map_err(|_| {
                    format!("--fleet: a name has 1 to {FLEET_NODE_NAME_BYTES_MAX} letters, digits, '-' or '_'")
                })?;
                self.fleet = Some(fleet);
            }
            "node" => self.node = Some(NodeId::new(&text(value)?).map_err(|error| format!("--node: {error}"))?),
            "zone" => self.zone = text(value)?,
            "address" => self.address = text(value)?,
            "replicas" => {
                let number = text(value)?.parse().ok().filter(|number| (1..=REPLICAS_MAX).contains(number));
                self.replicas = Some(number.ok_or(format!("--replicas: not a number from 1 to {REPLICAS_MAX}"))?);
            }
            _ => return Err(format!("--{name}: no such option")),
        }
        Ok(())
    }
}

/// `nats://a,b:4223,c`: a scheme holds for the servers after it.
fn servers(list: &str) -> Result<Vec<ServerAddr>, String> {
    let mut scheme = "nats";
    let mut servers = Vec::new();
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let rest = match word.split_once("://") {
            Some((found @ ("nats" | "tls"), rest)) => {
                scheme = found;
                rest
            }
            Some(_) => return Err(format!("--servers: {word}: not nats:// or tls://")),
            None => word,
        };
        let server = ServerAddr::from_str(&format!("{scheme}://{rest}"));
        let server = server.map_err(|error| format!("--servers: {word}: {error}"))?;
        if server.host().is_empty() {
            return Err(format!("--servers: {word}: there is no host"));
        }
        servers.push(server);
    }
    match servers.len() {
        0 => Err("--servers: there is no server".into()),
        1..=FLEET_SERVERS_MAX => Ok(servers),
        _ => Err(format!("--servers: more than {FLEET_SERVERS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "--inherited - - --folder f --servers nats://a --fleet shop --node n1";

    fn parsed(line: &str) -> Result<Start, String> {
        Start::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn command_line_of_a_manager_is_complete_or_refused() {
        let start = parsed(LEAST).unwrap();
        assert_eq!((start.run_as, start.is_sandboxed, start.replicas), (None, false, None));
        assert_eq!(start.ports(), [4222, 53]);
        let line = LEAST.replace("- -", "102:105 sandbox") + " --replicas 1 --zone z --nkey k --address 1.2.3.4:6081";
        let start = parsed(&line).unwrap();
        assert_eq!((start.run_as, start.is_sandboxed, start.replicas), (Some((102, 105)), true, Some(1)));
        for (from, to) in [
            ("--inherited", "--other"),
            ("- -", "1 -"),
            ("- -", "- x"),
            ("--folder f", ""),
            ("--node n1", "--node a.b"),
            ("--fleet shop", "--fleet a.>"),
            ("--fleet shop", "--replicas 6 --fleet shop"),
            ("--fleet shop", "--nothing 6 --fleet shop"),
            ("nats://a", "http://a"),
            ("nats://a", ","),
        ] {
            assert!(parsed(&LEAST.replace(from, to)).is_err(), "{to}");
        }
        assert!(parsed("").is_err() && parsed("--inherited").is_err());
    }

    #[test]
    fn scheme_of_a_server_holds_for_those_after_it() {
        let list = servers("tls://a,b:7,[::1]:8").unwrap();
        let shown: Vec<_> = list.iter().map(|server| (server.tls_required(), server.host(), server.port())).collect();
        assert_eq!(shown, [(true, "a", 4222), (true, "b", 7), (true, "::1", 8)]);
        assert!(servers(&"a,".repeat(FLEET_SERVERS_MAX + 1)).is_err());
    }
}
