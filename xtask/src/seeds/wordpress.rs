//! The front page of a real WordPress, as packaged by Debian: Apache with PHP in it and a MariaDB
//! of its own behind the caches.
//!
//! Everything is in the scene's folder: the site is a copy, the database is new and is reached by a
//! socket there.

use super::caches::{launch_caches, set_readable};
use crate::bench::running::{Running, Started};
use crate::place::free_port;
use crate::process::Server;
use crate::servers::installed;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Directory of the site in Debian's package.
const PACKAGE: &str = "/usr/share/wordpress";
/// Text of the page once the site is set up.
const TITLE: &str = "A blog before the slashdot effect";
/// Time limit of the database and of the first request, which creates the tables.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts WordPress and the caches in front of it.
pub fn start(folder: &Path, _: u16, core: usize) -> Started {
    let needed = [
        ("apache2", installed("apache2").is_some()),
        ("mod_php", php_module().is_some()),
        ("mariadbd", installed("mariadbd").is_some() && installed("mariadb-install-db").is_some()),
        ("wordpress", Path::new(PACKAGE).join("index.php").exists()),
        ("a wordpress-theme, without which pages are empty", has_theme()),
    ];
    let missing: Vec<String> = needed
        .into_iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(name, _)| format!("{name} (WordPress was not measured)"))
        .collect();
    if !missing.is_empty() {
        return Ok((Vec::new(), missing));
    }
    set_readable(folder, 0o755)?;
    let site = folder.join("blog");
    run(Command::new("cp").arg("-rL").arg(PACKAGE).arg(&site))?;
    let socket = folder.join("database.sock");
    std::fs::write(site.join("wp-config.php"), settings(&socket)).map_err(|error| error.to_string())?;
    let database = start_database(folder, &socket, core)?;
    let origin = free_port()?;
    let (file, log) = (folder.join("blog.conf"), folder.join("blog.log"));
    std::fs::write(&file, apache(origin, folder, &site)).map_err(|error| error.to_string())?;
    let program = installed("apache2").ok_or("apache2 is not installed")?;
    let arguments = ["-D", "FOREGROUND", "-f"].map(str::to_owned).into_iter().chain([file.display().to_string()]);
    let mut server = Server::start(&core.to_string(), &program, &arguments.collect::<Vec<_>>(), &log)?;
    server.wait_for_port(origin, &log).map_err(|error| format!("apache2: {error}"))?;
    set_up(origin)?;
    let mut running = vec![Running::clear("apache", vec![server, database], origin)];
    running.extend(launch_caches(folder, origin, core)?);
    Ok((running, Vec::new()))
}

/// A separate database without passwords, accessible only through its socket.
fn start_database(folder: &Path, socket: &Path, core: usize) -> Result<Server, String> {
    let data = format!("--datadir={}", folder.join("database").display());
    let mut make = Command::new("mariadb-install-db");
    run(make.args([
        "--no-defaults",
        "--user=root",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
        &data,
    ]))?;
    let program = installed("mariadbd").ok_or("mariadbd is not installed")?;
    let arguments = [
        "--no-defaults".to_owned(),
        "--user=root".to_owned(),
        data,
        format!("--socket={}", socket.display()),
        format!("--pid-file={}", folder.join("database.pid").display()),
        "--skip-networking".to_owned(),
        "--innodb-flush-log-at-trx-commit=0".to_owned(),
    ];
    let server = Server::start(&core.to_string(), &program, &arguments, &folder.join("database.log"))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut ask = Command::new("mariadb");
        ask.args(["--no-defaults", "-u", "root", "-S"]).arg(socket).args(["-e", "CREATE DATABASE IF NOT EXISTS blog"]);
        match run(&mut ask) {
            Ok(()) => return Ok(server),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Submits the form of the first visit, and checks for the front page.
fn set_up(port: u16) -> Result<(), String> {
    let title = TITLE.replace(' ', "+");
    let form = format!(
        "weblog_title={title}&user_name=admin&admin_password=bench-of-a-blog&admin_password2=bench-of-a-blog&pw_weak=1\
         &admin_email=admin%40example.com&blog_public=0&Submit=Install"
    );
    ask(
        port,
        &format!(
            "POST /wp-admin/install.php?step=2 HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        ),
    )?;
    let page = ask(port, &format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"))?;
    if page.starts_with("HTTP/1.1 200") && page.contains(TITLE) {
        Ok(())
    } else {
        Err(format!("WordPress is not set up: {page:.400}"))
    }
}

fn ask(port: u16, request: &str) -> Result<String, String> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    socket.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Runs a command to its end; its messages are the error.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

fn php_module() -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/apache2/modules").ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("libphp") && name.ends_with(".so"))
    })
}

/// True if a package of a theme is installed; the one of WordPress only recommends them.
fn has_theme() -> bool {
    let entries = std::fs::read_dir(Path::new(PACKAGE).join("wp-content/themes"));
    entries.is_ok_and(|entries| entries.flatten().any(|entry| entry.path().join("style.css").exists()))
}

/// Settings with which the site answers under any name and port.
fn settings(socket: &Path) -> String {
    let keys: String = ["AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"]
        .into_iter()
        .flat_map(|name| [format!("{name}_KEY"), format!("{name}_SALT")])
        .map(|name| format!("define('{name}', 'no secret: {name}');\n"))
        .collect();
    format!(
        "<?php\ndefine('DB_NAME', 'blog');\ndefine('DB_USER', 'root');\ndefine('DB_PASSWORD', '');\n\
         define('DB_HOST', 'localhost:{}');\ndefine('DB_CHARSET', 'utf8mb4');\ndefine('DB_COLLATE', '');\n{keys}\
         define('WP_HOME', 'http://' . $_SERVER['HTTP_HOST']);\ndefine('WP_SITEURL', WP_HOME);\n\
         define('DISABLE_WP_CRON', true);\ndefine('WP_HTTP_BLOCK_EXTERNAL', true);\n$table_prefix = 'wp_';\n\
         if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');\nrequire_once ABSPATH . 'wp-settings.php';\n",
        socket.display()
    )
}

fn apache(port: u16, folder: &Path, site: &Path) -> String {
    let modules = Path::new("/usr/lib/apache2/modules");
    let load: String = ["mpm_prefork", "authz_core", "mime", "dir", "unixd"]
        .into_iter()
        .map(|name| (name, modules.join(format!("mod_{name}.so"))))
        .filter(|(_, file)| file.exists())
        .map(|(name, file)| format!("LoadModule {name}_module {}\n", file.display()))
        .collect();
    let php = php_module().map(|file| format!("LoadModule php_module {}\n", file.display())).unwrap_or_default();
    let user = if nix::unistd::geteuid().is_root() { "User www-data\nGroup www-data\n" } else { "" };
    format!(
        "ServerName localhost\nListen 127.0.0.1:{port}\n{load}{php}{user}PidFile {at}/blog.pid\nErrorLog {at}/blog-error.log\n\
         DocumentRoot {site}\nDirectoryIndex index.php index.html\nTypesConfig /etc/mime.types\nMaxRequestWorkers 20\n\
         <Directory />\nRequire all granted\n</Directory>\n<FilesMatch \"\\.php$\">\nSetHandler application/x-httpd-php\n</FilesMatch>\n",
        at = folder.display(),
        site = site.display(),
    )
}
