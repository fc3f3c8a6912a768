//! Answers in the words of `Google`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::llm::stream(gnoma_llm::Protocol::Google, input));
