//! The arguments of a call, by position and type. The compiler has checked the types; a value of
//! another type reads as unset or zero.

use std::net::IpAddr;
use surface::vcl::HttpObject;
use vcl_run::link::LinkedProgram;
use vcl_run::value::{DirectorId, Scratch, Text, Value};

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a>(&'a [Value]);

impl<'a> Arguments<'a> {
    pub(crate) fn new(values: &'a [Value]) -> Arguments<'a> {
        Arguments(values)
    }

    /// The value at a position; absent after the end.
    pub(crate) fn value(self, place: usize) -> Value {
        self.0.get(place).copied().unwrap_or(Value::Absent)
    }

    /// True if the argument was given.
    pub(crate) fn is_given(self, place: usize) -> bool {
        self.value(place) != Value::Absent
    }

    /// A string; unset if absent.
    pub(crate) fn text(self, place: usize) -> Text {
        match self.value(place) {
            Value::Text(text) | Value::Blob(text) => text,
            _ => Text::UNSET,
        }
    }

    pub(crate) fn bool(self, place: usize) -> bool {
        matches!(self.value(place), Value::Bool(true))
    }

    pub(crate) fn int(self, place: usize) -> i64 {
        match self.value(place) {
            Value::Int(number) | Value::Bytes(number) => number,
            _ => 0,
        }
    }

    /// A REAL, DURATION or TIME.
    pub(crate) fn real(self, place: usize) -> f64 {
        match self.value(place) {
            Value::Real(number) | Value::Duration(number) | Value::Time(number) => number,
            _ => 0.0,
        }
    }

    pub(crate) fn ip(self, place: usize) -> Option<(IpAddr, u16)> {
        match self.value(place) {
            Value::Ip(address) => address,
            _ => None,
        }
    }

    pub(crate) fn backend(self, place: usize) -> Option<DirectorId> {
        match self.value(place) {
            Value::Backend(director) => director,
            _ => None,
        }
    }

    pub(crate) fn http(self, place: usize) -> Option<HttpObject> {
        match self.value(place) {
            Value::Http(http) => Some(http),
            _ => None,
        }
    }

    /// The header that the argument names: its message and its name.
    pub(crate) fn header(
        self,
        place: usize,
        program: &LinkedProgram,
        scratch: &Scratch,
    ) -> Option<(HttpObject, String)> {
        match self.value(place) {
            Value::Header(http, name) => Some((http, program.header_name(name).to_owned())),
            Value::NamedHeader(http, name) => Some((http, String::from_utf8_lossy(scratch.get(name)).into_owned())),
            _ => None,
        }
    }

    pub(crate) fn regex(self, place: usize) -> Option<u32> {
        match self.value(place) {
            Value::Regex(index) => Some(index),
            _ => None,
        }
    }
}
