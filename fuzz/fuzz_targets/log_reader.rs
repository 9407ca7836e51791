//! Feeds the fuzzer's bytes to `exercises::shm::readers`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::shm::readers(bytes));
