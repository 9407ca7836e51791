//! Feeds the fuzzer's bytes to `exercises::vcl::migrate`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::vcl::migrate(bytes));
