//! Feeds the fuzzer's bytes to `store::exercise::arena`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| store::exercise::arena(bytes));
