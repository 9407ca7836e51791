//! Replay of the corpus: former findings stay fixed, and the seeds satisfy the properties.

use exercises::{
    body, cache, cacheability, cli_proto, fleet, http1, http2, http3, load, message, order, preflight, proxy_protocol,
    semantics, shm, store, tls, tls_file, tools, vcl, vcl_cases, vtc,
};
use std::fs;
use std::path::{Path, PathBuf};

/// A path of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The contents of the files in a folder.
fn files(folder: &str) -> impl Iterator<Item = Vec<u8>> {
    let entries = fs::read_dir(repository(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap())
}

fn replay(target: &str, run: fn(&[u8])) {
    let count = files(&format!("fuzz/corpus/{target}")).map(|bytes| run(&bytes)).count();
    assert!(count > 5, "{target} has a corpus");
}

#[test]
fn every_target_has_a_corpus_that_is_replayed() {
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(repository(folder)).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<_> = entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let targets = names("fuzz/fuzz_targets");
    assert_eq!(targets, names("fuzz/corpus"));
    for target in targets {
        assert!(include_str!("corpus.rs").contains(&format!("\"{target}\"")), "nobody replays {target}");
    }
}

#[test]
fn requests_are_read_alike_after_they_were_written() {
    replay("http1_request", http1::request);
}

#[test]
fn responses_are_read_alike_after_they_were_written() {
    replay("http1_response", http1::response);
}

#[test]
fn chunked_bodies_are_read_alike_in_any_pieces() {
    replay("chunked_body", http1::chunked_body);
}

#[test]
fn a_connection_of_http2_is_judged_alike_in_any_pieces() {
    replay("http2_machine", http2::machine);
}

#[test]
fn header_blocks_read_back_as_they_were_written() {
    replay("http2_hpack", http2::hpack);
}

#[test]
fn upgraded_request_is_converted_to_frames_unchanged() {
    replay("http2_upgrade", http2::upgrade);
}

#[test]
fn an_installation_is_judged_alike_in_text_and_in_json() {
    replay("installation", preflight::installation);
}

#[test]
fn every_line_of_an_access_log_is_counted_once() {
    replay("access_log", tools::access_log);
}

#[test]
fn an_answer_to_load_is_what_it_says_or_a_failure() {
    replay("load_answer", load::answer);
}

#[test]
fn a_pem_file_gives_certificates_or_a_message_without_its_secrets() {
    replay("pem", tls::pem);
}

#[test]
fn a_response_of_ocsp_is_good_for_the_certificate_that_it_names() {
    replay("staple", tls::staple);
}

#[test]
fn a_fingerprint_does_not_depend_on_how_the_message_is_cut() {
    replay("ja3", tls::hello);
}

#[test]
fn a_tls_file_is_the_same_when_written_out_and_read_again() {
    replay("tls_file", tls_file::tls_file);
}

#[test]
fn no_range_leads_out_of_a_body_and_no_part_is_what_it_is_not() {
    replay("ranges", semantics::ranges);
}

#[test]
fn no_headers_lead_out_of_a_body_or_into_a_wrong_variant() {
    replay("http_headers", semantics::headers);
}

#[test]
fn no_headers_give_an_endless_lifetime_or_share_a_secret() {
    replay("cacheability", cacheability::cacheability);
}

#[test]
fn a_gzipped_body_is_the_same_in_any_pieces() {
    replay("gzip_body", body::gzip);
}

#[test]
fn a_page_and_its_plan_are_the_same_in_any_pieces() {
    replay("esi_parse", body::esi::parse);
}

#[test]
fn a_plan_is_written_as_it_was_read() {
    replay("esi_plan", body::esi::plan);
}

#[test]
fn a_joined_stream_unpacks_to_what_went_in() {
    replay("esi_join", body::esi::join);
}

#[test]
fn a_body_in_brotli_or_zstandard_is_the_same_in_any_pieces() {
    replay("content_encoding", body::content_encoding);
}

#[test]
fn stored_messages_are_written_as_they_were_read() {
    replay("message_decode", message::stored);
}

#[test]
fn a_proxy_header_is_the_same_in_any_pieces() {
    replay("proxy_header", proxy_protocol::proxy_header);
}

#[test]
fn no_damage_to_an_arena_keeps_it_from_being_recovered() {
    replay("arena_recovery", store::arena);
    replay("bodies_in_a_file", store::bodies);
}

#[test]
fn a_journal_is_read_or_refused_whatever_is_in_it() {
    replay("ban_journal", store::journal);
}

#[test]
fn no_message_of_a_fleet_is_accepted_without_a_key_or_changes_on_its_way() {
    replay("fleet_envelope", fleet::envelope);
}

#[test]
fn node_starts_with_any_files_and_can_write() {
    replay("fleet_files", fleet::files);
}

#[test]
fn recordings_are_read_alike_after_they_were_written() {
    replay("recording", exercises::recording::file);
}

#[test]
fn bans_keep_their_meaning_after_a_restart() {
    replay("ban_expression", cache::ban);
}

#[test]
fn a_recognised_pattern_means_what_the_library_makes_of_it() {
    replay("ban_pattern", cache::ban_pattern);
}

#[test]
fn no_command_or_reply_panics() {
    replay("cli_command", cli_proto::both_ends);
}

#[test]
fn orders_of_the_dashboard() {
    replay("order", order::order);
}

#[test]
fn no_log_ring_query_or_counter_text_panics() {
    replay("log_reader", shm::readers);
}

#[test]
fn no_format_or_log_breaks_a_line_of_json() {
    replay("line_format", tools::line_format);
}

#[test]
fn every_text_compiles_or_has_a_message() {
    replay("vcl_compile", vcl::compile);
}

#[test]
fn programs_of_the_corpus_do_what_the_naive_evaluator_does() {
    replay("vcl_run", |bytes| {
        vcl::run(bytes);
    });
}

#[test]
fn every_file_of_cases_is_read_or_has_a_message() {
    replay("vcl_cases", vcl_cases::read);
}

#[test]
fn every_text_is_formatted_or_has_a_message() {
    replay("vcl_format", vcl::format);
    replay("vcl_compile", vcl::format);
}

#[test]
fn every_text_is_migrated_or_has_a_message() {
    for corpus in ["vcl_migrate", "vcl_compile", "vcl_format"] {
        replay(corpus, vcl::migrate);
    }
}

#[test]
fn no_script_panics_the_parser() {
    replay("vtc_script", vtc::script);
    let ours = ["tests/vtc", "tests/vtc/vmod"].into_iter().flat_map(files);
    assert!(ours.map(|script| vtc::script(&script)).count() > 20, "there are scripts");
}

#[test]
fn streams_of_http3_are_the_same_in_any_pieces() {
    replay("http3_stream", http3::stream);
}

#[test]
fn blocks_of_http3_become_heads_that_may_be_there() {
    replay("http3_block", http3::block);
}

#[test]
fn frames_leave_the_test_runner_within_its_limits() {
    replay("vtc_frames", vtc::frames);
}
