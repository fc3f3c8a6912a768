//! The first lines of a window: where it works and what it found, and which conversation it continues.

use gnoma_core::{
    Usage,
    protocol::{Request, ResumedFrom},
    store::SessionFacts,
};

use super::{State, parts::SessionLink};
use crate::{
    ask::Purpose,
    text::{Line, Span, Style, TextRole},
};

/// Files of instructions that are named; of more, only the number is told.
const MAX_INSTRUCTIONS: usize = 3;
/// Characters of the title of a conversation.
const MAX_TITLE_CHARS: usize = 60;
/// The line in place of the composer's placeholder, where nothing is redrawn.
const HOW_TO_BEGIN: &str = "Type a message and press Enter. /help lists the commands";

impl State {
    /// Says where a session works in which nothing was said, what holds there, and how to return to the last one.
    pub(super) fn show_greeting(&mut self) {
        let view = &self.session.view;
        if view.messages > 0 || view.info.child.is_some() {
            return;
        }
        let Some(lines) = greeting_lines(&self.session, self.facts.model.as_deref()) else {
            return;
        };
        let how_to_begin = self.accessible.then(|| HOW_TO_BEGIN.to_owned());
        let mut lines = lines.into_iter().chain(how_to_begin);
        let first = lines.next().map(|first| {
            Line::from([
                Span::new("gnoma ".to_owned(), Style::with_ink(TextRole::Accent).bold()),
                Span::new(first, Style::with_ink(TextRole::Dim)),
            ])
        });
        let rest = lines.map(|line| Line::new(line, Style::with_ink(TextRole::Dim)));
        self.show_lines(first.into_iter().chain(rest).collect());
        if self.session.view.info.is_kept {
            self.send_request(Request::Stored { max: 2 }, Purpose::Earlier);
        }
    }

    /// Says how to return to the last session, if nothing was said in this one meanwhile.
    pub(super) fn offer_earlier(&mut self, sessions: Vec<SessionFacts>) {
        let is_new = self.session.view.messages == 0 && self.running.is_none();
        let other = |facts: &SessionFacts| self.session_id() != Some(&facts.id);
        let Some(last) = sessions.into_iter().find(other).filter(|_| is_new) else { return };
        let (title, when) = (shorten_title(last.title.trim()), self.describe_age(last.changed_ms));
        let what = if title.is_empty() { String::new() } else { format!(" “{title}”") };
        let text = format!("Continue your last session{what}, {when}: /resume");
        self.show_lines(vec![Line::new(text, Style::with_ink(TextRole::Dim))]);
    }

    /// Names the stored conversation that a session has just continued.
    pub(super) fn tell_resumed(&mut self, shown_messages: usize) {
        if !std::mem::take(&mut self.session.tells_resumed) {
            return;
        }
        let view = &self.session.view;
        // Later windows on the same session see it at work.
        if view.usage != Usage::default() || view.turn.is_some() {
            return;
        }
        let Some(ResumedFrom { title, changed_ms, is_copy }) = view.info.resumed.clone() else {
            return;
        };
        let title = match title.trim() {
            "" => "a conversation without a title".to_owned(),
            title => format!("“{}”", shorten_title(title)),
        };
        let (copy, when) = (if is_copy { "a copy of " } else { "" }, self.describe_age(changed_ms));
        let hidden = view.messages.saturating_sub(shown_messages as u64);
        let earlier = match hidden {
            0 => String::new(),
            hidden => format!(". {hidden} earlier messages are not shown"),
        };
        self.append_note(&format!("Continuing {copy}{title}, {when}{earlier}"));
    }

    /// Moves what was queued for another session from the queue to the prompts that Up brings back.
    pub(super) fn drop_queue_of_others(&mut self) {
        let here = self.session.view.session.to_string();
        let is_of_another =
            |session: &Option<String>| session.as_ref().is_some_and(|session| *session != here);
        let (others, own) = std::mem::take(&mut self.queue.waiting)
            .into_iter()
            .partition(|waiting| is_of_another(&waiting.draft.session));
        self.queue.waiting = own;
        let others: std::collections::VecDeque<super::queue::QueuedMessage> = others;
        for waiting in &others {
            self.save_prompt_and_end_browsing(&waiting.draft.text);
        }
        match others.len() {
            0 => return,
            1 => self
                .append_note("A message queued in another session was not sent: Up brings it back"),
            count => self.append_note(&format!(
                "{count} messages queued in another session were not sent: Up brings them back"
            )),
        }
        self.schedule_save();
    }
}

/// `None` where the session has told nothing of itself, or a provider is still to be chosen.
fn greeting_lines(session: &SessionLink, model: Option<&str>) -> Option<Vec<String>> {
    let info = &session.view.info;
    if info.version.is_empty() || info.found.is_some() {
        return None;
    }
    let branch = info.branch.as_ref().map_or(String::new(), |branch| format!(" ({branch})"));
    let model = model.map_or(String::new(), |model| format!(" · {model}"));
    let mut lines = vec![format!("{} · {}{branch}{model}", info.version, info.folder)];
    let named = info.instructions.iter().take(MAX_INSTRUCTIONS).cloned().collect::<Vec<_>>();
    match info.instructions.len() {
        0 => lines.push("No AGENTS.md here yet; /init writes one".to_owned()),
        all => {
            let more = match all - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!("Instructions: {}{more}", named.join(", ")));
        }
    }
    Some(lines)
}

fn shorten_title(title: &str) -> String {
    let mut chars = title.chars();
    let start: String = chars.by_ref().take(MAX_TITLE_CHARS).collect();
    if chars.next().is_some() { format!("{}…", start.trim_end()) } else { start }
}
