//! Renders the frame: the conversation, below it what is waiting, below that the editor or what covers it, and at the
//! bottom the status line.

use std::time::{Duration, Instant};

use gnoma_core::duration;

use super::{
    State,
    layer::Layer,
    panes::{self, MAX_EDITOR_ROWS, MIN_WIDTH_FOR_PROMPT, PROMPT, Part, add_prompt},
    parts::{TurnActivity, Wait},
    state::BEAT,
};
use crate::{
    composer::Mode,
    frame::{Cell, Frame, Size},
    picker::truncate_line,
    prompt::PermissionQuestion,
    status::{self, StatusNow},
    text::{Line, Span, Style, TextRole},
};

/// Rows of a list, where there is room for them.
const MAX_LIST_ROWS: usize = 14;
/// Rows of the first start: all that it offers is seen at once.
const MAX_SETUP_ROWS: usize = 16;
/// Rows of output that is shown whole; half of the room, where that is more.
const MAX_READER_ROWS: usize = 12;
/// Rows for what waits.
const MAX_WAITING_ROWS: usize = 4;
/// In fewer columns nothing can be read.
const MIN_WIDTH: usize = 12;
/// In fewer rows there is no place for an editor below what it is about.
const MIN_HEIGHT: usize = 4;
const TOO_SMALL: &str = "Window too small";
/// A terminal with fewer rows has none to spare for air.
const MIN_ROWS_FOR_AIR: usize = 10;
/// Rows of what is not finished, however small the window is.
const MIN_LIVE_ROWS: usize = 3;
/// Rows that the editor and the line at the bottom take more in a narrower window.
const ROWS_FOLDED_BELOW: usize = 3;
/// The mark before the written text while vim's keys do not write.
const NORMAL_PROMPT: &str = "N ";
/// The signs that take turns while a turn runs.
const SPINNER: [&str; 4] = ["◐", "◓", "◑", "◒"];

/// Characters of a shell line in the line at the bottom.
const MAX_SHELL_CHARS: usize = 30;

impl State {
    pub(super) fn draw(&mut self, size: Size) -> Frame {
        let Size { width, height } = size;
        let is_small = width < MIN_WIDTH || height < MIN_HEIGHT;
        if is_small && !self.accessible && !self.exit.is_leaving {
            // What is finished waits: in so narrow a form it would stay in the scrollback forever.
            return too_small(size);
        }
        let finished = self.take_finished(width);
        if self.exit.is_leaving && self.composer.is_empty() {
            let live = self.transcript.live_lines(width, height);
            return Frame { finished, live, cursor: None };
        }
        let hint = self.long_hint(width, height);
        let room = height.saturating_sub(1 + hint.len());
        let panel = self.render_panel(width, room);
        let asked = self.seen_question().map(|question| question.call.id.clone());
        self.transcript.asks_elsewhere(asked);
        let (above, below) = self.lines_around_panel(&panel, size, room);
        let rest = room.saturating_sub(above.len() + panel.lines.len() + below.len());
        let mut live = self.transcript.live_lines(width, rest);
        live.truncate(rest);
        live.drain(..live.len() - rows_that_stay(&live, width, rest));
        live.extend(above);
        let first = live.len();
        live.extend(panel.lines);
        live.extend(below);
        let has_long_hint = !hint.is_empty();
        live.extend(hint);
        if height > 1 {
            live.push(self.status_line(width, !has_long_hint));
        }
        let live: Vec<Line> = live.into_iter().map(|line| truncate_line(line, width)).collect();
        let last = live.len().saturating_sub(1);
        let cursor = panel.cursor.map(|cell| Cell {
            row: (first + cell.row).min(last),
            column: cell.column.min(width.saturating_sub(1)),
        });
        Frame { finished, live, cursor }
    }

    /// Returns the lines above the panel (the plan and what waits) and those below it, with empty lines between them
    /// where `room` has rows to spare.
    fn lines_around_panel(&self, panel: &Part, size: Size, room: usize) -> (Vec<Line>, Vec<Line>) {
        let left = room.saturating_sub(panel.lines.len());
        let waiting = self.waiting_lines(left);
        let mut above = self.plan_lines(size.width, left.saturating_sub(waiting.len()), panel);
        above.extend(waiting);
        let used = above.len() + panel.lines.len();
        let has_air = size.height >= MIN_ROWS_FOR_AIR && used + 1 < room;
        if has_air {
            above.insert(0, Line::default());
        }
        if has_air && panel.is_editor && used + 2 < room && !self.accessible {
            above.push(separator_line(size.width));
        }
        // What is more than the editor is kept apart from the line at the bottom, too.
        let has_air_below = has_air && !panel.is_editor && used + 2 < room;
        (above, vec![Line::default(); usize::from(has_air_below)])
    }

    /// Returns the lines that will not change any more; a conversation begins below an empty line.
    pub(super) fn take_finished(&mut self, width: usize) -> Vec<Line> {
        let is_beginning = !self.accessible && !self.transcript.has_begun();
        let mut lines = self.transcript.take_finished(width);
        if is_beginning && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        let mut finished = std::mem::take(&mut self.window.leftover);
        finished.extend(lines);
        finished
    }

    /// Returns the part of the screen that takes the keys.
    fn render_panel(&mut self, width: usize, room: usize) -> Part {
        if let Some(layer) = &mut self.layer {
            match layer {
                Layer::Field { title, field, goal } => {
                    return panes::render_field(title, field, goal, Size::new(width, room));
                }
                Layer::Reader(reader) => {
                    let lines = reader.render_lines(width, room.min(MAX_READER_ROWS.max(room / 2)));
                    return Part { lines, ..Part::default() };
                }
                Layer::Pick { .. } | Layer::Setup(_) | Layer::Search(_) | Layer::Confirm { .. } => {
                }
            }
        } else if let Some(question) = self.seen_question() {
            let behind = self.questions.open.len() - 1;
            let size = Size::new(width, room);
            let lines = question.render_lines(&self.facts.folder, behind, &self.keymap, size);
            return Part { lines, ..Part::default() };
        }
        match &self.layer {
            Some(layer) => self.layer_part(layer, width, room),
            None => self.render_editor(width, room),
        }
    }

    fn layer_part(&self, layer: &Layer, width: usize, room: usize) -> Part {
        let in_first = |column| Some(Cell { row: 0, column });
        match layer {
            Layer::Pick { list, .. } => {
                let (lines, column) = list.render_lines(width, room.min(MAX_LIST_ROWS));
                Part { lines, cursor: in_first(column), ..Part::default() }
            }
            Layer::Setup(setup) => {
                let (lines, column) = setup.render_lines(width, room.min(MAX_SETUP_ROWS));
                Part { lines, cursor: column.and_then(in_first), ..Part::default() }
            }
            Layer::Search(search) => {
                let mut lines = self.search_lines(search);
                lines.truncate(room.max(1));
                let column = lines.first().map_or(0, Line::width);
                Part { lines, cursor: in_first(column), ..Part::default() }
            }
            Layer::Confirm { question, .. } => {
                let text =
                    Line::new(format!("{question} (y/n)"), Style::with_ink(TextRole::Warning));
                let mut lines = text.wrap(width, &Line::default());
                lines.truncate(room.max(1));
                Part { lines, ..Part::default() }
            }
            // Drawn before: they keep the place that they are scrolled to.
            Layer::Field { .. } | Layer::Reader(_) => Part::default(),
        }
    }

    fn render_editor(&mut self, width: usize, room: usize) -> Part {
        let lead = if width >= MIN_WIDTH_FOR_PROMPT { PROMPT.chars().count() } else { 0 };
        let rows = room.saturating_sub(2).clamp(1, MAX_EDITOR_ROWS);
        let (rows, cell) = self.composer.render_window(width.saturating_sub(lead), rows);
        let prompt = match self.composer.mode() {
            _ if lead == 0 => "",
            Some(Mode::Normal) => NORMAL_PROMPT,
            Some(Mode::Insert) | None => PROMPT,
        };
        let ink = if self.composer.first_line().starts_with('!') {
            TextRole::Warning
        } else {
            TextRole::Accent
        };
        let mut lines = add_prompt(rows, prompt, Style::with_ink(ink).bold());
        let is_first = self.counts.turns == 0 && !self.session.has_past;
        if self.composer.is_empty() && is_first && self.is_idle() {
            let hint = Span::new("Ask anything, or / for commands", Style::with_ink(TextRole::Dim));
            if let Some(first) = lines.first_mut() {
                first.spans.push(hint);
            }
        }
        let left = room.saturating_sub(lines.len());
        lines.extend(self.writing.completion.render_lines(left));
        let cursor = Some(Cell { row: cell.row, column: cell.column + lead });
        Part { lines, cursor, is_editor: !self.writing.completion.is_open() }
    }

    /// Returns lines with what was sent and is not read yet, what waits, and what goes along.
    fn waiting_lines(&self, room: usize) -> Vec<Line> {
        let [steers, others, queued] = self.queue.queued_lines();
        let line = |mark: &'static str, text: String, why: &'static str| {
            Line::from([
                Span::new(mark, Style::with_ink(TextRole::Accent)),
                Span::new(text, Style::with_ink(TextRole::Person)),
                Span::new(why, Style::with_ink(TextRole::Dim)),
            ])
        };
        let held = if self.queue.is_held() {
            "  (queued: Enter sends, /drop discards)"
        } else {
            "  (queued)"
        };
        let mut lines: Vec<Line> = Vec::new();
        lines.extend(steers.into_iter().map(|text| line("↳ ", text, "  (at the next step)")));
        let of_others = "  (at the next step, from another window)";
        lines.extend(others.into_iter().map(|text| line("↳ ", text, of_others)));
        lines.extend(queued.into_iter().map(|text| line("⋯ ", text, held)));
        let attached = self.queue.attached_labels().map(str::to_owned);
        lines.extend(attached.map(|label| line("+ ", label, "  (attached; Backspace to remove)")));
        lines.extend(self.hidden_question().map(|question| {
            Line::new(
                format!("? {}", question.short_description()),
                Style::with_ink(TextRole::Warning),
            )
        }));
        let room = room.min(MAX_WAITING_ROWS);
        let excess = lines.len().saturating_sub(room);
        if excess > 0 && room > 0 {
            lines.truncate(room - 1);
            lines.push(Line::new(
                format!("  … {} more", excess + 1),
                Style::with_ink(TextRole::Dim),
            ));
        }
        lines.truncate(room);
        lines
    }

    /// The question that keys answer now.
    pub(super) fn seen_question(&self) -> Option<&PermissionQuestion> {
        self.questions.open.front().filter(|_| self.layer.is_none() && self.takes_answers())
    }

    /// The question that keys do not answer now, unless its answer is being written.
    fn hidden_question(&self) -> Option<&PermissionQuestion> {
        let is_hidden = match &self.layer {
            None => !self.takes_answers(),
            Some(layer) => !layer.is_answer(),
        };
        self.questions.open.front().filter(|_| is_hidden)
    }

    /// The hint where it is too long for the line at the bottom: it stands above that line, whole.
    fn long_hint(&self, width: usize, height: usize) -> Vec<Line> {
        let Some(hint) = self.timers.hint.as_ref().filter(|_| !self.exit.is_leaving) else {
            return Vec::new();
        };
        let line = Line::new(hint.text.clone(), Style::with_ink(TextRole::Warning));
        if line.width() <= width {
            return Vec::new();
        }
        let mut lines = line.wrap(width, &Line::default());
        lines.truncate((height / 2).max(1));
        lines
    }

    fn status_line(&self, width: usize, has_hint: bool) -> Line {
        let hint = self.timers.hint.as_ref().filter(|_| has_hint).map(|hint| hint.text.clone());
        let busy = match (self.slow_look_up(), &self.running) {
            (Some(what), _) => what,
            (None, Some(running)) => self.describe_running(running),
            (None, None) => {
                self.shells.front().map(|shell| self.busy_shell(shell)).unwrap_or_default()
            }
        };
        // A person who has chosen the model knows why it answers.
        let is_chosen = self.routes.pinned.is_some() || !self.facts.chooses;
        let why = self.routes.why.clone().filter(|_| !is_chosen).unwrap_or_default();
        let stop = if busy.is_empty() { "" } else { "Esc stops" };
        let script = self.window.script.line.clone();
        let (queued, spending) = (self.queue.waiting_count(), self.window.spending.parts);
        let now = StatusNow { busy, stop, hint, queued, why, spending, script };
        status::render_status_line(&self.facts, &self.counts, &now, width)
    }

    fn busy_shell(&self, (line, since): &(String, Instant)) -> String {
        let elapsed = self.now.saturating_duration_since(*since);
        let line: String = line.chars().take(MAX_SHELL_CHARS).collect();
        format!("{} ! {line} {}", spinner_frame(elapsed), format_seconds(elapsed.as_secs()))
    }

    fn describe_running(&self, running: &TurnActivity) -> String {
        let elapsed = self.now.saturating_duration_since(running.since);
        let doing = match (running.is_stopping, self.questions.open.is_empty()) {
            (true, _) => "stopping",
            (false, false) => "waiting for you",
            (false, true) => running.doing.as_str(),
        };
        // A question shows no time: the person should not be hurried.
        if !self.questions.open.is_empty() {
            return format!("? {doing}");
        }
        // It says how long it has been quiet, and for how long it may be.
        if let Some(wait @ Wait::Silent { .. }) = &running.wait
            && !running.is_stopping
        {
            return format!("{} {}", spinner_frame(elapsed), describe_wait(wait, self.now));
        }
        let doing = match &running.wait {
            Some(wait) if !running.is_stopping => describe_wait(wait, self.now),
            Some(_) | None => doing.to_owned(),
        };
        format!("{} {doing} {}", spinner_frame(elapsed), format_seconds(elapsed.as_secs()))
    }

    /// Says in finished lines what is otherwise seen below them: what takes the keys, and which choice
    /// Enter would take.
    pub(super) fn announce_focus(&mut self) {
        let width = self.size.width;
        let listed = match &self.layer {
            Some(Layer::Pick { list, .. }) => list.title().to_owned(),
            _ => String::new(),
        };
        let (spoken, lines) = match (&self.layer, self.questions.open.front()) {
            (None, None) => (String::new(), Vec::new()),
            (None, Some(question)) => {
                let id = format!("{} ", question.call.id);
                let choice = question.spoken_choice(&self.keymap);
                let lines = if self.window.spoken.starts_with(&id) {
                    vec![Line::new(choice.clone(), Style::default())]
                } else {
                    question.spoken_lines(&self.facts.folder, &self.keymap, width)
                };
                (id + &choice, lines)
            }
            (Some(layer), _) => {
                let text = spoken_layer(layer);
                // A list may come over a question or another list that was read out before.
                let is_new = self.window.spoken.is_empty()
                    || !listed.is_empty() && listed != self.window.listed;
                let mut lines = if is_new { read_out(layer) } else { Vec::new() };
                lines.push(Line::new(text.clone(), Style::default()));
                (text, lines)
            }
        };
        if spoken != self.window.spoken || listed != self.window.listed && !listed.is_empty() {
            self.window.spoken = spoken;
            self.show_lines(lines);
        }
        self.window.listed = listed;
    }
}

impl State {
    /// Says what a line has led to in a list that continues, which then ends with its choice.
    pub(super) fn say_choice(&mut self, lines: Vec<Line>) {
        self.show_lines(lines);
        let choice = self.layer.as_ref().map(spoken_layer).unwrap_or_default();
        self.show_lines(vec![Line::new(choice.clone(), Style::default())]);
        self.window.spoken = choice;
    }
}

/// Returns the lines that are read out when the layer appears.
fn read_out(layer: &Layer) -> Vec<Line> {
    match layer {
        Layer::Pick { list, .. } => list.read_out(),
        Layer::Setup(setup) => setup.read_out(),
        Layer::Field { .. } | Layer::Confirm { .. } | Layer::Search(_) | Layer::Reader(_) => {
            Vec::new()
        }
    }
}

fn spoken_layer(layer: &Layer) -> String {
    match layer {
        Layer::Pick { list, .. } => list.describe_selection(),
        Layer::Field { title, .. } => title.clone(),
        Layer::Confirm { question, .. } => format!("{question} y or n"),
        Layer::Search(search) => format!("searching for: {}", search.query()),
        Layer::Setup(setup) => setup.describe_step(),
        // Where lines are heard it is said among the others.
        Layer::Reader(_) => String::new(),
    }
}

/// Returns the number of last rows that stay on the screen if the window is made half as wide or half as high. Rows
/// that the terminal pushes up then stay in its scrollback, and would stand there again once they are finished.
fn rows_that_stay(live: &[Line], width: usize, room: usize) -> usize {
    let narrow = (width / 2).max(MIN_WIDTH);
    let most = (room / 2).max(MIN_LIVE_ROWS);
    let mut left = room.saturating_sub(ROWS_FOLDED_BELOW);
    let fits = |line: &&Line| {
        let rows = line.width().div_ceil(narrow).max(1);
        let fits = rows <= left;
        left = left.saturating_sub(rows);
        fits
    };
    let fitting = live.iter().rev().take_while(fits).count();
    fitting.clamp(MIN_LIVE_ROWS.min(most), most).min(live.len())
}

/// Returns the line that parts the editor from the conversation.
fn separator_line(width: usize) -> Line {
    Line::new("─".repeat(width), Style::with_ink(TextRole::Dim))
}

/// A line that says so, as much of it as there is room for.
fn too_small(size: Size) -> Frame {
    let mut live =
        Line::new(TOO_SMALL, Style::with_ink(TextRole::Warning)).wrap(size.width, &Line::default());
    live.truncate(size.height);
    Frame { live, ..Frame::default() }
}

/// Returns the sign of the spinner after that time.
fn spinner_frame(elapsed: Duration) -> &'static str {
    let beats = elapsed.as_millis() / BEAT.as_millis();
    let place = usize::try_from(beats).unwrap_or_default() % SPINNER.len();
    SPINNER.get(place).copied().unwrap_or_default()
}

/// So many seconds, for people.
fn format_seconds(seconds: u64) -> String {
    duration::format_duration(Duration::from_secs(seconds))
}

/// Describes what is waited for, and how long still.
fn describe_wait(wait: &Wait, now: Instant) -> String {
    let seconds = |until: Instant| {
        let left = until.saturating_duration_since(now);
        left.as_secs() + u64::from(left.subsec_nanos() > 0)
    };
    match wait {
        Wait::Again { at, attempt } if *at > now => {
            format!("retrying in {} (attempt {attempt})", format_seconds(seconds(*at)))
        }
        Wait::Again { .. } => "waiting for the model".to_owned(),
        Wait::Silent { since, until } => {
            let silent = now.saturating_duration_since(*since).as_secs();
            format!(
                "no answer for {}, gives up in {}",
                format_seconds(silent),
                format_seconds(seconds(*until))
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_part_fits_a_window_of_half_the_width() {
        for (width, height) in [(80, 24), (120, 40), (200, 60), (40, 16)] {
            for columns in [width, width / 2, 10] {
                let rows = vec![Line::new("x".repeat(columns), Style::default()); height];
                let room = height - 4;
                let stay = rows_that_stay(&rows, width, room);
                let folded = stay * columns.div_ceil(width / 2);
                assert!(folded + 4 + ROWS_FOLDED_BELOW <= height, "{width} {height} {columns}");
                assert!(stay <= (height / 2).max(MIN_LIVE_ROWS) && stay >= MIN_LIVE_ROWS);
            }
        }
        assert_eq!(rows_that_stay(&[], 80, 20), 0);
    }

    #[test]
    fn waits_are_counted_down() {
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms);
        let again = |ms| describe_wait(&Wait::Again { at: after(3_200), attempt: 2 }, after(ms));
        assert_eq!(again(0), "retrying in 4s (attempt 2)");
        assert_eq!(again(3_000), "retrying in 1s (attempt 2)");
        assert_eq!(again(3_200), "waiting for the model");
        let silent = Wait::Silent { since: now, until: after(120_000) };
        assert_eq!(describe_wait(&silent, after(61_000)), "no answer for 1m 1s, gives up in 59s");
    }
}
