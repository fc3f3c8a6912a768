//! What the measuring programs share: streams and conversations to measure with, and
//! the form in which figures are printed.
//!
//! `bench/run` builds and runs them all; `bench/README.md` says what each figure means. The programs
//! print and compare with a goal, they assert nothing about time: machines differ.

pub mod clock;
pub mod conversation;
pub mod reading;
pub mod report;
pub mod stream;

use gnoma_llm::Protocol;

/// The wires that are measured, with their names in the tables.
pub const PROTOCOLS: [(&str, Protocol); 6] = [
    ("mistral", Protocol::Mistral),
    ("anthropic", Protocol::Anthropic),
    ("openai chat", Protocol::OpenAi),
    ("openai responses", Protocol::Responses),
    ("google", Protocol::Google),
    ("ollama", Protocol::Ollama),
];

/// The protocol called `name` in the tables.
///
/// # Errors
/// When there is none.
pub fn find_protocol(name: &str) -> anyhow::Result<Protocol> {
    let found = PROTOCOLS.iter().find(|(known, _)| *known == name);
    let (_, protocol) = found.ok_or_else(|| anyhow::anyhow!("there is no protocol `{name}`"))?;
    Ok(*protocol)
}
