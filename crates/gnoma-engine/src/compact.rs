//! Telling the past of a conversation in fewer words: what of it stays as it is, and whether the words
//! are any good. What an arm is asked is [`crate::past`]'s. Pure.

use std::sync::Arc;

use gnoma_core::{Message, Role, cut, message::Content};

use crate::{prompt, tokens};

/// Most messages at the end that stay as they are.
pub(crate) const MAX_TAIL_MESSAGES: usize = 6;
/// A conversation of no more messages has nothing to shorten.
pub(crate) const FEW_MESSAGES: usize = 2;
/// Most tokens of a summary.
const SUMMARY_TOKENS: u32 = 2_048;
/// What stays as it is takes at most this part of the window.
const TAIL_SHARE: u64 = 4;
/// A summary takes at most this part of the window.
const SUMMARY_SHARE: u32 = 8;
/// What stays besides a summary takes at most this part of the window.
const KEPT_SHARE: u32 = 4;
/// What stands before it.
const KEPT: &str = "Skills that were loaded, word for word; they still hold:";
/// The window of an arm of which none is known.
pub(crate) const UNKNOWN_WINDOW_TOKENS: u32 = 32_768;
/// A window with fewer tokens left is about to be full.
const ROOM_TOKENS: u32 = 13_000;
/// Small windows are about to be full when less than this part is left.
const ROOM_SHARE: u32 = 3;
/// The past is shortened unasked only where it is at least this many times as long as a summary.
const WORTH: u64 = 2;
/// Tokens that an image is taken for.
const IMAGE_TOKENS: u64 = 1_000;

/// What a summary stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Messages at the beginning of the history.
    pub(crate) messages: usize,
    /// Tokens of what they are told as.
    pub(crate) past_tokens: u64,
    /// Tokens of the window that the conversation has to fit, where it is known.
    pub(crate) window_tokens: Option<u32>,
    /// What stays besides the summary.
    pub(crate) kept: Vec<String>,
}

impl Cut {
    /// The words of an answer as they may be, and as the message that stands in the place of the past.
    ///
    /// # Errors
    /// There are no words, or they are not fewer.
    pub(crate) fn summary(&self, answer: &str) -> Result<(String, Message), &'static str> {
        let words = words(answer, self.window_tokens).ok_or("the model gave no summary")?;
        let most = self.window_tokens.unwrap_or(UNKNOWN_WINDOW_TOKENS) / KEPT_SHARE;
        let kept = self.kept.join("\n");
        if !kept.is_empty() && tokens::estimate(&kept) <= most as usize {
            let whole = format!("{words}\n\n{KEPT}\n{kept}");
            let message = Message::user_text(prompt::summary(&whole));
            if tokens_of(&message) < self.past_tokens {
                return Ok((whole, message));
            }
        }
        let message = Message::user_text(prompt::summary(&words));
        if tokens_of(&message) >= self.past_tokens {
            return Err("the summary is no shorter than the conversation");
        }
        Ok((words, message))
    }
}

/// Where in `rest` the messages begin that stay as they are; all before is told in fewer words.
/// `rest` is what is said after an earlier summary, where there is one.
///
/// At most [`MAX_TAIL_MESSAGES`] stay, and no more than a part of the window takes; they begin with
/// something a person said, or else with an answer, so that no result is parted from its call. What
/// was said last and is not answered yet stays in any case. `None` where nothing would be told in
/// fewer words.
pub(crate) fn cut(
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
    let fits = |at: &usize| rest.get(*at..).is_some_and(|tail| estimate(tail) <= most);
    let begins = |wanted: fn(&Message) -> bool| {
        (first..rest.len()).filter(move |at| rest.get(*at).is_some_and(|it| wanted(it)))
    };
    let begins_with_answer = |message: &Message| message.role() == Role::Assistant;
    let unanswered = || rest.len().checked_sub(1).filter(|last| begins(said).any(|at| at == *last));
    let at = begins(said)
        .find(fits)
        .or_else(|| begins(begins_with_answer).find(fits))
        .or_else(unanswered)
        .unwrap_or(rest.len());
    (at > 0).then_some(at)
}

/// Whether a person said it.
pub(crate) fn said(message: &Message) -> bool {
    message.role() == Role::User && !prompt::is_note(message)
}

/// Whether a window is about to be full: `used` tokens are those of the last call.
pub(crate) fn is_filled(window_tokens: u32, used: u64) -> bool {
    let room = ROOM_TOKENS.min(window_tokens / ROOM_SHARE);
    used > u64::from(window_tokens - room)
}

/// Whether a past of so many tokens is worth a call that nobody has asked for.
pub(crate) fn is_worth_it(past_tokens: u64, window_tokens: Option<u32>) -> bool {
    past_tokens >= u64::from(summary_tokens(window_tokens)) * WORTH
}

/// Most tokens of a summary in a window.
pub(crate) fn summary_tokens(window_tokens: Option<u32>) -> u32 {
    SUMMARY_TOKENS.min(window_tokens.unwrap_or(UNKNOWN_WINDOW_TOKENS) / SUMMARY_SHARE)
}

/// Tokens of messages, roughly.
pub(crate) fn estimate(messages: &[Arc<Message>]) -> u64 {
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

/// The words of an answer, as far as they may be; `None` where there are none.
pub(crate) fn words(answer: &str, window_tokens: Option<u32>) -> Option<String> {
    let most = summary_tokens(window_tokens) as usize;
    let mut text = answer.trim();
    // Each step takes at least one byte away, mostly all that is too much.
    while let counted @ 1.. = tokens::estimate(text)
        && counted > most
    {
        let shorter = (text.len().saturating_mul(most) / counted).min(text.len() - 1);
        text = cut::head(text, shorter);
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
                let result = ToolResult::text(&call(), "out ".repeat(*length), false);
                messages.push(Message::results(vec![result]).unwrap());
            }
            messages.push(Message::assistant(vec![Content::text("done")], None, None).unwrap());
        }
        messages.into_iter().map(Arc::new).collect()
    }

    proptest! {
        #[test]
        fn what_stays_is_short_legal_and_not_all(
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
            let Some(at) = cut(has_summary, all, window) else {
                prop_assert!(all.len() + usize::from(has_summary) <= FEW_MESSAGES);
                return Ok(());
            };
            let tail = &all[at..];
            prop_assert!(at > 0 && tail.len() <= MAX_TAIL_MESSAGES);
            prop_assert!(tail.first().is_none_or(|first| first.role() != Role::Tool));
            let most = u64::from(window.unwrap_or(UNKNOWN_WINDOW_TOKENS)) / TAIL_SHARE;
            prop_assert!(estimate(tail) <= most || tail.len() == 1);
            if all.last().is_some_and(|last| last.role() == Role::User) {
                prop_assert!(!tail.is_empty(), "what is not answered yet stays");
            }
        }

        #[test]
        fn words_stay_within_their_limit(text in ".{0,300}", window in 8..400_u32) {
            let words = words(&text, Some(window));
            let counted = words.as_deref().map_or(0, tokens::estimate);
            prop_assert!(counted <= (window / SUMMARY_SHARE) as usize);
        }
    }

    #[test]
    fn what_is_kept_stays_word_for_word_where_it_fits() {
        let cut = |kept: &str| {
            let kept = vec![kept.to_owned()];
            Cut { messages: 1, past_tokens: 500, window_tokens: Some(4_000), kept }
        };
        let (words, _) = cut("<skill>d0 this</skill>").summary("short").unwrap();
        assert!(words.starts_with("short") && words.contains("d0 this"), "{words}");
        let (words, _) = cut(&"word ".repeat(3_000)).summary("short").unwrap();
        assert_eq!(words, "short");
    }

    #[test]
    fn large_windows_are_full_by_tokens_and_small_ones_by_share() {
        assert!(!is_filled(200_000, 187_000) && is_filled(200_000, 187_001));
        assert!(!is_filled(9_000, 6_000) && is_filled(9_000, 6_001));
    }
}
