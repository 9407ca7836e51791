//! Every parameter, and every bit of one, either has an effect or is documented as having none:
//! each is read by the file named here, or marked as accepted only. The accepted values are
//! compared with Varnish.

use crate::daemon::{Daemon, eventually, free_port, needs};
use crate::layers::root;
use cli_proto::client::{ClientEvent, ClientSession, answer_line, command_line};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use surface::parameter::{
    ACCEPTED_ONLY, COMPILER_BITS, COPAL, DEBUG_BITS, EXPERIMENTAL_BITS, FEATURE_BITS, PARAMETERS, ParameterKind,
};

/// Files that read each parameter.
const READERS: &[(&str, &str)] = &[
    ("alt_svc_max_age", "engine/src/request/alt_svc.rs"),
    ("alt_svc_port", "engine/src/request/alt_svc.rs"),
    ("acceptor_sleep_decay", "net/src/accept.rs"),
    ("acceptor_sleep_incr", "net/src/accept.rs"),
    ("acceptor_sleep_max", "net/src/accept.rs"),
    ("auto_restart", "manager/src/life.rs"),
    ("backend_close_notify", "engine/src/fetch/response.rs"),
    ("expect_continue_timeout", "engine/src/fetch/transmit.rs"),
    ("backend_dns_ttl", "backend/src/follow.rs"),
    ("backend_error_reasons", "engine/src/fetch/failure.rs"),
    ("backend_follow_dns", "manager/src/compile.rs"),
    ("backend_idle_timeout", "worker/src/event_loop.rs"),
    ("backend_local_error_holddown", "backend/src/backend.rs"),
    ("backend_remote_error_holddown", "backend/src/backend.rs"),
    ("backend_wait_limit", "backend/src/backend.rs"),
    ("backend_wait_timeout", "backend/src/backend.rs"),
    ("ban_any_variant", "cache/src/parameters.rs"),
    ("ban_cutoff", "cache/src/ban/lurker.rs"),
    ("ban_dups", "cache/src/ban.rs"),
    ("ban_lurker_age", "cache/src/parameters.rs"),
    ("ban_lurker_batch", "cache/src/parameters.rs"),
    ("ban_lurker_holdoff", "cache/src/parameters.rs"),
    ("ban_lurker_sleep", "cache/src/parameters.rs"),
    ("between_bytes_timeout", "engine/src/fetch/send.rs"),
    ("cache_control_targets", "engine/src/fetch/cacheability.rs"),
    ("brotli_level", "body/src/filter/brotli.rs"),
    ("cache_status", "engine/src/request/task.rs"),
    ("cache_status_name", "engine/src/request/cache_status.rs"),
    ("cli_limit", "manager/src/cli_server.rs"),
    ("cli_timeout", "manager/src/state.rs"),
    ("client_half_close", "engine/src/request/task.rs"),
    ("clock_skew", "engine/src/fetch/response.rs"),
    ("compress_after", "engine/src/request/task.rs"),
    ("compress_cpu", "engine/src/copies.rs"),
    ("connect_timeout", "backend/src/open.rs"),
    ("debug", "worker/src/configure.rs"),
    ("default_grace", "engine/src/fetch/response.rs"),
    ("default_keep", "engine/src/fetch/response.rs"),
    ("default_ttl", "engine/src/fetch/response.rs"),
    ("drain_timeout", "worker/src/stopping.rs"),
    ("esi_fragments_max", "engine/src/request/fragment.rs"),
    ("esi_parallel", "surface/src/parameter.rs"),
    ("event_loops", "manager/src/life.rs"),
    ("eviction_policy", "cache/src/lib.rs"),
    ("feature", "engine/src/world/messages.rs"),
    ("first_byte_timeout", "engine/src/fetch/send.rs"),
    ("fleet_history", "manager/src/fleet.rs"),
    ("fleet_join_timeout", "manager/src/fleet.rs"),
    ("fleet_lost_after", "manager/src/fleet.rs"),
    ("fleet_lost_ttl", "engine/src/request/receive.rs"),
    ("fleet_when_lost", "manager/src/fleet.rs"),
    ("gzip_level", "body/src/filter/gzip.rs"),
    ("h2_extended_connect", "engine/src/transport/http2/settings.rs"),
    ("h2_header_table_size", "engine/src/transport/http2/settings.rs"),
    ("h2_initial_window_size", "engine/src/transport/http2/settings.rs"),
    ("h2_max_concurrent_streams", "engine/src/transport/http2/settings.rs"),
    ("h2_max_frame_size", "engine/src/transport/http2/settings.rs"),
    ("h2_max_header_list_size", "engine/src/transport/http2/settings.rs"),
    ("h2_rapid_reset", "http2/src/resets.rs"),
    ("h2_rapid_reset_limit", "http2/src/resets.rs"),
    ("h2_rapid_reset_period", "http2/src/resets.rs"),
    ("h2_rx_window_increment", "engine/src/transport/http2/settings.rs"),
    ("h2_rx_window_low_water", "engine/src/transport/http2/settings.rs"),
    ("h2_window_timeout", "engine/src/transport/http2/lane.rs"),
    ("http_encodings", "engine/src/request/task.rs"),
    ("http_forwarded", "engine/src/forwarded.rs"),
    ("http_gzip_support", "engine/src/request/task.rs"),
    ("http_max_hdr", "engine/src/request/task.rs"),
    ("http_policy", "manager/src/compile.rs"),
    ("http_range_support", "engine/src/request/task.rs"),
    ("http_req_hdr_len", "engine/src/request/task.rs"),
    ("http_req_size", "engine/src/request/task.rs"),
    ("http_request_directives", "engine/src/request/task.rs"),
    ("http_resp_hdr_len", "engine/src/fetch/response.rs"),
    ("http_resp_size", "engine/src/fetch/response.rs"),
    ("idle_send_timeout", "engine/src/request/task.rs"),
    ("last_byte_timeout", "engine/src/fetch/send.rs"),
    ("leak_guard", "surface/src/parameter.rs"),
    ("listen_depth", "manager/src/life.rs"),
    ("lru_interval", "cache/src/lookup.rs"),
    ("max_esi_depth", "engine/src/request/fragment.rs"),
    ("max_restarts", "engine/src/request/restart.rs"),
    ("max_retries", "engine/src/fetch/response.rs"),
    ("max_vcl", "manager/src/commands/vcl.rs"),
    ("max_vcl_handling", "manager/src/commands/vcl.rs"),
    ("no_vary_search", "engine/src/request/task.rs"),
    ("partial_leniency", "engine/src/fetch/part.rs"),
    ("pcre2_depth_limit", "engine/src/loaded_vcl.rs"),
    ("pcre2_jit_compilation", "engine/src/loaded_vcl.rs"),
    ("pcre2_match_limit", "engine/src/loaded_vcl.rs"),
    ("ping_interval", "manager/src/life.rs"),
    ("pipe_sess_max", "engine/src/request/pipe.rs"),
    ("pipe_task_deadline", "engine/src/request/pipe.rs"),
    ("pipe_timeout", "engine/src/request/pipe.rs"),
    ("pool_req", "worker/src/event_loop.rs"),
    ("prefer_ipv6", "backend/src/open.rs"),
    ("request_memory_max", "engine/src/request/task.rs"),
    ("requests_memory_max", "engine/src/context.rs"),
    ("rush_exponent", "cache/src/busy.rs"),
    ("send_timeout", "engine/src/request/task.rs"),
    ("shortlived", "engine/src/fetch/storage.rs"),
    ("slice_bytes", "engine/src/request/task.rs"),
    ("storage_demote", "cache/src/demotion.rs"),
    ("storage_placement", "engine/src/storages/files.rs"),
    ("storage_promote_bytes", "engine/src/promotion.rs"),
    ("storage_promote_hits", "engine/src/promotion.rs"),
    ("storage_small_bytes", "engine/src/storages/files.rs"),
    ("store_set_cookie", "engine/src/fetch/cacheability.rs"),
    ("syslog_cli_traffic", "manager/src/cli_server.rs"),
    ("tcp_fastopen", "manager/src/life.rs"),
    ("tcp_keepalive_intvl", "net/src/accepted.rs"),
    ("tcp_keepalive_probes", "net/src/accepted.rs"),
    ("tcp_keepalive_time", "net/src/accepted.rs"),
    ("timeout_idle", "engine/src/transport/http1.rs"),
    ("tls_handshake_timeout", "net/src/handshake.rs"),
    ("tls_ja3", "net/src/accept.rs"),
    ("timeout_linger", "engine/src/transport/http1.rs"),
    ("tls_err_dup_servername", "manager/src/tls/open.rs"),
    ("tls_file_poll", "manager/src/tls/reload.rs"),
    ("transit_buffer", "engine/src/fetch/storage.rs"),
    ("trusted_fronts", "engine/src/forwarded.rs"),
    ("uncacheable_ttl", "engine/src/world/param.rs"),
    ("unknown_transfer_encoding", "engine/src/fetch/response.rs"),
    ("unsized_body_share", "cache/src/lib.rs"),
    ("vary_language_order", "engine/src/request/task.rs"),
    ("vary_language_select", "engine/src/request/task.rs"),
    ("vary_notice", "engine/src/request/lookup.rs"),
    ("waiting_requests_max", "engine/src/request/task.rs"),
    ("waiting_timeout", "engine/src/request/task.rs"),
    ("vcc_err_unref", "manager/src/compile.rs"),
    ("vcc_feature", "surface/src/parameter/value.rs"),
    ("vcc_unsafe_path", "manager/src/compile.rs"),
    ("vcl_cooldown", "worker/src/vcl_control.rs"),
    ("vcl_path", "manager/src/compile.rs"),
    ("vsl_buffer", "shm/src/log.rs"),
    ("vsl_mask", "worker/src/configure.rs"),
    ("trace_context", "engine/src/request/accept.rs"),
    ("vsl_reasons", "surface/src/parameter.rs"),
    ("vsl_reclen", "shm/src/log.rs"),
    ("vsl_space", "worker/src/configure.rs"),
    ("zstd_level", "body/src/filter/zstd.rs"),
];

/// True if a file of that crate path reads the field.
fn reads(path: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(root().join("crates").join(path)).unwrap_or_default();
    let field = format!(".{name}");
    text.match_indices(&field)
        .any(|(at, _)| !text[at + field.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_'))
}

#[test]
fn every_parameter_acts_in_the_listed_file_or_is_marked() {
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

/// Files that read each bit of `debug` and `feature`, by the name of its constant.
const BIT_READERS: &[(&str, &str)] = &[
    ("debug::REQ_STATE", "engine/src/request.rs"),
    ("debug::WAITINGLIST", "engine/src/request/lookup.rs"),
    ("debug::SYNCVSL", "worker/src/configure.rs"),
    ("debug::VCLREL", "worker/src/vcl_control.rs"),
    ("debug::LURKER", "cache/src/parameters.rs"),
    ("debug::FLUSH_HEAD", "engine/src/request/transmit.rs"),
    ("debug::VTC_MODE", "manager/src/state.rs"),
    ("debug::VSM_KEEP", "manager/src/state.rs"),
    ("debug::SLOW_ACCEPTOR", "net/src/accept.rs"),
    ("debug::PROCESSORS", "engine/src/bodies/filters.rs"),
    ("feature::HTTP2", "engine/src/transport/http1.rs"),
    ("feature::SHORT_PANIC", "worker/src/configure.rs"),
    ("feature::NO_COREDUMP", "worker/src/configure.rs"),
    ("feature::HTTP_DATE_POSTEL", "semantics/src/date.rs"),
    ("debug::ESI_CHOP", "body/src/filter/esi.rs"),
    ("feature::ESI_IGNORE_HTTPS", "body/src/filter/esi.rs"),
    ("feature::ESI_DISABLE_XML_CHECK", "body/src/filter/esi.rs"),
    ("feature::ESI_IGNORE_OTHER_ELEMENTS", "body/src/filter/esi.rs"),
    ("feature::ESI_REMOVE_BOM", "body/src/filter/esi.rs"),
    ("feature::ESI_INCLUDE_ONERROR", "engine/src/request/page.rs"),
    ("feature::VALIDATE_HEADERS", "engine/src/world/messages.rs"),
    ("compiler::ERR_UNREF", "surface/src/parameter/value.rs"),
    ("compiler::UNSAFE_PATH", "surface/src/parameter/value.rs"),
];

#[test]
fn every_bit_acts_in_the_listed_file_or_is_marked() {
    let sets = [
        ("debug", DEBUG_BITS),
        ("feature", FEATURE_BITS),
        ("experimental", EXPERIMENTAL_BITS),
        ("compiler", COMPILER_BITS),
    ];
    let bits = sets.iter().flat_map(|(set, rows)| {
        rows.iter().map(move |row| (format!("{set}::{}", row.name.to_ascii_uppercase()), row.is_accepted_only))
    });
    let bits: Vec<(String, bool)> = bits.collect();
    for (bit, is_marked) in &bits {
        match BIT_READERS.iter().find(|(name, _)| name == bit) {
            Some(_) if *is_marked => panic!("{bit} is marked as without effect, and has a reader"),
            Some((_, path)) => {
                let text = std::fs::read_to_string(root().join("crates").join(path)).unwrap_or_default();
                assert!(text.contains(bit), "{bit} is not read in {path}");
            }
            None => assert!(is_marked, "{bit} is read nowhere, and not marked"),
        }
    }
    for (name, _) in BIT_READERS {
        assert!(bits.iter().any(|(bit, _)| bit == name), "{name} is no bit");
    }
}

/// A CLI connection over TCP, for many commands.
struct Cli {
    stream: TcpStream,
    session: ClientSession,
}

impl Cli {
    fn connect(port: u16, secret: &[u8]) -> Cli {
        let stream = eventually("the CLI answers", || TcpStream::connect(("127.0.0.1", port)).ok());
        let mut cli = Cli { stream, session: ClientSession::new(1 << 20) };
        loop {
            match cli.event() {
                ClientEvent::Challenge(challenge) => cli.send(&answer_line(&challenge, secret)),
                ClientEvent::Ready(_) => return cli,
                other => panic!("{other:?}"),
            }
        }
    }

    fn send(&mut self, line: &str) {
        self.stream.write_all(line.as_bytes()).unwrap();
    }

    fn event(&mut self) -> ClientEvent {
        let mut buffer = [0; 4096];
        loop {
            if let Some(event) = self.session.next().unwrap() {
                return event;
            }
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the CLI closed");
            self.session.push(&buffer[..count]);
        }
    }

    fn ask(&mut self, words: &[&str]) -> (u16, String) {
        self.send(&command_line(words));
        match self.event() {
            ClientEvent::Reply(response) => (response.status, response.body),
            other => panic!("{other:?}"),
        }
    }

    /// The value of a parameter as shown; empty if there is none.
    fn shown(&mut self, name: &str) -> String {
        let (_, text) = self.ask(&["param.show", name]);
        text.lines().nth(1).unwrap_or_default().trim().to_owned()
    }
}

/// Values for every parameter: valid for its kind, for other kinds, and for none.
const VALUES: &[&str] = &[
    "x",
    "-1",
    "0",
    "1",
    "2",
    "10",
    "10s",
    "30 s",
    "1.5",
    ".5",
    "5.",
    "+5",
    "0x10",
    "010",
    "1k",
    "1 KB",
    "1kb",
    "1.5M",
    "1.5 MB",
    "1G",
    "1E",
    "1kk",
    "1.0001k",
    "1.3",
    "0.3k",
    "unlimited",
    "UNLIMITED",
    "never",
    "default",
    "on",
    "OFF",
    "true",
    "yes",
    "enable",
    "disable",
    "maybe",
    "+foo",
    "all",
    "-1k",
    "10,100,10",
    "1,2",
    "1,2,3,4",
    "10, 20 ,5",
    "a,b,c",
    "10,5,1",
    "10,100,1000001",
    "10 100 10",
    "+vclrel",
    "vclrel",
    "+vclrel , +lurker",
    "+http2,",
    "+Debug",
    "-Debug",
    "Debug",
    "+ObjX",
    "nan",
    "inf",
    "Transient",
    "s0",
    "128b",
    "127",
    "16",
    "99999",
    "1 1",
];

/// Intentional difference: ours refuses values that Varnish silently takes for another number of
/// seconds, and accepts the words of later versions for sets of bits.
fn differs_on_purpose(kind: ParameterKind, value: &str) -> bool {
    let is_whole = match kind {
        ParameterKind::DebugBits | ParameterKind::FeatureBits | ParameterKind::ExperimentalBits => value == "all",
        ParameterKind::LogMask => matches!(value, "all" | "none"),
        _ => false,
    };
    if is_whole {
        return true;
    }
    let number: String = value.chars().take_while(|c| c.is_ascii_digit() || ".-".contains(*c)).collect();
    let is_number = number.contains(|c: char| c.is_ascii_digit());
    let behind = value[number.len()..].trim();
    matches!(kind, ParameterKind::Seconds | ParameterKind::Double)
        && is_number
        && !["", "s", "sec", "secs", "second", "seconds"].contains(&behind)
}

#[test]
fn replies_to_values_of_every_kind_are_those_of_varnish() {
    let Some(varnishd) = needs("varnishd") else { return };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "of this test\n").unwrap();
    let ports = [free_port(), free_port()];
    let addresses = ports.map(|port| format!("127.0.0.1:{port}"));
    let arguments = |address| ["-b", "127.0.0.1:1", "-T", address, "-S", secret.to_str().unwrap()];
    let stock = Daemon::start_stock(&varnishd, &arguments(&addresses[0]));
    let ours = Daemon::start(&arguments(&addresses[1]));
    let [mut theirs, mut own] = ports.map(|port| Cli::connect(port, b"of this test\n"));
    let mut differences = Vec::new();
    for row in PARAMETERS.iter().filter(|row| row.flags & COPAL == 0 && !row.name.starts_with("cc_")) {
        for value in VALUES.iter().filter(|value| !differs_on_purpose(row.kind, value)) {
            if (row.name, *value) == ("cli_limit", "default") {
                // There are more parameters to list.
                continue;
            }
            let set = ["param.set", row.name, value];
            let (expected, is) = (theirs.ask(&set), own.ask(&set));
            let (shown_there, shown) = (theirs.shown(row.name), own.shown(row.name));
            if expected != is || (expected.0 == 200 && shown_there != shown) {
                differences.push(format!("{set:?}: {expected:?} {shown_there}, ours {is:?} {shown}"));
            }
            let reset = ["param.reset", row.name];
            if theirs.ask(&reset) != own.ask(&reset) {
                differences.push(format!("reset after {set:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    drop((stock, ours));
}
