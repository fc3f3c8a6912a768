//! Sends the written message: at once, as steering of the running turn, or queued for its end. Whatever cannot be
//! delivered comes back.

use std::collections::VecDeque;

use gnoma_core::{Content, Message, protocol::Request, shell_line::describe_shell_line};

use super::{
    State, draft_display,
    parts::{HintSubject, LookUp, TurnActivity},
    queue::{AttachedOutput, QueuedMessage, SentMessage},
};
use crate::{
    ask::Purpose,
    commands::{self, SlashMeaning},
    complete,
    composer::{Draft, Fold},
    effect::Effect,
    text::{Line, Style, TextRole},
};

/// Files of one message that are looked for.
const MAX_LOOKED_FOR: usize = 100;
/// Programs that need the whole terminal: a line that begins with one has it until it ends.
const WHOLE_TERMINAL: [&str; 15] = [
    "vim", "vi", "nvim", "nano", "emacs", "hx", "less", "more", "man", "top", "htop", "tmux",
    "fzf", "tig", "lazygit",
];
/// Lines of a shell line's output that are shown.
const MAX_SHOWN_OUTPUT_LINES: usize = 200;
/// Bytes of a shell line's output that can be sent along.
const MAX_ATTACHED_BYTES: usize = 256 << 10;
/// Outputs that wait to be sent along; the oldest go first.
const MAX_ATTACHED: usize = 8;

impl State {
    /// Does what was written asks for.
    pub(super) fn submit_input(&mut self) {
        if self.composer.draft().is_blank() {
            return self.release_queue();
        }
        let is_one_line = self.composer.line_count() == 1;
        let first = self.composer.first_line();
        let is_order = is_one_line && (first.starts_with('!') || commands::is_command(first));
        if !is_order && self.answers_by_line() {
            return;
        }
        let first = self.composer.first_line();
        if is_one_line && let Some(line) = first.strip_prefix('!') {
            let line = line.trim().to_owned();
            return self.run_shell(&line);
        }
        if (is_one_line && commands::is_command(first)) || commands::takes_lines(first) {
            return self.run_command();
        }
        let draft = self.take_written();
        // A terminal that edits lines itself shows what was typed; it is not read out again.
        let is_seen = self.accessible && is_one_line;
        self.send_shown(draft, !is_seen);
    }

    /// Keeps what was written until the turn is over.
    pub(super) fn enqueue_draft(&mut self) {
        if self.composer.draft().is_blank() {
            return;
        }
        if self.composer.line_count() == 1 && commands::complete_task(self) {
            return;
        }
        if self.is_idle() && self.questions.open.is_empty() {
            return self.show_hint("No turn running. Press Enter to send");
        }
        let draft = self.take_written();
        let draft = self.with_attached(draft);
        self.queue.waiting.push_back(draft.into());
        self.queue.is_held = false;
    }

    /// Brings what waits last back into the editor. Says whether there was something.
    pub(super) fn take_back_queued(&mut self) -> bool {
        if !self.composer.is_empty() {
            return false;
        }
        let Some(waiting) = self.queue.waiting.pop_back() else { return false };
        self.composer.restore_draft(waiting.draft);
        self.schedule_save();
        true
    }

    /// Lets go of what would be sent along. Says whether there was something.
    pub(super) fn drop_attached(&mut self) -> bool {
        self.composer.is_empty() && self.queue.attached.pop_back().is_some()
    }

    /// Puts something at the end of what waits, which waits for the person then.
    pub(super) fn keep_waiting(&mut self, draft: Draft) {
        self.queue.waiting.push_back(draft.into());
        self.hold_queue();
        self.schedule_save();
    }

    pub(super) fn hold_queue(&mut self) {
        self.queue.is_held = true;
    }

    fn release_queue(&mut self) {
        self.queue.is_held = false;
    }

    /// Sends what waits, once the turn is over.
    pub(super) fn send_queued(&mut self) {
        let is_free = self.is_idle()
            && self.session.is_at_rest
            && self.questions.open.is_empty()
            && !self.session.is_closed
            && !self.waits_for_command()
            && self.setup.found.is_none()
            && !self.queue.has_begun();
        if is_free
            && !self.queue.is_held
            && let Some(waiting) = self.queue.waiting.pop_front()
        {
            self.send_draft(waiting.draft);
            self.schedule_save();
        }
    }

    /// Writes a text into the editor, where nothing is written yet.
    pub(crate) fn write_input(&mut self, text: &str) {
        if self.composer.is_empty() {
            self.composer.restore_draft(Draft { text: text.to_owned(), ..Draft::default() });
            self.schedule_save();
        }
    }

    /// Writes a text in the place of what is written.
    pub(crate) fn rewrite_input(&mut self, text: &str) {
        self.composer.restore_draft(Draft { text: text.to_owned(), ..Draft::default() });
        self.schedule_save();
    }

    /// Removes and returns what is written, and adds it to the history. What was said about the line before is over.
    pub(super) fn take_written(&mut self) -> Draft {
        self.end_hints(HintSubject::Past);
        let draft = self.composer.take_draft();
        self.save_prompt_and_end_browsing(&draft.text);
        self.schedule_save();
        draft
    }

    /// Keeps a text in the history. What was put aside to look at older prompts comes back into the
    /// editor, or is kept as well where something is written there.
    pub(super) fn save_prompt_and_end_browsing(&mut self, text: &str) {
        let (unsent, changed) = self.writing.history.stop_browsing();
        for other in changed.iter().filter(|other| other.text != text) {
            self.keep_prompt(&other.text);
        }
        self.keep_prompt(text);
        if unsent.is_blank() {
            return;
        }
        if self.composer.is_empty() {
            self.composer.restore_draft(unsent);
        } else {
            self.keep_prompt(&unsent.text);
        }
    }

    fn keep_prompt(&mut self, text: &str) {
        if let Some(line) = self.writing.history.push(text) {
            self.emit(Effect::Remember(line));
        }
    }

    /// Sends a text to the session: it begins a turn, or steers the one that runs.
    pub(crate) fn send_draft(&mut self, draft: Draft) {
        self.send_shown(draft, true);
    }

    /// Sends a text, which is `shown` in the conversation unless it is seen already.
    fn send_shown(&mut self, draft: Draft, shown: bool) {
        if self.waits_for_command() {
            self.release_queue();
            return self.queue.waiting.push_back(draft.into());
        }
        self.look_for_files(&draft.text);
        let sent = SentMessage::from_draft(self.with_attached(draft));
        if self.session.is_returning {
            return self.send_on_return(sent.draft);
        }
        if self.session.is_closed || self.setup.found.is_some() {
            self.queue.waiting.push_back(sent.draft.into());
            self.hold_queue();
            return self.show_warning(if self.setup.found.is_some() {
                "No provider set up. Your message is queued; set one up with /login"
            } else if self.session.view.messages > 0 {
                "Session closed. Your message is queued; reopen it with /resume"
            } else {
                "Session closed. Your message is queued; /clear to retry"
            });
        }
        let content = sent.content.clone();
        self.send_request(Request::Send { content: content.clone() }, Purpose::Send(content));
        if self.running.is_some() {
            return self.queue.steers.push_back(sent);
        }
        if shown {
            self.transcript.add_user_message(&draft_display::describe_draft(&sent.draft));
        }
        self.queue.begun.push_back(sent);
        let since = self.now;
        self.running = Some(TurnActivity {
            since,
            doing: "working".to_owned(),
            is_stopping: false,
            wait: None,
        });
    }

    /// Sends a text once the server is back: at once then, unless something else waits for the person.
    fn send_on_return(&mut self, draft: Draft) {
        // A hold of what has been sent since holds nothing back.
        let is_held = self.queue.is_held();
        self.queue.is_held = is_held;
        self.queue.waiting.push_back(draft.into());
        self.append_note(if is_held {
            "Your message is queued. Press Enter to send what is queued once the server is back"
        } else {
            "Your message is queued and will be sent once the server is back"
        });
    }

    /// A command that was given before is not done yet, and may be about what is sent; or an elf has ended, and the
    /// session that it worked for comes back.
    fn waits_for_command(&self) -> bool {
        let is_meant = |look_up: &LookUp| !look_up.argument.is_empty();
        let comes_back = self.session.is_closed && self.session.view.parent.is_some();
        comes_back
            || self.session.is_switching
            || !self.session.later.is_empty()
            || self.look_ups.open.as_ref().is_some_and(is_meant)
    }

    /// Files that completion has offered may be gone by now, and what is written as one may have a slip in it.
    fn look_for_files(&mut self, text: &str) {
        let mentions = complete::find_mentions(text).into_iter().take(MAX_LOOKED_FOR);
        let paths = mentions.map(|mention| mention.path);
        let completion = &self.writing.completion;
        let files: Vec<String> =
            paths.filter(|path| completion.has_offered(path) || complete::is_file(path)).collect();
        if !files.is_empty() {
            self.emit(Effect::LookFor(files));
        }
    }

    /// Says of what was sent that it names files that are not there.
    pub(super) fn warn_missing_files(&mut self, files: &[String]) {
        for file in files {
            self.show_warning(&format!("`{file}` does not exist. The message still mentions it"));
        }
    }

    fn with_attached(&mut self, draft: Draft) -> Draft {
        if self.queue.attached.is_empty() {
            return draft;
        }
        let mut text = String::new();
        let mut folds = Vec::new();
        for attached in self.queue.attached.drain(..) {
            let start = text.len();
            text.push_str(&attached.text);
            folds.push(Fold { start, end: text.len(), image: None });
            text.push('\n');
        }
        let shift = text.len();
        text.push_str(&draft.text);
        folds.extend(draft.folds.into_iter().map(|fold| Fold {
            start: fold.start + shift,
            end: fold.end + shift,
            image: fold.image,
        }));
        Draft { text, images: draft.images, folds, session: None }
    }

    /// A message of a person has become part of the conversation.
    pub(super) fn person_appended(&mut self, message: &Message) {
        if message.is_system_note() {
            return;
        }
        let text = message.text_content();
        // What has arrived need not be kept for another time.
        self.schedule_save();
        if self.queue.begun_with(message.content()) {
            return;
        }
        match self.queue.take_steer(message.content()) {
            Some(sent) => {
                self.transcript.add_user_message(&draft_display::describe_draft(&sent.draft));
            }
            None => self.transcript.add_user_message(&text),
        }
    }

    /// A message did not reach the session.
    pub(super) fn not_sent(&mut self, content: &[Content], why: &str) {
        let begun = self.queue.begun.iter().position(|sent| sent.content == content);
        let began = begun.and_then(|place| self.queue.begun.remove(place));
        if began.is_some() {
            self.running = None;
        }
        let sent = began.or_else(|| self.queue.own_steer(content));
        // It came back by itself where the session is gone.
        let Some(sent) = sent else { return };
        self.queue.waiting.push_front(sent.draft.into());
        self.hold_queue();
        self.show_warning(&format!(
            "Could not send the message: {why}. It is queued; press Enter to retry"
        ));
    }

    /// Messages that the turn ended without. They are the next to be sent; after a stop they go back
    /// to the editor, as far as nothing is written there.
    pub(super) fn come_back<'a>(
        &mut self,
        messages: impl DoubleEndedIterator<Item = &'a Message>,
        was_stopped: bool,
    ) {
        // Those of other windows come back there.
        let sent = messages.filter_map(|message| self.queue.take_steer(message.content()));
        let mut drafts: VecDeque<Draft> = sent.map(|sent| sent.draft).collect();
        if was_stopped
            && self.composer.is_empty()
            && !self.accessible
            && let Some(first) = drafts.pop_front()
        {
            self.composer.restore_draft(first);
        }
        if drafts.is_empty() {
            return;
        }
        self.schedule_save();
        for draft in drafts.into_iter().rev() {
            self.queue.waiting.push_front(draft.into());
        }
        if was_stopped {
            self.tell_waiting();
        }
    }

    /// Says what is waiting where it cannot be seen.
    pub(super) fn tell_waiting(&mut self) {
        if !self.accessible || !self.queue.is_held() {
            return;
        }
        let lines: Vec<String> =
            self.queue.waiting.iter().map(|waiting| waiting.line.clone()).collect();
        for line in lines {
            self.append_note(&format!("Queued: {line}"));
        }
        self.append_note(
            "Press Enter on an empty line to send the first, or /drop to discard them",
        );
    }

    /// Forgets what waits to be sent; says how much that was.
    pub(crate) fn drop_waiting(&mut self) -> usize {
        let dropped: Vec<QueuedMessage> = self.queue.waiting.drain(..).collect();
        for waiting in &dropped {
            self.save_prompt_and_end_browsing(&waiting.draft.text);
        }
        self.schedule_save();
        dropped.len()
    }

    fn run_shell(&mut self, line: &str) {
        if line.is_empty() {
            return self.show_hint("Type a command after `!`");
        }
        self.take_written();
        let program = line.split_whitespace().next().unwrap_or_default();
        if WHOLE_TERMINAL.contains(&program) {
            return self.emit(Effect::HandOver(Some(line.to_owned())));
        }
        self.show_lines(vec![Line::new(format!("! {line}"), Style::with_ink(TextRole::Person))]);
        self.shells.push_back((line.to_owned(), self.now));
        self.emit(Effect::RunShell(line.to_owned()));
    }

    /// Ends what runs in a shell. Says whether there was something.
    pub(super) fn stop_shells(&mut self) -> bool {
        if self.shells.is_empty() {
            return false;
        }
        self.emit(Effect::StopShell);
        self.stopped_shells = self.shells.len();
        self.hint_about(HintSubject::Shell, "Stopping the command…");
        true
    }

    /// Shows what a shell line printed and keeps it for the next message.
    pub(super) fn shell_ended(&mut self, line: &str, output: &str, failure: Option<String>) {
        let place = self.shells.iter().position(|(other, _)| other == line);
        place.and_then(|place| self.shells.remove(place));
        self.end_hints(HintSubject::Shell);
        let was_stopped = self.stopped_shells > 0;
        self.stopped_shells = self.stopped_shells.saturating_sub(1);
        let failure = failure.map(|how| if was_stopped { "stopped".to_owned() } else { how });
        let count = output.lines().count();
        let ink = if failure.is_none() { TextRole::Dim } else { TextRole::Bad };
        let shown = output.lines().take(MAX_SHOWN_OUTPUT_LINES);
        let mut lines: Vec<Line> = shown
            .map(|text| {
                Line::new(format!("  {}", draft_display::replace_tabs(text)), Style::with_ink(ink))
            })
            .collect();
        if count > MAX_SHOWN_OUTPUT_LINES {
            let rest = count - MAX_SHOWN_OUTPUT_LINES;
            lines.push(Line::new(format!("  … {rest} more lines"), Style::with_ink(TextRole::Dim)));
        }
        let failure =
            failure.map(|how| Line::new(format!("  {how}"), Style::with_ink(TextRole::Bad)));
        lines.extend(failure);
        self.show_lines(lines);
        let end = output.floor_char_boundary(MAX_ATTACHED_BYTES);
        let kept = output.get(..end).unwrap_or_default();
        let cut = if end < output.len() { "\n[cut]" } else { "" };
        let text = describe_shell_line(line, &format!("{}{cut}", kept.trim_end()));
        let amount = match cut {
            "" if count == 1 => "1 line".to_owned(),
            "" => format!("{count} lines"),
            _ => format!("the first {} KB", MAX_ATTACHED_BYTES >> 10),
        };
        let label = format!("output of `{line}` ({amount})");
        if self.queue.attached.len() == MAX_ATTACHED {
            self.queue.attached.pop_front();
        }
        self.queue.attached.push_back(AttachedOutput { label, text });
    }

    fn run_command(&mut self) {
        let line = self.composer.draft().text;
        let Some((name, argument)) = commands::split_command(&line) else { return };
        let own: Vec<String> = self.own_commands().map(|own| own.name.clone()).collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        match commands::resolve_command(name, &own) {
            SlashMeaning::BuiltIn(command)
                if command.arguments.is_empty() && !argument.is_empty() =>
            {
                let text = format!("/{} takes no arguments", command.name);
                self.end_line_that_ran_nothing();
                self.show_hint(text);
            }
            SlashMeaning::BuiltIn(command) => {
                let argument = argument.to_owned();
                self.take_written();
                (command.run)(self, &argument);
            }
            // Prompts of MCP servers are known once their server has started.
            SlashMeaning::Unknown | SlashMeaning::Ambiguous if name.starts_with("mcp__") => {
                let draft = self.take_written();
                self.send_draft(draft);
            }
            SlashMeaning::Own(whole) => {
                let mut draft = self.take_written();
                if draft.folds.is_empty() && draft.images.is_empty() && name != whole {
                    draft.text = draft.text.replacen(name, whole, 1);
                }
                self.send_draft(draft);
            }
            SlashMeaning::Unknown | SlashMeaning::Ambiguous => {
                let text = commands::explain_unknown(&format!("/{name}"), &own);
                self.end_line_that_ran_nothing();
                self.show_hint(text);
            }
        }
    }

    /// A command that cannot run stays in the editor to be corrected. Where lines come one by one, it would stand
    /// before the next one.
    fn end_line_that_ran_nothing(&mut self) {
        if self.accessible {
            self.take_written();
        }
    }

    /// The external editor is closed.
    pub(super) fn on_editor_closed(&mut self, text: Option<String>) {
        let before = self.writing.edited.take().unwrap_or_default();
        let Some(text) = text else { return };
        let mut text = text;
        // Editors end a file with a line break.
        if text.ends_with('\n') && !before.text.ends_with('\n') {
            text.pop();
        }
        self.composer.restore_draft(draft_display::rewrite_draft(&before, text));
        self.schedule_save();
    }
}
