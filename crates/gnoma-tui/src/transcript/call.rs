//! A tool's call in one line: its state, what it does, how long and how much; below it the end of its output while
//! it runs, and afterwards what it changed or why it failed.

use std::time::{Duration, Instant};

use gnoma_core::{
    CallId, ToolCall, ToolResult, duration,
    shell_line::skip_assignments,
    tool::{tool_label, unkept_trial_changes},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    folded_items::{Body, FoldedItem},
    image,
    layout::{self, format_size, truncate_text},
    options::TranscriptOptions,
    result_display::{self, ResultDisplay},
};
use crate::{
    clean, diff,
    text::{Line, Span, Style, TextRole, display_width},
};

/// Lines of the output of a running call that are shown.
const LIVE_LINES: usize = 3;
/// Lines of what a command printed, or of why a call failed: from the beginning and from the end.
const MAX_EXCERPT_LINES: usize = 5;
/// Columns from which on the key that unfolds is named.
const MIN_KEY_WIDTH: usize = 40;
/// Lines of a diff that are shown.
const MAX_DIFF_LINES: usize = 40;
/// Bytes of output that are kept for unfolding; of more the beginning.
const MAX_OUTPUT_BYTES: usize = 262_144;
/// Bytes of the end of running output.
const MAX_TAIL_BYTES: usize = 4_096;
/// Longest argument that is shown, in characters.
const MAX_ARGUMENT_CHARS: usize = 200;
/// Arguments of unknown tools longer than this are not looked at.
const MAX_UNKNOWN_BYTES: usize = 4_096;
/// Shorter times are not worth a word.
const MIN_SHOWN_MS: u64 = 100;
/// Smaller outputs are not either.
const MIN_SHOWN_BYTES: usize = 1_024;
/// Columns that are kept for the argument before time and size are left out.
const MIN_ARGUMENT_COLUMNS: usize = 8;
const INDENT: &str = "  ";
const BAR: &str = "│ ";

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    name: String,
    argument: String,
    state: CallState,
    tail: Tail,
    shows: ResultDisplay,
}

#[derive(Debug)]
enum CallState {
    Queued,
    Asked,
    Running { since: Option<Instant> },
    Refused { reason: String },
    Ended(CallEnd),
}

/// The end of a call.
#[derive(Debug)]
pub(super) struct CallEnd {
    failed: bool,
    refused: bool,
    text: String,
    bytes: usize,
    images: Vec<String>,
    diff: Option<String>,
    duration_ms: Option<u64>,
    /// The changes that the call made on trial and that were not saved.
    unkept: Option<String>,
}

impl CallEnd {
    pub(super) fn new(result: &ToolResult, diff: Option<&str>, duration_ms: Option<u64>) -> Self {
        let mut text = result.joined_text();
        let bytes = text.len();
        let unkept = unkept_trial_changes(&text);
        text.truncate(text.floor_char_boundary(MAX_OUTPUT_BYTES));
        Self {
            failed: result.is_error,
            refused: false,
            text,
            bytes,
            images: result.images().map(image::describe_image).collect(),
            diff: diff.map(str::to_owned),
            duration_ms,
            unkept,
        }
    }

    /// Returns the end of a call of which nothing was heard.
    pub(super) fn from_interruption() -> Self {
        Self {
            failed: true,
            refused: false,
            text: "interrupted".to_owned(),
            bytes: 0,
            images: Vec::new(),
            diff: None,
            duration_ms: None,
            unkept: None,
        }
    }
}

impl Call {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            argument: main_argument(call),
            state: CallState::Queued,
            tail: Tail::default(),
            shows: ResultDisplay::from_call(call),
        }
    }

    /// A call of which only the result is known.
    pub(super) fn without_arguments(id: &CallId, name: &str) -> Self {
        Self {
            id: id.clone(),
            name: name.to_owned(),
            argument: String::new(),
            state: CallState::Queued,
            tail: Tail::default(),
            shows: ResultDisplay::of_name(name),
        }
    }

    pub(super) fn mark_asked(&mut self) {
        self.state = CallState::Asked;
    }

    pub(super) fn record_decision(&mut self, allowed: bool, reason: &str) {
        self.state = if allowed {
            CallState::Queued
        } else {
            CallState::Refused { reason: reason.to_owned() }
        };
    }

    pub(super) fn start(&mut self, now: Option<Instant>) {
        self.state = CallState::Running { since: now };
    }

    pub(super) fn record_progress(&mut self, text: &str) {
        if !self.shows.record_progress(text) {
            self.tail.push(text);
        }
    }

    pub(super) fn record_end(&mut self, mut ended: CallEnd) {
        if let CallState::Refused { reason } = &mut self.state {
            ended.refused = true;
            ended.text = std::mem::take(reason);
        }
        self.tail = Tail::default();
        self.state = CallState::Ended(ended);
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, CallState::Ended(_))
    }

    pub(super) fn is_asked(&self) -> bool {
        matches!(self.state, CallState::Asked)
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running { .. })
    }

    /// Describes the call in words.
    pub(super) fn title(&self) -> String {
        format!("{} {}", tool_label(&self.name), self.argument).trim_end().to_owned()
    }

    /// Returns the part of the call that is not shown.
    pub(super) fn to_folded(&self) -> Option<FoldedItem> {
        let CallState::Ended(ended) = &self.state else { return None };
        let body = match &ended.diff {
            Some(diff) => Body::Diff(diff.clone()),
            None => Body::Text(ended.text.clone()),
        };
        let is_whole = matches!(self.shows, ResultDisplay::Plan(_)) && !ended.failed;
        let is_worth_it = ended.diff.is_some() || !ended.text.trim().is_empty() && !is_whole;
        is_worth_it.then(|| FoldedItem { title: self.title(), body })
    }

    pub(super) fn draw(
        &self,
        width: usize,
        now: Option<Instant>,
        options: TranscriptOptions,
    ) -> Vec<Line> {
        let mut lines = vec![self.head(width, now, options)];
        match &self.state {
            CallState::Running { .. } => {
                let elfs = self.shows.live_lines().map(clean::sanitize_output);
                for line in self.tail.last_lines(LIVE_LINES).into_iter().chain(elfs) {
                    let line = truncate_text(&format!("{INDENT}{BAR}{line}"), width);
                    lines.push(Line::new(line, Style::with_ink(TextRole::Dim)));
                }
            }
            CallState::Ended(ended) => lines.extend(ended.body(width, options, &self.shows)),
            CallState::Queued | CallState::Asked | CallState::Refused { .. } => {}
        }
        lines
    }

    fn head(&self, columns: usize, now: Option<Instant>, options: TranscriptOptions) -> Line {
        let (mark, word, ink) = self.state_mark();
        let mark = if options.accessible { format!("{word} ") } else { format!("{mark} ") };
        let mut tail = String::new();
        for fact in self.facts(now) {
            tail.push_str(&format!(" · {fact}"));
        }
        let name = truncate_text(
            &tool_label(&self.name),
            columns.saturating_sub(display_width(&mark)).max(1),
        );
        let used = display_width(&mark) + display_width(&name) + 1;
        let least = used + MIN_ARGUMENT_COLUMNS.min(display_width(&self.argument));
        if least + display_width(&tail) > columns {
            tail.clear();
        }
        let room = columns.saturating_sub(used + display_width(&tail));
        let mut spans =
            vec![Span::new(mark, Style::with_ink(ink)), Span::new(name, Style::default().bold())];
        if room > 1 && !self.argument.is_empty() {
            let argument = format!(" {}", truncate_text(&self.argument, room));
            spans.push(Span::new(argument, Style::default()));
        }
        if !tail.is_empty() {
            spans.push(Span::new(tail, Style::with_ink(TextRole::Dim)));
        }
        let line = Line { spans };
        // Only where not even the mark has room.
        line.wrap(columns, &Line::default()).into_iter().next().unwrap_or_default()
    }

    fn state_mark(&self) -> (&'static str, &'static str, TextRole) {
        match &self.state {
            CallState::Queued => ("·", "waiting:", TextRole::Dim),
            CallState::Asked => ("?", "asks:", TextRole::Warning),
            CallState::Running { .. } => ("●", "running:", TextRole::Accent),
            CallState::Refused { .. } | CallState::Ended(CallEnd { refused: true, .. }) => {
                ("✗", "denied:", TextRole::Warning)
            }
            CallState::Ended(CallEnd { failed: true, .. }) => ("✗", "failed:", TextRole::Bad),
            CallState::Ended(_) => ("✓", "done:", TextRole::Good),
        }
    }

    /// Time, size and what changed.
    fn facts(&self, now: Option<Instant>) -> Vec<String> {
        let mut facts = Vec::new();
        match &self.state {
            CallState::Running { since } => {
                let elapsed =
                    now.zip(*since).map(|(now, since)| now.saturating_duration_since(since));
                let seconds = elapsed.map_or(0, |elapsed| elapsed.as_secs());
                if seconds > 0 {
                    facts.push(duration::format_duration(Duration::from_secs(seconds)));
                }
            }
            CallState::Ended(ended) if !ended.refused => {
                let ms = ended.duration_ms.filter(|ms| *ms >= MIN_SHOWN_MS);
                facts.extend(
                    ms.map(|ms| duration::format_precise_duration(Duration::from_millis(ms))),
                );
                facts.extend(ended.unkept.clone());
                let own = self.shows.result_fact(&ended.text).filter(|_| !ended.failed);
                match (&ended.diff, own) {
                    (None, Some(own)) => facts.push(own),
                    (Some(diff), _) => {
                        let (added, removed) = diff::count_changes(diff);
                        facts.push(format!("+{added} −{removed}"));
                    }
                    _ if ended.bytes >= MIN_SHOWN_BYTES => facts.push(format_size(ended.bytes)),
                    _ => {}
                }
            }
            CallState::Ended(_)
            | CallState::Queued
            | CallState::Asked
            | CallState::Refused { .. } => {}
        }
        facts
    }
}

impl CallEnd {
    fn body(&self, width: usize, options: TranscriptOptions, shows: &ResultDisplay) -> Vec<Line> {
        let dim = Style::with_ink(TextRole::Dim);
        let mut lines: Vec<_> = self
            .images
            .iter()
            .flat_map(|name| layout::wrap_with_mark(INDENT, name, dim, width))
            .collect();
        if let Some(diff) = &self.diff {
            let max =
                if options.unfolded { super::folded_items::MAX_LINES } else { MAX_DIFF_LINES };
            lines.extend(diff::set_in(diff, width, max));
        } else if let Some(own) = self.own_lines(width, options, shows) {
            return own;
        } else if options.unfolded {
            lines.extend(Body::Text(self.text.clone()).draw(width));
        }
        if (self.failed || matches!(shows, ResultDisplay::Output))
            && self.diff.is_none()
            && !options.unfolded
        {
            lines.extend(self.excerpt(width));
        }
        lines
    }

    /// Returns the lines that the tool's calls show instead of their result.
    fn own_lines(
        &self,
        width: usize,
        options: TranscriptOptions,
        shows: &ResultDisplay,
    ) -> Option<Vec<Line>> {
        let is_whole = options.unfolded && matches!(shows, ResultDisplay::Elfs(_));
        if self.failed || is_whole {
            return None;
        }
        shows.render_result(&self.text, width, options.accessible)
    }

    /// Returns the first and last lines of what the call printed or why it failed.
    fn excerpt(&self, width: usize) -> Vec<Line> {
        let text = clean::sanitize_output(&self.text);
        let said: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let row = |line: &&str| {
            let line = truncate_text(&format!("{INDENT}{}", clean::expand_tabs(line)), width);
            Line::new(line, Style::with_ink(TextRole::Dim))
        };
        let left_out = said.len().saturating_sub(MAX_EXCERPT_LINES);
        if left_out == 0 {
            return said.iter().map(row).collect();
        }
        let head = MAX_EXCERPT_LINES / 2;
        let mut lines: Vec<_> = said.iter().take(head).map(row).collect();
        let mut more = layout::more_lines_note(left_out, width);
        if width >= MIN_KEY_WIDTH {
            more.spans.push(Span::new(" (Ctrl+O)", Style::with_ink(TextRole::Dim)));
        }
        lines.push(more);
        lines.extend(said.iter().skip(head + left_out).map(row));
        lines
    }
}

/// The arguments that say most, by their usual names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TellingArguments {
    command: Option<Value>,
    pattern: Option<Value>,
    query: Option<Value>,
    url: Option<Value>,
    path: Option<Value>,
    file_path: Option<Value>,
    id: Option<Value>,
}

impl TellingArguments {
    /// Returns words for what is done, and behind them where.
    fn into_words(self) -> Vec<String> {
        let Self { command, pattern, query, url, path, file_path, id } = self;
        let sought =
            [&pattern, &query].into_iter().any(|sought| matches!(sought, Some(Value::String(_))));
        let known = [command, pattern, query, url, path, file_path, id].into_iter().flatten();
        let mut words: Vec<String> = known.filter_map(as_text).take(2).collect();
        if sought && words.len() > 1 {
            words.insert(1, "in".to_owned());
        }
        words
    }
}

/// The part of a call's arguments that says most, in one line.
fn main_argument(call: &ToolCall) -> String {
    let Ok(known) = call.arguments.read::<TellingArguments>() else { return String::new() };
    let mut words = known.into_words();
    words.extend(result_display::describe_tasks(call));
    if words.is_empty() && call.arguments.get().len() <= MAX_UNKNOWN_BYTES {
        words.extend(call.arguments.read::<Value>().ok().and_then(first_text));
    }
    let text = clean::sanitize_output(words.join(" ").trim());
    let shown = skip_assignments(&text).lines();
    let mut lines = shown.map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { " …" } else { "" };
    format!("{}{more}", truncate_text(&clean::expand_tabs(first), MAX_ARGUMENT_CHARS))
}

fn as_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn first_text(value: Value) -> Option<String> {
    let Value::Object(fields) = value else { return None };
    fields.into_iter().find_map(|(_, value)| match value {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// The end of a text that grows.
#[derive(Debug, Default)]
pub(super) struct Tail {
    text: String,
}

impl Tail {
    pub(super) fn push(&mut self, text: &str) {
        let start = text.len().saturating_sub(MAX_TAIL_BYTES);
        self.text.push_str(&text[text.ceil_char_boundary(start)..]);
        if self.text.len() > MAX_TAIL_BYTES * 2 {
            let start = self.text.len() - MAX_TAIL_BYTES;
            self.text.drain(..self.text.ceil_char_boundary(start));
        }
    }

    /// The last lines that are not empty, as they would be shown.
    pub(super) fn last_lines(&self, count: usize) -> Vec<String> {
        let text = clean::sanitize_output(&self.text);
        let said = text.lines().rev().filter(|line| !line.trim().is_empty());
        let mut lines: Vec<_> = said.take(count).map(clean::expand_tabs).collect();
        lines.reverse();
        lines
    }
}
