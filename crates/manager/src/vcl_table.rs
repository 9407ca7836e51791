//! Table of the loaded VCLs and labels, the active one, and their dependencies.
//!
//! Pure data: the rules of `vcl.use`, `vcl.state`, `vcl.label` and `vcl.discard` with their
//! refusals; nothing is sent to a worker here. First check (`check_…`), then send the change to the
//! worker, then change the table (the other functions).

use crate::vcl_files::VclFiles;
use cli_proto::response::{Response, status};
use std::rc::Rc;
use surface::closed_set::VclState;
use vcl_run::program::Source;

/// Most names listed in a refusal.
const DEPENDANTS_SHOWN_MAX: usize = 5;

/// End of refusals while a canary runs.
const END_IT: &str = ": vcl.promote or vcl.rollback ends it";

/// A compiled VCL.
#[derive(Debug)]
pub struct Loaded {
    /// The program for the worker.
    pub program: Vec<u8>,
    /// Its sources, the main one first.
    pub sources: Vec<Source>,
    /// Its sources, to compile it again.
    pub files: VclFiles,
    /// Labels that its `return(vcl(…))` name.
    pub labels: Vec<String>,
}

/// Kind of an entry.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A VCL.
    Program(Rc<Loaded>),
    /// A label: another name for a VCL.
    Label(String),
}

/// A VCL or label.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// The state that the operator has set; always warm for labels.
    pub state: VclState,
    /// VCL or label.
    pub kind: Kind,
}

impl Entry {
    /// True if this is a label.
    #[must_use]
    pub fn is_label(&self) -> bool {
        matches!(self.kind, Kind::Label(_))
    }

    /// The names that this entry needs: a label needs its VCL, a VCL the labels that it returns to.
    #[must_use]
    pub fn needs(&self) -> &[String] {
        match &self.kind {
            Kind::Label(target) => std::slice::from_ref(target),
            Kind::Program(loaded) => &loaded.labels,
        }
    }
}

/// Everything that is loaded, in order of loading.
#[derive(Debug, Default)]
pub struct VclTable {
    entries: Vec<Entry>,
    active: Option<String>,
    canary: Option<String>,
}

type Checked<T> = Result<T, Response>;

impl VclTable {
    /// Every entry in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The active VCL or label.
    #[must_use]
    pub fn active(&self) -> Option<&str> {
        self.active.as_deref()
    }

    /// The VCL or label on trial.
    #[must_use]
    pub fn canary(&self) -> Option<&str> {
        self.canary.as_deref()
    }

    /// The number of VCLs, without labels.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_label()).count()
    }

    /// Names of all labels.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        self.entries.iter().filter(|entry| entry.is_label()).map(|entry| entry.name.clone()).collect()
    }

    /// An entry by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The VCL with this name, or that a label with this name points to.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<Rc<Loaded>> {
        match &self.get(name)?.kind {
            Kind::Program(loaded) => Some(loaded.clone()),
            Kind::Label(target) => self.program(target),
        }
    }

    /// Entries that need `name`.
    #[must_use]
    pub fn dependants(&self, name: &str) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| entry.needs().iter().any(|need| need == name)).collect()
    }

    /// Checks that a new VCL may be called `name`.
    ///
    /// # Errors
    /// The reply, when the name has an invalid letter or is taken.
    pub fn check_new(&self, name: &str) -> Checked<()> {
        check_name(name)?;
        match self.get(name) {
            Some(entry) if entry.is_label() => {
                Err(refuse(status::PARAMETER, format!("Already a VCL label named {name}")))
            }
            Some(_) => Err(refuse(status::PARAMETER, format!("Already a VCL named {name}"))),
            None => Ok(()),
        }
    }

    /// Adds a VCL.
    pub fn add(&mut self, name: &str, state: VclState, loaded: Loaded) {
        self.entries.push(Entry { name: name.to_owned(), state, kind: Kind::Program(Rc::new(loaded)) });
    }

    /// Checks that the dependencies of every entry exist.
    ///
    /// # Errors
    /// A name that is missing.
    pub fn check_whole(&self) -> Result<(), String> {
        let missing = self.entries.iter().flat_map(Entry::needs).find(|name| self.get(name).is_none());
        missing.map_or(Ok(()), |name| Err(name.clone()))
    }

    fn known(&self, name: &str) -> Checked<&Entry> {
        check_name(name)?;
        self.get(name).ok_or_else(|| refuse(status::PARAMETER, format!("No VCL named {name} known\n")))
    }

    /// Checks that there is an entry `name`.
    ///
    /// # Errors
    /// The reply, when it is invalid or unknown.
    pub fn check_known(&self, name: &str) -> Checked<()> {
        self.known(name).map(|_| ())
    }

    /// The VCL that an entry leads to.
    fn target<'a>(&'a self, entry: &'a Entry) -> &'a Entry {
        match &entry.kind {
            Kind::Program(_) => entry,
            Kind::Label(target) => self.get(target).unwrap_or(entry),
        }
    }

    fn check_not_cold(&self, entry: &Entry) -> Checked<()> {
        if self.target(entry).state == VclState::Cold {
            let text = format!("VCL '{}' is cold - set to auto or warm first", entry.name);
            return Err(refuse(status::CANNOT, text));
        }
        Ok(())
    }

    /// Checks that `name` can become active; `false` if it is already.
    ///
    /// # Errors
    /// The reply, if it is unknown or cold.
    pub fn check_use(&self, name: &str) -> Checked<bool> {
        let entry = self.known(name)?;
        if self.active.as_deref() == Some(name) {
            return Ok(false);
        }
        self.check_not_cold(entry)?;
        Ok(true)
    }

    /// Checks that `name` can become a canary.
    ///
    /// # Errors
    /// The reply, if it is unknown, cold or active, there is no active VCL, or another canary runs.
    pub fn check_canary(&self, name: &str) -> Checked<()> {
        let entry = self.known(name)?;
        if let Some(other) = &self.canary {
            return Err(refuse(status::CANNOT, format!("VCL '{other}' is a canary already{END_IT}")));
        }
        let Some(active) = self.active.as_deref().and_then(|active| self.get(active)) else {
            return Err(refuse(status::CANNOT, "No active VCL"));
        };
        if self.target(active).name == self.target(entry).name {
            return Err(refuse(status::CANNOT, format!("VCL '{name}' is active already")));
        }
        self.check_not_cold(entry)
    }

    /// Begins a canary, or ends it.
    pub fn set_canary(&mut self, name: Option<&str>) {
        self.canary = name.map(str::to_owned);
    }

    /// Makes `name` active.
    pub fn set_active(&mut self, name: &str) {
        self.active = Some(name.to_owned());
    }

    /// Checks that the state of `name` can become `state`; `false` if it is already.
    ///
    /// # Errors
    /// The reply, if it is unknown, a label, or must not be cold.
    pub fn check_state(&self, name: &str, state: VclState) -> Checked<bool> {
        let entry = self.known(name)?;
        if entry.is_label() {
            return Err(refuse(status::PARAMETER, "Labels are always warm"));
        }
        if state == VclState::Cold {
            if self.dependants(name).iter().any(|entry| entry.is_label()) {
                return Err(refuse(status::CANNOT, "A labeled VCL cannot be set cold"));
            }
            if self.active.as_deref() == Some(name) {
                return Err(refuse(status::CANNOT, "Cannot set the active VCL cold."));
            }
            if self.canary.as_deref() == Some(name) {
                return Err(refuse(status::CANNOT, format!("Cannot set a canary cold{END_IT}")));
            }
        }
        Ok(entry.state != state)
    }

    /// Changes the state of a VCL.
    pub fn set_state(&mut self, name: &str, state: VclState) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.name == name) {
            entry.state = state;
        }
    }

    /// Checks that `label` can point at `target`.
    ///
    /// # Errors
    /// The reply: an invalid name for a label, not a VCL, a cold VCL, a label, or a loop.
    pub fn check_label(&self, label: &str, target: &str) -> Checked<()> {
        check_name(label)?;
        if self.get(label).is_some_and(|entry| !entry.is_label()) {
            return Err(refuse(status::PARAMETER, format!("{label} is not a label")));
        }
        if self.canary.is_some() && [&self.canary, &self.active].into_iter().flatten().any(|name| name == label) {
            return Err(refuse(status::CANNOT, format!("Cannot move the label {label} while a canary runs{END_IT}")));
        }
        let entry = self.known(target)?;
        if entry.is_label() {
            return Err(refuse(status::CANNOT, "VCL labels cannot point to labels"));
        }
        if let Some(chain) = self.chain(target, label, 0) {
            let text = format!("{chain}Pointing label {label} at {target} would create a loop");
            return Err(refuse(status::PARAMETER, text));
        }
        self.check_not_cold(entry)
    }

    /// The path from `from` to the label `label`, one line per step; `None` if there is none.
    fn chain(&self, from: &str, label: &str, depth: usize) -> Option<String> {
        let entry = self.get(from)?;
        if depth > self.entries.len() {
            return None;
        }
        entry.needs().iter().find_map(|need| {
            let line = if entry.is_label() {
                format!("Label {from} points to vcl {need}\n")
            } else {
                format!("Vcl {from} uses Label {need}\n")
            };
            if need == label {
                return Some(line);
            }
            self.chain(need, label, depth + 1).map(|rest| line + &rest)
        })
    }

    /// Creates or moves a label.
    pub fn set_label(&mut self, label: &str, target: &str) {
        match self.entries.iter_mut().find(|entry| entry.name == label) {
            Some(entry) => entry.kind = Kind::Label(target.to_owned()),
            None => self.entries.push(Entry {
                name: label.to_owned(),
                state: VclState::Warm,
                kind: Kind::Label(target.to_owned()),
            }),
        }
    }

    /// The entries that `vcl.discard` with these patterns removes, in an order that removes none
    /// while another needs it.
    ///
    /// # Errors
    /// The reply: a pattern without a match, the active VCL, a canary, or a needed entry.
    pub fn check_discard(&self, patterns: &[String]) -> Checked<Vec<String>> {
        let mut chosen = vec![false; self.entries.len()];
        for wanted in patterns {
            let mut found = false;
            for (index, entry) in self.entries.iter().enumerate() {
                if pattern::matches(wanted.as_bytes(), entry.name.as_bytes(), pattern::Flags::default()) {
                    chosen[index] = true;
                    found = true;
                }
            }
            if !found {
                return Err(refuse(status::PARAMETER, format!("No VCL name matches {wanted}\n")));
            }
        }
        let is_chosen = |name: &str| self.entries.iter().zip(&chosen).any(|(entry, on)| *on && entry.name == name);
        for entry in self.entries.iter().filter(|entry| is_chosen(&entry.name)) {
            if self.active.as_deref() == Some(&entry.name) {
                return Err(refuse(status::CANNOT, format!("Cannot discard active VCL program {}\n", entry.name)));
            }
            if self.canary.as_deref() == Some(&entry.name) {
                return Err(refuse(status::CANNOT, format!("Cannot discard the canary {}{END_IT}\n", entry.name)));
            }
        }
        for entry in self.entries.iter().filter(|entry| is_chosen(&entry.name)) {
            let left: Vec<&Entry> =
                self.dependants(&entry.name).into_iter().filter(|dependant| !is_chosen(&dependant.name)).collect();
            if !left.is_empty() {
                return Err(refuse(status::CANNOT, needed_by(entry, &left)));
            }
        }
        let mut order = Vec::new();
        let mut waiting: Vec<&Entry> = self.entries.iter().filter(|entry| is_chosen(&entry.name)).collect();
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|entry| {
                let free = self.dependants(&entry.name).iter().all(|dependant| order.contains(&dependant.name));
                if free {
                    order.push(entry.name.clone());
                }
                !free
            });
            if waiting.len() == before {
                break;
            }
        }
        Ok(order)
    }

    /// Removes an entry.
    pub fn remove(&mut self, name: &str) {
        self.entries.retain(|entry| entry.name != name);
    }
}

fn refuse(status: u16, text: impl Into<String>) -> Response {
    Response::new(status, text)
}

fn needed_by(entry: &Entry, dependants: &[&Entry]) -> String {
    let mut text = if entry.is_label() {
        format!("Cannot discard VCL label {}, other VCLs depend on it:\n", entry.name)
    } else {
        format!("Cannot discard labeled VCL program {}:\n", entry.name)
    };
    for dependant in dependants.iter().take(DEPENDANTS_SHOWN_MAX) {
        text.push_str(&format!("\t{}\n", dependant.name));
    }
    if dependants.len() > DEPENDANTS_SHOWN_MAX {
        text.push_str("\t[...]");
    }
    text
}

/// Names begin with a letter and continue with letters, digits, `_` and `-`.
fn check_name(name: &str) -> Checked<()> {
    let good = |(index, letter): &(usize, u8)| {
        letter.is_ascii_alphabetic() || (*index > 0 && (letter.is_ascii_digit() || matches!(letter, b'_' | b'-')))
    };
    let bad = name.bytes().enumerate().find(|place| !good(place)).map(|(_, letter)| letter);
    let text = match bad {
        None if name.is_empty() => "Empty VCL name".to_owned(),
        None => return Ok(()),
        Some(letter) if letter.is_ascii_graphic() || letter == b' ' => {
            format!("Illegal character in VCL name ('{}')", char::from(letter))
        }
        Some(letter) => format!("Illegal character in VCL name (0x{letter:02x})"),
    };
    Err(refuse(status::PARAMETER, text))
}

/// The state for a word.
///
/// # Errors
/// The reply, when the word is not a state.
pub fn state_word(word: &str) -> Checked<VclState> {
    let unknown = || refuse(status::PARAMETER, "State must be one of auto, cold or warm.");
    VclState::from_word(word).ok_or_else(unknown)
}

#[cfg(test)]
pub(crate) mod tests;
