//! Text that may hide something.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::guard::unicode(input));
