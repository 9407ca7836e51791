//! The names of ESI, which is not there yet: VCL may list them, and is told that nothing happens.

use super::{Opened, Opening};

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    opening.head.error("ESI is not part of this build: body passed unparsed");
    None
}
