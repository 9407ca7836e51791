//! The front doors that are compared: each with its cache in memory, the same certificates, and one
//! core.

use crate::place::free_port;
use crate::process::Server;
use crate::servers::{Build, Kind, beside, installed};
use std::path::{Path, PathBuf};

/// The key of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// ECDSA, P-256.
    Ecdsa,
    /// RSA, 2048 bits.
    Rsa,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Key::Ecdsa => "ecdsa",
            Key::Rsa => "rsa",
        }
    }
}

/// Listener for a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// HTTP/1.1 without TLS.
    Clear,
    /// HTTP/2 without TLS, by prior knowledge.
    ClearHttp2,
    /// TLS or QUIC, with that certificate.
    Secured(Key),
}

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// Copal.
    Copal,
    /// Another build of Copal.
    Build(Build),
    /// Debian's nginx with proxy_cache on a memory file system.
    Nginx,
    /// Debian's haproxy with its small-object cache.
    Haproxy,
    /// Debian's varnishd behind Debian's hitch.
    Varnish,
}

/// All of them.
pub const ALL: [Peer; 4] = [Peer::Copal, Peer::Nginx, Peer::Haproxy, Peer::Varnish];

impl Peer {
    /// Name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Copal => "copal",
            Peer::Build(build) => build.name,
            Peer::Nginx => "nginx",
            Peer::Haproxy => "haproxy",
            Peer::Varnish => "hitch+varnish",
        }
    }

    /// True for Copal, however built.
    pub fn is_ours(self) -> bool {
        matches!(self, Peer::Copal | Peer::Build(_))
    }

    /// A required program that is not installed.
    pub fn missing(self) -> Option<&'static str> {
        let programs: &[&'static str] = match self {
            Peer::Copal => return beside().is_none().then_some("copal"),
            Peer::Build(_) => &[],
            Peer::Nginx => &["nginx"],
            Peer::Haproxy => &["haproxy"],
            Peer::Varnish => &["varnishd", "hitch"],
        };
        programs.iter().find(|name| installed(name).is_none()).copied()
    }
}

/// The installed peers of a comma-separated list, or all; missing ones are reported.
pub fn installed_peers(only: Option<&str>) -> Vec<Peer> {
    let mut peers = ALL.to_vec();
    peers.retain(|peer| only.is_none_or(|only| only.split(',').any(|name| name == peer.name())));
    peers.retain(|peer| {
        let missing = peer.missing();
        missing.iter().for_each(|what| println!("skipped: needs {what}"));
        missing.is_none()
    });
    peers
}

/// A certificate of each kind for `localhost`, made for one run: certificate and key in one file,
/// the format of all the servers.
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes them with openssl.
    pub fn make(folder: &Path) -> Result<Certificates, String> {
        let openssl = installed("openssl").ok_or("openssl is not installed")?;
        for (name, key) in [("ecdsa", &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"][..]), ("rsa", &["rsa:2048"])] {
            let (certificate, private) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
            let made = std::process::Command::new(&openssl)
                .args(["req", "-x509", "-days", "2", "-nodes", "-subj", "/CN=localhost", "-addext"])
                .args(["subjectAltName=DNS:localhost", "-newkey"])
                .args(key)
                .args(["-keyout", &private.display().to_string(), "-out", &certificate.display().to_string()])
                .output()
                .map_err(|error| format!("openssl: {error}"))?;
            if !made.status.success() {
                return Err(format!("openssl: {}", String::from_utf8_lossy(&made.stderr)));
            }
            let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
            let both = [read(&private)?, read(&certificate)?].concat();
            std::fs::write(folder.join(format!("{name}.pem")), both).map_err(|error| error.to_string())?;
        }
        Ok(Certificates { folder: folder.to_owned() })
    }

    /// The file of a certificate.
    pub fn pem(&self, key: Key) -> String {
        self.folder.join(format!("{}.pem", key.name())).display().to_string()
    }
}

/// Starts the origin: the bare epoll loop of `bench`.
pub fn origin(folder: &Path, core: usize) -> Result<(Server, u16), String> {
    let port = free_port()?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let log = folder.join("origin.log");
    let arguments = ["floor".to_owned(), port.to_string(), "1".to_owned()];
    let mut server = Server::start(&core.to_string(), &program, &arguments, &log)?;
    server.wait_for_port(port, &log)?;
    Ok((server, port))
}

/// A running peer.
pub struct Door {
    /// The kind of server.
    pub peer: Peer,
    servers: Vec<Server>,
    /// The port without TLS.
    pub clear: u16,
    clear_http2: u16,
    /// The port with TLS and a certificate of ECDSA.
    pub ecdsa: u16,
    rsa: u16,
}

impl Door {
    /// Starts it in front of the origin's port, on one core.
    pub fn open(
        peer: Peer,
        origin: u16,
        folder: &Path,
        certificates: &Certificates,
        core: usize,
    ) -> Result<Door, String> {
        let folder = folder.join(peer.name());
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let (clear, ecdsa, rsa) = (free_port()?, free_port()?, free_port()?);
        // Copal and varnishd distinguish HTTP/1 and HTTP/2 on one port.
        let clear_http2 = if peer.is_ours() || peer == Peer::Varnish { clear } else { free_port()? };
        let mut door = Door { peer, servers: Vec::new(), clear, clear_http2, ecdsa, rsa };
        let (at, first, second) = (folder.display(), certificates.pem(Key::Ecdsa), certificates.pem(Key::Rsa));
        // Connections must not be closed during their measurement.
        let varnish = format!(
            "-F -j none -n {at}/n -T none -s malloc,64m -b 127.0.0.1:{origin} -p feature=+http2 -p timeout_idle=600"
        );
        let write = |name: &str, text: String| -> Result<String, String> {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(path.display().to_string())
        };
        let mut start = |program: PathBuf, text: String, port: u16| -> Result<(), String> {
            let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let log = folder.join(format!("log-{port}"));
            let mut server = Server::start(&core.to_string(), &program, &arguments, &log)?;
            server.wait_for_port(port, &log).map_err(|error| format!("{}: {error}", peer.name()))?;
            door.servers.push(server);
            Ok(())
        };
        let program = |name| installed(name).ok_or(format!("{name} is not installed"));
        match peer {
            Peer::Copal | Peer::Build(_) => {
                let frontend = |port: u16, pem: &str| {
                    format!("frontend = {{ host = \"127.0.0.1\" port = \"{port}\" pem-file = \"{pem}\" h3 = on }}\n")
                };
                let doors = write("tls.conf", frontend(ecdsa, &first) + &frontend(rsa, &second))?;
                let kind = if let Peer::Build(build) = peer { Kind::Build(build) } else { Kind::Copal };
                let copal = kind.program().ok_or("copal is not built")?;
                start(copal, format!("daemon {varnish} -a 127.0.0.1:{clear} -A {doors} -p event_loops=1"), ecdsa)?;
            }
            Peer::Varnish => {
                start(
                    program("varnishd")?,
                    format!("{varnish} -a 127.0.0.1:{clear} -a {at}/proxy,PROXY,mode=666"),
                    clear,
                )?;
                let frontend = |port: u16, pem: &str| {
                    format!("frontend = {{ host = \"127.0.0.1\" port = \"{port}\" pem-file = \"{pem}\" }}\n")
                };
                let doors = frontend(ecdsa, &first) + &frontend(rsa, &second);
                // hitch does not run its workers as root.
                let user = if nix::unistd::geteuid().is_root() { "user = \"nobody\"\n" } else { "" };
                let text = format!(
                    "{doors}{user}backend = \"{at}/proxy\"\nworkers = 1\nalpn-protos = \"h2,http/1.1\"\nwrite-proxy-v2 = on\n\
                     log-level = 0\n"
                );
                start(program("hitch")?, format!("--config={}", write("hitch.conf", text)?), ecdsa)?;
            }
            Peer::Nginx => {
                let text = nginx(&folder, origin, (clear, clear_http2), (ecdsa, rsa), certificates);
                start(program("nginx")?, format!("-c {} -p {at}", write("nginx.conf", text)?), ecdsa)?;
            }
            Peer::Haproxy => {
                let text = format!(
                    "global\n  maxconn 8192\n  nbthread 1\n  tune.ssl.cachesize 20000\n\
                     cache c\n  total-max-size 64\n  max-object-size 15000\n  max-age 3600\n\
                     defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\
                     frontend f\n  bind 127.0.0.1:{clear} backlog 4096\n  bind 127.0.0.1:{clear_http2} proto h2\n  \
                     bind 127.0.0.1:{ecdsa} ssl crt {first} alpn h2,http/1.1\n  \
                     bind 127.0.0.1:{rsa} ssl crt {second} alpn h2,http/1.1\n  \
                     http-request cache-use c\n  default_backend b\n\
                     backend b\n  http-response cache-store c\n  server o 127.0.0.1:{origin}\n"
                );
                start(program("haproxy")?, format!("-db -f {}", write("haproxy.cfg", text)?), ecdsa)?;
            }
        }
        Ok(door)
    }

    /// The port of an entry.
    pub fn port(&self, entry: Entry) -> u16 {
        match entry {
            Entry::Clear => self.clear,
            Entry::ClearHttp2 => self.clear_http2,
            Entry::Secured(Key::Ecdsa) => self.ecdsa,
            Entry::Secured(Key::Rsa) => self.rsa,
        }
    }

    /// The server processes.
    pub fn servers(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// All its processes.
    pub fn pids(&self) -> Vec<u32> {
        self.servers.iter().flat_map(Server::tree).collect()
    }
}

fn nginx(folder: &Path, origin: u16, clear: (u16, u16), tls: (u16, u16), certificates: &Certificates) -> String {
    let at = folder.display();
    let server = |listen: String, key: Option<Key>| {
        let certificate = key.map_or_else(String::new, |key| {
            let pem = certificates.pem(key);
            format!("ssl_certificate {pem}; ssl_certificate_key {pem}; ssl_session_cache shared:s:10m; ssl_protocols TLSv1.2 TLSv1.3;")
        });
        format!(
            "server {{ listen 127.0.0.1:{listen} backlog=4096; {certificate} location / {{\n\
             proxy_pass http://127.0.0.1:{origin}; proxy_cache c; add_header Age 1; }} }}\n"
        )
    };
    let servers = [
        server(clear.0.to_string(), None),
        server(format!("{} http2", clear.1), None),
        server(format!("{} ssl http2", tls.0), Some(Key::Ecdsa)),
        server(format!("{} ssl http2", tls.1), Some(Key::Rsa)),
    ]
    .concat();
    format!(
        "daemon off; worker_processes 1; pid {at}/nginx.pid; error_log {at}/nginx-error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 100000000; client_body_temp_path {at}/cb;\n\
         proxy_temp_path {at}/pt; fastcgi_temp_path {at}/ft; uwsgi_temp_path {at}/ut; scgi_temp_path {at}/st;\n\
         proxy_cache_path {at}/cache keys_zone=c:64m max_size=64m inactive=1h;\n{servers} }}\n"
    )
}
