//! Mistral's answers. Its deltas hold less than OpenAI's: content and calls, nothing else. Thinking
//! comes as a kind of content.

use super::wire::Delta;
use crate::{
    completions::{blocks::Blocks, decode::Flavour},
    dialect::Events,
};

/// A reader for the deltas of Mistral.
pub(super) struct Mistral;

impl Flavour for Mistral {
    type Delta<'a> = Delta<'a>;

    fn apply_delta(&mut self, delta: Delta<'_>, blocks: &mut Blocks, out: &mut Events) {
        blocks.push_content(delta.content, out);
        blocks.push_calls(delta.tool_calls, out);
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Content, StopReason, Thinking};

    use super::*;
    use crate::completions::decode::tests::{read, stream};

    fn thinking(text: &str) -> Content {
        Content::Thinking(Thinking { text: text.to_owned(), ..Thinking::default() })
    }

    #[test]
    fn mistral_content_may_switch_between_parts_and_text() {
        let response = stream(
            Mistral,
            &[
                r#"{"role":"assistant","content":""}"#,
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let "}]}]}"#,
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"me see"}],"closed":true}]}"#,
                r#"{"content":[{"type":"text","text":"It "}]}"#,
                r#"{"content":"is 4"}"#,
                r#"{"content":[{"type":"reference","reference_ids":[1]}]}"#,
            ],
            "stop",
        );
        assert_eq!(response.content, [thinking("Let me see"), Content::from_text("It is 4")]);
    }

    #[test]
    fn mistral_tool_calls_arrive_whole_with_finish_reason_and_usage() {
        let (response, error) = read(
            Mistral,
            &[
                r#"{"id":"1","model":"mistral-x","p":"abc","choices":[{"index":0,"delta":{"content":"","tool_calls":[
                    {"id":"Abc123xyz","function":{"name":"f","arguments":"{\"a\": 1}"},"index":0},
                    {"id":"Bbc123xyz","function":{"name":"f","arguments":"{}"},"index":1}]},
                    "finish_reason":"tool_calls"}],
                    "usage":{"prompt_tokens":10,"completion_tokens":3,"num_cached_tokens":4}}"#,
                "[DONE]",
            ],
            false,
        );
        assert_eq!(error, None);
        assert_eq!(response.stop, Some(StopReason::ToolUse));
        let ids: Vec<_> = response.tool_calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["Abc123xyz", "Bbc123xyz"]);
        assert_eq!(response.usage.map(|usage| (usage.input, usage.cache_read)), Some((6, 4)));
    }
}
