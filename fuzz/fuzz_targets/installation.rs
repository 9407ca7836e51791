//! Feeds the fuzzer's bytes to `exercises::preflight::installation`; the properties are documented
//! there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::preflight::installation(bytes));
