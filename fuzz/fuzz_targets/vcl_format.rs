//! Feeds the fuzzer's bytes to `exercises::vcl::format`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::vcl::format(bytes));
