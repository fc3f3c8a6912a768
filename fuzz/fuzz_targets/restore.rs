//! Arguments of calls that hold placeholders.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::guard::restore(input));
