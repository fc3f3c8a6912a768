//! Answers in the words of `Protocol::Responses`.

#![no_main]

use gnoma_fuzz::llm::stream;
use gnoma_llm::Protocol;

libfuzzer_sys::fuzz_target!(|input: &[u8]| stream(Protocol::Responses, input));
