//! Feeds the fuzzer's bytes to `vcl::exercise::exercise_migrate`; what must hold is said there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vcl::exercise::exercise_migrate(bytes));
