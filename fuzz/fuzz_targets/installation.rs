//! Feeds the fuzzer's bytes to `exercises::preflight::installation`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::preflight::installation(bytes));
