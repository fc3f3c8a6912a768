//! Answers in the words of `OpenAi`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gnoma_fuzz::llm::stream(gnoma_llm::Protocol::OpenAi, input));
