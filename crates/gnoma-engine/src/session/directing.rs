//! Calls small models without tools if that is enough, and turns a file that they write into a call.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::Stream;
use gnoma_core::{
    Content, EventStream, Message, ModelRequest, ProviderError, StopReason, StreamEvent,
    ToolChoice,
    stream::Slot,
    tool::{Tier, ToolKind},
};

use super::state::Session;
use crate::{
    arm::Arm,
    context::earlier,
    direct::{self, Direct, DirectStep, LookedAt, Writers},
    prompt::said,
};

/// A file is written with what is most likely; the last try has to differ from those before.
const TEMPERATURE: f32 = 0.0;
const LAST_TEMPERATURE: f32 = 0.7;

/// Bytes of text that make a token at least, and tokens for words beside a file.
const MIN_TOKEN_BYTES: usize = 2;
const SPARE_TOKENS: usize = 512;

/// Most bytes of a file that is written, with the words beside it: far more than may be shown to be changed.
const MAX_WRITTEN_BYTES: usize = 128 << 10;

/// Pieces of an answer after which a sign of life is shown.
const PIECES_A_SIGN: u32 = 16;

impl Session {
    /// The request to the arm in place of tools; `None` if it needs them.
    pub(super) fn direct(&self, arm: &Arm) -> Option<Direct> {
        let tier = arm.tier();
        let is_free = self.turn.may_use_tools() || self.turn.wants_shape();
        if tier != Tier::Lean || !arm.tools || !is_free || self.router.is_looking() {
            return None;
        }
        // Who gives work away lets others do it.
        if self.tools.of_kind(tier, ToolKind::StartsSessions).is_some() {
            return None;
        }
        let (_, rest) = self.turn.conversation();
        let turn = rest.get(earlier::turn_start(rest)..)?;
        let is_text = |content: &Content| matches!(content, Content::Text(_));
        if !turn.first()?.content().iter().all(is_text) {
            return None;
        }
        if let Some(schema) = self.turn.answer_schema() {
            let (schema, is_due) = (Arc::clone(schema), self.turn.wants_shape());
            return Direct::shaped(turn, self.turn.specs(), schema, is_due);
        }
        let is_there = |path: &str| self.cwd.join(path).symlink_metadata().is_ok();
        let mut direct = Direct::of(turn, self.turn.specs(), is_there)?;
        direct.ends_early = arm.local;
        Some(direct)
    }

    /// The question without tools.
    pub(super) fn direct_request(&mut self, arm: &Arm, direct: &Direct) -> ModelRequest {
        self.begin_request(arm);
        let tools = Arc::default();
        let messages = self.direct_messages(direct);
        let system = self.prompts.direct_system(direct.step == DirectStep::Answer);
        self.note_prefix(arm, &system, &tools, messages.clone());
        let task = self.router.plan.as_ref().map(|plan| &plan.task);
        let (effort, thinking) = self.router.thinking.of(arm, task);
        let sampling = match &direct.step {
            DirectStep::Write(_) if direct.tries > 1 => Some(LAST_TEMPERATURE),
            DirectStep::Write(_) | DirectStep::Answer | DirectStep::Report => Some(TEMPERATURE),
        };
        ModelRequest {
            model: Arc::clone(&arm.model),
            system,
            messages,
            tools,
            tool_choice: ToolChoice::None,
            max_output_tokens: least([
                most_tokens(direct).or_else(|| arm.answer_limit()),
                self.spending.answer_tokens,
            ]),
            temperature: arm.temperature.or(sampling),
            effort,
            thinking,
            context_window: arm.context_window,
            format: self.turn.format(),
        }
    }

    fn direct_messages(&mut self, direct: &Direct) -> Vec<Arc<Message>> {
        let (summary, rest) = self.turn.conversation();
        let mut messages: Vec<_> = summary.cloned().into_iter().collect();
        let (before, turn) = rest.split_at(earlier::turn_start(rest));
        let Some((now, later)) = turn.split_first() else { return messages };
        let mut words = if before.is_empty() {
            now.text_content()
        } else {
            self.prompts.with_earlier(now, before, self.turn.specs()).text_content()
        };
        for message in later.iter().filter(|message| said(message)) {
            words.push('\n');
            words.push_str(&message.text_content());
        }
        messages.push(Arc::new(Message::user_text(direct::request(direct, &words))));
        messages
    }
}

fn least(limits: [Option<u32>; 2]) -> Option<u32> {
    limits.into_iter().flatten().min()
}

/// A rewritten file is about as long as it was.
fn most_tokens(direct: &Direct) -> Option<u32> {
    let DirectStep::Write(paths) = &direct.step else { return None };
    let length = |seen: &LookedAt| paths.contains(&seen.path).then_some(seen.text.len());
    let bytes = direct.seen.iter().filter_map(length).max()?;
    u32::try_from(bytes / MIN_TOKEN_BYTES + SPARE_TOKENS).ok()
}

/// The stream of an answer that writes a file: as a call that makes the change, once it is there.
pub(super) fn as_call(inner: EventStream, direct: Option<&Direct>) -> EventStream {
    let Some(direct) = direct else { return inner };
    let DirectStep::Write(paths) = &direct.step else { return inner };
    Box::pin(WrittenFile {
        inner,
        paths: paths.clone(),
        seen: direct.seen.clone(),
        writers: direct.writers.clone(),
        slot: None,
        text: String::new(),
        is_plain: direct.failed.is_none(),
        ends_early: direct.ends_early,
        part: BlockPart::Words,
        pieces: 0,
        is_over: false,
        ready: VecDeque::new(),
    })
}

/// What of an answer is heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockPart {
    /// What comes before the first block.
    Words,
    /// The file, as a call that was begun.
    Block,
    /// What comes after it, which is left out.
    Rest,
}

struct WrittenFile {
    inner: EventStream,
    paths: Vec<String>,
    seen: Vec<LookedAt>,
    writers: Writers,
    /// Where the words stand in the answer, behind what was thought; the call takes their place.
    slot: Option<Slot>,
    text: String,
    /// It is the block alone that was asked for.
    is_plain: bool,
    /// It is over with the block; else its end is waited for, which tells what it has cost.
    ends_early: bool,
    part: BlockPart,
    pieces: u32,
    /// Nothing is heard any more.
    is_over: bool,
    ready: VecDeque<StreamEvent>,
}

impl WrittenFile {
    fn hear(&mut self, slot: Slot, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.slot.get_or_insert(slot);
        // White space between the arguments' parts; before the call is begun it belongs to nothing, and after
        // that it is still a sign of life.
        if self.pieces.is_multiple_of(PIECES_A_SIGN) {
            self.fragment(" ");
        }
        self.pieces = self.pieces.saturating_add(1);
        if self.part == BlockPart::Rest {
            return;
        }
        self.text.push_str(piece);
        if self.text.len() > MAX_WRITTEN_BYTES {
            return self.end(StopReason::MaxTokens);
        }
        if self.part == BlockPart::Words && direct::opens(&self.text) {
            let is_new = self.paths.iter().all(|path| !self.is_there(path));
            let name = if is_new { &self.writers.write } else { &self.writers.edit };
            let (slot, id, name) = (self.at(), "written".to_owned(), name.clone());
            self.ready.push_back(StreamEvent::ToolCallStart { slot, id, name });
            self.fragment("{");
            self.part = BlockPart::Block;
        }
        // What may hold fences itself ends where the answer does, and so does what is explained first.
        let is_first = self.is_plain && self.part == BlockPart::Block && !self.holds_fences();
        if is_first && direct::blocks(&self.text, false).first().is_some_and(|it| it.is_closed) {
            self.part = BlockPart::Rest;
            if self.ends_early {
                self.end(StopReason::EndTurn);
            }
        }
    }

    fn at(&self) -> Slot {
        self.slot.unwrap_or_default()
    }

    fn fragment(&mut self, fragment: &str) {
        let (slot, fragment) = (self.at(), fragment.to_owned());
        self.ready.push_back(StreamEvent::ToolCallDelta { slot, fragment });
    }

    fn is_there(&self, path: &str) -> bool {
        self.seen.iter().any(|seen| seen.path == path)
    }

    fn holds_fences(&self) -> bool {
        let is_of = |seen: &&LookedAt| self.paths.contains(&seen.path);
        self.paths.iter().any(|path| path.ends_with(".md"))
            || self.seen.iter().filter(is_of).any(|seen| seen.text.contains("```"))
    }

    /// The answer is complete: the call, or the text if there is none.
    fn end(&mut self, stop: StopReason) {
        let text = std::mem::take(&mut self.text);
        let has_call = self.part != BlockPart::Words;
        if has_call {
            let rest = self.arguments(&text, stop);
            self.fragment(rest.as_deref().unwrap_or("\"path\":\"\"}"));
        } else {
            self.ready.push_back(StreamEvent::TextDelta { slot: self.at(), text });
        }
        let stop = if has_call { StopReason::ToolUse } else { stop };
        self.ready.push_back(StreamEvent::Stop(stop));
        self.is_over = true;
    }

    /// The arguments of the call, without their first brace.
    fn arguments(&self, text: &str, stop: StopReason) -> Option<String> {
        let blocks = direct::blocks(text, self.holds_fences());
        let (path, block) = direct::written(&self.paths, &self.seen, &blocks)?;
        // A block without an end may be the beginning of a file.
        if !block.is_closed && (self.is_there(&path) || stop != StopReason::EndTurn) {
            return None;
        }
        let arguments = direct::arguments(&self.seen, &path, block.text);
        arguments.to_string().strip_prefix('{').map(str::to_owned)
    }
}

impl Stream for WrittenFile {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let Some(event) = ready!(self.inner.as_mut().poll_next(cx)) else {
                return Poll::Ready(None);
            };
            match event {
                Ok(StreamEvent::TextDelta { slot, text }) => self.hear(slot, &text),
                Ok(StreamEvent::Stop(stop)) => self.end(stop),
                other => return Poll::Ready(Some(other)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};
    use gnoma_core::{Accumulator, Usage};

    use super::*;

    /// What comes of an answer in these pieces, before which something was thought.
    async fn made(pieces: &[&str], path: &str, ends_early: bool) -> Vec<StreamEvent> {
        let thought = [StreamEvent::ThinkingDelta { slot: 0, text: "Well.".to_owned() }];
        let text = |text: &&str| StreamEvent::TextDelta { slot: 1, text: (*text).to_owned() };
        let end = [StreamEvent::Usage(Usage::default()), StreamEvent::Stop(StopReason::EndTurn)];
        let pieces = pieces.iter().map(text);
        let events: Vec<Result<StreamEvent, ProviderError>> =
            thought.into_iter().chain(pieces).chain(end).map(Ok).collect();
        let seen = LookedAt { path: "a.py".into(), text: "x = 1\ny = 1".into(), is_whole: true };
        let mut file = WrittenFile {
            inner: Box::pin(stream::iter(events)),
            paths: vec![path.to_owned()],
            seen: vec![seen],
            writers: Writers { edit: "edit".into(), write: "write".into() },
            slot: None,
            text: String::new(),
            is_plain: true,
            ends_early,
            part: BlockPart::Words,
            pieces: 0,
            is_over: false,
            ready: VecDeque::new(),
        };
        let mut heard = Vec::new();
        while let Some(Ok(event)) = file.next().await {
            heard.push(event);
        }
        heard
    }

    fn arguments(events: &[StreamEvent]) -> String {
        let fragments = events.iter().filter_map(|event| match event {
            StreamEvent::ToolCallDelta { fragment, .. } => Some(fragment.trim()),
            _ => None,
        });
        fragments.collect()
    }

    #[tokio::test]
    async fn the_bill_is_waited_for_where_there_is_one() {
        let answer = ["```py\n", "x = 2\ny = 1\n", "```\n", "Now x is 2."];
        for ends_early in [true, false] {
            let events = made(&answer, "a.py", ends_early).await;
            let has_bill = events.iter().any(|event| matches!(event, StreamEvent::Usage(_)));
            assert_ne!(has_bill, ends_early);
            assert!(arguments(&events).contains("x = 2"), "{events:?}");
            assert!(!arguments(&events).contains("Now"), "{events:?}");
            let last = events.last();
            assert!(matches!(last, Some(StreamEvent::Stop(StopReason::ToolUse))), "{events:?}");
        }
    }

    #[tokio::test]
    async fn what_is_explained_first_is_a_sign_of_life_and_not_shown() {
        let words = ["a word "; 40];
        let events = made(&words, "a.py", true).await;
        let signs = |event: &&StreamEvent| matches!(event, StreamEvent::ToolCallDelta { .. });
        assert_eq!(events.iter().filter(signs).count(), 3);
        let shown = |event: &&StreamEvent| matches!(event, StreamEvent::TextDelta { .. });
        assert_eq!(events.iter().filter(shown).count(), 1, "without a block it is the answer");
    }

    #[tokio::test]
    async fn words_and_calls_do_not_run_into_what_was_thought() {
        for (answer, is_call) in [("I see no fault.", false), ("```py\nx = 2\n```\n", true)] {
            let mut whole = Accumulator::new();
            made(&[answer], "a.py", true).await.iter().for_each(|event| whole.push(event));
            let content = whole.finish().content;
            let [Content::Thinking(thought), last] = &*content else { panic!("{content:?}") };
            assert_eq!(thought.text, "Well.");
            assert_eq!(matches!(last, Content::ToolCall(_)), is_call, "{last:?}");
        }
    }

    #[tokio::test]
    async fn a_block_without_an_end_is_a_file_only_where_there_was_none() {
        let answer = ["```py\n", "x = 2\ny = 1\n"];
        assert_eq!(arguments(&made(&answer, "a.py", true).await), r#"{"path":""}"#);
        assert!(arguments(&made(&answer, "b.py", true).await).contains("x = 2"));
    }
}
