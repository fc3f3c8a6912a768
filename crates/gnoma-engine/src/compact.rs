//! Plans a compaction: which messages stay as they are, which are summarized, and whether the summary
//! is good enough. Pure.

use std::sync::Arc;

use gnoma_core::{Message, Role, message::Content, text_truncation};

use crate::{
    context::brief::Brief,
    prompt::{self, is_from_user},
    tokens,
};

/// Most messages at the end that stay as they are.
pub(crate) const MAX_TAIL_MESSAGES: usize = 6;
/// A conversation of no more messages has nothing to shorten.
pub(crate) const FEW_MESSAGES: usize = 2;
/// Most tokens of a summary.
const SUMMARY_TOKENS: u32 = 2_048;
/// The fraction of the window, as a divisor, that the messages which stay verbatim may take at most.
const TAIL_SHARE: u64 = 4;
/// A summary takes at most this part of the window.
const SUMMARY_SHARE: u32 = 8;
/// The window of an arm of which none is known.
pub(crate) const UNKNOWN_WINDOW_TOKENS: u32 = 32_768;
/// Without a person's request, compaction happens only if the past is at least this many times as long as a
/// summary.
const WORTH: u64 = 2;
/// Tokens that an image is taken for.
const IMAGE_TOKENS: u64 = 1_000;

/// The beginning of a conversation that a summary replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SummarizedRange {
    /// The parts of it that stay word for word, and a list of what was done.
    pub(crate) brief: Arc<Brief>,
    /// Messages at the beginning of the history.
    pub(crate) messages: usize,
    /// Tokens of it as models receive it.
    pub(crate) past_tokens: u64,
    /// Tokens of the window that the conversation has to fit, if known.
    pub(crate) window_tokens: Option<u32>,
}

/// The summary, beside what is kept verbatim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactionSummary {
    /// A summary; without one the past is left out.
    pub(crate) summary: Option<String>,
    /// Names of the results that moved to the result store.
    pub(crate) aside: Vec<String>,
    /// Files that are not what they were when they were read, and their text.
    pub(crate) read_back: Vec<(String, String)>,
}

impl SummarizedRange {
    /// The replacement for the past, as text and as a message.
    ///
    /// # Errors
    /// There is no summary although there should be one, or it is not shorter than what it replaces.
    pub(crate) fn build_summary(
        &self,
        told: &CompactionSummary,
    ) -> Result<(String, Message), &'static str> {
        let summary = match &told.summary {
            // What an earlier summary told is all that is known of what it stands for.
            None => match clip_summary(self.brief.earlier_summary(), self.window_tokens) {
                Some(before) => format!("{before}\n\n{}", prompt::LEFT_OUT),
                None => prompt::LEFT_OUT.to_owned(),
            },
            Some(answer) => {
                let words =
                    clip_summary(answer, self.window_tokens).ok_or("the model gave no summary")?;
                if tokens::estimate(&words) as u64 >= self.past_tokens {
                    return Err("the summary is no shorter than the conversation");
                }
                words
            }
        };
        let mut brief = Brief::clone(&self.brief);
        told.aside.iter().for_each(|what| brief.set_aside(what.clone()));
        let mut text = brief.render_text(&summary, &told.read_back);
        // Files and skills can be had again: they go before the conversation grows by being compacted.
        if self.is_no_shorter(&text) {
            text = brief.render_text(&summary, &[]);
        }
        if self.is_no_shorter(&text) {
            text = brief.without_skills().render_text(&summary, &[]);
        }
        let message = Message::user_text(prompt::summary_note(&text));
        Ok((text, message))
    }

    fn is_no_shorter(&self, text: &str) -> bool {
        tokens::estimate(text) as u64 >= self.past_tokens
    }
}

/// Returns the index in `rest` at which the messages begin that stay as they are; everything before it is
/// summarized. `rest` holds the messages after an earlier summary, if there is one.
///
/// At most [`MAX_TAIL_MESSAGES`] stay, and no more than fit a part of the window; they begin with a message of a
/// person, or else with an answer, so that no result is separated from its call. The last message without an answer
/// always stays. `None` if there is nothing to summarize.
pub(crate) fn find_cut(
    has_summary: bool,
    rest: &[Arc<Message>],
    window_tokens: Option<u32>,
) -> Option<usize> {
    let all = rest.len() + usize::from(has_summary);
    if all <= FEW_MESSAGES {
        return None;
    }
    let first = rest.len().saturating_sub(MAX_TAIL_MESSAGES.min(all - FEW_MESSAGES));
    let most = u64::from(window_tokens.unwrap_or(UNKNOWN_WINDOW_TOKENS)) / TAIL_SHARE;
    let fits = |at: &usize| rest.get(*at..).is_some_and(|tail| estimate_messages(tail) <= most);
    let begins = |wanted: fn(&Message) -> bool| {
        (first..rest.len()).filter(move |at| rest.get(*at).is_some_and(|it| wanted(it)))
    };
    let begins_with_answer = |message: &Message| message.role() == Role::Assistant;
    let unanswered =
        || rest.len().checked_sub(1).filter(|last| begins(is_from_user).any(|at| at == *last));
    let at = begins(is_from_user)
        .find(fits)
        .or_else(|| begins(begins_with_answer).find(fits))
        .or_else(unanswered)
        .unwrap_or(rest.len());
    (at > 0).then_some(at)
}

/// Reports whether a past of so many tokens is worth a model call that no person has asked for.
pub(crate) fn is_worth_it(past_tokens: u64, window_tokens: Option<u32>) -> bool {
    past_tokens >= u64::from(summary_tokens(window_tokens)) * WORTH
}

/// Most tokens of a summary in a window.
pub(crate) fn summary_tokens(window_tokens: Option<u32>) -> u32 {
    SUMMARY_TOKENS.min(window_tokens.unwrap_or(UNKNOWN_WINDOW_TOKENS) / SUMMARY_SHARE)
}

/// Tokens of messages, roughly.
pub(crate) fn estimate_messages(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| tokens_of(message)).sum()
}

fn tokens_of(message: &Message) -> u64 {
    let text = |text: &str| tokens::estimate(text) as u64;
    let content = |content: &Content| match content {
        Content::Text(said) => text(&said.text),
        Content::Thinking(thinking) => text(&thinking.text),
        Content::ToolCall(call) => text(&call.name) + text(call.arguments.get()),
        Content::ToolResult(result) => {
            text(&result.joined_text()) + IMAGE_TOKENS * result.images().count() as u64
        }
        Content::Image(_) => IMAGE_TOKENS,
        Content::RedactedThinking(_) => 0,
    };
    message.content().iter().map(content).sum()
}

/// The text of an answer, up to the allowed length; `None` if there is none.
pub(crate) fn clip_summary(answer: &str, window_tokens: Option<u32>) -> Option<String> {
    let most = summary_tokens(window_tokens) as usize;
    let mut text = answer.trim();
    // Each step takes at least one byte away, mostly all that is too much.
    while let counted @ 1.. = tokens::estimate(text)
        && counted > most
    {
        let shorter = (text.len().saturating_mul(most) / counted).min(text.len() - 1);
        text = text_truncation::word_prefix(text, shorter);
    }
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, ToolCall, ToolResult};
    use proptest::prelude::*;

    use super::*;

    fn call() -> ToolCall {
        ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object())
    }

    /// Rounds of a conversation: something said, then so many calls with results of a length.
    fn conversation(rounds: &[(u8, usize)]) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        for (calls, length) in rounds {
            messages.push(Message::user_text("do it"));
            for _ in 0..*calls {
                messages
                    .push(Message::assistant(vec![Content::ToolCall(call())], None, None).unwrap());
                let result = ToolResult::from_text(&call(), "out ".repeat(*length), false);
                messages.push(Message::results(vec![result]).unwrap());
            }
            messages
                .push(Message::assistant(vec![Content::from_text("done")], None, None).unwrap());
        }
        messages.into_iter().map(Arc::new).collect()
    }

    proptest! {
        #[test]
        fn compaction_keeps_a_short_valid_tail_of_the_conversation(
            rounds in prop::collection::vec((0..5_u8, 0..4_000_usize), 0..6),
            has_summary: bool,
            end in any::<prop::sample::Index>(),
            window in prop::option::of(1_000..200_000_u32),
        ) {
            let all = conversation(&rounds);
            // A turn may be in the middle, but not between a call and its result.
            let mut all = &all[..end.index(all.len() + 1)];
            if all.last().is_some_and(|last| last.tool_calls().next().is_some()) {
                all = &all[..all.len() - 1];
            }
            let Some(at) = find_cut(has_summary, all, window) else {
                prop_assert!(all.len() + usize::from(has_summary) <= FEW_MESSAGES);
                return Ok(());
            };
            let tail = &all[at..];
            prop_assert!(at > 0 && tail.len() <= MAX_TAIL_MESSAGES);
            prop_assert!(tail.first().is_none_or(|first| first.role() != Role::Tool));
            let most = u64::from(window.unwrap_or(UNKNOWN_WINDOW_TOKENS)) / TAIL_SHARE;
            prop_assert!(estimate_messages(tail) <= most || tail.len() == 1);
            if all.last().is_some_and(|last| last.role() == Role::User) {
                prop_assert!(!tail.is_empty(), "what is not answered yet stays");
            }
        }

        #[test]
        fn compacted_history_is_valid_and_keeps_the_tail_messages_identical(
            rounds in prop::collection::vec((0..5_u8, 0..400_usize), 1..6),
            summary in prop::option::of("[a-z# \n]{0,60}"),
            aside in prop::collection::vec("[a-z`]{0,20}", 0..3),
            window in prop::option::of(1_000..200_000_u32),
        ) {
            let all = conversation(&rounds);
            let Some(at) = find_cut(false, &all, window) else { return Ok(()) };
            let brief = Brief::from_past(&all[..at], &Default::default(), window);
            let past_tokens = estimate_messages(&all[..at]);
            let cut = SummarizedRange { brief: brief.into(), messages: at, past_tokens, window_tokens: window };
            let has_summary = summary.is_some();
            let retelling = CompactionSummary { summary, aside, read_back: Vec::new() };
            let Ok((text, message)) = cut.build_summary(&retelling) else {
                prop_assert!(has_summary, "what is left out needs nobody");
                return Ok(());
            };
            prop_assert!(!text.trim().is_empty());
            let told: Vec<Arc<Message>> =
                [Arc::new(message)].into_iter().chain(all[at..].iter().cloned()).collect();
            prop_assert!(told.iter().all(|message| !message.content().is_empty()));
            let mut open: Vec<CallId> = Vec::new();
            for message in &told {
                let answered: Vec<_> = message.tool_results().map(|it| it.call_id.clone()).collect();
                prop_assert_eq!(&answered, &open, "each result right after its call");
                open = message.tool_calls().map(|call| call.id.clone()).collect();
            }
            // Nothing of a message that stays is left out, so no signature is parted from what it signs.
            let stays = told[1..].iter().zip(&all[at..]).all(|(told, was)| Arc::ptr_eq(told, was));
            prop_assert!(stays);
        }

        #[test]
        fn compaction_summary_is_clipped_to_its_share_of_the_context_window(text in ".{0,300}", window in 8..400_u32) {
            let words = clip_summary(&text, Some(window));
            let counted = words.as_deref().map_or(0, tokens::estimate);
            prop_assert!(counted <= (window / SUMMARY_SHARE) as usize);
        }
    }

    fn cut_of(brief: Brief) -> SummarizedRange {
        SummarizedRange { brief: brief.into(), messages: 4, past_tokens: 500, window_tokens: None }
    }

    #[test]
    fn previous_summary_survives_a_compaction_without_a_new_one() {
        let said = Arc::new(Message::user_text("Never use tabs."));
        let brief = Brief::from_past(&[said], &Default::default(), None);
        let summary = Some("We wrote the parser.".to_owned());
        let (_, told) = cut_of(brief)
            .build_summary(&CompactionSummary { summary, ..Default::default() })
            .unwrap();
        let mut past = vec![Arc::new(told)];
        for _ in 0..2 {
            let brief = Brief::from_past(&past, &Default::default(), None);
            let (text, told) = cut_of(brief).build_summary(&CompactionSummary::default()).unwrap();
            assert!(text.contains("We wrote the parser.") && text.contains("Never use tabs."));
            assert_eq!(text.matches(prompt::LEFT_OUT).count(), 1, "{text}");
            past = vec![Arc::new(told)];
        }
    }

    #[test]
    fn compaction_reads_back_no_files_that_would_lengthen_the_history() {
        let read_back = vec![("a.rs".to_owned(), "let x = 1;\n".repeat(400))];
        let retelling = CompactionSummary { read_back, ..Default::default() };
        let (text, _) = cut_of(Brief::default()).build_summary(&retelling).unwrap();
        assert!(!text.contains("let x"), "{text}");
    }
}
