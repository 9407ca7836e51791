//! Parameters of other versions of Varnish that 7.1 and Copal do not have, with what has taken their place.
//!
//! Setting one is a mistake, here as in Varnish 7.1; the rows are what `copal preflight` says of it. Source: the parameter tables of Varnish
//! 1.1 to 8.0, read as lists of names.

/// A parameter that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerRow {
    /// Its name.
    pub name: &'static str,
    /// The parameter that does the same; empty if none does.
    pub successor: &'static str,
    /// What to do, if no parameter does the same.
    pub instead: &'static str,
}

const fn renamed(name: &'static str, successor: &'static str) -> FormerRow {
    FormerRow { name, successor, instead: "" }
}

const fn gone(name: &'static str, instead: &'static str) -> FormerRow {
    FormerRow { name, successor: "", instead }
}

/// Memory of requests grows as needed.
const GROWS: &str = "drop it: memory of a request grows as needed, up to request_memory_max";
/// What was a choice is always so.
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
    gone("group_cc", "drop it: there is no C compiler"),
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
    gone("sendfile_threshold", "drop it: bodies are sent from where they lie"),
    renamed("sess_timeout", "timeout_idle"),
    gone("sess_workspace", GROWS),
    gone("session_linger", "timeout_linger, in seconds: 50 (milliseconds) is 0.05 there"),
    gone("session_max", "drop it: LimitNOFILE= of the unit bounds the number of connections"),
    renamed("shm_reclen", "vsl_reclen"),
    renamed("shm_workspace", "vsl_buffer"),
    gone("srcaddr_hash", "drop it: clients are not counted by address; the VMOD vsthrottle does that"),
    gone("srcaddr_ttl", "drop it: clients are not counted by address; the VMOD vsthrottle does that"),
    gone("thread_pool_add_threshold", "drop it: there are no thread pools"),
    renamed("thread_pool_purge_delay", "thread_pool_destroy_delay"),
    gone("thread_pool_workspace", GROWS),
    gone("user", "the option -j unix,user=USER"),
    gone("vcc_feature", "vcc_acl_pedantic, vcc_err_unref and vcc_unsafe_path"),
    renamed("vcl_dir", "vcl_path"),
    gone("vcl_trace", "-p vsl_mask=+VCL_trace"),
    renamed("vmod_dir", "vmod_path"),
    gone("vsm_space", "drop it: counters take the room that they need"),
    gone("waiter", "the option -W, or rather nothing"),
];

/// The row of a parameter that is gone.
#[must_use]
pub fn find(name: &str) -> Option<&'static FormerRow> {
    FORMER.iter().find(|row| row.name == name)
}

impl FormerRow {
    /// What to do about it, in words.
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
    fn what_is_gone_is_not_here_and_its_successor_is() {
        assert!(FORMER.windows(2).all(|pair| pair[0].name < pair[1].name));
        for row in FORMER {
            assert!(value::row(row.name).is_none(), "{} is here: remove its row", row.name);
            assert_ne!(row.successor.is_empty(), row.instead.is_empty(), "{}", row.name);
            assert!(row.successor.is_empty() || value::row(row.successor).is_some(), "{}", row.successor);
        }
    }
}
