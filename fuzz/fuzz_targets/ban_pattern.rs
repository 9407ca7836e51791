//! Feeds the fuzzer's bytes to `exercises::cache::ban_pattern`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::cache::ban_pattern(bytes));
