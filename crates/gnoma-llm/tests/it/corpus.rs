//! The corpus of the fuzz targets that read what servers send.

#[expect(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/llm.rs"]
mod bodies;
#[path = "../../../../fuzz/src/corpus.rs"]
mod inputs;

use std::path::Path;

use gnoma_llm::Protocol;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

fn streams(target: &str, protocol: Protocol) {
    inputs::run(&Path::new(CORPUS).join(target), |input| bodies::stream(protocol, input));
}

#[test]
fn framing() {
    inputs::run(&Path::new(CORPUS).join("framing"), bodies::framing);
}

#[test]
fn mistral() {
    streams("stream_mistral", Protocol::Mistral);
}

#[test]
fn anthropic() {
    streams("stream_anthropic", Protocol::Anthropic);
}

#[test]
fn openai() {
    streams("stream_openai", Protocol::OpenAi);
}

#[test]
fn responses() {
    streams("stream_responses", Protocol::Responses);
}

#[test]
fn google() {
    streams("stream_google", Protocol::Google);
}

#[test]
fn ollama() {
    streams("stream_ollama", Protocol::Ollama);
}
