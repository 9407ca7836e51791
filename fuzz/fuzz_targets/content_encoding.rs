//! Feeds the fuzzer's bytes to `exercises::body::content_encoding`; the properties are documented
//! there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::body::content_encoding(bytes));
