//! The conversation as lines: session events go in, lines that can never change come out once and in order, and the
//! rest is redrawn. Lines that were handed over are dropped, except for what `/copy` and unfolding need, which has
//! a limit; the session's store has all of it. Knows no terminal, no clock and no keys.

mod block;
mod call;
mod call_blocks;
mod folded_items;
mod image;
mod layout;
mod options;
mod outcome;
mod reader;
mod result_display;
mod routing_lines;
mod thinking;

use std::{borrow::Cow, collections::VecDeque, time::Instant};

use gnoma_core::{
    CallId, Content, Event, Message, ModelRef, Role, Usage,
    session::{self, NoticeLevel, Outcome, SessionState},
};

use crate::{
    markdown, remedies,
    text::{Line, Style, TextRole},
};
use block::{Block, BlockKind};
use call::{Call, CallEnd};
use folded_items::FoldedOutputs;
pub use options::TranscriptOptions;
pub(crate) use reader::OutputReader;
use thinking::Thinking;

/// Longest answer that can be copied; of longer ones the end is kept.
const MAX_ANSWER_BYTES: usize = 1_048_576;

/// The conversation as it is shown.
#[derive(Debug, Default)]
pub struct Transcript {
    options: TranscriptOptions,
    /// The blocks that were not handed over yet.
    blocks: VecDeque<Block>,
    /// The kind of block that lines came from last.
    last: Option<BlockKind>,
    /// Calls that run while nothing is redrawn.
    unseen: Vec<Call>,
    /// The line about what the model is about to do, until it does it.
    expected: Option<Line>,
    now: Option<Instant>,
    /// The time at which the turn that runs began.
    turn_since: Option<Instant>,
    /// The call that is asked about where everybody sees it.
    asked: Option<CallId>,
    /// The last answer of the model.
    answer: String,
    /// The last answer before this round's, once this round has one.
    before_round: Option<String>,
    /// The answer that is being written.
    arriving: String,
    /// `true` if the answer continues with the next text.
    answer_is_open: bool,
    thinking_is_open: bool,
    /// Calls that are not over.
    open_calls: usize,
    folded_outputs: FoldedOutputs,
    /// The models that the last turn was given to.
    routed_to: Vec<ModelRef>,
}

impl Transcript {
    /// Creates an empty conversation.
    #[must_use]
    pub fn new(options: TranscriptOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Takes what the session says. Messages of people are not taken from here: see
    /// [`add_user_message`](Self::add_user_message).
    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::Text { text } => self.append_text(text),
            Event::Thinking { text } => self.append_thinking(text),
            Event::Appended(message) => self.on_message_appended(message),
            Event::ToolCallDrafted { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionDecided { .. }
            | Event::ToolStarted { .. }
            | Event::ToolProgress { .. }
            | Event::ToolEnded { .. } => self.call_event(event),
            Event::Routed(_)
            | Event::ArmChanged { .. }
            | Event::Conferred { .. }
            | Event::Checking { .. }
            | Event::Checked { .. } => self.routing_event(event),
            Event::Retrying { error, attempt, wait_ms, retracted, limit } => {
                let attempt = session::describe_attempt(*attempt, *limit);
                self.add_retry(error, &attempt, *wait_ms, *retracted);
            }
            Event::Continuing { time, most, joins } => self.add_continuation(*time, *most, *joins),
            Event::Notice { level, text } => self.add_notice(*level, text),
            Event::Compacted { summary, messages } => self.add_compaction(summary, *messages),
            Event::Uncompacted { .. } => self.add_compaction_undo(),
            Event::TurnEnded { outcome, rounds, usage, .. } => {
                self.add_outcome(outcome, *rounds, usage);
            }
            Event::RoundStarted { .. } => self.begin_round(),
            Event::State(SessionState::Closed) => self.close_open(),
            Event::Started { .. }
            | Event::State(_)
            | Event::ModeChanged { .. }
            | Event::ThinkingChanged { .. }
            | Event::PlanChanged { .. }
            | Event::Info(_)
            | Event::Models { .. }
            | Event::Queued { .. }
            | Event::ToolCallDelta { .. }
            | Event::Cost { .. }
            | Event::Context(_)
            | Event::Usage { .. }
            | Event::Waiting { .. }
            | Event::Unknown => {}
        }
    }

    fn begin_round(&mut self) {
        self.turn_since = self.turn_since.or(self.now);
        self.close_open();
        self.before_round = None;
    }

    /// Ends the turn and adds the lines about its outcome.
    fn add_outcome(&mut self, outcome: &Outcome, rounds: u32, usage: &Usage) {
        self.end_turn();
        let since = self.turn_since.take();
        let took = self.now.zip(since).map(|(now, since)| now.saturating_duration_since(since));
        for (text, style) in outcome::describe_outcome(outcome, rounds, usage, took) {
            self.add_styled_text(text, style);
        }
    }

    /// Takes a message of a stored session.
    pub fn replay_message(&mut self, message: &Message) {
        match message.role() {
            Role::User if message.is_system_note() => self.close_open(),
            Role::User => {
                self.end_turn();
                self.add_user_message(&user_message_text(message));
            }
            Role::Assistant => {
                for content in message.content() {
                    match content {
                        Content::Text(text) => self.append_text(&text.text),
                        Content::Thinking(thinking) => self.append_thinking(&thinking.text),
                        Content::ToolCall(call) => {
                            self.close_open();
                            self.add_call(Call::new(call));
                        }
                        Content::Image(_)
                        | Content::RedactedThinking(_)
                        | Content::ToolResult(_) => {}
                    }
                }
                self.close_open();
            }
            Role::Tool => {
                for result in message.tool_results() {
                    self.tool_ended(result, None, None);
                }
            }
        }
    }

    /// Adds the words of a person. Images in them are named by [`user_message_text`].
    pub fn add_user_message(&mut self, text: &str) {
        self.blocks.push_back(Block::Person(text.to_owned()));
    }

    /// Adds a notice that people should read.
    pub fn add_notice(&mut self, level: NoticeLevel, text: &str) {
        let (mark, ink) = match level {
            NoticeLevel::Info => ("note: ", TextRole::Dim),
            NoticeLevel::Warning => ("warning: ", TextRole::Warning),
        };
        let mut mark = Cow::Borrowed(mark);
        let text = remedies::in_window(text);
        for line in text.lines() {
            self.add_styled_text(format!("{mark}{line}"), Style::with_ink(ink));
            mark = " ".repeat(mark.len()).into();
        }
    }

    /// Lines made elsewhere, such as the answer of a command; wrapped when they are handed over.
    pub fn add_lines(&mut self, lines: Vec<Line>) {
        self.put_above(Block::Lines(lines));
    }

    /// The time, for how long calls have been running.
    pub fn tick(&mut self, now: Instant) {
        self.now = Some(now);
    }

    /// Reports whether anything was handed over.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// The question about this call is shown elsewhere on the screen, so its line is not needed.
    pub fn asks_elsewhere(&mut self, call: Option<CallId>) {
        self.asked = call;
    }

    /// A call is running, so that a line changes with every second.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !self.options.accessible
            && self.blocks.iter().any(|block| match block {
                Block::Call(call) => call.is_running(),
                _ => false,
            })
    }

    /// Says the newest folded thing whole, among the other lines; again, the one before. Says whether there was one.
    pub fn unfold_newest(&mut self) -> bool {
        let Some(folded) = self.folded_outputs.take_newest() else { return false };
        self.put_above(Block::Folded(folded));
        true
    }

    /// Everything that was shown folded, to be read whole; `None` if nothing was.
    pub(crate) fn open_reader(&self) -> Option<OutputReader> {
        OutputReader::new(self.folded_outputs.newest_first())
    }

    /// Shows output and thinking whole from now on, or folded again. Says which.
    pub fn toggle_folding(&mut self) -> bool {
        self.options.unfolded = !self.options.unfolded;
        self.options.unfolded
    }

    /// Hands over, in order and once, the lines that will not change any more.
    pub fn take_finished(&mut self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(block) = self.blocks.front_mut() {
            let (drawn, is_over) = block.take_finished_lines(width, self.options);
            let goes_on = matches!(block, Block::Answer { started: true, .. });
            if let Block::Answer { started, .. } = block {
                *started |= !drawn.is_empty();
            }
            let sort = block.sort_kind();
            append_block_lines(drawn, sort, goes_on, &mut self.last, &mut lines);
            if !is_over {
                break;
            }
            if let Some(Block::Thinking(thinking)) = self.blocks.pop_front()
                && !self.options.unfolded
                && let Some(folded) = thinking.into_folded()
            {
                self.folded_outputs.add_folded(folded);
            }
        }
        lines
    }

    /// The last `max_rows` lines of what may still change. Nothing where nothing is redrawn.
    pub fn live_lines(&mut self, width: usize, max_rows: usize) -> Vec<Line> {
        if self.options.accessible {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut last = self.last;
        let is_elsewhere = |block: &&Block| match block {
            Block::Call(call) => call.is_asked() && self.asked.as_ref() == Some(&call.id),
            _ => false,
        };
        for block in self.blocks.iter().filter(|block| !is_elsewhere(block)) {
            let goes_on = matches!(block, Block::Answer { started: true, .. });
            let drawn = block.draw(width, self.now, self.options);
            append_block_lines(drawn, block.sort_kind(), goes_on, &mut last, &mut lines);
        }
        if let Some(expected) = &self.expected {
            let drawn = expected.wrap(width, &Line::default());
            append_block_lines(drawn, BlockKind::Call, false, &mut last, &mut lines);
        }
        lines.split_off(lines.len().saturating_sub(max_rows))
    }

    /// The model's last answer, as Markdown.
    #[must_use]
    pub fn last_answer(&self) -> Option<&str> {
        let texts = [&self.arriving, &self.answer];
        texts.into_iter().map(|text| text.trim()).find(|text| !text.is_empty())
    }

    fn append_text(&mut self, text: &str) {
        self.expected = None;
        self.end_thinking();
        if !self.answer_is_open {
            self.answer_is_open = true;
            let stream = markdown::Stream::default();
            self.blocks.push_back(Block::Answer {
                stream,
                ended: false,
                started: false,
                retracted: false,
            });
        }
        self.arriving.push_str(text);
        if self.arriving.len() > MAX_ANSWER_BYTES * 2 {
            let start = self.arriving.len() - MAX_ANSWER_BYTES;
            self.arriving.drain(..self.arriving.ceil_char_boundary(start));
        }
        let open = self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Answer { stream, ended: false, .. } => Some(stream),
            _ => None,
        });
        if let Some(stream) = open {
            stream.push(text);
        }
    }

    fn append_thinking(&mut self, text: &str) {
        self.expected = None;
        self.end_answer();
        if !std::mem::replace(&mut self.thinking_is_open, true) {
            self.blocks.push_back(Block::Thinking(Thinking::default()));
        }
        let open = self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Thinking(thinking) => Some(thinking),
            _ => None,
        });
        if let Some(thinking) = open {
            thinking.push(text);
        }
    }

    fn on_message_appended(&mut self, message: &Message) {
        if message.role() != Role::Assistant {
            return;
        }
        self.close_open();
        for call in message.tool_calls() {
            self.add_call(Call::new(call));
        }
    }

    /// Puts what will not change above what still does. Below that a long text would hide how an
    /// answer continues, and be drawn again with every frame.
    fn put_above(&mut self, block: Block) {
        let open = self.blocks.iter().position(|block| !block.is_over());
        self.blocks.insert(open.unwrap_or(self.blocks.len()), block);
    }

    fn add_styled_text(&mut self, text: String, style: Style) {
        self.blocks.push_back(Block::Words(text, style));
    }

    /// Shows that something is about to happen, until it does.
    fn show_expected(&mut self, text: String) {
        if !self.options.accessible {
            self.expected = Some(Line::new(text, Style::with_ink(TextRole::Dim)));
        }
    }

    fn close_open(&mut self) {
        self.end_answer();
        self.end_thinking();
    }

    fn end_answer(&mut self) {
        if !std::mem::take(&mut self.answer_is_open) {
            return;
        }
        let open = self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Answer { stream, ended, .. } => Some((stream, ended)),
            _ => None,
        });
        if let Some((stream, ended)) = open {
            stream.finish();
            *ended = true;
        }
        let text = std::mem::take(&mut self.arriving);
        if !text.trim().is_empty() {
            let before = std::mem::replace(&mut self.answer, text);
            self.before_round.get_or_insert(before);
        }
    }

    fn end_thinking(&mut self) {
        if !std::mem::take(&mut self.thinking_is_open) {
            return;
        }
        let open = self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Thinking(thinking) => Some(thinking),
            _ => None,
        });
        if let Some(thinking) = open {
            thinking.mark_finished();
        }
    }

    /// Closes everything that is open, because nothing continues after the end of a turn.
    fn end_turn(&mut self) {
        self.expected = None;
        self.close_open();
        self.unseen.clear();
        if std::mem::take(&mut self.open_calls) == 0 {
            return;
        }
        for block in &mut self.blocks {
            if let Block::Call(call) = block
                && !call.is_over()
            {
                call.record_end(CallEnd::from_interruption());
            }
        }
    }
}

/// The text of a person's message, with names in place of images.
#[must_use]
pub fn user_message_text(message: &Message) -> String {
    let part = |content: &Content| match content {
        Content::Text(text) => Some(text.text.clone()),
        Content::Image(image) => Some(image::describe_image(image)),
        Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    };
    message.content().iter().filter_map(part).collect::<Vec<_>>().join("\n")
}

/// Adds the lines of a block, behind an empty line where one belongs.
fn append_block_lines(
    drawn: Vec<Line>,
    sort: BlockKind,
    goes_on: bool,
    last: &mut Option<BlockKind>,
    lines: &mut Vec<Line>,
) {
    if drawn.is_empty() {
        return;
    }
    let belongs_together =
        |last: BlockKind| last == sort && matches!(sort, BlockKind::Call | BlockKind::Words);
    if !goes_on && last.is_some_and(|last| !belongs_together(last)) {
        lines.push(Line::default());
    }
    *last = Some(sort);
    lines.extend(drawn);
}
