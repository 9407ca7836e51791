//! Feeds the fuzzer's bytes to `exercises::proxy_protocol::proxy_header`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::proxy_protocol::proxy_header(bytes));
