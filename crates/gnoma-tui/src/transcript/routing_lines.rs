//! Lines about routing: which models are called and how, which takes over (failover), whether the work passed its
//! check, and compactions.

use std::time::Duration;

use gnoma_core::{
    Event, ProviderError, duration,
    message::ModelRef,
    session::{NoticeLevel, Routing},
};

use super::{
    Transcript,
    block::Block,
    folded_items::{Body, FoldedItem},
    layout,
};
use crate::{
    clean,
    text::{Style, TextRole},
};

/// One model is asked and that is all: not worth a line.
const PLAIN: &str = "single";
/// Lines of what a check found that are shown.
const MAX_EVIDENCE_LINES: usize = 6;
/// Columns of the beginning of an answer, to tell which is meant.
const BEGINNING_COLUMNS: usize = 40;

impl Transcript {
    pub(super) fn routing_event(&mut self, event: &Event) {
        match event {
            Event::Routed(routing) => self.add_routing(routing),
            Event::ArmChanged { from, to, why, retracted } => {
                self.arm_changed(from, to, why, *retracted);
            }
            Event::Conferred { members, chair, author } => {
                self.add_conference(members, chair.as_ref(), author);
            }
            Event::Checking { arm, by } => {
                self.close_open();
                self.show_expected(format!("· {by} checks the work of {arm} …"));
            }
            Event::Checked { arm, by, passed, evidence } => {
                self.add_verification(arm, by, *passed, evidence);
            }
            _ => (),
        }
    }

    pub(super) fn add_routing(&mut self, routing: &Routing) {
        let is_same = self.routed_to == routing.arms;
        let is_first = self.routed_to.is_empty();
        self.routed_to.clone_from(&routing.arms);
        // Nobody needs to hear before every answer that the same model gives it.
        if is_same || is_first || routing.strategy == PLAIN {
            return;
        }
        let arms: Vec<String> = routing.arms.iter().map(ToString::to_string).collect();
        let text = format!("{}: {}", routing.strategy, arms.join(", "));
        self.add_styled_text(self.with_mark("→ ", &text), Style::with_ink(TextRole::Dim));
    }

    pub(super) fn arm_changed(
        &mut self,
        from: &ModelRef,
        to: &ModelRef,
        why: &str,
        retracted: bool,
    ) {
        self.expected = None;
        if !retracted {
            self.close_open();
            let text = format!("switched from {from} to {to}: {why}");
            return self
                .add_styled_text(self.with_mark("→ ", &text), Style::with_ink(TextRole::Warning));
        }
        let beginning = self.retract_answer();
        let text = match beginning {
            Some(beginning) => format!("discarded what {from} began, “{beginning}”: {why}"),
            None => format!("discarded what {from} began: {why}"),
        };
        self.add_styled_text(self.with_mark("✗ ", &text), Style::with_ink(TextRole::Warning));
        self.add_styled_text(
            self.with_mark("→ ", &format!("{to} starts over")),
            Style::with_ink(TextRole::Dim),
        );
    }

    /// The same model is asked again after a wait.
    pub(super) fn add_retry(
        &mut self,
        error: &ProviderError,
        attempt: &str,
        wait_ms: u64,
        retracted: bool,
    ) {
        let wait = duration::format_duration(Duration::from_secs(wait_ms.div_ceil(1_000)));
        let next = format!("retrying in {wait} ({attempt})");
        if retracted {
            let beginning = self.retract_answer();
            let what = beginning.map_or_else(String::new, |beginning| format!(" (“{beginning}”)"));
            let text = format!("{error}; discarded the broken answer{what}, {next}");
            return self
                .add_styled_text(self.with_mark("✗ ", &text), Style::with_ink(TextRole::Warning));
        }
        let text = format!("{error}; {next}");
        if self.options.accessible {
            self.add_notice(NoticeLevel::Warning, &text);
        } else {
            self.show_expected(text);
        }
    }

    /// The output limit cut the answer off, and the model continues.
    pub(super) fn add_continuation(&mut self, time: u32, most: u32, joins: bool) {
        self.close_open();
        let what = if joins { "the answer" } else { "a tool call" };
        let text = format!("the output limit cut {what} off; continuing ({time} of {most})");
        self.add_styled_text(self.with_mark("→ ", &text), Style::with_ink(TextRole::Dim));
    }

    /// Takes this round's answer back. What of it is on the screen still is struck out. Gives its
    /// beginning.
    fn retract_answer(&mut self) -> Option<String> {
        for block in self.blocks.iter_mut().rev() {
            match block {
                Block::Answer { retracted, .. } => *retracted = true,
                Block::Person(_) | Block::Call(_) => break,
                Block::Thinking(_)
                | Block::Began(_)
                | Block::Words(..)
                | Block::Folded(_)
                | Block::Lines(_) => {}
            }
        }
        self.close_open();
        let before = self.before_round.take()?;
        let broken = std::mem::replace(&mut self.answer, before);
        let first = broken.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(layout::truncate_text(&clean::expand_tabs(first), BEGINNING_COLUMNS))
    }

    pub(super) fn add_conference(
        &mut self,
        members: &[ModelRef],
        chair: Option<&ModelRef>,
        author: &ModelRef,
    ) {
        self.close_open();
        let members: Vec<String> = members.iter().map(ToString::to_string).collect();
        let by = chair.map_or_else(String::new, |chair| format!(", chosen by {chair}"));
        let text = format!("{} answered; using {author}'s answer{by}", members.join(", "));
        self.add_styled_text(self.with_mark("→ ", &text), Style::with_ink(TextRole::Dim));
    }

    pub(super) fn add_verification(
        &mut self,
        arm: &ModelRef,
        by: &str,
        passed: bool,
        evidence: &str,
    ) {
        self.close_open();
        self.expected = None;
        if passed {
            let text = format!("checked by {by}: passed");
            return self
                .add_styled_text(self.with_mark("✓ ", &text), Style::with_ink(TextRole::Good));
        }
        let text = format!("{by} found problems in the work of {arm}:");
        self.add_styled_text(self.with_mark("✗ ", &text), Style::with_ink(TextRole::Bad));
        let evidence = clean::sanitize_output(evidence);
        let lines = evidence.lines().filter(|line| !line.trim().is_empty());
        for line in lines.clone().take(MAX_EVIDENCE_LINES) {
            self.add_styled_text(
                format!("  {}", clean::expand_tabs(line)),
                Style::with_ink(TextRole::Dim),
            );
        }
        let more = lines.count().saturating_sub(MAX_EVIDENCE_LINES);
        if more > 0 {
            self.add_styled_text(format!("  … {more} more lines"), Style::with_ink(TextRole::Dim));
            let title = format!("what {by} found");
            self.folded_outputs.add_folded(FoldedItem { title, body: Body::Text(evidence) });
        }
    }

    pub(super) fn add_compaction(&mut self, summary: &str, messages: usize) {
        self.close_open();
        let text = format!("Compacted {messages} messages");
        self.add_styled_text(self.with_mark("≡ ", &text), Style::with_ink(TextRole::Dim));
        let title = format!("summary of {messages} messages");
        self.folded_outputs.add_folded(FoldedItem { title, body: Body::Text(summary.to_owned()) });
    }

    pub(super) fn add_compaction_undo(&mut self) {
        self.close_open();
        let text = "Undid the last compaction";
        self.add_styled_text(self.with_mark("≡ ", text), Style::with_ink(TextRole::Dim));
    }

    /// A sign before a text, where signs are not read out.
    fn with_mark(&self, mark: &str, text: &str) -> String {
        if self.options.accessible { text.to_owned() } else { format!("{mark}{text}") }
    }
}
