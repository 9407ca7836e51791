//! The VCL behind a decision: its lines, and the place for lines to add.
//!
//! Paths come from the log: only regular files are read, and not beyond a limit.

use std::io::Read as _;

use surface::legible;
use surface::limits::VCL_SOURCE_BYTES_MAX;
use surface::reason::{BUILTIN_PIECES, Reason};
use surface::vcl::Generation;

use super::account::Decision;

/// The piece of the built-in VCL that passes requests with cookies.
const COOKIE_PIECE: &str = "vcl_req_cookie";

/// Number of lines above an action in which its condition is searched.
const CONDITION_LINES: usize = 5;

/// The dialect of the VCL that decided.
pub(super) fn generation(decision: &Decision) -> Generation {
    decision.detail("dialect").and_then(Generation::of_name).unwrap_or(Generation::V4)
}

/// True if a cookie of the request caused the decision: by a rule of HTTP, by the built-in VCL, or
/// because the lines before the action mention cookies.
pub(super) fn is_by_cookie(decision: &Decision) -> bool {
    if decision.reason == Reason::NotStoredRequestCookie {
        return true;
    }
    if decision.detail("in").is_some_and(|subs| subs.split('>').any(|sub| sub == COOKIE_PIECE)) {
        return true;
    }
    if piece(decision).is_some() {
        return false;
    }
    let Some((content, number)) = decision.detail("at").and_then(|place| source_of(place, generation(decision))) else {
        // The text is not readable; so the cookies are named to be on the safe side.
        return decision.detail("cookies").is_some();
    };
    let lines: Vec<&str> = content.lines().take(number).collect();
    let near = &lines[lines.len().saturating_sub(CONDITION_LINES)..];
    // Not beyond the end of the previous block.
    let from = near[..near.len().saturating_sub(1)].iter().rposition(|line| line.trim() == "}").map_or(0, |at| at + 1);
    near[from..].iter().any(|line| line.to_ascii_lowercase().contains("cookie"))
}

/// Reason for the decision of a piece of the built-in VCL.
pub(super) fn piece(decision: &Decision) -> Option<&'static str> {
    let subs = decision.detail("in")?;
    subs.split('>').rev().find_map(|sub| BUILTIN_PIECES.iter().find(|(name, _)| *name == sub)).map(|(_, cause)| *cause)
}

/// The first line of `vcl_recv`, as `file:line`, in the file of the decision: a `sub vcl_recv`
/// before it runs first. `None` if the decision is not in a readable file of the operator.
pub(super) fn first_of_recv(decision: &Decision) -> Option<String> {
    let place =
        ["at", "ttl-at"].iter().find_map(|name| decision.detail(name)).filter(|place| place.starts_with('/'))?;
    let (content, _) = source_of(place, generation(decision))?;
    let is_recv = |line: &str| {
        let mut words = line.split(|letter: char| letter.is_whitespace() || letter == '{');
        words.next() == Some("sub") && words.find(|word| !word.is_empty()) == Some("vcl_recv")
    };
    let number = content.lines().position(|line| is_recv(line.trim()))? + 1;
    let file = place.rsplit_once(':')?.0;
    Some(format!("{file}:{number}"))
}

/// The line of VCL at `file:line`, if the file is readable and unchanged.
pub(super) fn line_of(place: &str, generation: Generation) -> Option<String> {
    let (content, number) = source_of(place, generation)?;
    let line = content.lines().nth(number - 1)?.trim();
    Some(legible::line(line.as_bytes()).into_owned())
}

/// The VCL text that contains a place, and its line number, from 1.
fn source_of(place: &str, generation: Generation) -> Option<(String, usize)> {
    let (file, number) = place.rsplit_once(':')?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    let content = match file {
        "<builtin>" => vcl::builtin_of(generation).to_owned(),
        vcl::BUILTIN_RFC_NAME => vcl::BUILTIN_RFC.to_owned(),
        // The path comes from the log: it may be any file, even an endless one.
        path if path.starts_with('/') && std::fs::metadata(path).is_ok_and(|found| found.is_file()) => {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(path).ok()?;
            file.take(VCL_SOURCE_BYTES_MAX as u64).read_to_end(&mut bytes).ok()?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => return None,
    };
    Some((content, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_that_is_not_a_file_is_not_read() {
        for place in ["/dev/zero:1", "/proc/self:1", "/nonexistent:1", "<builtin>:0", "relative.vcl:1", "/etc/passwd"] {
            assert!(line_of(place, Generation::V4).is_none(), "{place}");
        }
    }

    #[test]
    fn first_line_of_vcl_recv_is_named_in_the_file_of_the_decision() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.vcl");
        std::fs::write(&path, "vcl 4.1;\nsub vcl_received { }\nsub  vcl_recv{\n  return (pass);\n}\n").unwrap();
        let at = |place: String| Decision { reason: Reason::PassByVcl, details: vec![("at".to_owned(), place)] };
        assert_eq!(first_of_recv(&at(format!("{}:4", path.display()))), Some(format!("{}:3", path.display())));
        for place in ["<builtin>:20", "/nonexistent:4", "site.vcl:4"] {
            assert_eq!(first_of_recv(&at(place.to_owned())), None);
        }
    }
}
