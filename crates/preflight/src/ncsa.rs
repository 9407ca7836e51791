//! The unit of varnishncsa: its command line, checked by the tool itself.

use crate::files::Root;
use crate::report::{Place, Report};
use crate::unit;
use std::ffi::OsString;
use std::path::Path;

/// Judges a unit of varnishncsa.
pub(crate) fn judge(path: &Path, root: &Root, report: &mut Report) {
    let place = Place::new(&path.display().to_string(), 0);
    let unit = match unit::read(root, path, report) {
        Ok(unit) => unit,
        Err(why) => return report.blocks(&place, why, "the file must be there and readable"),
    };
    let variables = unit.variables(root, report);
    let (program, words) = match unit.command(&variables) {
        Ok(command) => command,
        Err(why) => return report.blocks(&place, why, ""),
    };
    let shown = |words: &[OsString]| words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let mut line: Vec<OsString> = words.into_iter().map(|word| word.text).collect();
    match Path::new(&program.text).file_name().and_then(|name| name.to_str()) {
        Some("varnishncsa") => {}
        Some("copal") if line.first().is_some_and(|part| part == "ncsa" || part == "varnishncsa") => _ = line.remove(0),
        _ => {
            let what = format!("{}: not varnishncsa, so its options were not looked at", program.shown());
            return report.changes(&program.place, what, "look at what it starts");
        }
    }
    match tools::check_ncsa(&line) {
        Ok(()) => report.works(&program.place, format!("varnishncsa {}", shown(&line))),
        Err(why) => report.blocks(
            &program.place,
            format!("varnishncsa {}: {why}", shown(&line)),
            "varnishncsa -h lists the options",
        ),
    }
}
