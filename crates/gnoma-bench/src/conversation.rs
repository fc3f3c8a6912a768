//! A long conversation as an agent has it: a request, then rounds of words, a call and its result.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use gnoma_core::{
    CallId, Content, Message, ModelRef, ModelRequest, RawJson, StopReason, ToolSpec,
    message::{Text, Thinking, ToolCall, ToolResult},
    provider::ToolChoice,
    tool::{Access, Tier, ToolKind, TouchedResource},
};
use gnoma_llm::{Profile, Protocol, internals::Requests};

/// Bytes of text that make a token, about.
const BYTES_PER_TOKEN: usize = 4;
/// Bytes of one result: a file of some hundred lines is read in pieces of this size.
const RESULT_BYTES: usize = 4_000;
/// The text that every answer contains beside its tool call.
const WORDS: &str = "I found where the retry budget is spent. The caller passes the deadline on, so \
    the next thing to read is the module that computes it; then the fix is one line.";
const THOUGHT: &str = "The deadline is absolute in one place and relative in the other. Which of the \
    two do the tests expect? The name of the field says relative.";
const SYSTEM_BYTES: usize = 2_000;
const TOOLS: usize = 10;
const MODEL: &str = "bench-model";
const PROVIDER: &str = "bench";

/// A conversation and the connection it is sent over.
pub struct Conversation {
    requests: Requests,
    messages: Vec<Arc<Message>>,
    tools: Arc<[Arc<ToolSpec>]>,
    system: Arc<str>,
}

impl Conversation {
    /// A conversation of about `tokens` tokens, of which nothing has been sent.
    #[must_use]
    pub fn new(protocol: Protocol, tokens: usize) -> Self {
        let profile = Profile::new(PROVIDER, protocol, "http://127.0.0.1:1");
        let mut talk = Self {
            requests: Requests::new(profile),
            messages: vec![Arc::new(Message::user_text("Find out why retries stop too early."))],
            tools: (0..TOOLS).map(build_tool_spec).collect(),
            system: "Be brief. ".repeat(SYSTEM_BYTES / 10).into(),
        };
        let rounds = tokens * BYTES_PER_TOKEN / (RESULT_BYTES + WORDS.len() + THOUGHT.len());
        for _ in 0..rounds {
            talk.add_round();
        }
        talk
    }

    /// One round more: an answer with a call, and the call's result.
    pub fn add_round(&mut self) {
        let round = self.messages.len() / 2;
        let arguments = format!(r#"{{"path":"src/retry/part_{round}.rs","offset":{round}}}"#);
        let arguments = RawJson::parse(arguments).unwrap_or_else(|_| RawJson::empty_object());
        let call = ToolCall::new(CallId::new(format!("c{round:08}")), "fs.read", arguments);
        let result = ToolResult::from_text(&call, source_code(round), false);
        let answer = vec![
            Content::Thinking(Thinking {
                text: THOUGHT.to_owned(),
                signature: Some(format!("c2lnbmF0dXJl{round:08}")),
                item: None,
            }),
            Content::Text(Text { text: WORDS.to_owned(), signature: None }),
            Content::ToolCall(call),
        ];
        let origin = ModelRef { provider: PROVIDER.to_owned(), model: MODEL.to_owned() };
        let said = Message::assistant(answer, Some(origin), Some(StopReason::ToolUse));
        let done = Message::results(vec![result]);
        self.messages.extend(said.into_iter().chain(done).map(Arc::new));
    }

    /// The request of the next round.
    #[must_use]
    pub fn request(&self) -> ModelRequest {
        ModelRequest {
            model: MODEL.into(),
            system: Arc::clone(&self.system),
            messages: self.messages.clone(),
            tools: Arc::clone(&self.tools),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: Some(8_192),
            temperature: None,
            effort: None,
            context_window: None,
            format: None,
            thinking: None,
        }
    }

    /// The body that would be sent for `request`.
    #[must_use]
    pub fn encode(&self, request: &ModelRequest) -> Vec<Bytes> {
        self.requests.encode_body(request)
    }
}

/// Returns how many bytes of the request body `after` lie elsewhere in memory than those of `before`, which is
/// still held: that much was serialised anew.
#[must_use]
pub fn fresh_bytes(before: &[Bytes], after: &[Bytes]) -> usize {
    let known: HashSet<_> = before.iter().map(|piece| piece.as_ptr()).collect();
    let is_new = |piece: &&Bytes| !known.contains(&piece.as_ptr());
    after.iter().filter(is_new).map(Bytes::len).sum()
}

fn build_tool_spec(nth: usize) -> Arc<ToolSpec> {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"File, relative to the working folder."},"offset":{"type":"integer","description":"First line, counted from 1."},"limit":{"type":"integer","description":"Most lines."}},"required":["path"]}"#;
    Arc::new(ToolSpec {
        name: if nth == 0 { "fs.read".to_owned() } else { format!("tool.{nth}") },
        description: "Reads a file and gives its lines with their numbers.".to_owned(),
        parameters: RawJson::parse(schema).unwrap_or_else(|_| RawJson::empty_object()),
        access: Access::Read,
        touches: [TouchedResource::path("path")].into(),
        kind: ToolKind::Other,
        tier: Tier::Lean,
    })
}

/// Returns text that looks like numbered source code, with quotes, tabs and line breaks, which JSON escapes.
fn source_code(round: usize) -> String {
    let mut text = String::with_capacity(RESULT_BYTES + 80);
    let mut line = 1;
    while text.len() < RESULT_BYTES {
        let number = round * 100 + line;
        text.push_str(&format!(
            "{line:>5}\t\tlet delay_{number} = backoff.next(\"attempt {number}\", &budget)?;\n"
        ));
        line += 1;
    }
    text
}
