//! `copal init`: writes a VCL for an application, and test cases for it.
//!
//! The files are part of the program (`profiles/`); their rows are in `surface::profile`. Only the
//! address of the web server and the host for the probe are put in. *Invariant:* a file that exists
//! is left as it is unless `--force` is given; each file appears whole or not at all.

use crate::Streams;
use crate::options::{self, Given};
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use surface::legible;
use surface::nearest::did_you_mean;
use surface::profile::{PROFILES, ProfileRow, profile};
use surface::program::program;

/// Exit status if a file could not be written.
const FAILED: i32 = 1;

/// The files of an application.
struct Files {
    vcl: &'static str,
    tests: &'static str,
}

macro_rules! files {
    ($($name:literal)*) => {
        fn files(row: &ProfileRow) -> Option<Files> {
            match row.name {
                $($name => Some(Files {
                    vcl: include_str!(concat!("../profiles/", $name, "/default.vcl")),
                    tests: include_str!(concat!("../profiles/", $name, "/tests.toml")),
                }),)*
                _ => None,
            }
        }
    };
}

files! { "wordpress" "woocommerce" "drupal" "magento" "joomla" "mediawiki" "discourse" "static" "registry" }

struct Request {
    row: &'static ProfileRow,
    backend: Backend,
    /// The host that the probe asks for.
    host: String,
    folder: PathBuf,
    is_forced: bool,
}

/// The address of the web server.
#[derive(Debug, PartialEq, Eq)]
struct Backend {
    host: String,
    port: u16,
}

/// Runs the command; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("init", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let request = match read(&given) {
        Ok(request) => request,
        Err(text) => return options::wrong(program("init"), &text, streams),
    };
    let Some(files) = files(request.row) else { return FAILED };
    let vcl = filled(files.vcl, &request.backend, &request.host);
    let wanted = [("default.vcl", vcl.as_str()), ("tests.toml", files.tests)];
    let [vcl, tests] = wanted.map(|(name, _)| request.folder.join(name));
    if let Err(text) = write_all(&request, &wanted) {
        let _ = writeln!(streams.error, "copal init: {}", legible::lines(text.as_bytes()));
        return FAILED;
    }
    let [vcl, tests] = [vcl, tests].map(|path| word(&path));
    let _ = write!(
        streams.output,
        "Wrote {vcl} and {tests}. The probe asks {host} for {probe}: that has to be answered with 200.\nnext:\n  \
         copal vcl test {vcl} {tests}\n  copal daemon -a :6080 -f {vcl}\n",
        host = request.host,
        probe = request.row.probe,
    );
    0
}

fn read(given: &Given) -> Result<Request, String> {
    let text = |letter| given.last(letter).map(|value| value.to_string_lossy().into_owned());
    let names = || PROFILES.iter().map(|row| row.name);
    let mut words = given.rest.iter();
    let listed = || names().collect::<Vec<_>>().join(", ");
    let name = words.next().ok_or_else(|| format!("for which application? There are {}", listed()))?;
    let name = name.to_string_lossy();
    let row = profile(&name).ok_or_else(|| {
        format!("no application is called '{name}'{}; there are {}", did_you_mean(&name, "", names()), listed())
    })?;
    let folder = words.next().map_or_else(|| PathBuf::from("."), PathBuf::from);
    if let Some(more) = words.next() {
        return Err(format!("unexpected word '{}'", more.to_string_lossy()));
    }
    let backend = Backend::parse(&text('b').ok_or("where is the web server? --backend <host>:<port>")?)?;
    let host = text('H').unwrap_or_else(|| backend.host.clone());
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte)) {
        return Err(format!("'{host}' is not the name of a host"));
    }
    Ok(Request { row, backend, host, folder, is_forced: given.has('f') })
}

impl Backend {
    /// `<host>:<port>`, `[<IPv6 address>]:<port>`, or a host whose port is 80.
    fn parse(text: &str) -> Result<Backend, String> {
        let wrong = || format!("'{text}' is not the host and port of a web server, such as 127.0.0.1:8080");
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, "80"),
            Some((host, port)) => (host, port.strip_prefix(':').ok_or_else(wrong)?),
            None if text.matches(':').count() > 1 => (text, "80"),
            None => text.split_once(':').unwrap_or((text, "80")),
        };
        let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte));
        match port.parse() {
            Ok(port) if port > 0 && is_plain && !host.is_empty() => Ok(Backend { host: host.to_owned(), port }),
            _ => Err(wrong()),
        }
    }

    fn is_this_machine(&self) -> bool {
        matches!(self.host.as_str(), "127.0.0.1" | "::1" | "localhost")
    }
}

/// The VCL with the address of the web server, which may also purge.
fn filled(vcl: &str, backend: &Backend, host: &str) -> String {
    let Backend { host: address, port } = backend;
    let purgers = "acl purgers { \"127.0.0.1\"; \"::1\"; }";
    let more = if backend.is_this_machine() {
        purgers.to_owned()
    } else {
        purgers.replace(" }", &format!(" \"{address}\"; }}"))
    };
    vcl.replacen(".host = \"127.0.0.1\";", &format!(".host = \"{address}\";"), 1)
        .replacen(".port = \"8080\";", &format!(".port = \"{port}\";"), 1)
        .replacen("\"Host: www.example.com\"", &format!("\"Host: {host}\""), 1)
        .replacen(purgers, &more, 1)
}

/// Writes the files, of which none may exist unless forced.
fn write_all(request: &Request, wanted: &[(&str, &str)]) -> Result<(), String> {
    std::fs::create_dir_all(&request.folder).map_err(|error| said(&request.folder, &error))?;
    let exists = |(name, _): &&(&str, &str)| request.folder.join(name).symlink_metadata().is_ok();
    if let Some((name, _)) = wanted.iter().find(exists).filter(|_| !request.is_forced) {
        let path = request.folder.join(name);
        return Err(format!("{} exists, and was left as it is; --force replaces it", path.display()));
    }
    for (name, text) in wanted {
        let path = request.folder.join(name);
        write_whole(&request.folder, &path, text, request.is_forced).map_err(|error| said(&path, &error))?;
    }
    Ok(())
}

fn write_whole(folder: &Path, path: &Path, text: &str, is_forced: bool) -> std::io::Result<()> {
    let mut file =
        tempfile::Builder::new().prefix(".init").permissions(Permissions::from_mode(0o644)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    // Without force, a file that has appeared since is not replaced either.
    let kept = if is_forced { file.persist(path) } else { file.persist_noclobber(path) };
    kept.map(drop).map_err(|error| error.error)
}

fn said(path: &Path, error: &std::io::Error) -> String {
    let text = error.to_string();
    format!("{}: {}", path.display(), text.split(" (os error").next().unwrap_or_default())
}

/// A path as a word for a shell.
fn word(path: &Path) -> String {
    let shown = legible::line(path.to_string_lossy().as_bytes()).into_owned();
    let is_plain = shown.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-_+:@,".contains(&byte));
    if is_plain { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_with(args: &[&str]) -> (i32, String, String) {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let (mut output, mut error) = (Vec::new(), Vec::new());
        let mut streams = Streams {
            input: &mut &b""[..],
            output: &mut output,
            error: &mut error,
            program: false,
            called: surface::program::Called::Copal,
        };
        let status = run(&args, &mut streams);
        (status, String::from_utf8(output).unwrap(), String::from_utf8(error).unwrap())
    }

    #[test]
    fn every_application_has_its_files_with_every_place_to_fill_in() {
        for row in &PROFILES {
            let Files { vcl, tests } = files(row).expect(row.name);
            for place in [
                ".host = \"127.0.0.1\";",
                ".port = \"8080\";",
                "Host: www.example.com",
                "acl purgers { \"127.0.0.1\"; \"::1\"; }",
            ] {
                assert_eq!(vcl.matches(place).count(), 1, "{} {place}", row.name);
            }
            assert!(vcl.contains(&format!("\"HEAD {} HTTP/1.1\"", row.probe)), "{}", row.name);
            for text in [vcl, tests] {
                assert!(text.lines().count() <= 120, "{}: {} lines", row.name, text.lines().count());
            }
        }
    }

    #[test]
    fn files_are_written_once_and_replaced_only_by_force() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("a site");
        let folder = folder.to_str().unwrap();
        let line = ["wordpress", "--backend", "10.0.0.5:8081", "--host", "blog.example", folder];
        let (status, output, error) = run_with(&line);
        assert_eq!((status, error.as_str()), (0, ""));
        let commands: Vec<&str> = output.lines().skip(2).collect();
        assert_eq!(
            commands,
            [
                format!("  copal vcl test '{folder}/default.vcl' '{folder}/tests.toml'"),
                format!("  copal daemon -a :6080 -f '{folder}/default.vcl'"),
            ]
        );
        let path = Path::new(folder).join("default.vcl");
        let vcl = std::fs::read_to_string(&path).unwrap();
        for part in [".host = \"10.0.0.5\";", ".port = \"8081\";", "\"Host: blog.example\"", "\"::1\"; \"10.0.0.5\"; }"]
        {
            assert!(vcl.contains(part), "{part}\n{vcl}");
        }
        std::fs::write(&path, "mine").unwrap();
        std::fs::remove_file(Path::new(folder).join("tests.toml")).unwrap();
        let (status, output, error) = run_with(&line);
        assert_eq!((status, output.as_str()), (1, ""));
        assert!(error.contains("default.vcl exists, and was left as it is; --force replaces it"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        assert!(!Path::new(folder).join("tests.toml").exists(), "nothing is written by halves");
        assert_eq!(run_with(&[&line[..], &["--force"]].concat()).0, 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), vcl);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 2, "no file is left over");
    }

    #[test]
    fn wrong_command_lines_get_a_message_and_write_nothing() {
        for (line, message) in [
            (&[][..], "for which application? There are wordpress, woocommerce"),
            (&["wordpres", "-b", "a:1"], "no application is called 'wordpres'; did you mean wordpress?"),
            (&["static"], "where is the web server?"),
            (&["static", "-b", "a:b"], "'a:b' is not the host and port"),
            (&["static", "-b", "a:0"], "is not the host and port"),
            (&["static", "-b", "a\";}:80"], "is not the host and port"),
            (&["static", "-b", "/run/web.socket"], "is not the host and port"),
            (&["static", "-b", "a:1", "--host", "a\" \"b"], "is not the name of a host"),
            (&["static", "-b", "a:1", "x", "y"], "unexpected word 'y'"),
        ] {
            let (status, output, error) = run_with(line);
            assert_eq!((status, output.as_str()), (2, ""), "{line:?}");
            assert!(error.contains(message), "{error}");
        }
        let (status, _, error) = run_with(&["static", "-b", "a:1", "/dev/null/x"]);
        assert_eq!(status, 1);
        assert!(error.contains("/dev/null/x: "), "{error}");
    }

    #[test]
    fn backends_are_read_with_and_without_port() {
        let of = |text: &str| Backend::parse(text).map(|backend| (backend.host, backend.port));
        assert_eq!(of("web.example:81"), Ok(("web.example".to_owned(), 81)));
        assert_eq!(of("web.example"), Ok(("web.example".to_owned(), 80)));
        assert_eq!(of("[2001:db8::7]:81"), Ok(("2001:db8::7".to_owned(), 81)));
        assert_eq!(of("[2001:db8::7]"), Ok(("2001:db8::7".to_owned(), 80)));
        assert_eq!(of("::1"), Ok(("::1".to_owned(), 80)));
        for text in ["", ":80", "a:99999", "a b:80", "[::1]x"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
