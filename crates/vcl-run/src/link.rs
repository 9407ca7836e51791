//! Linking: verifies a program and prepares its constants, patterns and ACLs.
//!
//! A worker runs only linked programs. Linking guarantees the evaluator that every index is in
//! range, that jumps go forward and stay inside their subroutine, that the stack holds the operands
//! of each instruction, and that no subroutine calls itself, even through others.

pub(crate) mod step;
pub(crate) mod steps;
mod usual;
mod verify;

use crate::acl::AclIndex;
use crate::program::Program;
use crate::regex::{Regex, RegexLimits};
use std::sync::{Arc, OnceLock};
use steps::{Ending, Steps};
use surface::vcl::{METHODS, Method};
use usual::Facts;
pub use verify::VerifyError;

/// A program ready to run; shared by all event loops.
#[derive(Debug)]
pub struct LinkedProgram {
    program: Program,
    constants: Arc<[u8]>,
    regexes: Vec<Regex>,
    limits: RegexLimits,
    acls: Vec<AclIndex>,
    steps: Steps,
    /// Endings of the methods that do nothing but return an action.
    endings: Vec<Option<Ending>>,
    /// The steps for traced runs.
    plain: OnceLock<Steps>,
}

impl LinkedProgram {
    /// Verifies and prepares a program, with the default limits for regular expressions.
    ///
    /// # Errors
    /// If an index, a jump or the stack is wrong. Patterns were checked by the compiler.
    pub fn link(program: Program) -> Result<LinkedProgram, VerifyError> {
        Self::link_with(program, RegexLimits::default())
    }

    /// Like [`LinkedProgram::link`], with limits for regular expressions.
    ///
    /// # Errors
    /// As for [`LinkedProgram::link`].
    pub fn link_with(mut program: Program, limits: RegexLimits) -> Result<LinkedProgram, VerifyError> {
        verify::verify(&program)?;
        let regexes: Vec<_> = program.regexes.iter().map(|pattern| Regex::deferred(pattern, limits)).collect();
        let acls = program.acls.iter().map(AclIndex::new).collect();
        let constants: Arc<[u8]> = Arc::from(std::mem::take(&mut program.constants));
        let steps = Steps::fast(&program, &Facts { program: &program, constants: &constants, regexes: &regexes });
        let endings = METHODS.iter().map(|row| steps.ending(row.method as u32)).collect();
        Ok(LinkedProgram { program, constants, regexes, limits, acls, steps, endings, plain: OnceLock::new() })
    }

    /// The program's tables. Its `constants` have moved to [`LinkedProgram::constants`].
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The constants that handles of this program refer to.
    #[must_use]
    pub fn constants(&self) -> &Arc<[u8]> {
        &self.constants
    }

    /// A regular expression.
    #[must_use]
    pub fn regex(&self, index: u32) -> Option<&Regex> {
        self.regexes.get(index as usize)
    }

    /// The limits of the program's regular expressions.
    #[must_use]
    pub fn regex_limits(&self) -> RegexLimits {
        self.limits
    }

    /// An ACL.
    #[must_use]
    pub fn acl(&self, index: u32) -> Option<&AclIndex> {
        self.acls.get(index as usize)
    }

    /// Name of the header that a [`crate::value::Value::Header`] refers to.
    #[must_use]
    pub fn header_name(&self, index: u32) -> &str {
        self.program.headers.get(index as usize).map_or("", String::as_str)
    }

    /// Ending of a method that does nothing but return an action, if only for usual requests.
    #[inline]
    pub(crate) fn ending(&self, method: Method) -> Option<&Ending> {
        self.endings.get(method as usize)?.as_ref()
    }

    /// The code that the evaluator runs: for a trace one step for each instruction.
    #[inline]
    pub(crate) fn steps(&self, is_plain: bool) -> &Steps {
        if is_plain { self.plain.get_or_init(|| Steps::plain(&self.program)) } else { &self.steps }
    }
}
