//! Decisions of methods, as a type per method, so that no code must handle actions that a method
//! does not have.
//!
//! A program that decides anything else is damaged, which counts as if the method had failed.
//! *Invariant:* the rulings of a method are the actions that `surface::vcl::METHODS` allows it in
//! any generation, except `fail`.

use surface::vcl::{Action, Method};
use vcl_run::eval::ActionArguments;
use vcl_run::value::Text;

/// The rulings of one method.
pub(crate) trait Ruling: Sized {
    /// The method.
    const METHOD: Method;

    /// The ruling for an action; `None` when the method does not have that action.
    fn of(action: Action, arguments: ActionArguments) -> Option<Self>;
}

/// The method failed; this is already logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failed;

/// The status and reason of `synth` and `error`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct StatusLine {
    /// `None` if VCL gave none.
    pub(crate) status: Option<u16>,
    /// Unset if VCL gave none.
    pub(crate) reason: Text,
}

impl From<ActionArguments> for StatusLine {
    fn from(arguments: ActionArguments) -> StatusLine {
        StatusLine { status: arguments.status, reason: arguments.reason }
    }
}

/// Time for which `pass` of a response should be remembered, in seconds; `None` if VCL gave none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PassTime(pub(crate) Option<f64>);

impl From<ActionArguments> for PassTime {
    fn from(arguments: ActionArguments) -> PassTime {
        PassTime(arguments.duration)
    }
}

/// The label that `vcl` names, as its index in the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(pub(crate) Option<u32>);

impl From<ActionArguments> for Label {
    fn from(arguments: ActionArguments) -> Label {
        Label(arguments.label)
    }
}

macro_rules! rulings {
    ($($(#[$doc:meta])* $name:ident of $method:ident { $($action:ident $(($arguments:ty))?),+ $(,)? })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Debug)]
            #[allow(missing_docs)]
            pub(crate) enum $name {
                $($action $(($arguments))?),+
            }

            impl Ruling for $name {
                const METHOD: Method = Method::$method;

                #[inline]
                #[allow(unused_variables)]
                fn of(action: Action, arguments: ActionArguments) -> Option<$name> {
                    Some(match action {
                        $(Action::$action => $name::$action $((<$arguments>::from(arguments)))?,)+
                        _ => return None,
                    })
                }
            }
        )+

        /// All methods with their actions.
        #[cfg(test)]
        const ALL: &[(Method, &[Action])] = &[$((Method::$method, &[$(Action::$action),+])),+];
    };
}

rulings! {
    /// vcl_recv.
    RecvRuling of Recv { Hash, Pass, Pipe, Purge, Restart, Synth(StatusLine), Vcl(Label) }
    /// vcl_hash.
    HashRuling of Hash { Lookup }
    /// vcl_hit; miss and fetch belong to the first releases of VCL 4, and mean the same.
    HitRuling of Hit { Deliver, Pass, Restart, Synth(StatusLine), Miss, Fetch }
    /// vcl_miss.
    MissRuling of Miss { Fetch, Pass, Restart, Synth(StatusLine) }
    /// vcl_pass.
    PassRuling of Pass { Fetch, Restart, Synth(StatusLine) }
    /// vcl_pipe.
    PipeRuling of Pipe { Pipe, Synth(StatusLine) }
    /// vcl_purge.
    PurgeRuling of Purge { Restart, Synth(StatusLine) }
    /// vcl_synth.
    SynthRuling of Synth { Deliver, Restart }
    /// vcl_deliver.
    DeliverRuling of Deliver { Deliver, Restart, Synth(StatusLine) }
    /// vcl_backend_fetch.
    FetchRuling of BackendFetch { Fetch, Abandon, Error(StatusLine) }
    /// vcl_backend_refresh.
    RefreshRuling of BackendRefresh { Merge, ObjStale, Beresp, Retry, Abandon, Error(StatusLine) }
    /// vcl_backend_response; restart and synth belong to the old dialects, whose vcl_fetch decides
    /// for the client.
    ResponseRuling of BackendResponse {
        Deliver, Pass(PassTime), Retry, Abandon, Error(StatusLine), Restart, Synth(StatusLine),
    }
    /// vcl_backend_error.
    ErrorRuling of BackendError { Deliver, Retry, Abandon }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::vcl::{Generation, METHODS, at};

    #[test]
    fn a_method_rules_what_the_language_lets_it_say() {
        for row in METHODS.iter().filter(|row| row.bit & (at::CLIENT | at::BACKEND) != 0) {
            let (_, actions) = ALL.iter().find(|(method, _)| *method == row.method).unwrap();
            for &action in Action::ALL {
                let may_say = Generation::ALL.iter().any(|&generation| row.allows(action, generation));
                let is_ruling = may_say && action != Action::Fail;
                assert_eq!(actions.contains(&action), is_ruling, "{} in {}", action.name(), row.name);
            }
        }
    }

    #[test]
    fn an_action_becomes_a_ruling_with_what_belongs_to_it() {
        let arguments = ActionArguments { status: Some(404), label: Some(3), ..ActionArguments::default() };
        let line = StatusLine { status: Some(404), reason: Text::UNSET };
        assert_eq!(RecvRuling::of(Action::Synth, arguments), Some(RecvRuling::Synth(line)));
        assert_eq!(RecvRuling::of(Action::Vcl, arguments), Some(RecvRuling::Vcl(Label(Some(3)))));
        assert_eq!(HitRuling::of(Action::Deliver, arguments), Some(HitRuling::Deliver));
        assert_eq!(HitRuling::of(Action::Lookup, arguments), None);
    }
}
