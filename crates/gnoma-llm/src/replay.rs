//! A provider that answers from a script: no model, no network.
//!
//! `gnoma demo` runs on it, and it repeats a session exactly. A script is JSON objects, one for each answer, in the
//! order in which they are given:
//!
//! ```json
//! {"thinking": "…", "text": "…", "calls": [{"name": "fs.read", "arguments": {"path": "a"}}], "usage": {"output": 9}}
//! ```
//!
//! Every field may be missing. Lines that start with `#` are comments. The history tells which answer
//! is due (it holds one message of the assistant's for each that was given), so a call that is tried
//! again gets the same answer again.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::stream;
use gnoma_core::{
    ErrorKind, EventStream, ModelInfo, ModelRequest, Provider, ProviderError, RawJson, Role,
    StopReason, StreamEvent, Usage, stream::Slot, tool::BoxFuture,
};
use serde::Deserialize;

/// The only model of a script.
const MODEL: &str = "script";

/// Answers as its script says.
#[derive(Clone, Debug)]
pub struct Replay {
    name: String,
    rounds: Arc<[Round]>,
    pace: Option<Duration>,
}

/// One answer of a script.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Round {
    thinking: String,
    text: String,
    calls: Vec<CassetteCall>,
    usage: Option<Usage>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CassetteCall {
    name: String,
    #[serde(default = "RawJson::empty_object")]
    arguments: RawJson,
}

/// An answer of a script that cannot be read.
#[derive(thiserror::Error)]
#[error("answer {number} of the script is invalid: {cause}")]
pub struct ScriptError {
    /// The number of the answer, counted from 1.
    pub number: usize,
    /// The error in its JSON.
    pub cause: serde_json::Error,
}

gnoma_core::debug_as_display!(ScriptError);

impl Replay {
    /// Reads a script; `name` is the provider's.
    ///
    /// # Errors
    /// An answer of the script cannot be read.
    pub fn from_script(name: impl Into<String>, script: &str) -> Result<Self, ScriptError> {
        let lines =
            script.lines().map(|line| if line.trim_start().starts_with('#') { "" } else { line });
        let json = lines.collect::<Vec<_>>().join("\n");
        let mut rounds = Vec::new();
        for round in serde_json::Deserializer::from_str(&json).into_iter::<Round>() {
            rounds.push(round.map_err(|cause| ScriptError { number: rounds.len() + 1, cause })?);
        }
        Ok(Self { name: name.into(), rounds: rounds.into(), pace: None })
    }

    /// The script, with a wait of `pace` before each word.
    #[must_use]
    pub fn with_pace(mut self, pace: Duration) -> Self {
        self.pace = Some(pace);
        self
    }

    /// The answer that follows on what the model has said so far.
    fn scripted_answer(
        &self,
        request: &ModelRequest,
    ) -> VecDeque<Result<StreamEvent, ProviderError>> {
        let given =
            request.messages.iter().filter(|message| message.role() == Role::Assistant).count();
        match self.rounds.get(given) {
            Some(round) => round.events(given).into_iter().map(Ok).collect(),
            None => VecDeque::from([Err(self.script_exhausted())]),
        }
    }

    fn script_exhausted(&self) -> ProviderError {
        let message = format!("the script ended after {} answers", self.rounds.len());
        ProviderError::new(ErrorKind::BadRequest, &self.name, message).with_hint(
            "A script answers only what it was written for; use a real provider to continue.",
        )
    }
}

impl Round {
    fn events(&self, nth: usize) -> Vec<StreamEvent> {
        let mut events = vec![StreamEvent::Started { model: Some(MODEL.to_owned()), id: None }];
        let (thinking, text, first_call): (Slot, Slot, Slot) = (0, 1, 2);
        events.extend(
            split_words(&self.thinking)
                .map(|word| StreamEvent::ThinkingDelta { slot: thinking, text: word.to_owned() }),
        );
        events.extend(
            split_words(&self.text)
                .map(|word| StreamEvent::TextDelta { slot: text, text: word.to_owned() }),
        );
        for (slot, call) in (first_call..).zip(&self.calls) {
            events.push(StreamEvent::ToolCallStart {
                slot,
                id: format!("call_{nth}_{}", slot - first_call),
                name: call.name.clone(),
            });
            events.push(StreamEvent::ToolCallDelta {
                slot,
                fragment: call.arguments.get().to_owned(),
            });
            events.push(StreamEvent::ToolCallDone { slot });
        }
        events.extend(self.usage.map(StreamEvent::Usage));
        events.push(StreamEvent::Stop(if self.calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolUse
        }));
        events
    }
}

/// The words of `text`, each with the white space behind it.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

impl Provider for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let events = self.scripted_answer(&request);
        let pace = self.pace;
        Box::pin(stream::unfold(events, move |mut events| async move {
            let event = events.pop_front()?;
            let is_word = matches!(
                event,
                Ok(StreamEvent::TextDelta { .. } | StreamEvent::ThinkingDelta { .. })
            );
            if let Some(pace) = pace.filter(|_| is_word) {
                tokio::time::sleep(pace).await;
            }
            Some((event, events))
        }))
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async { Ok(vec![ModelInfo { id: MODEL.to_owned(), ..ModelInfo::default() }]) })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};
    use gnoma_core::{Accumulator, Message, Response, ToolChoice};

    use super::*;

    const SCRIPT: &str = r#"
# The model looks, then it talks.
{"thinking": "Let me see.", "text": "I look at it.",
 "calls": [{"name": "fs.ls"}, {"name": "fs.read", "arguments": {"path":  "a"}}], "usage": {"input": 3, "output": 4}}
{"text": "Done."}
"#;

    fn request(answers: usize) -> ModelRequest {
        let assistant = Message::assistant(vec![gnoma_core::Content::from_text("x")], None, None);
        let mut messages = vec![Arc::new(Message::user_text("go"))];
        messages.extend(std::iter::repeat_n(Arc::new(assistant.unwrap()), answers));
        ModelRequest {
            model: MODEL.into(),
            system: "".into(),
            messages,
            tools: Arc::new([]),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            context_window: None,
            format: None,
            thinking: None,
        }
    }

    async fn ask(replay: &Replay, answers: usize) -> Result<Response, ProviderError> {
        let mut stream = replay.stream(request(answers));
        let mut answer = Accumulator::new();
        while let Some(event) = stream.next().await {
            answer.push(&event?);
        }
        Ok(answer.into_response())
    }

    #[tokio::test]
    async fn replay_script_is_played_answer_by_answer() {
        let replay = Replay::from_script("demo", SCRIPT).unwrap();
        for _ in 0..2 {
            let first = ask(&replay, 0).await.unwrap();
            let calls: Vec<_> = first.tool_calls().collect();
            assert_eq!(calls[0].name, "fs.ls");
            assert_eq!(calls[0].arguments.get(), "{}");
            assert_eq!(calls[1].arguments.get(), r#"{"path":  "a"}"#);
            assert_eq!(first.stop, Some(StopReason::ToolUse));
            assert_eq!(first.usage.map(|usage| usage.total_tokens()), Some(7));
        }
        let second = ask(&replay, 1).await.unwrap();
        assert_eq!(second.content, [gnoma_core::Content::from_text("Done.")]);
        assert_eq!(second.stop, Some(StopReason::EndTurn));
        let over = ask(&replay, 2).await.unwrap_err();
        assert_eq!(over.to_string(), "demo: request refused: the script ended after 2 answers");
    }

    #[tokio::test]
    async fn replay_pace_delays_only_text() {
        let replay = Replay::from_script("demo", SCRIPT).unwrap();
        let mut stream = replay.with_pace(Duration::from_secs(3600)).stream(request(0));
        let mut next = || stream.next().now_or_never();
        assert!(matches!(next(), Some(Some(Ok(StreamEvent::Started { .. })))));
        assert!(next().is_none());
    }

    #[test]
    fn replay_script_error_names_the_answer() {
        let error = Replay::from_script("demo", "{}\n{\"txt\": 1}").unwrap_err().to_string();
        assert!(
            error.starts_with("answer 2 of the script is invalid: unknown field `txt`"),
            "{error}"
        );
    }
}
