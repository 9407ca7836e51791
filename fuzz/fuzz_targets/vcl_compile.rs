//! Feeds the fuzzer's bytes to `exercises::vcl::compile`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::vcl::compile(bytes));
