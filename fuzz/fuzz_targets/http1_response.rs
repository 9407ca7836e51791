//! Feeds the fuzzer's bytes to `exercises::http1::response`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::http1::response(bytes));
