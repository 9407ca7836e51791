//! Feeds the fuzzer's bytes to `exercises::message::stored`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::message::stored(bytes));
