//! Parameters of other versions of Varnish that 7.1 and Copal lack, with their replacements.
//!
//! Setting one is an error, here as in Varnish 7.1; `copal preflight` reports it with the text of
//! its row. Source: the parameter tables of Varnish 1.1 to 8.0, read as lists of names.

/// A removed parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerRow {
    /// Its name.
    pub name: &'static str,
    /// Parameter with the same function; empty if there is none.
    pub successor: &'static str,
    /// Advice, if there is no successor.
    pub instead: &'static str,
}

const fn renamed(name: &'static str, successor: &'static str) -> FormerRow {
    FormerRow { name, successor, instead: "" }
}

const fn gone(name: &'static str, instead: &'static str) -> FormerRow {
    FormerRow { name, successor: "", instead }
}

/// Advice for limits of request memory, which grows as needed.
const GROWS: &str = "drop it: memory of a request grows as needed, up to request_memory_max";
/// Advice for choices that are now always on.
const ALWAYS: &str = "drop it: it is always so";

/// Every such parameter, ordered by name.
pub static FORMER: &[FormerRow] = &[
    renamed("accept_fd_holdoff", "acceptor_sleep_max"),
    gone("backend_http11", ALWAYS),
    gone("busyobj_worker_cache", GROWS),
    gone("cache_vbe_conns", ALWAYS),
    gone("cli_banner", ALWAYS),
    gone("cli_buffer", GROWS),
    gone("client_http11", ALWAYS),
    renamed("diag_bitmap", "debug"),
    gone("err_ttl", "set beresp.ttl in vcl_backend_error"),
    renamed("esi_syntax", "feature"),
    gone("expiry_sleep", "drop it: what dies is removed as it dies"),
    gone("group", "the option -j unix,user=USER"),
    gone("group_cc", "drop it: Copal needs no C compiler"),
    gone("gzip_stack_buffer", GROWS),
    gone("gzip_tmp_space", GROWS),
    gone("gzip_window", ALWAYS),
    renamed("http_headers", "http_max_hdr"),
    gone("http_workspace", GROWS),
    gone("listen_address", "the option -a"),
    gone("log_hashstring", "-p vsl_mask=+Hash"),
    gone("log_local_address", ALWAYS),
    renamed("max_esi_includes", "max_esi_depth"),
    gone("obj_workspace", GROWS),
    gone("object_workspace", GROWS),
    renamed("overflow_max", "thread_queue_limit"),
    renamed("pcre_jit_compilation", "pcre2_jit_compilation"),
    renamed("pcre_match_limit", "pcre2_match_limit"),
    renamed("pcre_match_limit_recursion", "pcre2_depth_limit"),
    gone("pool_vbc", "drop it: connections come from no pool"),
    renamed("purge_dups", "ban_dups"),
    renamed("queue_max", "thread_queue_limit"),
    gone("saintmode_threshold", "the VMOD saintmode"),
    gone("sendfile_threshold", "drop it: bodies are sent from the storage"),
    renamed("sess_timeout", "timeout_idle"),
    gone("sess_workspace", GROWS),
    gone("session_linger", "timeout_linger, in seconds: 50 (milliseconds) is 0.05 there"),
    gone("session_max", "drop it: LimitNOFILE= of the unit bounds the number of connections"),
    renamed("shm_reclen", "vsl_reclen"),
    renamed("shm_workspace", "vsl_buffer"),
    gone("srcaddr_hash", "drop it: clients are not counted by address; the VMOD vsthrottle does that"),
    gone("srcaddr_ttl", "drop it: clients are not counted by address; the VMOD vsthrottle does that"),
    gone("thread_pool_add_threshold", "drop it: Copal has no thread pools"),
    renamed("thread_pool_purge_delay", "thread_pool_destroy_delay"),
    gone("thread_pool_workspace", GROWS),
    gone("user", "the option -j unix,user=USER"),
    renamed("vcl_dir", "vcl_path"),
    gone("vcl_trace", "-p vsl_mask=+VCL_trace"),
    renamed("vmod_dir", "vmod_path"),
    gone("vsm_space", "drop it: counters take the room that they need"),
    gone("waiter", "the option -W, or rather nothing"),
];

/// Row of a removed parameter.
#[must_use]
pub fn find(name: &str) -> Option<&'static FormerRow> {
    FORMER.iter().find(|row| row.name == name)
}

impl FormerRow {
    /// The advice in words.
    #[must_use]
    pub fn remedy(&self) -> String {
        if self.successor.is_empty() { self.instead.to_owned() } else { format!("it is called {} now", self.successor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::value;

    #[test]
    fn removed_parameters_are_absent_and_their_successors_exist() {
        assert!(FORMER.windows(2).all(|pair| pair[0].name < pair[1].name));
        for row in FORMER {
            assert!(value::row(row.name).is_none(), "{} is here: remove its row", row.name);
            assert_ne!(row.successor.is_empty(), row.instead.is_empty(), "{}", row.name);
            assert!(row.successor.is_empty() || value::row(row.successor).is_some(), "{}", row.successor);
        }
    }
}
