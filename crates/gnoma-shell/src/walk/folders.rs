//! Builtins that go to another folder. Each may fail, and then the shell stays where it is.

use std::path::Path;

use super::Walker;
use super::facts_of::CommandFacts;
use crate::expand::{Field, Folders};

impl Walker<'_> {
    pub(super) fn cd(&mut self, words: &[Field]) -> CommandFacts {
        let before = self.state.clone();
        let is_option =
            |word: &Field| matches!(word.known(), Some("-L" | "-P" | "-e" | "-@" | "--"));
        let options = words.iter().take_while(|word| is_option(word)).count();
        let physical = words.iter().take(options).any(|word| word.known() == Some("-P"));
        let unknown = self.state.folders.unknown();
        let to = match words.get(options..).unwrap_or_default() {
            [] => {
                let home = self.start.home.as_deref().and_then(Path::to_str);
                home.map_or(unknown, |home| self.state.folders.go(&[home]))
            }
            [Field::Known(text)] if text == "-" => self.state.before.clone().unwrap_or(unknown),
            // Looked for elsewhere.
            _ if self.state.variables.contains_key("CDPATH") => unknown,
            // The shell then knows the folder by another name, which later `..` are taken from.
            [word] if physical => {
                let to = self.state.folders.enter(word);
                if to.are_there(self.start.home.as_deref()) { to } else { unknown }
            }
            [word] => word.choices().map_or(unknown, |texts| self.state.folders.go(&texts)),
            _ => unknown,
        };
        let is_there = words.len() <= options + 1 && to.are_there(self.start.home.as_deref());
        self.go(to);
        if !is_there {
            self.failed = Some(before);
        }
        CommandFacts::default()
    }

    fn go(&mut self, to: Folders) {
        self.changes += 1;
        self.state.go(to);
    }

    pub(super) fn pushd(&mut self, words: &[Field]) -> CommandFacts {
        self.state.stack.push(self.state.folders.clone());
        let rotates = words.iter().any(|word| word.start().starts_with(['+', '-']));
        if rotates || words.is_empty() {
            self.state.stack.clear();
            self.go(self.state.folders.unknown());
            return CommandFacts::default();
        }
        self.cd(words)
    }

    pub(super) fn popd(&mut self, words: &[Field]) -> CommandFacts {
        let to = self.state.stack.pop().filter(|_| words.is_empty());
        self.go(to.unwrap_or_else(|| self.state.folders.unknown()));
        CommandFacts::default()
    }
}
