//! Feeds the fuzzer's bytes to `exercises::vtc::frames`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::vtc::frames(bytes));
