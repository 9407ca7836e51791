//! Feeds the fuzzer's bytes to `exercises::tools::access_log`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::tools::access_log(bytes));
