//! Everything that a running program may touch. The engine implements [`Host`] once, for client requests, backend requests and
//! vcl_init/vcl_fini alike; the evaluator knows nothing else of the world, and VMODs see an extension of it.

use crate::eval::Place;
use crate::link::LinkedProgram;
use crate::program::Point;
use crate::value::{DirectorId, Scratch, Text, Value};
use std::borrow::Cow;
use surface::tag::Tag;
use surface::vcl::{Action, HttpObject, Method, Var};

/// Why VCL failed: the task ends with `VCL failed`; before that the text goes to a `VCL_Error` record (none if it is
/// empty).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

const OUT_OF_MEMORY: &str = "Out of request memory (parameter request_memory_max)";

impl Failure {
    /// The task has used all the memory that it may.
    #[must_use]
    pub fn out_of_memory() -> Failure {
        Failure(OUT_OF_MEMORY.to_owned())
    }

    /// Whether this is [`Failure::out_of_memory`], possibly with the name of a VMOD in front.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.0.ends_with(OUT_OF_MEMORY)
    }
}

/// The result of a VMOD call.
#[derive(Clone, PartialEq, Debug)]
pub enum Called {
    /// The result.
    Value(Value),
    /// Run a subroutine, as for `call` of an expression; the call has no value.
    Sub(u32),
    /// The same, but the value of the call is the time it took.
    TimedSub(u32),
    /// Check whether a subroutine may be called from here: the value is the reason why not, or unset if it may.
    Check(u32),
    /// The call has to wait; the evaluator stops with [`crate::eval::Outcome::Wait`] and, once resumed, gets the result
    /// from [`Host::resume`].
    Wait,
}

/// The world as a program sees it. The compiler refuses programs that use a variable where it is not available, so an
/// implementation may return an unset value for it.
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
    /// When reading makes the task fail.
    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure>;
    /// Writes a variable other than a header. `append` is the `+=` of BODY variables.
    ///
    /// # Errors
    /// When the value is not acceptable, e.g. `Setting req.url to empty string`.
    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure>;
    /// Unsets a variable other than a header.
    ///
    /// # Errors
    /// When this makes the task fail.
    fn unset(&mut self, var: Var) -> Result<(), Failure>;
    /// The value of the first header with that name. The message may have to be decoded first.
    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]>;
    /// Whether `req` is what most requests are: a GET with a Host that has no capital letter (`A` to `Z`), without Authorization
    /// and Cookie. Then conditions that follow from it are not asked one by one. False = they are.
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
    /// `Bad header …` when the value has control characters and the feature validate_headers is on.
    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure>;
    /// Removes all headers of that name.
    fn unset_header(&mut self, http: HttpObject, name: &str);
    /// Reads a variable of a storage: its space (BYTES), or whether it is happy (BOOL).
    fn storage_property(&mut self, storage: Option<u32>, var: Var) -> Value;
    /// The plain name of a storage, e.g. `s0`; as text in VCL it is `storage.s0`.
    fn storage_name(&self, storage: Option<u32>) -> &str;
    /// The name of a director or backend, for text; empty for none.
    fn director_name(&self, director: DirectorId) -> Cow<'_, str>;
    /// The backend that a director chooses now (`.resolve()`).
    fn resolve_director(&mut self, director: DirectorId) -> Option<DirectorId> {
        Some(director)
    }
    /// Feeds the hash with one piece of a `hash_data` call. `None` is an unset string: it feeds one zero byte, so that
    /// its hash differs from that of an empty one. Compat: Varnish 7.1; each piece that is set has a Hash record.
    fn hash_data(&mut self, piece: Option<&[u8]>);
    /// A `hash_data` call of its own with the text of a variable, without a copy; false = use [`Host::read`].
    fn hash_variable(&mut self, _var: Var) -> bool {
        false
    }
    /// A `hash_data` call of its own with the first header of that name.
    fn hash_header(&mut self, http: HttpObject, name: &str) {
        if !self.hash_header_if_any(http, name) {
            self.hash_data(None);
            self.hash_end();
        }
    }
    /// The same if there is such a header, and whether there is.
    fn hash_header_if_any(&mut self, http: HttpObject, name: &str) -> bool {
        let Some(value) = self.header(http, name).map(<[u8]>::to_vec) else { return false };
        self.hash_data(Some(&value));
        self.hash_end();
        true
    }
    /// Ends a `hash_data` call: feeds one zero byte.
    fn hash_end(&mut self) {
        self.hash_data(None);
    }
    /// The `synthetic()` statement of vcl_synth and vcl_backend_error: appends to the body. Compat: Varnish 7.1.1; only
    /// `set resp.body` and `set beresp.body` replace it ([`Host::write`]).
    fn synthetic(&mut self, body: &[u8]);
    /// Adds a ban.
    ///
    /// # Errors
    /// What is wrong with the expression.
    fn ban(&mut self, expression: &[u8]) -> Result<(), String>;
    /// Writes a log record for the running task.
    fn log(&mut self, tag: Tag, payload: &[u8]);

    /// Whether records with this tag are left out, so that none need be made.
    fn is_masked(&self, _tag: Tag) -> bool {
        false
    }
    /// Writes a record about the run itself: a method begins, returns, or fails. May be left out where there is no
    /// transaction.
    fn log_run(&mut self, tag: Tag, payload: &[u8]) {
        self.log(tag, payload);
    }
    /// Writes the record of a method that begins.
    fn log_call(&mut self, method: Method) {
        self.log_run(Tag::VCLCall, method.row().log_name.as_bytes());
    }
    /// Writes the record of `return (vcl(…))`, before that of the return itself. `label`: its index in the program.
    fn log_switch(&mut self, label: u32) {
        let _ = label;
    }
    /// Writes the record of a method that ends with an action.
    fn log_return(&mut self, action: Action) {
        self.log_run(Tag::VCLReturn, action.name().as_bytes());
    }
    /// Whether to call [`Host::note`].
    fn tells_reasons(&self) -> bool {
        false
    }
    /// Announces that [`Host::write`] of a noted variable ([`Var::is_noted`]) follows, from this place.
    fn note(&mut self, _place: &Place) {}
    /// Whether to call [`Host::trace`]; asked once per method, and after each write of a noted variable.
    fn is_traced(&self) -> bool {
        true
    }
    /// Called when a run passes a point of the program, for `VCL_trace` records (`<VCL name> <index>
    /// <source>.<line>.<position>`).
    fn trace(&mut self, _index: u32, _point: Point) {}
    /// `return (pass(duration))` of vcl_backend_response, before its VCL_return record: pass this response for that
    /// long.
    fn pass_for(&mut self, _seconds: f64) {}
    /// Calls a VMOD function or method. `function` is an index into `surface::vmod::FUNCTIONS`; `instance` is the object
    /// (an index into [`crate::program::Program::instances`]) for methods and constructors. STRANDS arrive joined; an
    /// optional argument that was not given arrives as [`Value::Absent`].
    ///
    /// # Errors
    /// When the VMOD makes the task fail.
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
