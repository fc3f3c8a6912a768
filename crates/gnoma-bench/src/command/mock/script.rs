//! What the model server answers: OpenAI's chat, in the records of a stream. No connections here.
//!
//! | script | what it answers |
//! |---|---|
//! | `text N [WAIT]` | N text deltas, after WAIT milliseconds |
//! | `paced N RATE` | N text deltas, RATE of them in a second |
//! | `tools K [BYTES]` | K times one call of `bash`, then a text; the command prints BYTES bytes, or one line |
//! | `asked N RATE` | to a message that says `stream` N text deltas, RATE of them in a second, each the time at which it was written (microseconds since 1970); to one that says `change` a call of `sh change.sh`; else 1,000 bytes of text |
//! | `chat EVERY N` | to every message of a person N text deltas; before every EVERYth of these answers a call of `bash` |

use std::time::Duration;

use anyhow::{Result, bail};
use gnoma_bench::stream::{self, Prose};
use gnoma_llm::Protocol;
use serde_json::{Value, json};

use crate::command::parse_number_argument;

/// Stands before the role of each message in a request's body.
const ROLE: &[u8] = br#""role":""#;
/// The role that marks a message as the result of a tool call.
const TOOL: &[u8] = b"tool";
/// A request that tells a conversation in fewer words offers no tools.
const TOOLS: &[u8] = br#""tools":["#;
/// The bytes that mark the result of a tool call in a request's body.
const RESULT: &[u8] = br#""role":"tool""#;
/// About how many bytes of a body make a token.
const BYTES_PER_TOKEN: usize = 4;
/// Bytes that the commands of a conversation print.
const CHAT_RESULT_BYTES: usize = 2_000;
/// The placeholder in a record for the time it is written; as long as such a time.
pub(super) const STAMP: &[u8] = b"0000000000000000";
/// Bytes of an answer that nobody asked anything special of.
const PLAIN_BYTES: usize = 1_000;
/// Deltas that make a line of such a conversation's answers.
const DELTAS_PER_LINE: usize = 12;

/// The answers of the mock server, chosen by the model name in the request.
pub(super) enum Script {
    Text { deltas: usize, wait: Duration },
    Paced { deltas: usize, between: Duration },
    Tools { rounds: usize, bytes: usize },
    LastAsk { deltas: usize, between: Duration },
    Chat { every: usize, deltas: usize, turns: usize },
}

/// One answer of the mock server.
#[derive(Default)]
pub(super) struct ScriptedReply {
    /// The time before the first byte of the answer.
    pub(super) wait: Duration,
    /// The time between two records of the answer.
    pub(super) between: Duration,
    /// Each record says in the place of [`STAMP`] when it was written.
    pub(super) is_stamped: bool,
    pub(super) records: Vec<u8>,
}

impl Script {
    pub(super) fn parse(words: &[String]) -> Result<Self> {
        Ok(match words.first().map(String::as_str) {
            Some("text") => Self::Text {
                deltas: parse_number_argument(words, 1, 1)?,
                wait: Duration::from_millis(parse_number_argument(words, 2, 0)?.try_into()?),
            },
            Some("paced") => Self::Paced {
                deltas: parse_number_argument(words, 1, 1)?,
                between: parse_delta_interval(words)?,
            },
            Some("asked") => Self::LastAsk {
                deltas: parse_number_argument(words, 1, 1)?,
                between: parse_delta_interval(words)?,
            },
            Some("tools") => Self::Tools {
                rounds: parse_number_argument(words, 1, 1)?,
                bytes: parse_number_argument(words, 2, 0)?,
            },
            Some("chat") => Self::Chat {
                every: parse_number_argument(words, 1, 5)?.max(1),
                deltas: parse_number_argument(words, 2, 100)?,
                turns: 0,
            },
            _ => {
                bail!("the script is `text`, `paced`, `tools`, `asked` or `chat`, with its numbers")
            }
        })
    }

    /// The answer to a request.
    pub(super) fn next_reply(&mut self, body: &[u8]) -> ScriptedReply {
        match self {
            Self::Text { deltas, wait } => ScriptedReply { wait: *wait, ..text_reply(*deltas) },
            Self::Paced { deltas, between } => {
                ScriptedReply { between: *between, ..text_reply(*deltas) }
            }
            Self::Tools { rounds, bytes } => {
                let done = body.windows(RESULT.len()).filter(|window| *window == RESULT).count();
                if done < *rounds { shell_call_reply(done, *bytes, body) } else { text_reply(1) }
            }
            Self::LastAsk { deltas, between } => match parse_last_ask(body) {
                LastAsk::Stream => ScriptedReply { between: *between, ..stamped_reply(*deltas) },
                LastAsk::Change => shell_call("change", "sh change.sh", body),
                LastAsk::Nothing => {
                    let text = "words of an answer, ".repeat(PLAIN_BYTES / 20);
                    build_reply(append_stop(vec![json!({"delta": {"content": text}})]), body)
                }
            },
            Self::Chat { every, deltas, turns } => {
                if ends_with_result(body) || !body.windows(TOOLS.len()).any(|at| at == TOOLS) {
                    return counted_text(*deltas, body);
                }
                *turns += 1;
                let has_call = turns.is_multiple_of(*every);
                if has_call {
                    shell_call_reply(*turns, CHAT_RESULT_BYTES, body)
                } else {
                    counted_text(*deltas, body)
                }
            }
        }
    }
}

/// Parses the rate of deltas in the script and returns the time between two of them.
fn parse_delta_interval(words: &[String]) -> Result<Duration> {
    let rate: u32 = parse_number_argument(words, 2, 100)?.try_into()?;
    Ok(Duration::from_secs(1) / rate.max(1))
}

/// The last message is what came of a call.
fn ends_with_result(body: &[u8]) -> bool {
    last_message(body).starts_with(TOOL)
}

/// The last message, from its role on.
fn last_message(body: &[u8]) -> &[u8] {
    let last = body.windows(ROLE.len()).rposition(|window| window == ROLE);
    last.and_then(|at| body.get(at + ROLE.len()..)).unwrap_or_default()
}

/// The answer that the last message asks for.
enum LastAsk {
    Stream,
    Change,
    Nothing,
}

fn parse_last_ask(body: &[u8]) -> LastAsk {
    let last = last_message(body);
    let says = |word: &[u8]| last.windows(word.len()).any(|window| window == word);
    // A request without tools wants a title or a summary.
    if last.starts_with(TOOL) || !body.windows(TOOLS.len()).any(|at| at == TOOLS) {
        LastAsk::Nothing
    } else if says(b"stream") {
        LastAsk::Stream
    } else if says(b"change") {
        LastAsk::Change
    } else {
        LastAsk::Nothing
    }
}

fn text_reply(deltas: usize) -> ScriptedReply {
    let records = stream::generate_answer(Protocol::OpenAi, deltas, Prose::Lines).bytes;
    ScriptedReply { records, ..ScriptedReply::default() }
}

/// A text whose usage says how long the request was, so that a window can become full.
fn counted_text(deltas: usize, body: &[u8]) -> ScriptedReply {
    let ends_line = |nth: usize| nth % DELTAS_PER_LINE == DELTAS_PER_LINE - 1;
    let word = |nth| if ends_line(nth) { "end.\n" } else { "words " };
    build_reply(
        append_stop((0..deltas).map(|nth| json!({"delta": {"content": word(nth)}})).collect()),
        body,
    )
}

/// A text whose deltas are the times at which they were written.
fn stamped_reply(deltas: usize) -> ScriptedReply {
    let stamp = format!("{} ", String::from_utf8_lossy(STAMP));
    let choices = append_stop((0..deltas).map(|_| json!({"delta": {"content": stamp}})).collect());
    ScriptedReply { is_stamped: true, ..build_reply(choices, &[]) }
}

/// Deltas of an answer that ends with them.
fn append_stop(mut choices: Vec<Value>) -> Vec<Value> {
    choices.push(json!({"delta": {}, "finish_reason": "stop"}));
    choices
}

/// A call of the shell that prints so many bytes, or one line.
fn shell_call_reply(round: usize, bytes: usize, body: &[u8]) -> ScriptedReply {
    let command = if bytes == 0 {
        format!("echo round-{round}")
    } else {
        format!("yes 'round {round} has a line of output like this' | head -c {bytes}")
    };
    shell_call(&format!("call_{round}"), &command, body)
}

fn shell_call(id: &str, command: &str, body: &[u8]) -> ScriptedReply {
    let arguments = json!({ "command": command }).to_string();
    let choices = vec![
        json!({"delta": {"role": "assistant", "content": null, "tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": "bash", "arguments": ""}}]}}),
        json!({"delta": {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}}),
        json!({"delta": {}, "finish_reason": "tool_calls"}),
    ];
    build_reply(choices, body)
}

/// Records with these choices, and one with the usage.
fn build_reply(choices: Vec<Value>, body: &[u8]) -> ScriptedReply {
    let record = |choices: Value, usage: Value| {
        let record = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_785_367_846,
            "model": "mock-model",
            "choices": choices,
            "usage": usage,
        });
        format!("data: {record}\n\n")
    };
    let said = choices.len();
    let prompt = body.len() / BYTES_PER_TOKEN;
    let mut out = String::new();
    for mut choice in choices {
        choice["index"] = json!(0);
        out.push_str(&record(json!([choice]), Value::Null));
    }
    let usage =
        json!({"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said});
    out.push_str(&record(json!([]), usage));
    out.push_str("data: [DONE]\n\n");
    ScriptedReply { records: out.into_bytes(), ..ScriptedReply::default() }
}
