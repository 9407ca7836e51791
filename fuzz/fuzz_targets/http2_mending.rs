//! Feeds the fuzzer's bytes to `exercises::http2::mending`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::http2::mending(bytes));
