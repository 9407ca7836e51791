//! What the compiler asks of the outside: files to include, sockets named in `.path`, addresses of host names.
//!
//! Both are traits, so that tests and fuzzers compile without a file system or a name server.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A Unix-domain socket.
    Socket,
    /// Something else.
    Other,
}

/// Reads files for the compiler.
pub trait ReadFile {
    /// The whole file.
    ///
    /// # Errors
    /// As the file system gives them.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The files that match a shell pattern (`*`, `?`, `[…]` in the last part of the path), sorted.
    ///
    /// # Errors
    /// As the file system gives them; no match is no error.
    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>>;
    /// What is at that path.
    ///
    /// # Errors
    /// As the file system gives them.
    fn kind(&self, path: &Path) -> io::Result<FileKind>;
}

/// Finds addresses for the compiler.
pub trait Resolve {
    /// The addresses of a host name (never a literal address). The text of the error goes into the message.
    ///
    /// # Errors
    /// When there is none.
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String>;
    /// The TCP port of a service name, e.g. 80 for `http`.
    fn port(&self, service: &str) -> Option<u16>;
}

/// What an error of the file system says, without its number.
pub(crate) fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Whether a name matches a shell pattern with `*`, `?`, `[a-z]`, `[!a-z]` and `\`. Never more than linear in the name for
/// each star: on a mismatch only the last star is widened.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        let step = match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => set(&pattern[at..], name[from]),
            Some(b'\\') if pattern.get(at + 1) == Some(&name[from]) => Some(2),
            Some(&byte) if byte == name[from] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(len), _) => {
                at += len;
                from += 1;
            }
            (None, Some((star_at, star_from))) => {
                at = star_at + 1;
                from = star_from + 1;
                star = Some((star_at, from));
            }
            (None, None) => return false,
        }
    }
    pattern[at.min(pattern.len())..].iter().all(|&byte| byte == b'*')
}

/// The length of the `[…]` at the start of the pattern when the byte is in it; an unclosed one is a plain bracket.
fn set(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    let Some(len) = pattern.iter().skip(first + 1).position(|&byte| byte == b']') else {
        return (byte == b'[').then_some(1);
    };
    let members = &pattern[first..first + 1 + len];
    let mut found = false;
    let mut at = 0;
    while at < members.len() {
        if let [low, b'-', high, ..] = members[at..] {
            found |= (low..=high).contains(&byte);
            at += 3;
        } else {
            found |= members[at] == byte;
            at += 1;
        }
    }
    (found != negated).then_some(first + len + 2)
}

/// The real file system.
#[derive(Clone, Copy, Debug)]
pub struct SystemFiles;

impl ReadFile for SystemFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let (directory, last) = pattern
            .rsplit_once('/')
            .map_or((".", pattern), |(directory, last)| (if directory.is_empty() { "/" } else { directory }, last));
        // Directories with wildcards are expanded first; each level at most once, as the pattern has a bounded length.
        let directories =
            if directory.contains(['*', '?', '[']) { self.glob(directory)? } else { vec![PathBuf::from(directory)] };
        let mut found = Vec::new();
        for directory in directories {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries {
                let name = entry?.file_name();
                let bytes = name.as_encoded_bytes();
                if (last.starts_with('.') || !bytes.starts_with(b".")) && matches(last.as_bytes(), bytes) {
                    found.push(if pattern.contains('/') { directory.join(&name) } else { PathBuf::from(&name) });
                }
            }
        }
        found.sort();
        Ok(found)
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let file_type = std::fs::metadata(path)?.file_type();
        Ok(if file_type.is_socket() { FileKind::Socket } else { FileKind::Other })
    }
}

/// The system's resolver and `/etc/services`.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        match (host, 0u16).to_socket_addrs() {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => {
                let text = error_text(&error);
                Err(text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned())
            }
        }
    }

    fn port(&self, service: &str) -> Option<u16> {
        let services = std::fs::read_to_string("/etc/services").unwrap_or_default();
        let listed = services.lines().find_map(|line| {
            let mut words = line.split('#').next().unwrap_or("").split_ascii_whitespace();
            let name = words.next()?;
            let port = words.next()?.strip_suffix("/tcp")?;
            (name == service || words.any(|alias| alias == service)).then(|| port.parse().ok())?
        });
        listed.or(match service {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_patterns_match_names() {
        for (pattern, name) in [
            ("*", ""),
            ("*.vcl", "a.vcl"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a]x", "bx"),
            ("a*b*c", "aXbYbZc"),
            ("[", "["),
            ("\\*", "*"),
        ] {
            assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("*.vcl", "a.vc"), ("a?c", "ac"), ("[a-c]x", "dx"), ("[!a]x", "ax"), ("\\*", "a")]
        {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        assert!(!matches("a*a*a*a*a*a*b".as_bytes(), &[b'a'; 2000]));
    }

    #[test]
    fn ports_have_names() {
        assert_eq!(SystemResolver.port("http"), Some(80));
        assert_eq!(SystemResolver.port("no-such-service"), None);
    }
}
