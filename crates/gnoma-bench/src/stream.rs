//! Answers of many small text deltas, in each vendor's form.
//!
//! The records carry the fields that the vendors send today, padding and repeated ids included:
//! throughput in bytes is only worth something on records of real shape. The words are made up.

use std::fmt::Write as _;

use gnoma_llm::Protocol;
use serde_json::json;

/// A delta that ends a line comes this often: its line break is escaped in JSON, and that is slower
/// to read than plain words.
const DELTAS_PER_LINE: usize = 12;
/// Words in a delta of Google's, which come in larger pieces than others'.
const GOOGLE_WORDS: usize = 8;
/// Padding that hides the length of a delta from those who watch the encrypted line.
const PADDING: &str = "aZ3kQ9xLm2Vt7RcY";

/// An answer as it would arrive.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The bytes of the answer, without HTTP's framing.
    pub bytes: Vec<u8>,
    /// The number of text deltas in the answer.
    pub deltas: usize,
}

/// The kind of text in an answer: with or without line breaks in its deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prose {
    /// As models write: some deltas hold a line break.
    Lines,
    /// Plain text in which no character needs escaping.
    Flat,
}

/// An answer of `deltas` text deltas.
#[must_use]
pub fn generate_answer(protocol: Protocol, deltas: usize, prose: Prose) -> Answer {
    let mut out = String::new();
    let mut words = Words { seed: 7, prose };
    match protocol {
        Protocol::Mistral => write_mistral_stream(&mut out, deltas, &mut words),
        Protocol::Anthropic => write_anthropic_stream(&mut out, deltas, &mut words),
        Protocol::OpenAi => write_chat_stream(&mut out, deltas, &mut words),
        Protocol::Responses => write_responses_stream(&mut out, deltas, &mut words),
        Protocol::Google => write_google_stream(&mut out, deltas, &mut words),
        Protocol::Ollama => write_ollama_stream(&mut out, deltas, &mut words),
    }
    Answer { bytes: out.into_bytes(), deltas }
}

/// Words of one to nine letters, the same in every run.
struct Words {
    seed: u64,
    prose: Prose,
}

impl Words {
    /// A number from the sequence of Knuth's MMIX generator.
    fn next_random(&mut self) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    /// The text of the delta at `nth`, as it stands between JSON's quotes.
    fn generate_delta(&mut self, nth: usize, words: usize) -> String {
        let mut text = String::new();
        for _ in 0..words {
            text.push(' ');
            for _ in 0..=self.next_random() % 9 {
                let letter = b'a' + u8::try_from(self.next_random() % 26).unwrap_or_default();
                text.push(char::from(letter));
            }
        }
        if self.prose == Prose::Lines && nth % DELTAS_PER_LINE == DELTAS_PER_LINE - 1 {
            text.push_str("\\n");
        }
        text
    }

    fn random_padding(&mut self) -> &'static str {
        let length = usize::try_from(self.next_random()).unwrap_or_default() % PADDING.len();
        &PADDING[..length]
    }
}

/// Appends formatted text; memory does not refuse.
macro_rules! say {
    ($out:expr, $($arg:tt)*) => {
        let _infallible = write!($out, $($arg)*);
    };
}

fn write_anthropic_stream(out: &mut String, deltas: usize, words: &mut Words) {
    let event = |out: &mut String, kind: &str, data: &str| {
        say!(out, "event: {kind}\ndata: {{\"type\":\"{kind}\"{data}}}\n\n");
    };
    event(
        out,
        "message_start",
        r#","message":{"id":"msg_01Hq7WcBz4T9pXnE2uYdKsRv","type":"message","role":"assistant","model":"claude-sonnet-4-6","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1520,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}"#,
    );
    let block = r#","index":0,"content_block":{"type":"text","text":""}"#;
    event(out, "content_block_start", block);
    event(out, "ping", "");
    for nth in 0..deltas {
        let text = words.generate_delta(nth, 1);
        let spaces = words.random_padding().len();
        let data =
            format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}{:spaces$}"#, "");
        event(out, "content_block_delta", &data);
    }
    event(out, "content_block_stop", r#","index":0"#);
    let end = r#","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9000}"#;
    event(out, "message_delta", end);
    event(out, "message_stop", "");
}

fn write_mistral_stream(out: &mut String, deltas: usize, words: &mut Words) {
    let head = r#""id":"4f9d27c1be3a4d6a8b0e51c2d7f64a90","object":"chat.completion.chunk","created":1784620685,"model":"mistral-large-latest""#;
    for nth in 0..deltas {
        let (text, padding) = (words.generate_delta(nth, 1), words.random_padding());
        say!(
            out,
            r#"data: {{{head},"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}],"p":"{padding}"}}"#
        );
        out.push_str("\n\n");
    }
    say!(
        out,
        r#"data: {{{head},"choices":[{{"index":0,"delta":{{"content":""}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1520,"total_tokens":10520,"completion_tokens":9000}}}}"#
    );
    out.push_str("\n\ndata: [DONE]\n\n");
}

fn write_chat_stream(out: &mut String, deltas: usize, words: &mut Words) {
    let head = r#""id":"chatcmpl-F2mQx8LkT0vWbN6yRzHcJ4uEsA9dP","object":"chat.completion.chunk","created":1785367846,"model":"gpt-5.4-2026-03-05","service_tier":"default","system_fingerprint":null"#;
    let record = |out: &mut String, delta: &str, finish: &str, padding: &str| {
        say!(
            out,
            r#"data: {{{head},"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}],"usage":null,"obfuscation":"{padding}"}}"#
        );
        out.push_str("\n\n");
    };
    let start = r#"{"role":"assistant","content":"","refusal":null}"#;
    record(out, start, "null", words.random_padding());
    for nth in 0..deltas {
        let delta = format!(r#"{{"content":"{}"}}"#, words.generate_delta(nth, 1));
        record(out, &delta, "null", words.random_padding());
    }
    record(out, "{}", r#""stop""#, words.random_padding());
    say!(
        out,
        r#"data: {{{head},"choices":[],"usage":{{"prompt_tokens":1520,"completion_tokens":9000,"total_tokens":10520}}}}"#
    );
    out.push_str("\n\ndata: [DONE]\n\n");
}

fn write_responses_stream(out: &mut String, deltas: usize, words: &mut Words) {
    let mut sequence = 0_usize;
    let mut event = |out: &mut String, kind: &str, data: &str| {
        say!(
            out,
            "event: {kind}\ndata: {{\"type\":\"{kind}\",{data},\"sequence_number\":{sequence}}}\n\n"
        );
        sequence += 1;
    };
    let item = "msg_06bfd4b24e2000110169fb7ce27ed4819da8cca0fe807cad2b";
    event(out, "response.created", &response_field("in_progress", ""));
    let message = |status: &str, content: &str| {
        format!(
            r#"{{"id":"{item}","type":"message","status":"{status}","content":[{content}],"role":"assistant"}}"#
        )
    };
    let part = |text: &str| {
        format!(r#"{{"type":"output_text","annotations":[],"logprobs":[],"text":"{text}"}}"#)
    };
    let begun = format!(r#""item":{},"output_index":0"#, message("in_progress", ""));
    event(out, "response.output_item.added", &begun);
    let place = format!(r#""content_index":0,"item_id":"{item}","output_index":0"#);
    let begun = format!(r#"{place},"part":{}"#, part(""));
    event(out, "response.content_part.added", &begun);
    let mut whole = String::new();
    for nth in 0..deltas {
        let (text, padding) = (words.generate_delta(nth, 1), words.random_padding());
        whole.push_str(&text);
        let data = format!(
            r#""content_index":0,"delta":"{text}","item_id":"{item}","logprobs":[],"obfuscation":"{padding}","output_index":0"#
        );
        event(out, "response.output_text.delta", &data);
    }
    // The whole text comes four times more.
    let done = format!(r#"{place},"logprobs":[],"text":"{whole}""#);
    event(out, "response.output_text.done", &done);
    let done = format!(r#"{place},"part":{}"#, part(&whole));
    event(out, "response.content_part.done", &done);
    let message = message("completed", &part(&whole));
    let done = format!(r#""item":{message},"output_index":0"#);
    event(out, "response.output_item.done", &done);
    event(out, "response.completed", &response_field("completed", &message));
}

/// Returns the field with the response of this status, whose output is JSON.
fn response_field(status: &str, output: &str) -> String {
    format!(
        r#""response":{{"id":"resp_06bfd4b24e200011","object":"response","created_at":1785367846,"status":"{status}","error":null,"incomplete_details":null,"model":"gpt-5.5","output":[{output}],"usage":{{"input_tokens":1520,"input_tokens_details":{{"cached_tokens":0}},"output_tokens":9000,"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":10520}}}}"#
    )
}

fn write_google_stream(out: &mut String, deltas: usize, words: &mut Words) {
    for nth in 0..deltas {
        let text = words.generate_delta(nth, GOOGLE_WORDS);
        let finish = if nth + 1 == deltas { r#","finishReason": "STOP""# } else { "" };
        let tokens = 10 * (nth + 1);
        say!(
            out,
            r#"data: {{"candidates": [{{"content": {{"parts": [{{"text": "{text}"}}],"role": "model"}}{finish},"index": 0}}],"usageMetadata": {{"promptTokenCount": 1520,"candidatesTokenCount": {tokens},"totalTokenCount": {},"promptTokensDetails": [{{"modality": "TEXT","tokenCount": 1520}}]}},"modelVersion": "gemini-3.5-flash","responseId": "kT0vWbN6yRzHcJ4uEsA9dPq"}}"#,
            1520 + tokens
        );
        out.push_str("\r\n\r\n");
    }
}

fn write_ollama_stream(out: &mut String, deltas: usize, words: &mut Words) {
    for nth in 0..deltas {
        let text = words.generate_delta(nth, 1);
        let micros = nth % 1_000_000;
        say!(
            out,
            r#"{{"model":"qwen3:8b","created_at":"2026-08-07T06:08:23.{micros:06}Z","message":{{"role":"assistant","content":"{text}"}},"done":false}}"#
        );
        out.push('\n');
    }
    let last = json!({
        "model": "qwen3:8b",
        "created_at": "2026-08-07T06:08:59.616944Z",
        "message": {"role": "assistant", "content": ""},
        "done": true,
        "done_reason": "stop",
        "total_duration": 36_000_000_000_u64,
        "prompt_eval_count": 1520,
        "eval_count": deltas,
    });
    say!(out, "{last}\n");
}
