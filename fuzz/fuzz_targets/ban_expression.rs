//! Feeds the fuzzer's bytes to `cache::exercise::ban`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cache::exercise::ban(bytes));
