//! `read_result`: what was too large for the conversation and was put into the session's result store.
//!
//! Nothing but the result store can be named: handles are no paths. How much one call shows is bounded, and
//! each answer says where the next begins.

use std::sync::Arc;

use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    store::{ResultId, ResultStore, StoreError},
    text_truncation,
    tool::{Access, BoxFuture, Tier, ToolKind},
};
use serde::Deserialize;

use crate::{args, line_pattern::LinePattern};

/// Bytes shown when the call does not say.
const DEFAULT_BYTES: usize = 8 * 1024;
/// Most bytes one call shows.
const MAX_BYTES: usize = 32 * 1024;
/// Fewest bytes: a call always gets somewhere.
const MIN_BYTES: usize = 256;
/// Bytes taken from the result store at a time while lines are looked for; a longer line is looked at in
/// parts.
const SEARCHED_AT_A_TIME: usize = 256 * 1024;
/// Most bytes one call looks through.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;
/// Bytes of one found line that are shown.
const MAX_LINE_BYTES: usize = 400;
/// Memory a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The tool, reading from one session's result store.
#[must_use]
pub fn read_result(results: Arc<dyn ResultStore>) -> Arc<dyn Tool> {
    Arc::new(ReadResult { spec: read_result_spec(), results })
}

/// The arguments of a call of the tool.
#[derive(Deserialize)]
struct ReadResultArguments {
    id: String,
    from: Option<u64>,
    max: Option<usize>,
    pattern: Option<String>,
}

struct ReadResult {
    spec: ToolSpec,
    results: Arc<dyn ResultStore>,
}

impl Tool for ReadResult {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let results = Arc::clone(&self.results);
        Box::pin(async move {
            let arguments = match args::read_arguments::<ReadResultArguments>(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            tokio::select! {
                biased;
                () = cx.stop.cancelled() => ToolOutcome::Interrupted(String::new()),
                outcome = read_stored_result(&*results, arguments) => outcome,
            }
        })
    }
}

const NAME: &str = "read_result";

fn read_result_spec() -> ToolSpec {
    let spec = args::tool_spec(
        NAME,
        Access::Read,
        [],
        Tier::Full,
        "Read a kept tool result by its handle, such as r1: a stretch of it, or its lines that match \
         a regex.",
        r#"{"type":"object","properties":{"id":{"type":"string"},"from":{"type":"integer","description":"byte to start at"},"max":{"type":"integer","description":"bytes to show, default 8192"},"pattern":{"type":"string","description":"only lines that match"}},"required":["id"]}"#,
    );
    ToolSpec { kind: ToolKind::ReadsResults, ..spec }
}

async fn read_stored_result(
    results: &dyn ResultStore,
    arguments: ReadResultArguments,
) -> ToolOutcome {
    let ReadResultArguments { id, from, max, pattern } = arguments;
    let place = ReadRange { results, id: ResultId::new(id), from: from.unwrap_or(0) };
    let max = max.unwrap_or(DEFAULT_BYTES).clamp(MIN_BYTES, MAX_BYTES);
    let answer = match pattern.filter(|pattern| !pattern.is_empty()) {
        None => place.read_slice(max).await,
        Some(pattern) => match LinePattern::compile(&pattern, MAX_PATTERN_BYTES) {
            Ok(pattern) => place.find_lines(&pattern, max).await,
            Err(error) => return ToolOutcome::failure_text(error.to_string()),
        },
    };
    match answer {
        Ok(text) => ToolOutcome::success_text(text),
        Err(error) => ToolOutcome::failure_text(format!(
            "the result cannot be read: {}; if it is gone, make the call again that gave it",
            error.sentence
        )),
    }
}

/// The place in a stored result from which to read.
struct ReadRange<'a> {
    results: &'a dyn ResultStore,
    id: ResultId,
    from: u64,
}

impl ReadRange<'_> {
    /// A slice as it is.
    async fn read_slice(self, max: usize) -> Result<String, StoreError> {
        let Self { results, id, from } = self;
        let slice = results.read_slice(id, from, max).await?;
        let total = slice.total_bytes;
        if from >= total {
            return Ok(format!("[there is nothing at {from}: the result has {total} bytes]"));
        }
        let line_end = if slice.text.ends_with('\n') { "" } else { "\n" };
        let text = slice.text;
        Ok(match slice.next {
            Some(next) => format!("{text}{line_end}[{total} bytes in all; go on with from={next}]"),
            None => format!("{text}{line_end}[the end]"),
        })
    }

    /// Lines that match, each with the byte it begins at.
    async fn find_lines(self, pattern: &LinePattern, max: usize) -> Result<String, StoreError> {
        let mut found = MatchingLines { pattern, max, text: String::new() };
        let mut at = self.from;
        let end = at.saturating_add(MAX_SEARCHED_BYTES);
        loop {
            let slice = self.results.read_slice(self.id.clone(), at, SEARCHED_AT_A_TIME).await?;
            if let Some(full_at) = found.add_matches(at, &slice.text) {
                return Ok(
                    found.finish_with(&format!("[more may match; go on with from={full_at}]"))
                );
            }
            match slice.next {
                Some(next) if next <= at || next >= end => {
                    return Ok(found
                        .finish_with(&format!("[searched up to {next}; go on with from={next}]")));
                }
                Some(next) => at = next,
                None if found.text.is_empty() => {
                    return Ok(format!("no line matches from {} on", self.from));
                }
                None => return Ok(found.finish_with("[the end]")),
            }
        }
    }
}

/// Lines found so far.
struct MatchingLines<'a> {
    pattern: &'a LinePattern,
    max: usize,
    text: String,
}

impl MatchingLines<'_> {
    /// Takes the matching lines of a slice that begins at byte `at`; gives the byte of the first
    /// for which there is no room.
    fn add_matches(&mut self, mut at: u64, slice: &str) -> Option<u64> {
        for line in slice.split_inclusive('\n') {
            let words = line.trim_end_matches(['\r', '\n']);
            if self.pattern.is_match(words.as_bytes()) {
                let shown = text_truncation::word_prefix(words, MAX_LINE_BYTES);
                let mark = if shown.len() < words.len() { "…" } else { "" };
                let row = format!("{at}: {shown}{mark}\n");
                // The first one is shown whatever its length: a call always gets somewhere.
                if !self.text.is_empty() && self.text.len() + row.len() > self.max {
                    return Some(at);
                }
                self.text.push_str(&row);
            }
            at += line.len() as u64;
        }
        None
    }

    fn finish_with(self, last: &str) -> String {
        self.text + last
    }
}

#[cfg(test)]
mod tests {
    use std::{future, sync::Mutex};

    use gnoma_core::{
        CallId, RawJson,
        store::{ResultSlice, StoreErrorKind, StoreFuture},
        tool::Grant,
    };
    use serde_json::{Value, json};
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// One result, `r1`, given out by whole lines.
    struct OneResult(Mutex<String>);

    impl ResultStore for OneResult {
        fn save_result(&self, text: String) -> StoreFuture<'_, ResultId> {
            *self.0.lock().unwrap() = text;
            Box::pin(future::ready(Ok(ResultId::new("r1"))))
        }

        fn read_slice(
            &self,
            id: ResultId,
            from: u64,
            max_bytes: usize,
        ) -> StoreFuture<'_, ResultSlice> {
            let text = self.0.lock().unwrap();
            let from = usize::try_from(from).unwrap().min(text.len());
            let most = (from + max_bytes).min(text.len());
            let end = match text[from..most].rfind('\n') {
                Some(end) if most < text.len() => from + end + 1,
                _ => most,
            };
            let slice = ResultSlice {
                text: text[from..end].to_owned(),
                next: (end < text.len()).then_some(end as u64),
                total_bytes: text.len() as u64,
            };
            let known = id.as_str() == "r1";
            let none = StoreError::new(StoreErrorKind::NotFound, format!("there is no `{id}`"));
            Box::pin(future::ready(if known { Ok(slice) } else { Err(none) }))
        }
    }

    async fn asked(text: &str, arguments: Value) -> ToolOutcome {
        let tool = read_result(Arc::new(OneResult(Mutex::new(text.to_owned()))));
        let arguments = RawJson::from_value(&arguments).unwrap();
        let cx = ToolCx {
            cwd: Arc::default(),
            roots: Arc::default(),
            grant: Grant::default(),
            stop: CancellationToken::new(),
            progress: mpsc::channel(1).0,
            stores_large_results: false,
            budget: Default::default(),
            session: None,
            traceparent: None,
        };
        tool.run(ToolCall::new(CallId::new("c"), NAME, arguments), cx).await
    }

    async fn read_text(text: &str, arguments: Value) -> String {
        let call = ToolCall::new(CallId::new("c"), NAME, RawJson::empty_object());
        asked(text, arguments).await.into_result(&call).joined_text()
    }

    fn lines(count: usize) -> String {
        (0..count).map(|n| format!("line {n:05}\n")).collect()
    }

    #[tokio::test]
    async fn read_result_pages_join_to_the_whole_text() {
        let text = lines(4_000);
        let (mut read, mut from) = (String::new(), 0_u64);
        loop {
            let answer = read_text(&text, json!({"id": "r1", "from": from, "max": 9_000})).await;
            assert!(answer.len() < 9_100);
            let (piece, note) = answer.rsplit_once('[').unwrap();
            read.push_str(piece);
            match note.strip_suffix(']').unwrap().rsplit_once("from=") {
                Some((_, next)) => from = next.parse().unwrap(),
                None => break,
            }
        }
        assert_eq!(read, text);
        let beyond = read_text(&text, json!({"id": "r1", "from": 1_000_000})).await;
        assert!(beyond.contains("has 44000 bytes"), "{beyond}");
    }

    #[tokio::test]
    async fn read_result_pattern_finds_lines_with_their_offsets() {
        let text = lines(40_000);
        let found = read_text(&text, json!({"id": "r1", "pattern": "line 3[0]{4}$"})).await;
        assert_eq!(found, "330000: line 30000\n[the end]");
        let on = read_text(&text, json!({"id": "r1", "pattern": "line", "max": 300})).await;
        assert!(on.len() < 400 && on.contains("more may match; go on with from="), "{on}");
        let none = read_text(&text, json!({"id": "r1", "pattern": "word", "from": 11})).await;
        assert_eq!(none, "no line matches from 11 on");
    }

    #[tokio::test]
    async fn read_result_errors_name_the_unknown_id_or_invalid_pattern() {
        for (arguments, why) in [
            (json!({"id": "../r1"}), "there is no `../r1`"),
            (json!({"id": "r1", "pattern": "("}), "not a valid regular expression"),
            (json!({}), "do not fit"),
        ] {
            match asked("x", arguments).await {
                ToolOutcome::Failed(output) => {
                    assert!(format!("{:?}", output.parts).contains(why), "{output:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn read_result_spec_is_short() {
        let spec = read_result_spec();
        assert!(spec.parameters.read::<Value>().unwrap()["properties"]["id"].is_object());
        assert!(spec.description.len() + spec.parameters.get().len() <= 500);
    }
}
