//! The daemon's command line: each option by itself, judged by the parser of the manager, then all
//! of them together.
//!
//! The parser stops at its first mistake. So each option is parsed in a command line of its own,
//! together with the options that it depends on, and letters that older versions had are removed
//! before. Then the whole line is parsed, if nothing in it blocks.

use crate::files::Root;
use crate::report::{Place, Report};
use crate::words::Word;
use manager::arguments::storage::{self, Size};
use manager::arguments::{self, ArgumentError, Arguments, Parsed};
use manager::getopt::{self, Element};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use surface::option::letter::{self, OptionSupport};
use surface::option::{self};
use surface::parameter::{
    ACCEPTED_ONLY, BitRow, COMPILER_BITS, DEBUG_BITS, EXPERIMENTAL_BITS, FEATURE_BITS, ParameterKind, former, value,
};
use surface::program::Called;

/// Options whose values are files that the parser reads.
const FILES: &str = "AfIS";

/// An option with its place.
struct Given {
    element: Element,
    place: Place,
}

/// Result for a command line.
pub(crate) struct Judged {
    /// The parsed line, if no option blocks.
    pub(crate) arguments: Option<Box<Arguments>>,
    /// The readable VCL files that it names, even if the rest is wrong.
    pub(crate) vcls: Vec<(String, Place)>,
    /// The words that the daemon accepts.
    pub(crate) words: Vec<OsString>,
    /// Listeners that expect a PROXY header, as written.
    pub(crate) behind_proxy: Vec<(String, Place)>,
}

/// Judges a command line (without the program's name).
pub(crate) fn judge(words: &[Word], root: &Root, report: &mut Report) -> Judged {
    let mut judge = Judge { root, report, settings: Vec::new(), storages: Vec::new(), is_right: true };
    let mut judged = Judged { arguments: None, vcls: Vec::new(), words: Vec::new(), behind_proxy: Vec::new() };
    for given in elements(words) {
        if !judge.option(&given) {
            judge.is_right = false;
            continue;
        }
        match &given.element {
            Element::Option('f', Some(value)) if !value.is_empty() => {
                judged.vcls.push((getopt::text(value), given.place.clone()));
            }
            Element::Option('a', Some(value)) => {
                let text = getopt::text(value);
                if text.split(',').skip(1).any(|word| word.eq_ignore_ascii_case("PROXY")) {
                    judged.behind_proxy.push((text, given.place.clone()));
                }
            }
            _ => {}
        }
        judged.words.extend(written(&given.element, &Root::default()));
    }
    if judge.is_right {
        judged.arguments = judge.whole(words);
    }
    judged
}

/// The options of a line, including letters of older versions, each with its place.
fn elements(words: &[Word]) -> Vec<Given> {
    let former = letter::FORMER_LETTERS.iter().map(|row| (row.letter, !row.value.is_empty()));
    let former = former.flat_map(|(letter, takes)| [Some(letter), takes.then_some(':')]).flatten();
    let options: String = letter::optstring().chars().chain(former).collect();
    let mut found = Vec::new();
    let mut rest = words;
    let mut operands_only = false;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if word.text == "--" && !operands_only {
            operands_only = true;
            continue;
        }
        let of = |words: &[Word]| {
            let line: Vec<OsString> = words.iter().map(|word| word.text.clone()).collect();
            getopt::elements(&line, &options, option::DAEMON)
        };
        let mut these =
            if operands_only { vec![Element::Operand(word.text.clone())] } else { of(std::slice::from_ref(word)) };
        let wants_more = matches!(these.last(), Some(Element::Incomplete(_) | Element::IncompleteLong(_)));
        let mut place = &word.place;
        if let (true, Some((value, after))) = (wants_more, rest.split_first()) {
            rest = after;
            these = of(&[word.clone(), value.clone()]);
            // A value that comes from a variable is corrected where that is set.
            place = if value.place.line == 0 { place } else { &value.place };
        }
        found.extend(these.into_iter().map(|element| Given { element, place: place.clone() }));
    }
    found
}

/// An option as words again; files below another root by their paths here.
fn written(element: &Element, root: &Root) -> Vec<OsString> {
    match element {
        Element::Option(letter, None) => vec![format!("-{letter}").into()],
        Element::Option(letter, Some(value)) => {
            let is_file = FILES.contains(*letter) && !value.is_empty();
            let value = if is_file { root.at(Path::new(value)).into_os_string() } else { value.clone() };
            vec![format!("-{letter}").into(), value]
        }
        Element::Long(name, None) => vec![format!("--{name}").into()],
        Element::Long(name, Some(value)) => vec![format!("--{name}").into(), value.clone()],
        Element::Operand(operand) => vec!["--".into(), operand.clone()],
        Element::Unknown(letter) | Element::Incomplete(letter) => vec![format!("-{letter}").into()],
        Element::UnknownLong(name) => vec![format!("--{name}").into()],
        Element::IncompleteLong(name) => vec![format!("--{name}").into()],
    }
}

/// An option in its usual form.
fn shown(element: &Element) -> String {
    let words = written(element, &Root::default());
    let quoted = |word: &OsString| match word.to_string_lossy() {
        word if word.is_empty() || word.contains(' ') => format!("'{word}'"),
        word => word.into_owned(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The message of the parser, without its hint.
fn message(error: &ArgumentError) -> String {
    error.text.trim().replace("\n\t", "\n")
}

struct Judge<'a> {
    root: &'a Root,
    report: &'a mut Report,
    /// The `-p` that were accepted so far: some limit others.
    settings: Vec<OsString>,
    /// The `-s` that were accepted so far: parameters name storages.
    storages: Vec<OsString>,
    is_right: bool,
}

impl Judge<'_> {
    /// Judges one option; false if it blocks.
    fn option(&mut self, given: &Given) -> bool {
        let Given { element, place } = given;
        let name = shown(element);
        if let Element::Option(letter, _) = element
            && let Some(row) = letter::former(*letter)
        {
            self.report.blocks(place, format!("{name}: invalid option, it is of {}", row.of), row.instead);
            return false;
        }
        let line = self.line(element);
        match arguments::parse(Called::Stock, &line) {
            Ok(_) => {
                self.accepted(element, &name, place);
                true
            }
            Err(error) => self.refused(element, &name, &message(&error), place),
        }
    }

    /// A command line in which the parser judges this option alone.
    fn line(&self, element: &Element) -> Vec<OsString> {
        let own = written(element, self.root);
        let before: &[&str] = match element {
            Element::Option('V' | 'x' | '?', _) | Element::Long("help" | "version", _) => &[],
            Element::Option('b' | 'f', _) => &["-F"],
            Element::Option('C', _) => &["-b", "none"],
            Element::Option('F' | 'd', _) => &["-f", ""],
            _ => &["-F", "-f", ""],
        };
        let mut line: Vec<OsString> = before.iter().map(OsString::from).collect();
        if matches!(element, Element::Option('p' | 't' | 'l', _)) {
            line.extend(self.storages.iter().chain(&self.settings).cloned());
        }
        line.extend(own);
        line
    }

    fn refused(&mut self, element: &Element, name: &str, message: &str, place: &Place) -> bool {
        if let Some(why) = self.unchecked(message) {
            self.report.changes(place, format!("{name}: could not be checked: {message}"), why);
            return true;
        }
        self.report.blocks(place, format!("{name}: {message}"), remedy(element));
        false
    }

    /// Advice for an option that cannot be checked here, because only root may use it or because it
    /// names users of another system.
    fn unchecked(&self, message: &str) -> Option<&'static str> {
        let is_root = nix::unistd::geteuid().is_root();
        if !is_root && (message.contains("Must be root") || message.contains("Permission denied")) {
            return Some("run copal preflight as root to have it checked");
        }
        let is_account = message.contains("user not found") || message.contains("group not found");
        (self.root.is_elsewhere() && is_account).then_some("run copal preflight on that machine to have it checked")
    }

    fn accepted(&mut self, element: &Element, name: &str, place: &Place) {
        let Element::Option(letter, text) = element else { return self.report.works(place, name) };
        let text = text.as_deref().map(getopt::text).unwrap_or_default();
        match letter {
            'p' => {
                self.settings.extend(written(element, self.root));
                let (parameter, wanted) = text.split_once('=').unwrap_or((&text, ""));
                return parameter_set(self.report, name, parameter, wanted, place);
            }
            's' => {
                self.storages.extend(written(element, self.root));
                if let Ok(all) = storage::parse(&[text])
                    && all.all().any(|storage| storage.kind == "malloc" && storage.size == Size::Rest)
                {
                    let what = "without a size there is no limit in Varnish; here it is three quarters of the memory";
                    return self.report.changes(
                        place,
                        format!("{name}: {what}"),
                        "give a size if another one is wanted",
                    );
                }
            }
            _ => {}
        }
        match letter::of(*letter).map(|row| row.support) {
            Some(OptionSupport::Differs(what)) => self.report.changes(place, format!("{name}: {what}"), ""),
            Some(OptionSupport::Idle(why)) => {
                let what = format!("{name}: accepted, and without effect: {why}");
                self.report.changes(place, what, "it may stay; it may go");
            }
            Some(OptionSupport::Same | OptionSupport::Ours) | None => self.report.works(place, name),
        }
    }

    /// Parses the line as a whole, if each option by itself is accepted.
    fn whole(&mut self, words: &[Word]) -> Option<Box<Arguments>> {
        let all = elements(words);
        // Options that could not be checked by themselves are left out here too.
        let is_checked = nix::unistd::geteuid().is_root() && !self.root.is_elsewhere();
        let kept = all.iter().filter(|given| is_checked || !matches!(given.element, Element::Option('j' | 'S', _)));
        let line: Vec<OsString> = kept.flat_map(|given| written(&given.element, self.root)).collect();
        match arguments::parse(Called::Stock, &line) {
            Ok(Parsed::Run(arguments)) => Some(arguments),
            Ok(Parsed::Print { .. }) => None,
            Err(error) => {
                let place = words.first().map_or_else(Place::default, |word| Place::new(&word.place.file, 0));
                self.report.blocks(&place, format!("the options together: {}", message(&error)), "");
                None
            }
        }
    }
}

/// Advice for an option that is refused.
fn remedy(element: &Element) -> String {
    let (letter, text) = match element {
        Element::Option(letter, value) => (*letter, value.as_deref().map(getopt::text).unwrap_or_default()),
        Element::Unknown(letter) | Element::Incomplete(letter) => (*letter, String::new()),
        Element::Long(..) | Element::UnknownLong(_) | Element::IncompleteLong(_) => {
            return "varnishd --help lists the options".to_owned();
        }
        Element::Operand(_) => return "leave it out: Varnish takes no such word either".to_owned(),
    };
    if letter == 's' {
        let kind = text.split_once('=').map_or(text.as_str(), |(_, rest)| rest);
        let kind = kind.split(',').next().unwrap_or_default();
        if let Some(row) = letter::storage_kind(kind).filter(|row| !row.is_here) {
            return row.instead.to_owned();
        }
    }
    if letter == 'p'
        && let Some(row) = former::find(text.split('=').next().unwrap_or_default())
    {
        return row.remedy();
    }
    letter::of(letter)
        .map_or_else(|| "no version of Varnish that is known has it".to_owned(), |row| row.remedy.to_owned())
}

/// Verdict for a parameter setting.
pub(crate) fn parameter_set(report: &mut Report, name: &str, parameter: &str, wanted: &str, place: &Place) {
    let Some(row) = value::row(parameter) else { return report.works(place, name) };
    if row.flags & ACCEPTED_ONLY != 0 {
        let what = format!("{name}: accepted, and without effect: {}", row.text);
        return report.changes(place, what, "it may stay; it may go");
    }
    let idle: Vec<&str> = bits(row.kind)
        .iter()
        .filter(|bit| {
            bit.is_accepted_only && wanted.split([',', ' ']).any(|word| word.strip_prefix('+') == Some(bit.name))
        })
        .map(|bit| bit.name)
        .collect();
    if idle.is_empty() {
        report.works(place, name);
    } else {
        report.changes(place, format!("{name}: without effect: {}", idle.join(", ")), "it may stay; it may go");
    }
}

fn bits(kind: ParameterKind) -> &'static [BitRow] {
    match kind {
        ParameterKind::DebugBits => DEBUG_BITS,
        ParameterKind::FeatureBits => FEATURE_BITS,
        ParameterKind::ExperimentalBits => EXPERIMENTAL_BITS,
        ParameterKind::CompilerBits => COMPILER_BITS,
        ParameterKind::Seconds
        | ParameterKind::Double
        | ParameterKind::Bool
        | ParameterKind::Unsigned
        | ParameterKind::Bytes
        | ParameterKind::Pool
        | ParameterKind::LogMask
        | ParameterKind::Encodings
        | ParameterKind::Policy
        | ParameterKind::EvictionPolicy
        | ParameterKind::NameSource
        | ParameterKind::Placement
        | ParameterKind::LeakGuard
        | ParameterKind::WhenLost
        | ParameterKind::Addresses
        | ParameterKind::Text => &[],
    }
}

/// True if a word names varnishd, as the program of a unit does.
pub(crate) fn is_varnishd(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    name == "varnishd" || name == "copal"
}
