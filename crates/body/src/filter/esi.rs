//! The names of ESI, which is not supported yet: VCL may list them; the log says that they do nothing.

use super::{Opened, Opening, Side};

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    if opening.side == Side::Resp {
        // Putting pages together is the business of whoever sends them.
        return None;
    }
    opening.head.error("ESI is not part of this build: body passed unparsed");
    None
}
