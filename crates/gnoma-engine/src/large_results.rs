//! Stores large tool results away and leaves a short text with a reference in the conversation.
//!
//! What stays in the history is the beginning, the end, and how to read the rest. Failures,
//! refusals and what was read from the result store stay whole: the model must see all of them. The same
//! result gets the same words again, so that a model going in circles is still recognised.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    ResultPart, ToolOutcome, duration,
    store::{ResultId, ResultStore},
    text_truncation,
    tool::ToolOutput,
};
use gnoma_guard::firewall::Firewall;
use tokio::time::timeout;

use crate::{session_notices::NoticeSender, tokens};

/// Bytes shown of the beginning, where output says what it is.
const HEAD_BYTES: usize = 4096;
/// Bytes shown of the end, where output says how it went.
const TAIL_BYTES: usize = 2048;
/// Results that are recognised when they come again.
const MAX_RECENT: usize = 32;
/// The time that a result store may take for a result; after that, the result is sent whole.
const PATIENCE: Duration = Duration::from_secs(15);

/// A result store, with what a session adds to it.
pub(crate) struct LargeResults {
    result_store: Arc<dyn ResultStore>,
    firewall: Arc<Firewall>,
    /// Results of more tokens are put away.
    max_tokens: usize,
    asides: NoticeSender,
    recent: Mutex<VecDeque<(u64, ResultId)>>,
    hasher: RandomState,
    has_told: AtomicBool,
}

impl LargeResults {
    pub(crate) fn new(
        result_store: Arc<dyn ResultStore>,
        firewall: Arc<Firewall>,
        max_tokens: usize,
        asides: NoticeSender,
    ) -> Self {
        Self {
            result_store,
            firewall,
            max_tokens,
            asides,
            recent: Mutex::default(),
            hasher: RandomState::new(),
            has_told: AtomicBool::new(false),
        }
    }

    /// Returns the outcome of a call as the history receives it, with a large result moved to the result store.
    /// `reader` names the tool that reads results back.
    pub(crate) async fn put_away(&self, reader: &str, outcome: ToolOutcome) -> ToolOutcome {
        match outcome {
            ToolOutcome::Done(output) if self.is_large(&output) => {
                ToolOutcome::Done(self.shorten_output(output, reader).await)
            }
            whole => whole,
        }
    }

    /// Stores a result that the conversation does without from now on.
    pub(crate) async fn set_aside(&self, text: &str) -> Option<ResultId> {
        self.store_text(&self.firewall.redact_text(text)).await
    }

    fn is_large(&self, output: &ToolOutput) -> bool {
        let texts = || output.parts.iter().filter_map(text_of);
        texts().map(str::len).sum::<usize>() > self.max_tokens.max(HEAD_BYTES + TAIL_BYTES)
            && texts().map(tokens::estimate).sum::<usize>() > self.max_tokens
    }

    async fn shorten_output(&self, output: ToolOutput, reader: &str) -> ToolOutput {
        let texts: Vec<_> = output.parts.iter().filter_map(text_of).collect();
        let text = self.firewall.redact_text(&texts.join("\n")).into_owned();
        let Some(id) = self.store_text(&text).await else { return output };
        let preview = ResultPart::Text { text: render_preview(&text, &id, reader) };
        let pictures = output.parts.into_iter().filter(|part| text_of(part).is_none());
        let parts = std::iter::once(preview).chain(pictures).collect();
        ToolOutput { parts, diff: output.diff, report: output.report }
    }

    async fn store_text(&self, text: &str) -> Option<ResultId> {
        let hash = self.hasher.hash_one(text);
        if let Some(id) = self.find_recent(hash) {
            return Some(id);
        }
        let why = match timeout(PATIENCE, self.result_store.save_result(text.to_owned())).await {
            Ok(Ok(id)) => {
                self.add_recent(hash, id.clone());
                return Some(id);
            }
            Ok(Err(error)) => error.sentence,
            Err(_late) => format!("no answer for {}", duration::format_duration(PATIENCE)),
        };
        if !self.has_told.swap(true, Ordering::Relaxed) {
            self.asides.warn(format!(
                "could not store a large result: {why}; the model is sent all of it, which costs tokens on every call"
            ));
        }
        None
    }

    fn find_recent(&self, hash: u64) -> Option<ResultId> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().find(|(known, _)| *known == hash).map(|(_, id)| id.clone())
    }

    fn add_recent(&self, hash: u64, id: ResultId) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.truncate(MAX_RECENT - 1);
        recent.push_front((hash, id));
    }
}

/// Extracts the id under which a result was stored from its shortened text, which shows only the beginning and the
/// end.
pub(crate) fn kept_as(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(" bytes are left out here and kept as `")?;
    rest.split_once('`').map(|(id, _)| id)
}

fn text_of(part: &ResultPart) -> Option<&str> {
    match part {
        ResultPart::Text { text } => Some(text),
        ResultPart::Image(_) => None,
    }
}

/// Beginning and end of `text` by whole lines, with a line in between on what is left out and how to
/// read it.
fn render_preview(text: &str, id: &ResultId, reader: &str) -> String {
    let head = head_lines(text);
    let rest = text.get(head.len()..).unwrap_or_default();
    let tail = tail_lines(rest);
    let hidden = rest.len() - tail.len();
    let (from, all) = (head.len(), text.len());
    let line_end = if head.ends_with('\n') { "" } else { "\n" };
    format!(
        "{head}{line_end}[… {hidden} of {all} bytes are left out here and kept as `{id}`: \
         {reader} with {{\"id\":\"{id}\",\"from\":{from}}} reads on, with a \"pattern\" it finds \
         lines …]\n{tail}"
    )
}

/// The first lines, or the beginning of a first line that is too long.
fn head_lines(text: &str) -> &str {
    let most = text_truncation::word_prefix(text, HEAD_BYTES);
    let lines = most.rfind('\n').map(|end| end + 1).filter(|_| most.len() < text.len());
    most.get(..lines.unwrap_or(most.len())).unwrap_or(most)
}

/// The last lines, or the end of a last line that is too long.
fn tail_lines(text: &str) -> &str {
    let most = text_truncation::word_suffix(text, TAIL_BYTES);
    // A line that begins before `start` is not shown in part, unless there is nothing else.
    let whole = most.find('\n').map_or("", |end| most.get(end + 1..).unwrap_or_default());
    if most.len() == text.len() || whole.is_empty() { most } else { whole }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> ResultId {
        ResultId::new("r1")
    }

    proptest! {
        #[test]
        fn large_result_preview_shows_head_and_tail_and_the_read_offset(
            lines in prop::collection::vec("[a-zäé ]{0,300}", 1..200),
        ) {
            let text = lines.join("\n");
            let shown = render_preview(&text, &id(), "reads_back");
            let (from, before) = (head_lines(&text).len(), head_lines(&text));
            let after = tail_lines(&text[from..]);
            prop_assert!(shown.starts_with(before) && shown.ends_with(after));
            prop_assert!(before.len() <= HEAD_BYTES && after.len() <= TAIL_BYTES);
            prop_assert!(from + after.len() <= text.len());
            let place = format!("\"from\":{from}}}");
            prop_assert!(shown.contains(&place));
        }
    }

    #[test]
    fn large_result_preview_cuts_at_line_breaks() {
        let text = (0..2_000).map(|n| format!("line {n}\n")).collect::<String>();
        let (head, tail) = (head_lines(&text), tail_lines(&text));
        assert!(head.ends_with('\n') && tail.starts_with("line ") && tail.ends_with("1999\n"));
        let long = "ä".repeat(10_000);
        assert_eq!(
            (super::head_lines(&long).len(), super::tail_lines(&long).len()),
            (HEAD_BYTES, TAIL_BYTES)
        );
    }
}
