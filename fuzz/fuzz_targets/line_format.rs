//! Feeds the fuzzer's bytes to `tools::exercise::line_format`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tools::exercise::line_format(bytes));
