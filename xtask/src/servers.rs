//! The measured servers: each is started in front of the same origin, with its cache in memory and
//! one core.

use crate::place::connections_max;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The bare epoll loop.
    Floor,
    /// Copal.
    Copal,
    /// Another build of Copal.
    Build(Build),
    /// Debian's varnishd.
    Varnish,
    /// Debian's nginx with proxy_cache, whose files are in `folder`.
    Nginx,
    /// Debian's haproxy with its small-object cache.
    Haproxy,
}

/// A build of Copal in another directory than this program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Build {
    /// Name in tables.
    pub name: &'static str,
    /// Path of the program.
    pub program: &'static Path,
}

impl Build {
    /// A build of a name and a program; both are stored as long as this process lives.
    pub fn new(name: &str, program: &Path) -> Build {
        Build { name: name.to_owned().leak(), program: Box::leak(program.into()) }
    }

    /// Builds of a list as typed: `NAME=FILE,…`.
    pub fn listed(text: &str) -> Result<Vec<Build>, String> {
        let one = |word: &str| {
            let (name, file) = word.split_once('=').ok_or_else(|| format!("--builds: '{word}' is not NAME=FILE"))?;
            let program = Path::new(file).canonicalize().map_err(|error| format!("--builds: {file}: {error}"))?;
            let is_taken = ALL.iter().any(|kind| kind.name() == name);
            if is_taken { Err(format!("--builds: {name} is another server")) } else { Ok(Build::new(name, &program)) }
        };
        text.split(',').map(one).collect()
    }
}

/// All kinds; the floor comes first, since the results of the others are divided by its own.
pub const ALL: [Kind; 5] = [Kind::Floor, Kind::Copal, Kind::Varnish, Kind::Nginx, Kind::Haproxy];

/// Parameters for starting a server.
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
            Kind::Build(build) => build.name,
            Kind::Varnish => "varnish",
            Kind::Nginx => "nginx",
            Kind::Haproxy => "haproxy",
        }
    }

    /// Path of the program; `None` if it is not installed.
    pub fn program(self) -> Option<PathBuf> {
        match self {
            Kind::Floor => std::env::current_exe().ok(),
            Kind::Copal => beside(),
            Kind::Build(build) => Some(build.program.to_owned()),
            Kind::Varnish => installed("varnishd"),
            Kind::Nginx => installed("nginx"),
            Kind::Haproxy => installed("haproxy"),
        }
    }

    /// Parameters for starting it on a port, in front of the origin's port, with `folder` for its
    /// files.
    pub fn launch(self, port: u16, origin: u16, folder: &Path, cache_mebibytes: u32) -> Result<Launch, String> {
        self.launch_with(port, origin, folder, &Setting { cache_mebibytes, ..Setting::default() })
    }

    /// Like [`Kind::launch`], with a different setting.
    pub fn launch_with(self, port: u16, origin: u16, folder: &Path, setting: &Setting) -> Result<Launch, String> {
        let program = self.program().ok_or_else(|| format!("{} is not installed", self.name()))?;
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let at = folder.display();
        let Setting { cache_mebibytes, loops, .. } = *setting;
        let source = match &setting.vcl {
            None => format!("-b 127.0.0.1:{origin}"),
            Some(text) => {
                let path = folder.join(format!("{}.vcl", self.name()));
                let backend = format!("vcl 4.1;\nbackend default {{ .host = \"127.0.0.1\"; .port = \"{origin}\"; }}\n");
                write(&path, &(backend + text))?;
                format!("-f {}", path.display())
            }
        };
        let arguments = match self {
            Kind::Floor => words(format!("floor {port} {loops}")),
            Kind::Copal | Kind::Build(_) => words(format!(
                "daemon -F -j none -n {at}/{} -a 127.0.0.1:{port} {source} -T none \
                 -s malloc,{cache_mebibytes}m -p event_loops={loops}",
                self.name()
            )),
            Kind::Varnish => words(format!(
                "-F -j none -n {at}/varnish -a 127.0.0.1:{port} {source} -T none \
                 -s malloc,{cache_mebibytes}m"
            )),
            Kind::Nginx => {
                let configuration = folder.join("nginx.conf");
                write(&configuration, &nginx(port, origin, folder, setting))?;
                words(format!("-c {} -p {at}", configuration.display()))
            }
            Kind::Haproxy => {
                let configuration = folder.join("haproxy.cfg");
                write(&configuration, &haproxy(port, origin, setting))?;
                words(format!("-db -f {}", configuration.display()))
            }
        };
        Ok(Launch { program, arguments })
    }
}

/// Differences between measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Size of the cache, in MiB.
    pub cache_mebibytes: u32,
    /// Number of event loops, worker processes or threads.
    pub loops: usize,
    /// VCL without its first line and its backend; for Copal and varnishd.
    pub vcl: Option<String>,
    /// Requests with a cookie bypass the cache; for nginx and HAProxy.
    pub passes_cookies: bool,
    /// Stale objects are served during a refresh, as Copal and varnishd do anyway.
    pub refreshes: bool,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting { cache_mebibytes: 256, loops: 1, vcl: None, passes_cookies: false, refreshes: false }
    }
}

impl Launch {
    /// Gives it a port for commands, which [`Kind::launch`] does not.
    pub fn administered(&mut self) -> Result<(), String> {
        let at = self.arguments.iter().position(|argument| argument == "-T").ok_or("no -T")?;
        self.arguments[at + 1] = format!("127.0.0.1:{}", crate::place::free_port()?);
        Ok(())
    }
}

/// One CLI command to Copal or varnishd with that work directory, through Copal's `varnishadm`.
pub fn administer(state: &Path, words: &[&str]) -> Result<(), String> {
    administer_by(&beside().ok_or("copal is not built")?, state, words)
}

/// Like [`administer`], through another build's `varnishadm`.
pub fn administer_by(program: &Path, state: &Path, words: &[&str]) -> Result<(), String> {
    let output = std::process::Command::new(program)
        .args(["adm", "-t", "300", "-n"])
        .arg(state)
        .args(words)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stdout).trim()))
}

/// Copal, as built next to this program.
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

fn nginx(port: u16, origin: u16, folder: &Path, setting: &Setting) -> String {
    let cookies =
        if setting.passes_cookies { "proxy_cache_bypass $http_cookie; proxy_no_cache $http_cookie;" } else { "" };
    let refresh =
        if setting.refreshes { "proxy_cache_use_stale updating; proxy_cache_background_update on;" } else { "" };
    format!(
        "daemon off; worker_processes {loops}; pid {at}/nginx.pid; error_log {at}/nginx-error.log; \n\
         events {{ worker_connections {connections}; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 100000000; client_body_temp_path {at}/cb;\n\
         proxy_temp_path {at}/pt; fastcgi_temp_path {at}/ft; uwsgi_temp_path {at}/ut; scgi_temp_path {at}/st;\n\
         proxy_cache_path {at}/nginx-cache keys_zone=c:64m max_size={mebibytes}m inactive=1h;\n\
         upstream o {{ server 127.0.0.1:{origin}; keepalive 64; }}\n\
         server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://o; proxy_cache c; {cookies} {refresh}\n\
         proxy_http_version 1.1; proxy_set_header Connection \"\"; add_header Age 1;\n\
         add_header X-Cache $upstream_cache_status; }} }} }}\n",
        at = folder.display(),
        loops = setting.loops,
        mebibytes = setting.cache_mebibytes,
        connections = connections_max() * 2,
    )
}

fn haproxy(port: u16, origin: u16, setting: &Setting) -> String {
    let unless = if setting.passes_cookies { "unless { req.hdr(cookie) -m found }" } else { "" };
    format!(
        "global\n  maxconn {connections}\n  nbthread {loops}\n  tune.bufsize 1100000\n\
         cache c\n  total-max-size {mebibytes}\n  max-object-size 1090000\n  max-age 3600\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 600s\n  timeout server 60s\n\
         frontend f\n  bind 127.0.0.1:{port} backlog 4096\n  http-request cache-use c {unless}\n  default_backend b\n\
         backend b\n  http-response cache-store c\n  server o 127.0.0.1:{origin}\n",
        loops = setting.loops,
        mebibytes = setting.cache_mebibytes.min(4095),
        connections = connections_max(),
    )
}
