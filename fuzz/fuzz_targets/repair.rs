//! Arguments of calls that are almost JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::engine::repair(input));
