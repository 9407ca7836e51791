//! Feeds the fuzzer's bytes to `exercises::store::arena`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::store::arena(bytes));
