//! Answers in the words of `Mistral`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::llm::stream(gnoma_llm::Protocol::Mistral, input));
