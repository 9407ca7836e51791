//! Filters that a response passes on its way into the store when VCL names none; they follow from
//! its head and VCL's `do_` variables.
//!
//! The filters are implemented in `bodies/filters.rs`.

use super::task::FetchTask;
use semantics::HttpPolicy;
use semantics::encoding::may_be_compressed_by_default;
use surface::encoding::Encoding;
use surface::vcl::Generation;

/// The list in `beresp.filters` when VCL has set none. Each name is preceded by a space.
pub(crate) fn default_list(task: &FetchTask) -> Vec<u8> {
    if task.attempt.body.size.is_empty() {
        return Vec::new();
    }
    let encoding = task.attempt.beresp.get("Content-Encoding");
    let is_gzipped = encoding.is_some_and(|value| value.eq_ignore_ascii_case(b"gzip"));
    let is_plain = encoding.is_none();
    let supported = task.order.gzip_support;
    let gunzips = supported && task.attempt.verdict.do_gunzip && is_gzipped;
    // Compat: under `http_policy=varnish` the flag is enough, as in Varnish. A list that VCL sets
    // applies under both policies.
    let may_compress = task.order.vcl.policy != HttpPolicy::Rfc || may_be_compressed_by_default(&task.attempt.beresp);
    let gzips = supported && task.attempt.verdict.do_gzip && is_plain && may_compress;
    // The first dialects did not support gzip.
    let packed = is_gzipped && task.order.vcl.generation >= Generation::V3;
    let mut list = Vec::new();
    if supported && task.attempt.verdict.do_esi {
        // A body that is searched for ESI instructions must not be encoded.
        match encoding.and_then(Encoding::of_name) {
            Some(Encoding::Brotli) => list.extend_from_slice(b" unbrotli"),
            Some(Encoding::Zstd) => list.extend_from_slice(b" unzstd"),
            Some(Encoding::Gzip) | None => {}
        }
    }
    if gunzips || (packed && task.attempt.verdict.do_esi) {
        list.extend_from_slice(b" gunzip");
    }
    if task.attempt.verdict.do_esi {
        list.extend_from_slice(if gzips || (packed && !gunzips) { b" esi_gzip" } else { b" esi" });
        return list;
    }
    if gzips {
        list.extend_from_slice(b" gzip");
    }
    if packed && !gunzips {
        list.extend_from_slice(b" testgunzip");
    }
    list
}
