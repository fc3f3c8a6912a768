//! Builtins that go to another folder. Each may fail, and then the shell stays where it is.

use std::path::Path;

use super::Walker;
use super::command_facts::CommandFacts;
use crate::expand::{Field, Folders};
use crate::facts::Effect;

impl Walker<'_> {
    pub(super) fn cd_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let before = self.state.clone();
        let is_option =
            |word: &Field| matches!(word.known_text(), Some("-L" | "-P" | "-e" | "-@" | "--"));
        let options = words.iter().take_while(|word| is_option(word)).count();
        let physical = words.iter().take(options).any(|word| word.known_text() == Some("-P"));
        let unknown = self.state.folders.to_unknown();
        let looks = self.looks_of_cd(words.get(options..).unwrap_or_default());
        let to = match words.get(options..).unwrap_or_default() {
            [] => {
                let home = self.start.home.as_deref().and_then(Path::to_str);
                home.map_or(unknown, |home| self.state.folders.change_folder(&[home]))
            }
            [Field::Known(text)] if text == "-" => self.state.before.clone().unwrap_or(unknown),
            // Looked for elsewhere.
            _ if self.state.variables.contains_key("CDPATH") => unknown,
            // The shell then knows the folder by another name, which later `..` are taken from.
            [word] if physical => {
                let to = self.state.folders.enter_folder(word);
                if to.are_there(self.start.home.as_deref()) { to } else { unknown }
            }
            [word] => word
                .possible_texts()
                .map_or(unknown, |texts| self.state.folders.change_folder(&texts)),
            _ => unknown,
        };
        let is_there = words.len() <= options + 1 && to.are_there(self.start.home.as_deref());
        self.change_folder(to);
        if !is_there {
            self.failed = Some(before);
        }
        looks
    }

    /// The look at the folder to which `cd` goes, from where the shell is if no `cd` before it failed.
    fn looks_of_cd(&self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        let likely = self.state.folders.to_likely();
        let to = match words {
            [] => self
                .start
                .home
                .as_deref()
                .and_then(Path::to_str)
                .map(|home| likely.change_folder(&[home])),
            [Field::Known(text)] if text == "-" => {
                self.state.before.as_ref().map(Folders::to_likely)
            }
            _ if self.state.variables.contains_key("CDPATH") => None,
            [word] => {
                let to = word.possible_texts().map(|texts| likely.change_folder(&texts));
                if to.is_none() {
                    facts.add_looks(&likely, word);
                }
                to
            }
            _ => None,
        };
        if let Some(to) = to {
            facts.add_at_places(Effect::Look, to.current_places());
        }
        facts
    }

    fn change_folder(&mut self, to: Folders) {
        self.changes += 1;
        self.state.change_folder(to);
    }

    pub(super) fn pushd_builtin(&mut self, words: &[Field]) -> CommandFacts {
        self.state.stack.push(self.state.folders.clone());
        let rotates = words.iter().any(|word| word.known_start().starts_with(['+', '-']));
        if rotates || words.is_empty() {
            self.state.stack.clear();
            self.change_folder(self.state.folders.to_unknown());
            return CommandFacts::default();
        }
        self.cd_builtin(words)
    }

    pub(super) fn popd_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let to = self.state.stack.pop().filter(|_| words.is_empty());
        self.change_folder(to.unwrap_or_else(|| self.state.folders.to_unknown()));
        CommandFacts::default()
    }
}
