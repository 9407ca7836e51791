//! The instructions of a program: a typed stack machine.
//!
//! Each instruction takes its operands from the value stack and leaves its result there; jumps only
//! go forward, so every subroutine ends. The compiler checks types; linking checks indices and
//! stack depth again; any remaining error ends in a failure, never in a panic. Next file:
//! `../link.rs`.

use serde::{Deserialize, Serialize};
use surface::vcl::{Action, HttpObject, Type, Var};

/// A calculation with two numbers; their types determine which.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Arithmetic {
    /// The type of the result; `None` if the operation is not defined for these types.
    #[must_use]
    pub fn result(self, left: Type, right: Type) -> Option<Type> {
        use Type::{Bytes, Duration, Int, Real, Time};
        match self {
            Arithmetic::Add => match (left, right) {
                (Bytes, Bytes) | (Duration, Duration) | (Int, Int) | (Real, Real) => Some(left),
                (Time, Duration) => Some(Time),
                (Int, Real) | (Real, Int) => Some(Real),
                _ => None,
            },
            Arithmetic::Subtract => match (left, right) {
                (Bytes, Bytes) | (Duration, Duration) | (Int, Int) | (Real, Real) => Some(left),
                (Time, Duration) => Some(Time),
                (Time, Time) => Some(Duration),
                (Int, Real) | (Real, Int) => Some(Real),
                _ => None,
            },
            Arithmetic::Multiply | Arithmetic::Divide => match (left, right) {
                (Int, Int) | (Real | Duration | Bytes, Int | Real) => Some(left),
                _ => None,
            },
            Arithmetic::Remainder => (left == Int && right == Int).then_some(Int),
        }
    }
}

/// A comparison of two values of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// One instruction. "Takes" removes from the stack, "leaves" puts on it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Op {
    /// Leaves a BOOL.
    Bool(bool),
    /// Leaves an INT.
    Int(i64),
    /// Leaves a REAL.
    Real(f64),
    /// Leaves a DURATION, seconds.
    Duration(f64),
    /// Leaves a TIME, seconds since 1970.
    Time(f64),
    /// Leaves a BYTES.
    Bytes(i64),
    /// Leaves a constant STRING.
    Text {
        /// Offset in the constants.
        start: u32,
        /// Bytes.
        len: u32,
    },
    /// Leaves the unset STRING.
    UnsetText,
    /// Leaves a constant BLOB.
    Blob {
        /// Offset in the constants.
        start: u32,
        /// Bytes.
        len: u32,
    },
    /// Leaves an IPv4 address.
    Ip4 {
        /// Address.
        address: [u8; 4],
        /// Port.
        port: u16,
    },
    /// Leaves an IPv6 address.
    Ip6 {
        /// Offset in the constants of the 16 bytes of the address.
        start: u32,
        /// Port.
        port: u16,
    },
    /// Leaves a BACKEND (a director's index), or none.
    Backend(Option<u32>),
    /// Leaves an ACL.
    Acl(u32),
    /// Leaves a PROBE.
    Probe(u32),
    /// Leaves a STEVEDORE, or none.
    Stevedore(Option<u32>),
    /// Leaves a SUB.
    Sub(u32),
    /// Leaves a REGEX.
    Regex(u32),
    /// Leaves an HTTP.
    Http(HttpObject),
    /// Leaves a HEADER as a reference.
    HeaderPlace(HttpObject, u32),
    /// Leaves the marker for an optional argument that was not given.
    Absent,
    /// Leaves the time of this method.
    Now,
    /// Leaves a variable's value.
    Read(Var),
    /// Leaves a header's value.
    ReadHeader(HttpObject, u32),
    /// Leaves true if such a header exists.
    HasHeader(HttpObject, u32),
    /// Takes a STEVEDORE, leaves a property of it (one of the `storage.*` variables).
    StorageProperty(Var),
    /// Takes a value, leaves it as STRING.
    ToText,
    /// Takes this many strings, leaves their concatenation; unset if all of them are unset.
    Join(u16),
    /// Takes a value, leaves its truth as a BOOL.
    Test,
    /// Takes an INT, leaves the REAL.
    ToReal,
    /// Takes a STRING, leaves it in upper-case letters.
    Upper,
    /// Takes a STRING, leaves it in lower-case letters.
    Lower,
    /// Takes a BACKEND, leaves the BACKEND that it currently resolves to.
    Resolve,
    /// Takes a BOOL, leaves the opposite.
    Not,
    /// Takes a number, leaves it with the opposite sign.
    Negate,
    /// Takes two numbers, leaves the result.
    Calculate(Arithmetic),
    /// Takes two values of one type, leaves a BOOL.
    Compare(Comparison),
    /// Like `Compare` for two STRINGs where unset counts as empty, since one of them is a
    /// concatenation.
    CompareJoined(Comparison),
    /// Takes a STRING, leaves true if the pattern matches.
    Match(u32),
    /// Leaves true if the pattern matches a header's value: [`Op::ReadHeader`] and [`Op::Match`] in
    /// one.
    MatchHeader(HttpObject, u16, u32),
    /// Leaves true if the pattern matches a variable's text: [`Op::Read`] and [`Op::Match`] in one.
    MatchVariable(Var, u32),
    /// Leaves true if a header exists and has this value: [`Op::ReadHeader`], [`Op::Text`] and
    /// [`Op::Compare`] in one.
    HeaderIs {
        /// The message.
        http: HttpObject,
        /// Index of the header's name.
        name: u16,
        /// Bytes of the constant.
        len: u16,
        /// Offset of the constant.
        start: u32,
    },
    /// Takes a REGEX and a STRING below it, leaves true if the pattern matches.
    MatchValue,
    /// Takes an IP, leaves true if it is in the ACL.
    MatchAcl(u32),
    /// Takes an ACL and an IP below it, leaves true if the IP is in the ACL.
    MatchAclValue,
    /// Takes a replacement and a subject below it, leaves the subject with the first match
    /// replaced.
    Substitute(u32),
    /// Like `Substitute`, for all matches.
    SubstituteAll(u32),
    /// Continues at a later instruction.
    Jump(u32),
    /// Takes a BOOL and jumps when it is false.
    JumpUnless(u32),
    /// Jumps when the BOOL on the stack is false and leaves it there; else takes it.
    AndThen(u32),
    /// Jumps when the BOOL on the stack is true and leaves it there; else takes it.
    OrElse(u32),
    /// Takes a value and discards it.
    Forget,
    /// Takes a value and assigns it to a variable.
    Write(Var),
    /// Like `Write` for a noted variable ([`Var::is_noted`]): the host is notified of the place.
    WriteNoted(Var),
    /// Notifies the host of the place of the header change that follows, for headers in
    /// `surface::header::MARKING_HEADERS` of beresp.
    Note,
    /// Takes a value and appends it to a BODY.
    Append(Var),
    /// Takes a STRING and makes it the header's value.
    WriteHeader(HttpObject, u32),
    /// Unsets a variable.
    Unset(Var),
    /// Removes a header.
    UnsetHeader(HttpObject, u32),
    /// Takes this many STRINGs and adds them to the hash: the pieces of one `hash_data`.
    HashData(u16),
    /// Takes this many STRINGs (or one BLOB) and adds them to the body: the pieces of one
    /// `synthetic`.
    Synthetic(u16),
    /// Takes a STRING and adds it as a ban.
    Ban,
    /// Runs a subroutine.
    Call(u32),
    /// Takes a SUB and runs it, if it may be called here.
    CallValue,
    /// Takes the arguments (the last on top), calls a VMOD, leaves the result.
    CallVmod {
        /// Index into `surface::vmod::FUNCTIONS`.
        function: u32,
        /// Index into the instances, for methods and constructors.
        instance: Option<u32>,
        /// Arguments to take.
        arguments: u16,
    },
    /// Returns from a subroutine that is not a method.
    Leave,
    /// Ends the method with an action without arguments.
    Return(Action),
    /// Takes a status, with a reason above it if `reason` is set, and ends the method with `synth`
    /// or `error`.
    ReturnStatus {
        /// `synth` or `error`.
        action: Action,
        /// True if a reason is on the stack.
        reason: bool,
    },
    /// Takes a DURATION and ends the method with `pass`.
    ReturnPass,
    /// Ends the method with `vcl` and an index into the labels.
    ReturnVcl(u32),
    /// Takes a STRING and ends the method with a failure.
    ReturnFail,
    /// Marks a point of the source: an index into the points.
    Trace(u32),
}
