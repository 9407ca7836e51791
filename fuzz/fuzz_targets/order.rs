//! Feeds the fuzzer's bytes to `exercises::order::order`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::order::order(bytes));
