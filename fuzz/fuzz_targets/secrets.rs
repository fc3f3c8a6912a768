//! Text that may hold secrets.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::guard::secrets(input));
