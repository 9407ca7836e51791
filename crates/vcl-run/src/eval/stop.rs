//! Reasons for the evaluator to leave its loop of instructions, and the arguments of actions.

use crate::failure::Failure;
use crate::value::Text;
use surface::vcl::Action;

/// The arguments of an action.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ActionArguments {
    /// `synth` and `error`: the status; its last three digits are at least 100, and only they
    /// appear on the wire. `None` if not given.
    pub status: Option<u16>,
    /// `synth` and `error`: the reason; unset if not given.
    pub reason: Text,
    /// `pass` in vcl_backend_response: time for which the pass is remembered, in seconds.
    pub duration: Option<f64>,
    /// `vcl`: index into [`crate::program::Program::labels`].
    pub label: Option<u32>,
}

impl Default for ActionArguments {
    fn default() -> Self {
        ActionArguments { status: None, reason: Text::UNSET, duration: None, label: None }
    }
}

/// Reason why the loop of instructions stopped.
pub(super) enum Stop {
    /// The method ended with this action.
    Return(Action, ActionArguments),
    /// A VMOD waits.
    Wait,
    /// The method failed.
    Fail(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Fail(failure)
    }
}

/// The program does not keep the guarantees of linking.
pub(super) fn damaged() -> Stop {
    Stop::Fail(Failure("VCL program is damaged".into()))
}

/// A failure with this text.
pub(super) fn fail(text: impl Into<String>) -> Stop {
    Stop::Fail(Failure(text.into()))
}

/// The scratch memory is full.
#[cold]
pub(super) fn out_of_memory() -> Stop {
    Stop::Fail(Failure::out_of_memory())
}
