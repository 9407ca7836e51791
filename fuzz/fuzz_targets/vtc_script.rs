//! Feeds the fuzzer's bytes to `exercises::vtc::script`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::vtc::script(bytes));
