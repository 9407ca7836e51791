//! Feeds the fuzzer's bytes to `exercises::http2::machine`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::http2::machine(bytes));
