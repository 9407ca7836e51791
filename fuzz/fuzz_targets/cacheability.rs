//! Feeds the fuzzer's bytes to `exercises::cacheability::cacheability`; the properties are
//! documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::cacheability::cacheability(bytes));
