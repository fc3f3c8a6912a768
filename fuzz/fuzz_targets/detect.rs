//! The detectors of loops, claims and red checks.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::engine::detect(input));
