//! Feeds the fuzzer's bytes to `exercises::store::journal`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::store::journal(bytes));
