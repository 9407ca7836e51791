//! Feeds the fuzzer's bytes to `cli_proto::exercise`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cli_proto::exercise(bytes));
