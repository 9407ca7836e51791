//! Feeds the fuzzer's bytes to `body::exercise::exercise`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::exercise::exercise(bytes));
