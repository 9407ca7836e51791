//! Feeds the fuzzer's bytes to `exercises::tools::access_log`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::tools::access_log(bytes));
