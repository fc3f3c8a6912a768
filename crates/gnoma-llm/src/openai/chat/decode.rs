//! Answers of OpenAI's chat completions and of those who added reasoning to them.
//!
//! Reasoning is remembered with what the server needs to get it back: the name of the field it came in
//! ([`REASONING`], as the block's item), and OpenRouter's details, with their opaque parts, as the
//! block's signature.

use gnoma_core::{StreamEvent, stream::Slot};

use super::wire::{Delta, Detail, WholeDetail};
use crate::{
    completions::{
        blocks::Blocks,
        decode::Flavour,
        wire::{CallPiece, read_or_default},
    },
    dialect::Events,
    lenient_values::{SmallList, Text},
};

/// Marks reasoning that came as `reasoning`; the rest came as `reasoning_content`.
pub(super) const REASONING: &str = "reasoning";

/// Reads the deltas of one answer.
#[derive(Default)]
pub(super) struct Chat {
    details: Vec<WholeDetail>,
    /// The first block of reasoning: where the details go, once they are whole.
    thinking: Option<Slot>,
    /// The last block that was marked with [`REASONING`].
    marked: Option<Slot>,
}

impl Flavour for Chat {
    type Delta<'a> = Delta<'a>;

    fn apply_delta(&mut self, delta: Delta<'_>, blocks: &mut Blocks, out: &mut Events) {
        self.push_reasoning(delta.reasoning_content, delta.reasoning, blocks, out);
        self.merge_details(read_or_default(delta.reasoning_details));
        blocks.push_content(delta.content, out);
        blocks.push_refusal(delta.refusal, out);
        blocks.push_calls(delta.tool_calls, out);
        let function = read_or_default(delta.function_call);
        blocks.push_call(CallPiece { function, ..CallPiece::default() }, out);
    }

    fn finish(&mut self, blocks: &mut Blocks, out: &mut Events) {
        let is_opaque =
            |detail: &WholeDetail| !detail.signature.is_empty() || !detail.data.is_empty();
        if !self.details.iter().any(is_opaque) {
            return;
        }
        if let Ok(signature) = serde_json::to_string(&self.details) {
            let slot = self.thinking.unwrap_or_else(|| blocks.new_slot());
            out.push_back(StreamEvent::Signature { slot, signature });
        }
    }
}

impl Chat {
    /// Some servers send the same words under both names.
    fn push_reasoning(
        &mut self,
        content: Text<'_>,
        other: Text<'_>,
        blocks: &mut Blocks,
        out: &mut Events,
    ) {
        let is_other = content.is_empty();
        let text = if is_other { other } else { content };
        let Some(slot) = blocks.push_thinking(text, out) else {
            return;
        };
        self.thinking.get_or_insert(slot);
        if is_other && self.marked.replace(slot) != Some(slot) {
            let item = REASONING.to_owned();
            out.push_back(StreamEvent::Item { slot, item });
        }
    }

    fn merge_details(&mut self, details: SmallList<Detail<'_>>) {
        for detail in details {
            let last = self.details.last_mut();
            match last.filter(|last| last.goes_on_with(&detail)) {
                Some(last) => last.append_detail(detail),
                None => {
                    let mut new = WholeDetail::default();
                    new.append_detail(detail);
                    self.details.push(new);
                }
            }
        }
    }
}

impl WholeDetail {
    /// Reports whether `next` is more of this text. Opaque data comes whole.
    fn goes_on_with(&self, next: &Detail<'_>) -> bool {
        let same_place = next.index.0.is_none() || self.index == next.index.0;
        self.r#type == next.r#type.as_str() && same_place && next.data.is_empty()
    }

    fn append_detail(&mut self, next: Detail<'_>) {
        self.text.push_str(next.text.as_str());
        self.summary.push_str(next.summary.as_str());
        self.data.push_str(next.data.as_str());
        let latest = [
            (&mut self.r#type, next.r#type),
            (&mut self.signature, next.signature),
            (&mut self.id, next.id),
            (&mut self.format, next.format),
        ];
        for (known, new) in latest {
            if let Some(new) = new.non_empty()
                && known != new
            {
                new.clone_into(known);
            }
        }
        self.index = next.index.0.or(self.index);
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Content, Response, StopReason, Thinking};

    use super::*;
    use crate::completions::decode::tests::{read, stream};

    fn thought(response: &Response) -> Vec<&Thinking> {
        let blocks = response.content.iter();
        blocks
            .filter_map(|block| match block {
                Content::Thinking(thinking) => Some(thinking),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn reasoning_and_reasoning_content_fields_are_not_read_twice() {
        let content = stream(
            Chat::default(),
            &[
                r#"{"content":null,"reasoning_content":"a"}"#,
                r#"{"reasoning_content":"b","reasoning":"b"}"#,
                r#"{"reasoning_content":null,"content":"c"}"#,
            ],
            "stop",
        );
        assert_eq!((&*thought(&content)[0].text, &thought(&content)[0].item), ("ab", &None));
        let reasoning = stream(
            Chat::default(),
            &[r#"{"reasoning":"a"}"#, r#"{"reasoning":"b","content":""}"#, r#"{"content":"c"}"#],
            "stop",
        );
        let thinking = thought(&reasoning)[0];
        assert_eq!((&*thinking.text, thinking.item.as_deref()), ("ab", Some(REASONING)));
        assert_eq!(reasoning.content.len(), 2);
    }

    #[test]
    fn reasoning_details_are_merged_into_the_signature() {
        let response = stream(
            Chat::default(),
            &[
                r#"{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","format":"f","index":0}]}"#,
                r#"{"reasoning":"!","reasoning_details":[{"type":"reasoning.text","text":"!","format":"f","index":0}]}"#,
                r#"{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"sig==","format":"f","index":0}]}"#,
                r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"zz","id":"r1","format":null,"index":1}]}"#,
                r#"{"content":"done"}"#,
            ],
            "stop",
        );
        let thinking = thought(&response)[0];
        assert_eq!(thinking.text, "Hm!");
        assert_eq!(
            thinking.signature.as_deref().unwrap(),
            concat!(
                r#"[{"type":"reasoning.text","text":"Hm!","signature":"sig==","format":"f","index":0},"#,
                r#"{"type":"reasoning.encrypted","data":"zz","id":"r1","index":1}]"#
            )
        );
    }

    #[test]
    fn reasoning_details_without_new_information_are_dropped() {
        let response = stream(
            Chat::default(),
            &[r#"{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm"}]}"#],
            "stop",
        );
        assert_eq!(thought(&response)[0].signature, None);
    }

    #[test]
    fn encrypted_reasoning_is_a_thinking_block_without_text() {
        let response = stream(
            Chat::default(),
            &[
                r#"{"content":"so"}"#,
                r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"zz"}]}"#,
            ],
            "stop",
        );
        let thinking = thought(&response)[0];
        assert!(thinking.text.is_empty());
        assert!(thinking.signature.is_some());
    }

    #[test]
    fn refusal_delta_is_text_with_stop_reason_refusal() {
        let response = stream(
            Chat::default(),
            &[r#"{"content":null,"refusal":"I can"}"#, r#"{"refusal":"not"}"#],
            "stop",
        );
        assert_eq!(response.content, [Content::from_text("I cannot")]);
        assert_eq!(response.stop, Some(StopReason::Refusal));
    }

    #[test]
    fn tool_call_keeps_the_google_thought_signature() {
        let call = r#"{"id":"","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}"#;
        let response = stream(Chat::default(), &[&format!(r#"{{"tool_calls":[{call}]}}"#)], "stop");
        let call = response.tool_calls().next().unwrap();
        assert_eq!(call.signature.as_deref(), Some("sig"));
        assert_eq!(response.stop, Some(StopReason::ToolUse));
    }

    #[test]
    fn legacy_function_call_is_decoded_as_a_tool_call() {
        let response = stream(
            Chat::default(),
            &[
                r#"{"content":null,"function_call":{"name":"f","arguments":""}}"#,
                r#"{"function_call":{"arguments":"{\"a\":1}"}}"#,
            ],
            "function_call",
        );
        let call = response.tool_calls().next().unwrap();
        assert_eq!((&*call.name, call.arguments.get()), ("f", r#"{"a":1}"#));
    }

    #[test]
    fn usage_is_found_at_groq_too() {
        let (response, _) = read(
            Chat::default(),
            &[
                r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],
                   "x_groq":{"id":"r","usage":{"prompt_tokens":3,"completion_tokens":2}}}"#,
                "[DONE]",
            ],
            false,
        );
        assert_eq!(response.usage.map(|usage| usage.total_tokens()), Some(5));
    }
}
