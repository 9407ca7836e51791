//! Feeds the fuzzer's bytes to `exercises::cache::ban`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::cache::ban(bytes));
