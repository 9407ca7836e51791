//! State that debug stores for a task.

use backend::Notes;
use std::net::IpAddr;
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Text, Value};

/// Place where a text is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In the task.
    Task,
    /// In the client request.
    Top,
    /// In the task, for `debug.priv_task_with_option()`.
    Option,
}

/// State that debug stores for a task.
#[derive(Debug, Default)]
pub(crate) struct DebugState {
    /// Texts by place and, for those of objects, by the object's number.
    texts: Vec<(Place, Option<u32>, Vec<u8>)>,
    /// `debug.store_ip()`
    pub(crate) address: Option<(IpAddr, u16)>,
    /// `debug.fail_task_fini()`
    pub(crate) fails_at_end: bool,
}

impl DebugState {
    /// The text at a place.
    pub(crate) fn text(&self, place: Place, object: Option<u32>) -> Option<&[u8]> {
        let kept = self.texts.iter().find(|(at, of, _)| (*at, *of) == (place, object));
        kept.map(|(_, _, text)| text.as_slice())
    }

    /// Stores a text.
    pub(crate) fn set_text(&mut self, place: Place, object: Option<u32>, text: Vec<u8>) {
        match self.texts.iter_mut().find(|(at, of, _)| (*at, *of) == (place, object)) {
            Some((_, _, kept)) => *kept = text,
            None => self.texts.push((place, object, text)),
        }
    }

    /// Failure of the task at its end, if any. Called once.
    pub(crate) fn take_failure(&mut self) -> Option<Failure> {
        std::mem::take(&mut self.fails_at_end).then(|| Failure("thou shalt not fini".to_owned()))
    }

    /// At the end of the task, logs one record for each stored text.
    pub(crate) fn leave(&mut self, notes: &Notes) {
        for (place, object, text) in self.texts.drain(..) {
            let what = match (place, object) {
                (Place::Task, None) => "priv_task_fini",
                (Place::Task, Some(_)) => "obj_priv_task_fini",
                (Place::Top, None) => "priv_top_fini",
                (Place::Top, Some(_)) => "obj_priv_top_fini",
                (Place::Option, _) => continue,
            };
            notes.task_debug(format!("{what}({:#x})", address_of(&text)));
        }
    }
}

/// A made-up address for records.
pub(crate) fn address_of(text: &[u8]) -> usize {
    0x1000 + text.len()
}

/// A text as a value; unset for none.
pub(super) fn shown(scratch: &mut Scratch, text: Option<&[u8]>) -> Value {
    Value::Text(text.map_or(Text::UNSET, |text| scratch.put(text)))
}
