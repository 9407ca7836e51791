//! Feeds the fuzzer's bytes to `exercises::recording::file`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::recording::file(bytes));
