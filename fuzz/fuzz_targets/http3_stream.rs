//! Feeds the fuzzer's bytes to `exercises::http3::stream`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::http3::stream(bytes));
