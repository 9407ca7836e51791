//! Feeds the fuzzer's bytes to `shm::exercise::exercise`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shm::exercise::exercise(bytes));
