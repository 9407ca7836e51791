//! Feeds the fuzzer's bytes to `exercises::fleet::files`; the properties are documented there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercises::fleet::files(bytes));
