//! Interface between a running program and its environment. The engine implements [`Host`] once,
//! for client requests, backend requests and vcl_init/vcl_fini alike; the evaluator has no other
//! access to the environment, and VMODs use an extension of it.

pub use crate::failure::Failure;
use crate::link::LinkedProgram;
use crate::place::Place;
use crate::program::Point;
use crate::value::{DirectorId, Scratch, Text, Value};
use std::borrow::Cow;
use surface::tag::Tag;
use surface::vcl::{Action, HttpObject, Method, Var};

/// The result of a VMOD call.
#[derive(Clone, PartialEq, Debug)]
pub enum Called {
    /// The result.
    Value(Value),
    /// Run a subroutine, as for `call` of an expression; the call has no value.
    Sub(u32),
    /// Like `Sub`, but the value of the call is its duration.
    TimedSub(u32),
    /// Check if a subroutine may be called from here: the value is the reason for a refusal, or
    /// unset if it may.
    Check(u32),
    /// The call has to wait; the evaluator stops with [`crate::eval::Outcome::Wait`] and, once
    /// resumed, gets the result from [`Host::resume`].
    Wait,
}

/// Environment of a program. The compiler refuses programs that use a variable where it is not
/// available, so an implementation may return an unset value for it.
pub trait Host {
    /// The program being run, for tables that VMODs need (ACLs, regular expressions, header names).
    fn program(&self) -> &LinkedProgram;
    /// The value of `now`, seconds since 1970; constant within one method.
    fn now(&self) -> f64;
    /// The actual time, seconds since 1970.
    fn clock(&self) -> f64 {
        self.now()
    }
    /// Reads a variable other than a header.
    ///
    /// # Errors
    /// If reading makes the task fail.
    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure>;
    /// Writes a variable other than a header. `append` is the `+=` of BODY variables.
    ///
    /// # Errors
    /// If the value is not acceptable, e.g. `Setting req.url to empty string`.
    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure>;
    /// Unsets a variable other than a header.
    ///
    /// # Errors
    /// If this makes the task fail.
    fn unset(&mut self, var: Var) -> Result<(), Failure>;
    /// The value of the first header with that name. The message may have to be decoded first.
    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]>;
    /// True if `req` has the properties of most requests: a GET with a Host that has no capital
    /// letter (`A` to `Z`), without Authorization and Cookie. Then conditions that follow from it
    /// are not evaluated one by one. False = they are.
    fn is_usual(&self) -> bool {
        false
    }
    /// The text of a variable if it is available without a copy; `None` = use [`Host::read`].
    fn variable_bytes(&self, _var: Var) -> Option<&[u8]> {
        None
    }
    /// Replaces all headers of that name.
    ///
    /// # Errors
    /// `Bad header …` if the value has control characters and the feature validate_headers is on.
    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure>;
    /// Removes all headers of that name.
    fn unset_header(&mut self, http: HttpObject, name: &str);
    /// Reads a variable of a storage: its space (BYTES), or its health (BOOL).
    fn storage_property(&mut self, storage: Option<u32>, var: Var) -> Value;
    /// The plain name of a storage, e.g. `s0`; as text in VCL it is `storage.s0`.
    fn storage_name(&self, storage: Option<u32>) -> &str;
    /// The name of a director or backend, for text; empty for none.
    fn director_name(&self, director: DirectorId) -> Cow<'_, str>;
    /// The backend that a director chooses now (`.resolve()`).
    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        Some(director)
    }
    /// Adds one piece of a `hash_data` call to the hash. `None` is an unset string: it adds one
    /// zero byte, so that its hash differs from that of an empty one. Compat: Varnish 7.1; each
    /// piece that is set has a Hash record.
    fn hash_data(&mut self, piece: Option<&[u8]>);
    /// A separate `hash_data` call with the text of a variable, without a copy; false = use
    /// [`Host::read`].
    fn hash_variable(&mut self, _var: Var) -> bool {
        false
    }
    /// A separate `hash_data` call with the first header of that name.
    fn hash_header(&mut self, http: HttpObject, name: &str) {
        if !self.hash_header_if_any(http, name) {
            self.hash_data(None);
            self.hash_end();
        }
    }
    /// Like [`Host::hash_header`], if there is such a header; returns true if there is.
    fn hash_header_if_any(&mut self, http: HttpObject, name: &str) -> bool {
        let Some(value) = self.header(http, name).map(<[u8]>::to_vec) else { return false };
        self.hash_data(Some(&value));
        self.hash_end();
        true
    }
    /// Ends a `hash_data` call: adds one zero byte.
    fn hash_end(&mut self) {
        self.hash_data(None);
    }
    /// The `synthetic()` statement of vcl_synth and vcl_backend_error: appends to the body. Compat:
    /// Varnish 7.1.1; only `set resp.body` and `set beresp.body` replace it ([`Host::write`]).
    fn synthetic(&mut self, body: &[u8]);
    /// Adds a ban.
    ///
    /// # Errors
    /// The error in the expression.
    fn ban(&mut self, expression: &[u8]) -> Result<(), String>;
    /// Writes a log record for the running task.
    fn log(&mut self, tag: Tag, payload: &[u8]);

    /// True if records with this tag are suppressed, so that none need be made.
    fn is_masked(&self, _tag: Tag) -> bool {
        false
    }
    /// Writes a record about the run itself: a method begins, returns, or fails. May be left out
    /// where there is no transaction.
    fn log_run(&mut self, tag: Tag, payload: &[u8]) {
        self.log(tag, payload);
    }
    /// Writes the record of a method that begins.
    fn log_call(&mut self, method: Method) {
        self.log_run(Tag::VCLCall, method.row().log_name.as_bytes());
    }
    /// Writes the record of `return (vcl(…))`, before that of the return itself. `label`: its index
    /// in the program.
    fn log_switch(&mut self, label: u32) {
        let _ = label;
    }
    /// Writes the record of a method that ends with an action.
    fn log_return(&mut self, action: Action) {
        self.log_run(Tag::VCLReturn, action.name().as_bytes());
    }
    /// True if [`Host::note`] must be called.
    fn tells_reasons(&self) -> bool {
        false
    }
    /// Announces that [`Host::write`] of a noted variable ([`Var::is_noted`]) or the change of a
    /// marking header of beresp follows, from this place.
    fn note(&mut self, _place: &Place) {}
    /// True if [`Host::trace`] must be called; read once per method, and after each write of a
    /// noted variable.
    fn is_traced(&self) -> bool {
        true
    }
    /// Called when a run passes a point of the program, for `VCL_trace` records (`<VCL name>
    /// <index> <source>.<line>.<position>`).
    fn trace(&mut self, _index: u32, _point: Point) {}
    /// `return (pass(duration))` of vcl_backend_response, before its VCL_return record: the time
    /// for which this response is passed.
    fn pass_for(&mut self, _seconds: f64) {}
    /// Calls a VMOD function or method. `function` is an index into `surface::vmod::FUNCTIONS`;
    /// `instance` is the object (an index into [`crate::program::Program::instances`]) for methods
    /// and constructors. STRANDS arrive joined; an optional argument that was not given arrives as
    /// [`Value::Absent`].
    ///
    /// # Errors
    /// If the VMOD makes the task fail.
    fn call(
        &mut self,
        function: u32,
        instance: Option<u32>,
        arguments: &[Value],
        scratch: &mut Scratch,
    ) -> Result<Called, Failure>;
    /// Returns the result of a call that had to wait.
    ///
    /// # Errors
    /// As for [`Host::call`].
    fn resume(&mut self, scratch: &mut Scratch) -> Result<Value, Failure>;
}
