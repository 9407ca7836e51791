//! A CLI command that is being executed.

use crate::clock::now;
use crate::state::Manager;
use cli_proto::json::JsonReply;
use std::rc::Rc;

/// One command being executed.
pub(crate) struct Call<'a> {
    /// The manager.
    pub(super) manager: &'a Rc<Manager>,
    /// All words, for the head of a JSON reply.
    pub(super) words: &'a [String],
    /// The words after the verb and `-j`.
    pub(super) arguments: &'a [String],
    /// The words that are not UTF-8, as received.
    pub(super) octets: &'a [(usize, Vec<u8>)],
    /// The connection or file that the command comes from.
    pub(super) who: &'a str,
    /// JSON is requested.
    pub(super) json: bool,
}

impl Call<'_> {
    /// An argument, as the bytes that were sent.
    pub(super) fn argument_octets(&self, index: usize) -> Vec<u8> {
        let place = index + self.words.len() - self.arguments.len();
        let octets = self.octets.iter().find(|(at, _)| *at == place);
        octets.map_or_else(|| self.arguments[index].clone().into_bytes(), |(_, octets)| octets.clone())
    }

    /// The head of a JSON reply.
    pub(super) fn json_reply(&self, version: u32) -> JsonReply {
        JsonReply::new(version, self.words, now())
    }
}
