//! Every parameter does something, or says that it does not: each is read by the file named here, or marked as accepted
//! only.

use crate::layers::root;
use surface::parameter::{ACCEPTED_ONLY, PARAMETERS};

/// Where each parameter acts.
const READERS: &[(&str, &str)] = &[
    ("acceptor_sleep_decay", "net/src/accept.rs"),
    ("acceptor_sleep_incr", "net/src/accept.rs"),
    ("acceptor_sleep_max", "net/src/accept.rs"),
    ("auto_restart", "manager/src/life.rs"),
    ("backend_idle_timeout", "worker/src/event_loop.rs"),
    ("backend_local_error_holddown", "backend/src/backend.rs"),
    ("backend_remote_error_holddown", "backend/src/backend.rs"),
    ("ban_cutoff", "cache/src/ban/lurker.rs"),
    ("ban_dups", "cache/src/ban.rs"),
    ("ban_lurker_age", "cache/src/settings.rs"),
    ("ban_lurker_batch", "cache/src/settings.rs"),
    ("ban_lurker_holdoff", "cache/src/settings.rs"),
    ("ban_lurker_sleep", "cache/src/settings.rs"),
    ("between_bytes_timeout", "engine/src/fetch/send.rs"),
    ("cache_status", "engine/src/request/task.rs"),
    ("cli_limit", "manager/src/cli_server.rs"),
    ("cli_timeout", "manager/src/state.rs"),
    ("clock_skew", "engine/src/fetch/response.rs"),
    ("connect_timeout", "backend/src/open.rs"),
    ("debug", "worker/src/configure.rs"),
    ("default_grace", "engine/src/fetch/response.rs"),
    ("default_keep", "engine/src/fetch/response.rs"),
    ("default_ttl", "engine/src/fetch/response.rs"),
    ("event_loops", "manager/src/life.rs"),
    ("feature", "engine/src/session.rs"),
    ("first_byte_timeout", "engine/src/fetch/send.rs"),
    ("gzip_level", "engine/src/fetch/body.rs"),
    ("http_gzip_support", "engine/src/request/task.rs"),
    ("http_max_hdr", "engine/src/request/task.rs"),
    ("http_policy", "engine/src/fetch/response.rs"),
    ("http_range_support", "engine/src/request/task.rs"),
    ("http_req_hdr_len", "engine/src/request/task.rs"),
    ("http_req_size", "engine/src/request/task.rs"),
    ("http_resp_hdr_len", "engine/src/fetch/response.rs"),
    ("http_resp_size", "engine/src/fetch/response.rs"),
    ("idle_send_timeout", "engine/src/request/task.rs"),
    ("listen_depth", "manager/src/life.rs"),
    ("lru_interval", "cache/src/lookup.rs"),
    ("max_restarts", "engine/src/request/restart.rs"),
    ("max_retries", "engine/src/fetch/response.rs"),
    ("max_vcl", "manager/src/commands/vcl.rs"),
    ("max_vcl_handling", "manager/src/commands/vcl.rs"),
    ("pcre2_depth_limit", "engine/src/loaded_vcl.rs"),
    ("pcre2_jit_compilation", "engine/src/loaded_vcl.rs"),
    ("pcre2_match_limit", "engine/src/loaded_vcl.rs"),
    ("ping_interval", "manager/src/life.rs"),
    ("pipe_sess_max", "engine/src/request/pipe.rs"),
    ("pipe_timeout", "engine/src/request/pipe.rs"),
    ("pool_req", "worker/src/event_loop.rs"),
    ("prefer_ipv6", "backend/src/open.rs"),
    ("request_memory_max", "engine/src/request/task.rs"),
    ("rush_exponent", "cache/src/busy.rs"),
    ("send_timeout", "engine/src/request/task.rs"),
    ("shortlived", "engine/src/fetch/storage.rs"),
    ("syslog_cli_traffic", "manager/src/cli_server.rs"),
    ("tcp_fastopen", "manager/src/life.rs"),
    ("tcp_keepalive_intvl", "net/src/accept.rs"),
    ("tcp_keepalive_probes", "net/src/accept.rs"),
    ("tcp_keepalive_time", "net/src/accept.rs"),
    ("timeout_idle", "engine/src/session.rs"),
    ("timeout_linger", "engine/src/session.rs"),
    ("vary_notice", "engine/src/request/lookup.rs"),
    ("vcc_err_unref", "manager/src/compile.rs"),
    ("vcc_unsafe_path", "manager/src/compile.rs"),
    ("vcl_cooldown", "worker/src/vcl_control.rs"),
    ("vcl_path", "manager/src/compile.rs"),
    ("vsl_buffer", "shm/src/log.rs"),
    ("vsl_mask", "worker/src/configure.rs"),
    ("vsl_reasons", "surface/src/parameter.rs"),
    ("vsl_reclen", "shm/src/log.rs"),
    ("vsl_space", "worker/src/configure.rs"),
];

/// Whether a file of that crate path reads the field.
fn reads(path: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(root().join("crates").join(path)).unwrap_or_default();
    let field = format!(".{name}");
    text.match_indices(&field)
        .any(|(at, _)| !text[at + field.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_'))
}

#[test]
fn every_parameter_acts_where_the_table_says_or_is_marked() {
    for row in PARAMETERS {
        let is_marked = row.flags & ACCEPTED_ONLY != 0;
        match READERS.iter().find(|(name, _)| *name == row.name) {
            Some(_) if is_marked => panic!("{} is marked as without effect, and has a reader", row.name),
            Some((_, path)) => assert!(reads(path, row.name), "{} is not read in {path}", row.name),
            None => assert!(is_marked, "{} is read nowhere, and not marked", row.name),
        }
    }
    for (name, _) in READERS {
        assert!(PARAMETERS.iter().any(|row| row.name == *name), "{name} is no parameter");
    }
}
