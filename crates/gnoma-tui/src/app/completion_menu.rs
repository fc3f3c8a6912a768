//! The completion menu (autocomplete) below the editor: files behind `@`, slash commands behind `/`.

use gnoma_core::protocol::CommandInfo;

use super::{
    State,
    completion::{Completion, Hit, MAX_ROWS},
};
use crate::{
    commands::{self, SlashMeaning},
    complete::{self, CompletionKind},
    effect::Effect,
    fuzzy,
    keymap::{Action, Code, Context, Key},
};

/// Files that are offered at once.
const MAX_HITS: usize = 50;

impl State {
    /// Looks again at what can be completed.
    pub(super) fn complete_anew(&mut self) {
        let composer = &self.composer;
        let is_first = composer.line_number() == 0;
        let column = composer.cursor_byte();
        // Only at the end of a name: what stands behind the cursor is not to be written over.
        let query = complete::find_query(composer.current_line(), column, is_first)
            .filter(|query| query.range.end == column)
            .filter(|_| {
                !self.writing.completion.is_closed && self.layer.is_none() && !self.accessible
            });
        if query == self.writing.completion.query {
            return;
        }
        self.writing.completion.chosen = Some(0);
        self.writing.completion.hits = match &query {
            None => Vec::new(),
            Some(query) if query.kind == CompletionKind::Command => self.command_hits(&query.text),
            Some(query) => {
                if !std::mem::replace(&mut self.writing.completion.is_listed, true) {
                    self.effects.push(Effect::List);
                }
                rank_hits(&query.text, &self.writing.completion.files, |_| String::new())
            }
        };
        if query.is_none() {
            // The next mention looks at the files as they are then.
            self.writing.completion.is_listed = false;
        }
        self.writing.completion.query = query;
    }

    /// The commands that a written name can become. The one that it names is first, and Enter takes it.
    fn command_hits(&mut self, written: &str) -> Vec<Hit> {
        let own: Vec<String> = self.own_commands().map(|own| own.name.clone()).collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let meant = match commands::resolve_command(written, &own) {
            SlashMeaning::BuiltIn(command) => Some(command.name),
            SlashMeaning::Own(name) => Some(name),
            SlashMeaning::Ambiguous | SlashMeaning::Unknown => None,
        };
        if meant.is_none() {
            self.writing.completion.chosen = None;
        }
        let names = [commands::command_names(), &own].concat();
        let mut order = commands::rank_commands(written, &names);
        gnoma_core::sort::by_key(&mut order, |name| meant != Some(*name));
        let hit = |name: &str| Hit { name: name.to_owned(), about: self.about_command(name) };
        order.into_iter().map(hit).collect()
    }

    /// A key for the drop-down. Says whether it was one.
    pub(super) fn completion_key(&mut self, key: Key) -> bool {
        if !self.writing.completion.is_open() {
            return false;
        }
        let last = self.writing.completion.hits.len() - 1;
        let chosen = self.writing.completion.chosen;
        let place = chosen.unwrap_or(0);
        match self.keymap.action_here(Context::Picker, key) {
            Some(Action::Up) => {
                self.writing.completion.chosen = Some(place.checked_sub(1).unwrap_or(last));
            }
            Some(Action::Down) => {
                let next = chosen.map_or(0, |place| if place == last { 0 } else { place + 1 });
                self.writing.completion.chosen = Some(next);
            }
            Some(Action::PageUp) => {
                self.writing.completion.chosen = Some(place.saturating_sub(MAX_ROWS));
            }
            Some(Action::PageDown) => {
                self.writing.completion.chosen = Some((place + MAX_ROWS).min(last));
            }
            Some(Action::Complete) => self.take_hit(place),
            Some(Action::Accept) => {
                let is_command = self.completes_command();
                if chosen.is_none() && self.composer.draft().text == "/" {
                    self.show_hint("Type the name of a command, or choose one with Down");
                    return true;
                }
                if let Some(place) = chosen {
                    self.take_hit(place);
                }
                if is_command {
                    self.submit_input();
                }
            }
            Some(Action::Close) if key.code == Code::Escape => self.writing.completion.close(),
            _ => return false,
        }
        true
    }

    /// The commands that are not gnoma's own.
    pub(crate) fn own_commands(&self) -> impl Iterator<Item = &CommandInfo> {
        let all = self.session.view.info.commands.iter();
        all.filter(|own| commands::describe_command(&own.name).is_empty())
    }

    /// Describes what a command does, and what is written behind it.
    fn about_command(&self, name: &str) -> String {
        let own = self.own_commands().find(|own| own.name == name);
        match own {
            None => commands::describe_command(name).to_owned(),
            Some(own) if own.hint.is_empty() => own.about.clone(),
            Some(own) => format!("{} · {}", own.hint, own.about),
        }
    }

    fn completes_command(&self) -> bool {
        self.writing
            .completion
            .query
            .as_ref()
            .is_some_and(|query| query.kind == CompletionKind::Command)
    }

    fn take_hit(&mut self, place: usize) {
        let Completion { query: Some(query), hits, .. } = &self.writing.completion else {
            return;
        };
        let Some(hit) = hits.get(place) else { return };
        let line = self.composer.current_line();
        let text = match query.kind {
            CompletionKind::File => complete::file_replacement(line, query, &hit.name),
            CompletionKind::Command => complete::command_replacement(line, query, &hit.name),
        };
        let range = query.range.clone();
        let goes_on = hit.name.ends_with('/');
        self.composer.replace_in_line(range, &text);
        if !goes_on {
            self.writing.completion.close();
        }
        self.schedule_save();
    }
}

fn rank_hits<S: AsRef<str>>(query: &str, names: &[S], about: impl Fn(&str) -> String) -> Vec<Hit> {
    let best = fuzzy::rank_candidates(query, names, MAX_HITS).into_iter();
    let hit = |name: &str| Hit { name: name.to_owned(), about: about(name) };
    best.filter_map(|index| names.get(index)).map(|name| hit(name.as_ref())).collect()
}
