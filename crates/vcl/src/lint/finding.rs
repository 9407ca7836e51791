//! Findings: what they show, and their collection.

use crate::Diagnostic;
use crate::diagnostic::{Place, Shown, Suggestion, between, pretty_of};
use crate::load::Loaded;
use crate::tree::At;
use surface::diagnostic::Code;
use surface::limits::VCL_MESSAGES_MAX;
use surface::lint::{Level, Rule};

/// One finding of the linter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The fault, in a sentence without a full stop.
    pub message: String,
    /// The place.
    pub place: Place,
    /// Further places, each after its words.
    pub related: Vec<(String, Place)>,
    /// The correction.
    pub hint: String,
    /// A replacement that corrects it, if there is an obvious one.
    pub fix: Option<Suggestion>,
}

impl Finding {
    /// The form for terminals, optionally in colour.
    #[must_use]
    pub fn pretty(&self, colour: bool) -> String {
        let row = self.rule.row();
        let shade = match row.level {
            Level::Error => "1;31",
            Level::Warning => "1;33",
            Level::Note => "1;36",
        };
        let related = self.related.iter().map(|(words, place)| (words.clone(), place)).collect();
        let shown = Shown {
            word: row.level.name(),
            shade,
            code: row.id,
            message: &self.message,
            place: Some(&self.place),
            related,
            hint: Some(&self.hint),
        };
        pretty_of(&shown, colour)
    }
}

/// A finding, and the number of its source.
pub(super) type Placed = (u32, Finding);

/// The findings so far.
pub(super) struct Found<'a> {
    loaded: &'a Loaded,
    /// Under `http_policy=rfc` a response for one client is not stored by a ttl of the VCL.
    follows_rfc: bool,
    pub(super) findings: Vec<Placed>,
    pub(super) hidden: usize,
}

impl<'a> Found<'a> {
    pub(super) fn new(loaded: &'a Loaded, follows_rfc: bool) -> Found<'a> {
        Found { loaded, follows_rfc, findings: Vec::new(), hidden: 0 }
    }

    /// Adds a finding at a range of tokens, the last included.
    pub(super) fn add(&mut self, rule: Rule, first: At, last: At, message: impl Into<String>) -> Option<&mut Finding> {
        let tokens = &self.loaded.tokens;
        let (first, last) = (*tokens.get(first as usize)?, *tokens.get(last as usize)?);
        self.push(first.source, rule, between(&self.loaded.sources, first, last), message.into())
    }

    fn push(&mut self, source: u32, rule: Rule, place: Place, message: String) -> Option<&mut Finding> {
        if self.follows_rfc && matches!(rule, Rule::CredentialsNotJudged | Rule::PrivateStored) {
            return None;
        }
        let is_known = |(_, finding): &Placed| finding.rule == rule && finding.place == place;
        if self.findings.iter().rev().any(is_known) {
            return None;
        }
        if self.findings.len() >= VCL_MESSAGES_MAX {
            self.hidden += 1;
            return None;
        }
        let hint = rule.row().hint.to_owned();
        self.findings.push((source, Finding { rule, message, place, related: Vec::new(), hint, fix: None }));
        self.findings.last_mut().map(|(_, finding)| finding)
    }

    /// The place of a range of tokens.
    pub(super) fn place(&self, first: At, last: At) -> Option<Place> {
        let tokens = &self.loaded.tokens;
        Some(between(&self.loaded.sources, *tokens.get(first as usize)?, *tokens.get(last as usize)?))
    }

    /// Warnings of the compiler that are rules here.
    pub(super) fn compiler(&mut self, diagnostic: &Diagnostic) {
        let rule = match diagnostic.code {
            Code::Unreachable => Rule::NeverReached,
            Code::Unused => Rule::Unused,
            _ => return,
        };
        let Some(place) = diagnostic.place() else { return };
        let files = &self.loaded.sources.files;
        let source = files.iter().position(|file| file.name == place.file).unwrap_or_default();
        let message = diagnostic.message();
        let message = message.trim_end_matches([':', '.']).to_owned();
        self.push(source as u32, rule, place.clone(), message);
    }
}
