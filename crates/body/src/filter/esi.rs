//! The names of ESI, which is not supported yet: VCL may list them; the log says that they do nothing.

use super::{Opened, Opening};

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    opening.head.error("ESI is not part of this build: body passed unparsed");
    None
}
