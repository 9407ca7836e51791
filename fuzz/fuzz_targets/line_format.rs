//! Feeds the fuzzer's bytes to `exercises::tools::line_format`; the properties are documented
//! there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::tools::line_format(bytes));
