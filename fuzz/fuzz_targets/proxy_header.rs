//! Feeds the fuzzer's bytes to `exercises::proxy_protocol::proxy_header`; the properties are
//! documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::proxy_protocol::proxy_header(bytes));
