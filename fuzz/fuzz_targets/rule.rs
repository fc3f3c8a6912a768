//! Permission rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::guard::rule(input));
