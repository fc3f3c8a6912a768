//! Counts the tokens of the conversation: one number for all users.
//!
//! It starts from what the provider counted last, input and answer, and adds an estimate of what came
//! after. How far the estimate of a model's words is off is learnt from call to call. Whoever asks
//! again pays only for what is new.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{Message, ModelRef, Role, Usage, message::Content, tool::ToolSpec};

use super::{
    size::{self, ContextSize, scale_tokens},
    wire::Counter,
};

/// Models of which something is remembered.
const MAX_MODELS: usize = 64;
/// New words of fewer tokens teach nothing of a model.
const LEAST_TOKENS: u64 = 64;
/// New words of so many tokens teach as much as all before.
const HALF_TOKENS: f64 = 512.0;
/// Least and most tokens of a model for one of the estimate.
const RATIOS: std::ops::RangeInclusive<f64> = 0.6..=2.5;
/// An answer is taken for longer than it is sent back only within this.
const SLACK: f64 = 1.35;
/// And within so many tokens.
const SLACK_TOKENS: u64 = 64;

/// A count of the tokens in the conversation.
#[derive(Debug, Default)]
pub struct Tracker {
    known: KnownContext,
    /// Messages that `known` is about.
    messages: usize,
    /// The size of the messages after those that `known` covers.
    since: ContextSize,
    /// Messages that are in `known` or in `since`.
    counted: usize,
    prefix: Prefix,
    /// Tokens of models for one of the estimate.
    ratios: HashMap<ModelRef, f64>,
    /// Tokens of reasoning in the turn that are in `known`.
    thoughts: u64,
}

/// The knowledge about the size of the first messages.
#[derive(Clone, Debug)]
enum KnownContext {
    /// Their size as gnoma sees it; the prefix comes on top.
    Estimated(ContextSize),
    /// The usage that the provider reported for a call.
    Told {
        usage: Usage,
        /// The answer, if it is one of the messages.
        answer: Option<Arc<Message>>,
        by: Counter,
        /// The tokens that preceded the conversation in that call, as gnoma estimates them.
        prefix_words: u64,
    },
}

impl Default for KnownContext {
    fn default() -> Self {
        Self::Estimated(ContextSize::default())
    }
}

/// The part of a request that precedes the conversation.
#[derive(Debug, Default)]
struct Prefix {
    system: Arc<str>,
    tools: Arc<[Arc<ToolSpec>]>,
    words: u64,
}

impl Tracker {
    /// A provider reported the first `messages` of `history` for its last call; nothing is known of later ones.
    #[must_use]
    pub fn from_reported_usage(
        usage: Usage,
        history: &[Arc<Message>],
        messages: usize,
        by: Counter,
    ) -> Self {
        let mut tracker = Self::default();
        tracker.set_reported(usage, history, messages, by);
        tracker.adopt_prefix();
        tracker
    }

    /// From now on, this precedes the conversation.
    pub fn set_prefix(&mut self, system: &Arc<str>, tools: &Arc<[Arc<ToolSpec>]>) {
        let is_same = Arc::ptr_eq(&self.prefix.system, system)
            && (Arc::ptr_eq(&self.prefix.tools, tools)
                || self.prefix.tools.iter().map(Arc::as_ptr).eq(tools.iter().map(Arc::as_ptr)));
        if is_same {
            return;
        }
        let is_first = self.prefix.words == 0;
        let words = size::of_prefix(system, tools.iter().map(AsRef::as_ref));
        self.prefix = Prefix { system: Arc::clone(system), tools: Arc::clone(tools), words };
        if is_first {
            self.adopt_prefix();
        }
    }

    /// Assigns the current prefix to a report that came in before the prefix was known.
    fn adopt_prefix(&mut self) {
        if let KnownContext::Told { prefix_words, .. } = &mut self.known
            && *prefix_words == 0
        {
            *prefix_words = self.prefix.words;
        }
    }

    /// Tokens of `history` as `by` counts them, including what precedes it.
    pub fn count_tokens(&mut self, history: &[Arc<Message>], by: &Counter) -> u64 {
        for message in history.iter().skip(self.counted) {
            self.since.add_message(message);
        }
        self.counted = self.counted.max(history.len());
        let next = history.get(self.messages).map(|message| message.role());
        self.base_tokens(next, by) + by.count_tokens(&self.since, self.token_ratio(by))
    }

    /// Tokens of the first messages and of what precedes them.
    fn base_tokens(&self, next: Option<Role>, by: &Counter) -> u64 {
        let ratio = self.token_ratio(by);
        let prefix = self.prefix.words;
        match &self.known {
            KnownContext::Estimated(size) => {
                scale_tokens(prefix, ratio) + by.count_tokens(size, ratio)
            }
            KnownContext::Told { usage, answer, by: teller, prefix_words } => {
                let of_answer =
                    answer.as_ref().map_or(0, |it| self.of_answer(it, usage, next, teller));
                let mut tokens = usage.prompt_tokens() + of_answer;
                let forgets = next == Some(Role::User)
                    && answer.as_ref().is_some_and(|it| !teller.keeps_thinking(it, Role::User));
                if forgets {
                    tokens = tokens.saturating_sub(self.thoughts.min(tokens / 2));
                }
                if teller.name != by.name {
                    tokens = scale_tokens(tokens, ratio / self.token_ratio(teller));
                }
                (tokens + scale_tokens(prefix, ratio))
                    .saturating_sub(scale_tokens(*prefix_words, ratio))
            }
        }
    }

    /// Tokens of an answer as it is sent back before a message of `next`.
    fn of_answer(&self, answer: &Message, usage: &Usage, next: Option<Role>, by: &Counter) -> u64 {
        let calls = answer.tool_calls().next().is_some();
        let next = next.unwrap_or(if calls { Role::Tool } else { Role::User });
        let sent = ContextSize::from_messages([answer]);
        let own = by.count_tokens(&sent, self.token_ratio(by));
        let shown = scale_tokens(sent.thinking, self.token_ratio(by));
        let thoughts = match usage.reasoning {
            0 => usage.output * shown / (own + shown).max(1),
            told => told.min(usage.output),
        };
        let words = clamp_reported(usage.output - thoughts, own, is_hidden(answer, usage));
        if by.keeps_thinking(answer, next) { words + thoughts } else { words }
    }

    fn token_ratio(&self, by: &Counter) -> f64 {
        self.ratios.get(&by.name).copied().unwrap_or_else(|| by.usual_ratio())
    }

    /// A provider reported the usage of a call for which the first `messages` of `history` were sent or, if the
    /// last of them is the model's, received.
    pub fn record_usage(
        &mut self,
        usage: Usage,
        history: &[Arc<Message>],
        messages: usize,
        by: Counter,
    ) {
        let has_answer = is_answered(history, messages);
        let sent = history.get(..messages - usize::from(has_answer)).unwrap_or_default();
        self.learn_ratio(usage, sent, &by);
        let next = sent.last().map(|message| message.role());
        if next == Some(Role::User) {
            self.thoughts = 0;
        }
        if let KnownContext::Told { usage: before, answer: Some(answer), by: teller, .. } =
            &self.known
            && next == Some(Role::Tool)
            && teller.keeps_thinking(answer, Role::Tool)
        {
            self.thoughts += before.reasoning;
        }
        self.set_reported(usage, history, messages, by);
    }

    fn set_reported(
        &mut self,
        usage: Usage,
        history: &[Arc<Message>],
        messages: usize,
        by: Counter,
    ) {
        let last = messages.checked_sub(1).and_then(|last| history.get(last));
        let answer = last.filter(|last| last.role() == Role::Assistant).cloned();
        let prefix_words = self.prefix.words;
        self.known = KnownContext::Told { usage, answer, by, prefix_words };
        (self.messages, self.counted) = (messages, messages);
        self.since = ContextSize::default();
    }

    /// Learns from a call how many tokens the model counts for words that were new to it.
    fn learn_ratio(&mut self, usage: Usage, sent: &[Arc<Message>], by: &Counter) {
        let KnownContext::Told { by: teller, prefix_words, .. } = &self.known else { return };
        if teller != by || *prefix_words != self.prefix.words || sent.len() < self.messages {
            return;
        }
        let new = sent.get(self.messages..).unwrap_or_default();
        let size = ContextSize::from_messages(new.iter().map(AsRef::as_ref));
        if size.words < LEAST_TOKENS || !size.pictures.is_empty() {
            return;
        }
        let before = self.base_tokens(new.first().map(|first| first.role()), by);
        let took =
            usage.prompt_tokens().saturating_sub(before).saturating_sub(by.non_text_tokens(&size));
        let seen = (took as f64 / size.words as f64).clamp(*RATIOS.start(), *RATIOS.end());
        let weight = size.words as f64 / (size.words as f64 + HALF_TOKENS);
        let ratio = self.token_ratio(by);
        if self.ratios.len() < MAX_MODELS || self.ratios.contains_key(&by.name) {
            self.ratios.insert(by.name.clone(), ratio + weight * (seen - ratio));
        }
    }

    /// From now on, models receive `told` in place of the first `messages` of the history.
    pub fn replace_first_messages<'a>(
        &mut self,
        told: impl IntoIterator<Item = &'a Message>,
        messages: usize,
    ) {
        self.known = KnownContext::Estimated(ContextSize::from_messages(told));
        (self.messages, self.counted) = (messages, messages);
        self.since = ContextSize::default();
        self.thoughts = 0;
    }
}

fn is_answered(history: &[Arc<Message>], messages: usize) -> bool {
    let last = messages.checked_sub(1).and_then(|last| history.get(last));
    last.is_some_and(|last| last.role() == Role::Assistant)
}

/// Reports whether part of an answer is reasoning that is not shown.
fn is_hidden(answer: &Message, usage: &Usage) -> bool {
    let hidden = |it: &Content| match it {
        Content::Thinking(thinking) => thinking.signature.is_some() && thinking.text.is_empty(),
        Content::RedactedThinking(_) => true,
        Content::Text(_) | Content::Image(_) | Content::ToolCall(_) | Content::ToolResult(_) => {
            false
        }
    };
    usage.reasoning == 0 && answer.content().iter().any(hidden)
}

/// The reported size of an answer, unless it is far more than what is sent back of it: then the model thought
/// without saying so.
fn clamp_reported(told: u64, own: u64, is_hidden: bool) -> u64 {
    let most = scale_tokens(own, SLACK) + SLACK_TOKENS;
    if told > most && !is_hidden { own } else { told }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, ToolCall, ToolResult};
    use proptest::prelude::*;

    use super::*;
    use gnoma_router::Wire;

    fn by(model: &str) -> Counter {
        let name = ModelRef { provider: "p".into(), model: model.into() };
        Counter { wire: Wire::Chat, name }
    }

    fn call() -> ToolCall {
        ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object())
    }

    fn asking() -> Arc<Message> {
        Arc::new(Message::assistant(vec![Content::ToolCall(call())], None, None).unwrap())
    }

    fn result(words: usize) -> Arc<Message> {
        let result = ToolResult::from_text(&call(), "word ".repeat(words), false);
        Arc::new(Message::results(vec![result]).unwrap())
    }

    fn used(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    #[test]
    fn context_size_starts_from_provider_usage_and_adds_new_messages() {
        let mut history = vec![Arc::new(Message::user_text("go")), asking()];
        let mut tracker = Tracker::default();
        tracker.record_usage(used(1_000, 20), &history, 2, by("m"));
        assert_eq!(tracker.count_tokens(&history, &by("m")), 1_020);
        history.push(result(100));
        let more = tracker.count_tokens(&history, &by("m"));
        assert!((1_110..1_180).contains(&more), "{more}");
        let other = tracker.count_tokens(&history, &by("claude-sonnet-4-5"));
        assert!(other > more * 11 / 10, "another vocabulary counts otherwise: {other}");
    }

    #[test]
    fn context_size_learns_tokens_per_word_of_the_model() {
        let mut history = vec![Arc::new(Message::user_text("go")), asking()];
        let mut tracker = Tracker::default();
        tracker.record_usage(used(1_000, 20), &history, 2, by("m"));
        for round in 1..=4 {
            history.extend([result(2_000), asking()]);
            // Twice what gnoma takes them for.
            let input = 1_000 + round * 4_030;
            tracker.record_usage(used(input, 20), &history, history.len(), by("m"));
        }
        let before = tracker.count_tokens(&history, &by("m"));
        history.push(result(2_000));
        let new = tracker.count_tokens(&history, &by("m")) - before;
        assert!(new.abs_diff(4_010) < 200, "{new}");
    }

    #[test]
    fn context_size_includes_a_changed_system_prompt_and_tools() {
        let history = vec![Arc::new(Message::user_text("go"))];
        let mut tracker = Tracker::default();
        let (system, none): (Arc<str>, Arc<[Arc<ToolSpec>]>) = ("be brief".into(), Arc::default());
        tracker.set_prefix(&system, &none);
        tracker.record_usage(used(500, 5), &history, 1, by("m"));
        let before = tracker.count_tokens(&history, &by("m"));
        tracker.set_prefix(&"word ".repeat(300).into(), &none);
        assert!(tracker.count_tokens(&history, &by("m")).abs_diff(before + 330) < 20);
    }

    proptest! {
        #[test]
        fn context_size_does_not_depend_on_how_often_it_is_counted(
            words in prop::collection::vec(0..200_usize, 1..8), at in any::<prop::sample::Index>(),
        ) {
            let history: Vec<_> = words.iter().flat_map(|words| [asking(), result(*words)]).collect();
            let (mut often, mut once) = (Tracker::default(), Tracker::default());
            let messages = at.index(history.len() + 1);
            for tracker in [&mut often, &mut once] {
                tracker.record_usage(used(900, 9), &history, messages, by("m"));
            }
            for end in messages..history.len() {
                often.count_tokens(&history[..end], &by("m"));
            }
            prop_assert_eq!(often.count_tokens(&history, &by("m")), once.count_tokens(&history, &by("m")));
        }
    }
}
