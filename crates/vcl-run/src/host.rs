//! What a running program may touch. The engine implements [`Host`] for a client request, a backend request and for
//! vcl_init/vcl_fini; the evaluator and the VMODs know nothing else of the world.

use crate::eval::Place;
use crate::link::LinkedProgram;
use crate::program::Point;
use crate::value::{DirectorId, Scratch, Text, Value};
use std::borrow::Cow;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Var};

/// Why VCL failed: the task ends with `VCL failed`, the text goes to a `VCL_Error` record first (none when empty).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

const OUT_OF_MEMORY: &str = "Out of request memory (parameter request_memory_max)";

impl Failure {
    /// The task has taken all the memory that it may.
    #[must_use]
    pub fn out_of_memory() -> Failure {
        Failure(OUT_OF_MEMORY.to_owned())
    }

    /// Whether it is [`Failure::out_of_memory`], as it is or with the name of a VMOD in front.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.0.ends_with(OUT_OF_MEMORY)
    }
}

/// What a VMOD call came to.
#[derive(Clone, PartialEq, Debug)]
pub enum Called {
    /// The result.
    Value(Value),
    /// A subroutine is to be run, as by `call` of an expression; the call has no value.
    Sub(u32),
    /// The same, and the value of the call is how long it took.
    TimedSub(u32),
    /// Whether a subroutine may be called from here: the value is the text of why not, unset when it may.
    Check(u32),
    /// The call has to wait; the evaluator stops with [`crate::eval::Outcome::Wait`] and, once resumed, takes the result from
    /// [`Host::resume`].
    Wait,
}

/// The world as a program sees it. Where a variable is not available the compiler has refused the program, so an
/// implementation may answer with an unset value.
pub trait Host {
    /// The program being run, for tables that VMODs need (ACLs, regular expressions, header names).
    fn program(&self) -> &LinkedProgram;
    /// The time that `now` shows, seconds since 1970; constant within one method.
    fn now(&self) -> f64;
    /// The time that it is, seconds since 1970.
    fn clock(&self) -> f64 {
        self.now()
    }
    /// Reads a variable other than a header.
    ///
    /// # Errors
    /// When reading fails the task.
    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure>;
    /// Writes a variable other than a header. `append` is the `+=` of BODY variables.
    ///
    /// # Errors
    /// When the value is not acceptable, e.g. `Setting req.url to empty string`.
    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure>;
    /// Unsets a variable other than a header.
    ///
    /// # Errors
    /// When that fails the task.
    fn unset(&mut self, var: Var) -> Result<(), Failure>;
    /// The value of the first header of that name. What is read for this may have to be decoded first.
    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]>;
    /// The text of a variable where it can be had without a copy; `None` = [`Host::read`] it.
    fn variable_bytes(&self, _var: Var) -> Option<&[u8]> {
        None
    }
    /// Replaces all headers of that name.
    ///
    /// # Errors
    /// `Bad header …` when the value has control characters and the feature validate_headers is on.
    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure>;
    /// Removes all headers of that name.
    fn unset_header(&mut self, http: HttpObject, name: &str);
    /// Reads a variable of a storage: its room (BYTES), or whether it is happy (BOOL).
    fn storage_property(&mut self, storage: Option<u32>, var: Var) -> Value;
    /// The bare name of a storage, e.g. `s0`; as text in VCL it reads `storage.s0`.
    fn storage_name(&self, storage: Option<u32>) -> &str;
    /// The name of a director or backend, for text; empty for none.
    fn director_name(&self, director: DirectorId) -> Cow<'_, str>;
    /// The backend that a director chooses now (`.resolve()`).
    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        Some(director)
    }
    /// Feeds the hash: one piece of what a `hash_data` call concatenates. `None` is an unset string, which feeds one zero byte,
    /// so that it hashes otherwise than an empty one. Compat: Varnish 7.1; each piece that is set has a Hash record.
    fn hash_data(&mut self, piece: Option<&[u8]>);
    /// Ends a `hash_data` call: one zero byte.
    fn hash_end(&mut self) {
        self.hash_data(None);
    }
    /// The `synthetic()` statement of vcl_synth and vcl_backend_error: adds to the body. Compat: Varnish 7.1.1; only `set
    /// resp.body` and `set beresp.body` replace ([`Host::write`]).
    fn synthetic(&mut self, body: &[u8]);
    /// Adds a ban.
    ///
    /// # Errors
    /// What is wrong with the expression.
    fn ban(&mut self, expression: &[u8]) -> Result<(), String>;
    /// Writes a log record for the running task.
    fn log(&mut self, tag: Tag, payload: &[u8]);
    /// Writes a record of the run itself: that a method begins, what it returns, why it fails. Where there is no transaction
    /// it may be left out.
    fn log_run(&mut self, tag: Tag, payload: &[u8]) {
        self.log(tag, payload);
    }
    /// What comes next is [`Host::write`] of a variable that is noted ([`Var::is_noted`]), from this place.
    fn note(&mut self, _place: Place<'_>) {}
    /// Whether [`Host::trace`] wants to be told; asked once a method, and after each write that is noted.
    fn is_traced(&self) -> bool {
        true
    }
    /// Passes a point of the program, for `VCL_trace` records (`<VCL name> <index> <source>.<line>.<position>`).
    fn trace(&mut self, _index: u32, _point: Point) {}
    /// `return (pass(duration))` of vcl_backend_response, before its VCL_return record: the response is to be passed for that
    /// long.
    fn pass_for(&mut self, _seconds: f64) {}
    /// Calls a VMOD function or method. `function` is an index into `surface::vmod::FUNCTIONS`; `instance` is the object
    /// (an index into [`crate::program::Program::instances`]) for methods and constructors. STRANDS arrive joined; an optional argument
    /// that was not given arrives as [`Value::Absent`].
    ///
    /// # Errors
    /// When the VMOD fails the task.
    fn call(
        &mut self,
        function: u32,
        instance: Option<u32>,
        arguments: &[Value],
        scratch: &mut Scratch,
    ) -> Result<Called, Failure>;
    /// The result of a call that had to wait.
    ///
    /// # Errors
    /// As for [`Host::call`].
    fn resume(&mut self, scratch: &mut Scratch) -> Result<Value, Failure>;
}
