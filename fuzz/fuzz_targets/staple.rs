//! Feeds the fuzzer's bytes to `exercises::tls::staple`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::tls::staple(bytes));
