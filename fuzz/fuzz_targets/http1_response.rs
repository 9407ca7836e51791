//! Feeds the fuzzer's bytes to `http1::exercise::response`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http1::exercise::response(bytes));
