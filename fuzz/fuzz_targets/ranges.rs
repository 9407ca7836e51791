//! Feeds the fuzzer's bytes to `exercises::semantics::ranges`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::semantics::ranges(bytes));
