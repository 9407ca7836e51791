//! The steps of a request, and the table of legal transitions. `request.rs` has a diagram.

/// The step that a request is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Step {
    /// The head is parsed; the requirements of HTTP itself are checked (Expect, Connection).
    #[default]
    Accept,
    /// vcl_recv.
    Receive,
    /// vcl_hash; afterwards the decision of vcl_recv is carried out.
    Hash,
    /// The object is looked up in the index.
    Lookup,
    /// vcl_hit.
    Hit,
    /// vcl_miss.
    Miss,
    /// vcl_pass.
    Pass,
    /// A fetch is running; its object is awaited.
    Await,
    /// vcl_pipe, and the pipe itself.
    Pipe,
    /// vcl_purge.
    Purge,
    /// vcl_synth.
    Synth,
    /// vcl_deliver.
    Deliver,
    /// The response is sent.
    Transmit,
    /// The request starts again.
    Restart,
    /// A VCL method failed.
    VclFailed,
    /// Accounting, and the end of the log.
    Finish,
}

impl Step {
    /// The step's name in Debug records. Compat: Varnish's name, where Varnish has the step.
    pub(super) fn debug_name(self) -> &'static str {
        match self {
            Step::Accept => "transport",
            Step::Receive => "recv",
            Step::Hash => "hash",
            Step::Lookup => "lookup",
            Step::Hit => "hit",
            Step::Miss => "miss",
            Step::Pass => "pass",
            Step::Await => "fetch",
            Step::Pipe => "pipe",
            Step::Purge => "purge",
            Step::Synth => "synth",
            Step::Deliver => "deliver",
            Step::Transmit => "transmit",
            Step::Restart => "restart",
            Step::VclFailed => "vclfail",
            Step::Finish => "finish",
        }
    }
}

/// Legal transitions: each step with the steps that may follow it.
pub(crate) const LEGAL: &[(Step, &[Step])] = &[
    (Step::Accept, &[Step::Receive, Step::Transmit, Step::Finish]),
    (Step::Receive, &[Step::Hash, Step::VclFailed, Step::Synth, Step::Finish, Step::Receive]),
    (
        Step::Hash,
        &[
            Step::Lookup,
            Step::Pass,
            Step::Pipe,
            Step::Purge,
            Step::Synth,
            Step::Restart,
            Step::VclFailed,
            Step::Receive,
        ],
    ),
    (Step::Lookup, &[Step::Hit, Step::Miss, Step::Pass, Step::Synth, Step::Finish]),
    (Step::Hit, &[Step::Deliver, Step::Miss, Step::Lookup, Step::Pass, Step::Synth, Step::Restart, Step::VclFailed]),
    (Step::Miss, &[Step::Await, Step::Pass, Step::Synth, Step::Restart, Step::VclFailed]),
    (Step::Pass, &[Step::Await, Step::Synth, Step::Restart, Step::VclFailed]),
    (Step::Await, &[Step::Deliver, Step::Synth, Step::Restart, Step::Finish]),
    (Step::Pipe, &[Step::Finish, Step::Synth, Step::VclFailed]),
    (Step::Purge, &[Step::Synth, Step::Restart, Step::VclFailed]),
    (Step::Synth, &[Step::Transmit, Step::Restart, Step::Finish, Step::Deliver]),
    (Step::Deliver, &[Step::Transmit, Step::Synth, Step::Restart, Step::VclFailed, Step::Finish]),
    (Step::Transmit, &[Step::Finish]),
    (Step::Restart, &[Step::Receive, Step::Synth, Step::Finish]),
    (Step::VclFailed, &[Step::Synth, Step::Finish]),
    (Step::Finish, &[]),
];

/// True if a step may follow another.
pub(super) fn is_legal(from: Step, to: Step) -> bool {
    LEGAL.iter().any(|(step, next)| *step == from && next.contains(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_row_and_finish_is_reached_from_everywhere() {
        let mut reaching = vec![Step::Finish];
        while let Some((step, _)) = LEGAL
            .iter()
            .find(|(step, next)| !reaching.contains(step) && next.iter().any(|next| reaching.contains(next)))
        {
            reaching.push(*step);
        }
        assert_eq!(reaching.len(), LEGAL.len());
        assert!(!is_legal(Step::Transmit, Step::Restart), "what was sent cannot be taken back");
    }
}
