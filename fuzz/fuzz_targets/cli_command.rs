//! Feeds the fuzzer's bytes to `exercises::cli_proto::both_ends`; the properties are documented
//! there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::cli_proto::both_ends(bytes));
