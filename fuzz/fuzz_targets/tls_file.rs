//! Feeds the fuzzer's bytes to `exercises::tls_file::tls_file`; the properties are documented
//! there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::tls_file::tls_file(bytes));
