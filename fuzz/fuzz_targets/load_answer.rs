//! Feeds the fuzzer's bytes to `exercises::load::answer`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::load::answer(bytes));
