//! NATS servers on loopback.

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use surface::limits::TEST_HANG_SECONDS;
use tempfile::TempDir;

/// False if the program is missing, which is said.
pub fn is_installed() -> bool {
    let found = Command::new("nats-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: needs nats-server");
    }
    found
}

struct Server {
    port: u16,
    child: Option<Child>,
}

/// Servers of one cluster, or one server.
pub struct Servers {
    servers: Vec<Server>,
    folder: TempDir,
}

fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

impl Servers {
    pub fn start(count: usize) -> Servers {
        Servers::start_with(count, |_| String::new())
    }

    /// Servers with more lines in their configuration, made with the folder of all of them.
    pub fn start_with(count: usize, more: impl Fn(&Path) -> String) -> Servers {
        let folder = tempfile::tempdir().unwrap();
        let ports = free_ports(2 * count);
        let (clients, routes) = ports.split_at(count);
        let shown: Vec<_> = routes.iter().map(|port| format!("nats-route://127.0.0.1:{port}")).collect();
        for (index, (client, route)) in clients.iter().zip(routes).enumerate() {
            let store = folder.path().join(format!("store{index}"));
            let cluster = match count {
                1 => String::new(),
                _ => {
                    let routes = shown.join(", ");
                    format!("cluster {{ name: c, listen: \"127.0.0.1:{route}\", routes: [{routes}] }}")
                }
            };
            let more = more(folder.path());
            let text = format!(
                "{more}\nserver_name: n{index}\nlisten: \"127.0.0.1:{client}\"\n{cluster}\njetstream {{ store_dir: \"{}\" }}\n",
                store.display()
            );
            fs::write(folder.path().join(format!("conf{index}")), text).unwrap();
        }
        let servers = clients.iter().map(|port| Server { port: *port, child: None }).collect();
        let mut servers = Servers { servers, folder };
        (0..count).for_each(|index| servers.run(index));
        servers
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a server that does not run.
    pub fn run(&mut self, index: usize) {
        let config = self.path().join(format!("conf{index}"));
        let log = self.path().join(format!("log{index}"));
        let child = Command::new("nats-server").arg("-c").arg(config).arg("-l").arg(log).spawn().unwrap();
        self.servers[index].child = Some(child);
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.servers[index].port)).is_err() {
            assert!(begun.elapsed().as_secs() < TEST_HANG_SECONDS, "server {index} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends a server without a warning.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.servers[index].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stops a server, or lets it go on: its connections stay.
    pub fn signal(&self, index: usize, signal: Signal) {
        let child = self.servers[index].child.as_ref().unwrap();
        nix::sys::signal::kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    }

    /// The value of `--servers`.
    pub fn urls(&self) -> String {
        let urls: Vec<_> = self.servers.iter().map(|server| format!("nats://127.0.0.1:{}", server.port)).collect();
        urls.join(",")
    }

    pub fn url(&self, index: usize) -> String {
        format!("nats://127.0.0.1:{}", self.servers[index].port)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        (0..self.servers.len()).for_each(|index| self.kill(index));
    }
}
