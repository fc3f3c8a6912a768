//! What comes over the socket.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::serve::protocol(input));
