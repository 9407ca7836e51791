//! A systemd service: its file, its drop-ins, and the resulting command line.
//!
//! Source: systemd.unit(5), systemd.service(5) "COMMAND LINES", systemd.syntax(7). Specifiers are
//! supported if they do not depend on the machine.

use crate::confinement;
use crate::environment::{self, Reader};
use crate::files::Root;
use crate::report::{Place, Report};
use crate::words::{self, Dollars, Lined, Variables, Word};
use std::path::{Path, PathBuf};
use surface::limits::PREFLIGHT_DROP_INS_MAX;

/// Directories of systemd's units; earlier ones have precedence.
const FOLDERS: &[&str] = &[
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Settings of `[Service]` with another effect on the daemon than on Varnish: name, difference,
/// remedy.
const DIFFERENT: &[(&str, &str, &str)] =
    &[("LimitMEMLOCK", "nothing is locked in memory, so this limit has no effect", "it may stay; it may go")];

/// A setting.
struct Setting {
    section: String,
    key: String,
    value: Lined,
    line: usize,
}

/// A unit in systemd's interpretation.
pub(crate) struct Unit {
    name: String,
    settings: Vec<Setting>,
}

/// Finds a unit by its name (`varnish.service`) or its path.
pub(crate) fn find(root: &Root, wanted: &str) -> Option<PathBuf> {
    if wanted.contains('/') {
        return Some(PathBuf::from(wanted));
    }
    FOLDERS.iter().map(|folder| Path::new(folder).join(wanted)).find(|path| root.has(path))
}

/// Reads a unit with its drop-ins. Those of the system count only if the unit is one of the
/// system's.
///
/// # Errors
/// The reason why a file cannot be read.
pub(crate) fn read(root: &Root, path: &Path, report: &mut Report) -> Result<Unit, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut unit = Unit { name, settings: Vec::new() };
    let own = path.parent().unwrap_or(Path::new("/"));
    let is_systems = FOLDERS.iter().any(|folder| own == Path::new(folder));
    let folders: Vec<PathBuf> =
        if is_systems { FOLDERS.iter().map(PathBuf::from).collect() } else { vec![own.to_owned()] };
    // Of drop-ins with the same name the first one is used; then they are read by name.
    let mut drop_ins: Vec<PathBuf> = Vec::new();
    for folder in &folders {
        for found in root.list(&folder.join(format!("{}.d", unit.name)), ".conf") {
            if !drop_ins.iter().any(|known| known.file_name() == found.file_name()) {
                drop_ins.push(found);
            }
        }
    }
    drop_ins.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    if drop_ins.len() > PREFLIGHT_DROP_INS_MAX {
        return Err(format!("{}: more than {PREFLIGHT_DROP_INS_MAX} drop-ins", path.display()));
    }
    // A drop-in that leads to /dev/null is masked, together with those of its name in other
    // folders.
    drop_ins.retain(|file| !root.is_masked(file));
    for file in std::iter::once(path).chain(drop_ins.iter().map(PathBuf::as_path)) {
        let text = root.text(file)?;
        let shown = file.display().to_string();
        report.note_read(&shown);
        unit.add(&text, &shown);
    }
    Ok(unit)
}

impl Unit {
    /// Adds the settings of a file.
    fn add(&mut self, text: &str, file: &str) {
        let mut section = String::new();
        let mut logical: Vec<(char, usize)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let is_continued = !logical.is_empty();
            let trimmed = line.trim();
            // Comments between the lines of a setting are not part of it.
            if trimmed.starts_with(['#', ';']) || trimmed.is_empty() && !is_continued {
                continue;
            }
            let (body, goes_on) = match line.strip_suffix('\\') {
                Some(body) => (body, true),
                None => (line, false),
            };
            logical.extend(body.chars().map(|letter| (letter, number)));
            if goes_on {
                logical.push((' ', number));
                continue;
            }
            self.add_line(std::mem::take(&mut logical), file, &mut section);
        }
        self.add_line(logical, file, &mut section);
    }

    fn add_line(&mut self, letters: Vec<(char, usize)>, file: &str, section: &mut String) {
        let text: String = letters.iter().map(|(letter, _)| letter).collect();
        let text = text.trim();
        if let Some(name) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            *section = name.to_owned();
            return;
        }
        let Some(end) = letters.iter().position(|(letter, _)| *letter == '=') else { return };
        let key: String = letters[..end].iter().map(|(letter, _)| letter).collect();
        let value: Vec<_> =
            letters[end + 1..].iter().copied().skip_while(|(letter, _)| letter.is_whitespace()).collect();
        let line = letters.first().map_or(0, |(_, line)| *line);
        let value = Lined { file: file.to_owned(), letters: value };
        self.settings.push(Setting { section: section.clone(), key: key.trim().to_owned(), value, line });
    }

    /// The values of a list: an empty one resets it.
    fn list(&self, key: &str) -> Vec<&Setting> {
        let mut list = Vec::new();
        for setting in self.settings.iter().filter(|setting| setting.section == "Service" && setting.key == key) {
            if setting.value.text().trim().is_empty() {
                list.clear();
            } else {
                list.push(setting);
            }
        }
        list
    }

    /// The last value of a setting.
    pub(crate) fn value(&self, key: &str) -> Option<(String, Place)> {
        let setting = self.list(key).pop()?;
        Some((setting.value.text().trim().to_owned(), Place::new(&setting.value.file, setting.line)))
    }

    /// The variables that the unit sets; files of variables come last, as in systemd.
    pub(crate) fn variables(&self, root: &Root, report: &mut Report) -> Variables {
        let mut variables = Variables::new();
        for setting in self.list("Environment") {
            let value = self.specified(&setting.value);
            for word in words::split(&value, &Variables::new(), Dollars::Plain).unwrap_or_default() {
                let text = word.shown();
                if let Some((name, value)) = text.split_once('=') {
                    let letters = value.chars().map(|letter| (letter, word.place.line)).collect();
                    variables.insert(name.to_owned(), Lined { file: word.place.file.clone(), letters });
                }
            }
        }
        for setting in self.list("EnvironmentFile") {
            let text = self.specified(&setting.value).text();
            let (path, may_be_missing) = match text.trim().strip_prefix('-') {
                Some(path) => (path, true),
                None => (text.trim(), false),
            };
            match root.text(Path::new(path)) {
                Ok(text) => {
                    report.note_read(path);
                    environment::read(&text, path, Reader::Systemd, &mut variables);
                }
                Err(_) if may_be_missing && !root.has(Path::new(path)) => {}
                Err(why) => {
                    let place = Place::new(&setting.value.file, setting.line);
                    report.blocks(
                        &place,
                        format!("EnvironmentFile={path}: {why}"),
                        "systemd does not start the unit without it",
                    );
                }
            }
        }
        variables
    }

    /// Reports more than one command line, which systemd accepts of services with `Type=oneshot`
    /// only. The usual cause is a drop-in that does not reset the unit's own line before it sets
    /// another.
    pub(crate) fn judge_commands(&self, report: &mut Report) {
        let lines = self.list("ExecStart");
        if let [_, .., last] = lines.as_slice() {
            report.blocks(
                &Place::new(&last.value.file, last.line),
                "a second ExecStart=, with which systemd refuses the unit",
                "an empty ExecStart= on the line before takes back the first one",
            );
        }
    }

    /// The program of `ExecStart=` and the words after it.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(crate) fn command(&self, variables: &Variables) -> Result<(Word, Vec<Word>), String> {
        let settings = self.list("ExecStart");
        let setting = settings.last().ok_or_else(|| format!("{} has no ExecStart=", self.name))?;
        let mut value = self.specified(&setting.value);
        let prefix: Vec<char> =
            value.letters.iter().map(|(letter, _)| *letter).take_while(|letter| is_prefix(*letter)).collect();
        value.letters.drain(..prefix.len());
        let dollars = if prefix.contains(&':') { Dollars::Plain } else { Dollars::Systemd };
        let mut words = words::split(&value, variables, dollars)?;
        if words.is_empty() {
            return Err(format!("{}:{}: ExecStart= names no program", value.file, setting.line));
        }
        let program = words.remove(0);
        if prefix.contains(&'@') && !words.is_empty() {
            words.remove(0);
        }
        Ok((program, words))
    }

    /// A value with its specifiers resolved.
    fn specified(&self, value: &Lined) -> Lined {
        let stem = self.name.rsplit_once('.').map_or(self.name.as_str(), |(stem, _)| stem);
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        let mut out = Lined { file: value.file.clone(), letters: Vec::with_capacity(value.letters.len()) };
        let mut letters = value.letters.iter().copied();
        while let Some((letter, line)) = letters.next() {
            if letter != '%' {
                out.letters.push((letter, line));
                continue;
            }
            let next = letters.next().map(|(letter, _)| letter);
            let meant = match next {
                Some('n') => &self.name,
                Some('N') => stem,
                Some('p') => prefix,
                Some('i' | 'I') => instance,
                Some('t') => "/run",
                Some('S') => "/var/lib",
                Some('C') => "/var/cache",
                Some('L') => "/var/log",
                Some('E') => "/etc",
                Some('%') | None => "%",
                Some(other) => {
                    out.letters.extend([('%', line), (other, line)]);
                    continue;
                }
            };
            out.letters.extend(meant.chars().map(|letter| (letter, line)));
        }
        out
    }

    /// All values of a setting, including empty ones.
    fn all(&self, key: &str) -> confinement::Values {
        let of_key = self.settings.iter().filter(|setting| setting.section == "Service" && setting.key == key);
        let value = |setting: &Setting| setting.value.text().trim().to_owned();
        of_key.map(|setting| (value(setting), Place::new(&setting.value.file, setting.line))).collect()
    }

    /// The values after the last empty one.
    fn remaining(&self, key: &str) -> confinement::Values {
        let all = self.all(key);
        let start = all.iter().rposition(|(value, _)| value.is_empty()).map_or(0, |at| at + 1);
        all[start..].to_vec()
    }

    /// Judges the settings other than the command line, some of whose words demand root.
    pub(crate) fn judge(&self, words: &[Word], report: &mut Report) {
        for (key, why, remedy) in DIFFERENT {
            if let Some((value, place)) = self.value(key) {
                report.changes(&place, format!("{key}={value}: {why}"), *remedy);
            }
        }
        if let Some((value, place)) = self.value("ExecReload") {
            match value.contains("varnishreload") {
                true => report.works(&place, format!("ExecReload={value}: the script talks through varnishadm")),
                false => report.works(&place, format!("ExecReload={value}")),
            }
        }
        // With a + before the program it is not restricted.
        let command = self.value("ExecStart").map(|(text, _)| text).unwrap_or_default();
        if command.chars().take_while(|letter| is_prefix(*letter)).any(|letter| letter == '+') {
            return;
        }
        let user = self.value("User").filter(|(value, _)| value != "root" && value != "0");
        match user {
            Some((value, place)) if has_jail(words) => report.blocks(
                &place,
                format!("User={value}: -j unix must be started by root"),
                "leave User= out: the worker is that user by -j unix,user=USER; or leave -j unix out",
            ),
            Some((value, place)) => {
                report.works(&place, format!("User={value}: the daemon runs without root, and without -j unix"));
            }
            None => confinement::capabilities(&self.all("CapabilityBoundingSet"), report),
        }
        let has_error_number = self.value("SystemCallErrorNumber").is_some_and(|(value, _)| value != "kill");
        confinement::system_calls(&self.remaining("SystemCallFilter"), has_error_number, report);
        confinement::address_families(&self.remaining("RestrictAddressFamilies"), report);
    }
}

/// A letter that may precede the program of `ExecStart=`.
fn is_prefix(letter: char) -> bool {
    matches!(letter, '@' | '-' | ':' | '+' | '!' | '|')
}

/// True if a jail that changes users is requested.
fn has_jail(words: &[Word]) -> bool {
    let texts: Vec<String> = words.iter().map(Word::shown).collect();
    let behind = texts.windows(2).any(|pair| pair[0] == "-j" && pair[1].starts_with("unix"));
    behind || texts.iter().any(|text| text.starts_with("-junix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(files: &[&str]) -> Unit {
        let mut unit = Unit { name: "varnish@one.service".to_owned(), settings: Vec::new() };
        for (number, text) in files.iter().enumerate() {
            unit.add(text, &format!("f{number}"));
        }
        unit
    }

    fn line(unit: &Unit) -> Vec<String> {
        let (program, words) = unit.command(&Variables::new()).unwrap();
        std::iter::once(program).chain(words).map(|word| format!("{}@{}", word.shown(), word.place.line)).collect()
    }

    #[test]
    fn a_line_goes_on_behind_backslashes_and_comments() {
        let text =
            "[Unit]\nExecStart=no\n[Service]\nExecStart=-/usr/sbin/varnishd \\\n# a comment\n  -F \\\n  -n %i 100%%\n";
        assert_eq!(line(&unit(&[text])), ["/usr/sbin/varnishd@4", "-F@6", "-n@7", "one@7", "100%@7"]);
    }

    #[test]
    fn a_drop_in_replaces_what_it_empties() {
        let drop_in = "[Service]\nExecStart=\nExecStart=/x/varnishd -F\nLimitNOFILE=\nLimitNOFILE=9\n";
        let unit = unit(&["[Service]\nExecStart=/usr/sbin/varnishd -C\nLimitNOFILE=1\n", drop_in]);
        assert_eq!(line(&unit), ["/x/varnishd@3", "-F@3"]);
        assert_eq!(unit.value("LimitNOFILE"), Some(("9".to_owned(), Place::new("f1", 5))));
    }

    #[test]
    fn a_unit_without_a_command_is_none() {
        assert!(unit(&["[Service]\nExecStart=\n"]).command(&Variables::new()).is_err());
        assert!(unit(&["[Service]\nExecStart=-\n"]).command(&Variables::new()).is_err());
        assert!(unit(&["[Service]\nExecStart=@/usr/sbin/varnishd\n"]).command(&Variables::new()).is_ok());
    }
}
