//! The answer as text; what happens around it in short lines on standard error.

use std::{
    io::{Write as _, stderr},
    time::{Duration, Instant},
};

use gnoma_core::{
    Event, Role, ToolCall, ToolResult, duration,
    message::CallId,
    session::{NoticeLevel, Outcome, SessionState},
    tool::{tool_label, unkept_trial_changes},
};

use super::{
    notice_lines::{has_own_line, notice_line},
    output::{Output, OutputClosed},
    view::View,
    wording::{call_headline, last_line, shorten_line, shorten_to},
};
use crate::{environment::ProcessEnvironment, report, screen};

/// Characters of a call that stand before its output in the waiting line.
const MAX_RUNNING_CHARS: usize = 40;
/// Equal lines that are shown one after the other; more are only counted.
const MAX_EQUAL_LINES: usize = 3;
/// The beginning of the reason for a call that only a confirmed bypass permits; such a call is always announced.
const CONFIRMED: &str = "CONFIRMED BYPASS";
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];

/// A turn as text, with short lines about what happens around it.
pub(super) struct Text {
    colour: bool,
    /// Calls that run, so that their end can name them.
    running: Vec<ToolCall>,
    waiting: Option<WaitingLine>,
    drawn: bool,
    /// Calls whose questions stand on the terminal.
    asked: Vec<CallId>,
    /// The turn is being stopped.
    stopping: bool,
    last_aside: String,
    /// The number of times that the last aside came in a row.
    equal_asides: usize,
    /// Standard output is a terminal, where lines of the two must not run into each other.
    on_terminal: bool,
    /// The last text of the model. It is held back if a reader would get it twice after a retraction. It is no
    /// longer than a message of the session can be.
    held: String,
    /// The session can be continued.
    is_kept: bool,
    /// The hints that are printed after the error.
    last_words: Vec<&'static str>,
    /// The answer of this round has more than blanks; those before its first word are not written.
    has_words: bool,
    /// True if the next text continues the answer where it was cut off.
    joins: bool,
    /// Only the answer in its form goes to standard output.
    is_shaped: bool,
}

/// The text and the timer of the redrawn line.
struct WaitingLine {
    what: String,
    since: Instant,
    /// The time at which the awaited event begins, if it is known.
    begins: Option<Instant>,
    frame: usize,
}

impl Text {
    pub(super) fn new(around: &ProcessEnvironment, is_shaped: bool) -> Self {
        Self {
            colour: around.uses_colour(),
            running: Vec::new(),
            waiting: None,
            drawn: false,
            asked: Vec::new(),
            stopping: false,
            last_aside: String::new(),
            equal_asides: 0,
            on_terminal: around.stdout_is_terminal,
            held: String::new(),
            is_kept: false,
            last_words: Vec::new(),
            has_words: false,
            joins: false,
            is_shaped,
        }
    }

    fn start_waiting_line(&mut self, what: impl Into<String>) {
        let (what, since) = (what.into(), Instant::now());
        self.waiting = Some(WaitingLine { what, since, begins: None, frame: 0 });
    }

    /// Lets the waiting line count down to the next attempt.
    fn count_down(&mut self, attempt: u32, wait_ms: u64) {
        self.start_waiting_line(format!("attempt {attempt}"));
        if let Some(waiting) = &mut self.waiting {
            waiting.begins = Some(waiting.since + Duration::from_millis(wait_ms));
        }
    }

    /// Lets the waiting line show the last line of a call's output.
    fn show_progress(&mut self, call: &CallId, text: &str) {
        let Some(call) = self.running.iter().find(|running| running.id == *call) else { return };
        let Some(line) = last_line(text) else { return };
        let what = format!("{}: {line}", shorten_to(MAX_RUNNING_CHARS, &call_headline(call)));
        match &mut self.waiting {
            Some(waiting) => waiting.what = what,
            None => self.start_waiting_line(what),
        }
    }

    /// Prepares hints about what a failed turn leaves behind, and how to continue it.
    fn add_failure_advice(&mut self, kept_partial: bool, is_transient: bool) {
        if kept_partial && !self.is_shaped {
            self.last_words.push("The partial answer is above and stays in the session.");
        }
        if self.is_kept && (kept_partial || is_transient) {
            self.last_words.push("To continue: gnoma --continue \"go on\"");
        }
    }

    fn clear_waiting_line(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _closed = write!(stderr(), "\r\x1b[K");
        }
    }

    /// One dim line on standard error. A line that comes over and over is shown a few times.
    fn print_notice(&mut self, text: &str) {
        if self.last_aside == text {
            self.equal_asides += 1;
        } else {
            self.end_asides();
            text.clone_into(&mut self.last_aside);
            self.equal_asides = 1;
        }
        if self.equal_asides <= MAX_EQUAL_LINES {
            self.print_dim(text);
        }
    }

    /// Says how often the last line came beyond the times it was shown.
    fn end_asides(&mut self) {
        let unseen = std::mem::take(&mut self.equal_asides).saturating_sub(MAX_EQUAL_LINES);
        self.last_aside.clear();
        if unseen > 0 {
            self.print_dim(&format!("… and {unseen} more like it"));
        }
    }

    fn print_dim(&mut self, text: &str) {
        self.clear_waiting_line();
        if self.colour {
            report::say_dim(text);
        } else {
            report::print_line(text);
        }
    }

    /// Writes a piece of the answer, or holds it back.
    fn write_answer(&mut self, text: &str, out: &mut Output) -> Result<(), OutputClosed> {
        let is_begin = !self.joins && !self.has_words;
        if is_begin && gnoma_core::names::is_blank(text) {
            return Ok(());
        }
        self.has_words = true;
        self.joins = false;
        self.end_asides();
        let text = if is_begin { text.trim_start_matches(['\r', '\n']) } else { text };
        if self.on_terminal {
            self.clear_waiting_line();
            self.waiting = None;
            return out.push_text(text);
        }
        if self.held.is_empty() {
            self.start_waiting_line("writing");
        }
        self.held.push_str(text);
        Ok(())
    }

    /// Writes what is sure to stay, without the blank lines at its end.
    fn write_held(&mut self, out: &mut Output) -> Result<(), OutputClosed> {
        let held = std::mem::take(&mut self.held);
        let answer = held.trim_end_matches(['\r', '\n']);
        if answer.is_empty() { Ok(()) } else { out.push_text(answer) }
    }

    /// Ends the line of the answer, unless more of it comes in that line.
    fn end_line(&self, out: &mut Output) -> Result<(), OutputClosed> {
        let goes_on = !self.on_terminal && (self.joins || !self.held.is_empty());
        if goes_on { Ok(()) } else { out.end_line() }
    }

    /// Says that an answer goes on, which has gone on so often.
    fn announce_continuation(
        &mut self,
        how_often: &str,
        out: &mut Output,
    ) -> Result<(), OutputClosed> {
        self.end_line(out)?;
        out.flush()?;
        let what = if self.joins { "the answer" } else { "a tool call" };
        self.print_notice(&format!("the output limit cut {what} off; continuing {how_often}"));
        Ok(())
    }

    /// The answer, from its first word to the end of the turn.
    fn on_answer_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        match event {
            Event::Text { .. } if self.is_shaped => (),
            Event::Text { text } => return self.write_answer(text, out),
            Event::RoundStarted { arm, round, .. } => {
                self.has_words = false;
                self.write_held(out)?;
                self.end_line(out)?;
                self.start_waiting_line(match round {
                    1 => format!("waiting for {arm}"),
                    round => format!("waiting for {arm}, round {round}"),
                });
            }
            Event::Appended(message) if message.role() == Role::Assistant && !self.joins => {
                // An answer that ends the turn can still fail a check, and another one take its place.
                if message.tool_calls().next().is_some() {
                    self.write_held(out)?;
                }
                self.end_line(out)?;
            }
            Event::Continuing { time, most, joins } => {
                // Blank lines before the cut stand within the answer.
                out.push_text(&std::mem::take(&mut self.held))?;
                self.joins = *joins;
                self.announce_continuation(&format!("({time} of {most})"), out)?;
            }
            Event::TurnEnded { outcome, answer, .. } => {
                self.end_asides();
                self.clear_waiting_line();
                self.waiting = None;
                self.write_held(out)?;
                if let Some(answer) = answer {
                    out.push_text(answer.get())?;
                }
                out.end_line()?;
                self.on_turn_outcome(outcome, out)?;
            }
            _ => (),
        }
        Ok(())
    }

    fn on_turn_outcome(&mut self, outcome: &Outcome, out: &mut Output) -> Result<(), OutputClosed> {
        let (kept_partial, is_transient) = match outcome {
            Outcome::Failed { error, kept_partial } => (*kept_partial, error.kind.is_transient()),
            Outcome::Cancelled => (false, true),
            _ => return Ok(()),
        };
        out.flush()?;
        self.add_failure_advice(kept_partial, is_transient);
        Ok(())
    }

    /// Calls of tools, and what checks the work.
    fn on_tool_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        match event {
            Event::ToolCallDrafted { name, .. } => {
                self.joins = false;
                self.end_line(out)?;
                self.start_waiting_line(format!("preparing {}", tool_label(name)));
            }
            Event::ToolStarted { call } => {
                self.start_waiting_line(call_headline(call));
                self.running.retain(|running| running.id != call.id);
                self.running.push(call.clone());
            }
            Event::ToolProgress { call, text } => self.show_progress(call, text),
            Event::ToolEnded { call, result, duration_ms, .. } => {
                self.waiting = None;
                self.end_line(out)?;
                out.flush()?;
                self.print_call_result(call, result, *duration_ms);
            }
            Event::Checking { arm, by } => {
                self.end_line(out)?;
                self.start_waiting_line(format!("{by} checks the work of {arm}"));
            }
            _ => (),
        }
        Ok(())
    }

    /// Questions to the person, and a turn that is stopped under them.
    fn on_question_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        match event {
            Event::PermissionAsked { call, .. } => {
                self.end_line(out)?;
                out.flush()?;
                self.end_asides();
                self.waiting = None;
                self.clear_waiting_line();
                self.asked.push(call.id.clone());
                self.end_line(out)?;
                out.flush()?;
            }
            Event::PermissionDecided { call, reason, .. } => {
                self.asked.retain(|asked| asked != call);
                if reason.starts_with(CONFIRMED) {
                    self.end_line(out)?;
                    out.flush()?;
                    self.print_notice(&format!("warning: {reason}"));
                }
            }
            Event::State(state) => {
                self.stopping = *state == SessionState::Cancelling;
                if self.stopping && !std::mem::take(&mut self.asked).is_empty() {
                    // What follows must not stand in the line of the question.
                    report::print_line("");
                }
            }
            _ => (),
        }
        Ok(())
    }

    /// Writes a line beside the answer about an event around it.
    fn on_notice_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        // These may come in the middle of a line of the answer, which goes on.
        if !matches!(event, Event::Waiting { .. } | Event::Compacted { .. }) {
            self.end_line(out)?;
            out.flush()?;
        }
        if let Event::Retrying { .. } | Event::ArmChanged { .. } = event {
            self.held.clear();
            self.has_words = false;
        }
        let is_told = match event {
            Event::Retrying { attempt, .. } => has_own_line(*attempt),
            Event::Notice { level: NoticeLevel::Warning, text } => report::is_new_warning(text),
            _ => true,
        };
        if is_told && let Some(line) = notice_line(event, self.on_terminal) {
            self.print_notice(&line);
        }
        if let Event::Retrying { attempt, wait_ms, .. } = event {
            self.count_down(*attempt, *wait_ms);
        }
        Ok(())
    }

    fn print_call_result(&mut self, call: &ToolCall, result: &ToolResult, duration_ms: u64) {
        self.running.retain(|running| running.id != result.call_id);
        let what = call_headline(call);
        let mark = if result.is_error { "✗" } else { "✓" };
        let mut line = format!("{mark} {what}");
        let took = Duration::from_millis(duration_ms);
        let took = (took.as_secs() > 0).then(|| duration::format_precise_duration(took));
        let text = result.joined_text();
        let facts: Vec<_> = took.into_iter().chain(unkept_trial_changes(&text)).collect();
        if !facts.is_empty() {
            line.push_str(&format!(" ({})", screen::strip_unsafe_chars(&facts.join("; "))));
        }
        if result.is_error && self.stopping {
            line.push_str(": interrupted");
        } else if result.is_error {
            let why = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            line.push_str(&format!(": {}", shorten_line(why)));
        }
        self.print_notice(&line);
    }
}

impl View for Text {
    fn on_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        match event {
            Event::Text { .. }
            | Event::RoundStarted { .. }
            | Event::Appended(_)
            | Event::Continuing { .. }
            | Event::TurnEnded { .. } => self.on_answer_event(event, out),
            Event::ToolCallDrafted { .. }
            | Event::ToolStarted { .. }
            | Event::ToolProgress { .. }
            | Event::ToolEnded { .. }
            | Event::Checking { .. } => self.on_tool_event(event, out),
            Event::PermissionAsked { .. } | Event::PermissionDecided { .. } | Event::State(_) => {
                self.on_question_event(event, out)
            }
            Event::Retrying { .. }
            | Event::Waiting { .. }
            | Event::Notice { .. }
            | Event::ArmChanged { .. }
            | Event::Conferred { .. }
            | Event::Checked { .. }
            | Event::Compacted { .. }
            | Event::Uncompacted { .. } => self.on_notice_event(event, out),
            Event::Info(info) => {
                self.is_kept = info.is_kept;
                Ok(())
            }
            Event::Started { .. }
            | Event::ModeChanged { .. }
            | Event::ThinkingChanged { .. }
            | Event::PlanChanged { .. }
            | Event::Models { .. }
            | Event::Queued { .. }
            | Event::ToolCallDelta { .. }
            | Event::Unknown
            | Event::Thinking { .. }
            | Event::Routed(_)
            | Event::Context(_)
            | Event::Cost { .. }
            | Event::Usage { .. } => Ok(()),
        }
    }

    fn break_off(&mut self, out: &mut Output) -> Result<(), OutputClosed> {
        self.write_held(out)?;
        out.end_line()
    }

    fn last_words(&mut self) {
        self.last_words.drain(..).for_each(report::print_line);
    }

    fn tick(&mut self) {
        if !self.asked.is_empty() {
            return;
        }
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        waiting.frame = (waiting.frame + 1) % SPINNER.len();
        let now = Instant::now();
        let left = waiting.begins.map(|at| at.saturating_duration_since(now).as_secs());
        let since = waiting.begins.unwrap_or(waiting.since);
        let (when, seconds) = match left {
            Some(left) if since > now => (" in", left + 1),
            _ => ("", now.saturating_duration_since(since).as_secs()),
        };
        let time = duration::format_duration(Duration::from_secs(seconds));
        let frame = SPINNER[waiting.frame];
        let what = format!("{}{when}", shorten_line(&waiting.what));
        // Without line wrapping, so that a narrow terminal cuts the line and wiping it finds it.
        let _closed = write!(stderr(), "\r\x1b[K\x1b[?7l{frame} {what} {time}\x1b[?7h");
        self.drawn = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retained_text_is_written_when_the_turn_is_interrupted() {
        let around = ProcessEnvironment::default();
        let (mut view, mut out) = (Text::new(&around, false), Output::new(true));
        view.on_event(&Event::Text { text: "half an answer".into() }, &mut out).unwrap();
        assert!(out.is_empty(), "it can still be taken back");
        view.break_off(&mut out).unwrap();
        assert!(!out.is_empty() && view.held.is_empty());
    }
}
