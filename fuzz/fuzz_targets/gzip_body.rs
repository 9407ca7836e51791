//! Feeds the fuzzer's bytes to `exercises::body::gzip`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::body::gzip(bytes));
