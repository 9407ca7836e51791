//! Log records of remarks on files.

use crate::context::VmodContext;
use surface::tag::Tag;

/// Logs remarks on a file that were not logged before.
pub(crate) fn log_remarks(context: &mut dyn VmodContext, vmod: &str, path: &[u8], remarks: Vec<String>) {
    for remark in remarks {
        let text = format!("{vmod}: {}: {remark}", String::from_utf8_lossy(path));
        context.log(Tag::VCLError, text.as_bytes());
    }
}
