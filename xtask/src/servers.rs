//! The measured servers: how each is started in front of the same origin, with its cache in memory and one core.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The bare epoll loop.
    Floor,
    /// Ours.
    Copal,
    /// Debian's varnishd.
    Varnish,
    /// Debian's nginx with proxy_cache on a memory file system.
    Nginx,
    /// Debian's haproxy with its small-object cache.
    Haproxy,
}

/// All kinds; the floor comes first, since the others are divided by it.
pub const ALL: [Kind; 5] = [Kind::Floor, Kind::Copal, Kind::Varnish, Kind::Nginx, Kind::Haproxy];

/// How to start a server.
pub struct Launch {
    /// Program.
    pub program: PathBuf,
    /// Arguments.
    pub arguments: Vec<String>,
}

impl Kind {
    /// Name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Floor => "floor",
            Kind::Copal => "copal",
            Kind::Varnish => "varnish",
            Kind::Nginx => "nginx",
            Kind::Haproxy => "haproxy",
        }
    }

    /// Largest body that it can store, in bytes; HAProxy's cache accepts no object above its buffer size.
    pub fn body_bytes_max(self) -> usize {
        if self == Kind::Haproxy { 1 << 20 } else { usize::MAX }
    }

    /// Path of the program; `None` when it is not installed.
    pub fn program(self) -> Option<PathBuf> {
        match self {
            Kind::Floor => std::env::current_exe().ok(),
            Kind::Copal => beside(),
            Kind::Varnish => installed("varnishd"),
            Kind::Nginx => installed("nginx"),
            Kind::Haproxy => installed("haproxy"),
        }
    }

    /// How to start it on a port, in front of the origin's port, with `folder` for its files.
    pub fn launch(self, port: u16, origin: u16, folder: &Path, cache_mebibytes: u32) -> Result<Launch, String> {
        let program = self.program().ok_or_else(|| format!("{} is not installed", self.name()))?;
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let at = folder.display();
        let arguments = match self {
            Kind::Floor => words(format!("floor {port} 1")),
            Kind::Copal => words(format!(
                "daemon -F -j none -n {at}/copal -a 127.0.0.1:{port} -b 127.0.0.1:{origin} -T none \
                 -s malloc,{cache_mebibytes}m -p event_loops=1"
            )),
            Kind::Varnish => words(format!(
                "-F -j none -n {at}/varnish -a 127.0.0.1:{port} -b 127.0.0.1:{origin} -T none \
                 -s malloc,{cache_mebibytes}m"
            )),
            Kind::Nginx => {
                let configuration = folder.join("nginx.conf");
                write(&configuration, &nginx(port, origin, folder, cache_mebibytes))?;
                words(format!("-c {} -p {at}", configuration.display()))
            }
            Kind::Haproxy => {
                let configuration = folder.join("haproxy.cfg");
                write(&configuration, &haproxy(port, origin, cache_mebibytes))?;
                words(format!("-db -f {}", configuration.display()))
            }
        };
        Ok(Launch { program, arguments })
    }
}

/// Copal, as it was built beside this program.
pub fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name("copal");
    path.exists().then_some(path)
}

/// An installed program.
pub fn installed(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn nginx(port: u16, origin: u16, folder: &Path, cache_mebibytes: u32) -> String {
    let cache = if Path::new("/dev/shm").is_dir() {
        format!("/dev/shm/copal-bench-{}", std::process::id())
    } else {
        folder.join("nginx-cache").display().to_string()
    };
    format!(
        "daemon off; worker_processes 1; pid {at}/nginx.pid; error_log {at}/nginx-error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 100000000; client_body_temp_path {at}/cb;\n\
         proxy_temp_path {at}/pt; fastcgi_temp_path {at}/ft; uwsgi_temp_path {at}/ut; scgi_temp_path {at}/st;\n\
         proxy_cache_path {cache} keys_zone=c:64m max_size={cache_mebibytes}m inactive=1h;\n\
         server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache c;\n\
         add_header Age 1; add_header X-Cache $upstream_cache_status; }} }} }}\n",
        at = folder.display()
    )
}

fn haproxy(port: u16, origin: u16, cache_mebibytes: u32) -> String {
    format!(
        "global\n  maxconn 8192\n  nbthread 1\n  tune.bufsize 1100000\n\
         cache c\n  total-max-size {}\n  max-object-size 1090000\n  max-age 3600\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\
         frontend f\n  bind 127.0.0.1:{port} backlog 4096\n  http-request cache-use c\n  default_backend b\n\
         backend b\n  http-response cache-store c\n  server o 127.0.0.1:{origin}\n",
        cache_mebibytes.min(4095)
    )
}
