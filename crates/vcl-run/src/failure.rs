//! Failure of a running program.

/// Failure of VCL: the task ends with `VCL failed`; before that the text goes to a `VCL_Error`
/// record (none if it is empty).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

const OUT_OF_MEMORY: &str = "Out of request memory (parameter request_memory_max)";

impl Failure {
    /// Failure of a task that has reached its memory limit.
    #[must_use]
    pub fn out_of_memory() -> Failure {
        Failure(OUT_OF_MEMORY.to_owned())
    }

    /// True for [`Failure::out_of_memory`], possibly with the name of a VMOD in front.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.0.ends_with(OUT_OF_MEMORY)
    }
}
