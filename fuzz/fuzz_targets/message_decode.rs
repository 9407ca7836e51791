//! Feeds the fuzzer's bytes to `message::exercise`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| message::exercise(bytes));
