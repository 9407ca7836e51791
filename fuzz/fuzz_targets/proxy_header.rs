//! Feeds the fuzzer's bytes to `net::exercise::proxy_header`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| net::exercise::proxy_header(bytes));
