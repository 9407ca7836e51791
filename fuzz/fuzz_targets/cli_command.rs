//! Feeds the fuzzer's bytes to `exercises::cli_proto::both_ends`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::cli_proto::both_ends(bytes));
