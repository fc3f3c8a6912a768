//! Shells and what they run: a text after `-c`, a file, or what they read.

use super::Walker;
use super::command_facts::CommandFacts;
use super::input::{Input, InputSource, feed_of};
use crate::expand::Field;
use crate::facts::{Effect, Risk};

impl Walker<'_> {
    /// `sh -c text`, `sh file`, and `sh` that reads its input.
    pub(super) fn walk_shell(&mut self, name: &str, words: &[Field], from: usize) -> CommandFacts {
        let mut text_follows = false;
        let mut reads_input = false;
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            let Some(option) =
                word.known_text().filter(|text| text.starts_with(['-', '+']) && text.len() > 1)
            else {
                break;
            };
            rest = after;
            match option {
                "--" => break,
                "--version" | "--help" if words.len() == 1 => return CommandFacts::default(),
                "--norc" | "--noprofile" | "--posix" | "--login" | "--verbose" => {}
                "-o" | "+o" | "-O" | "+O" => rest = rest.get(1..).unwrap_or_default(),
                _ if option.starts_with("--") || option.contains('i') => {
                    return CommandFacts::from_effect(Effect::Runs(format!("{name} {option}")))
                        .with_risk(self.input_risk(from));
                }
                _ => {
                    text_follows |= option.contains('c');
                    reads_input |= option.contains('s');
                }
            }
        }
        if text_follows {
            return self.shell_text(rest, from, is_bourne(name));
        }
        match rest.first() {
            Some(file)
                if !reads_input
                    && !matches!(file.known_text(), Some("/dev/stdin" | "/dev/fd/0" | "-")) =>
            {
                CommandFacts::from_effect(Effect::Runs(file.to_string()))
                    .with_risk(self.fed_risk(file).max(self.feed_risk(from)))
            }
            _ if is_bourne(name) => self.run_input(name),
            _ => CommandFacts::from_effect(Effect::Runs(name.to_owned()))
                .with_risk(self.input_risk(from)),
        }
    }

    fn shell_text(&mut self, words: &[Field], from: usize, is_bourne: bool) -> CommandFacts {
        let Some(text) = words.first() else { return CommandFacts::default() };
        match text {
            Field::Known(text) if is_bourne => {
                let mut facts = self.indirect_effect(text);
                facts.merge_with(self.walk_child_shell(text));
                facts
            }
            Field::Known(text) => {
                let mut facts = self.walk_child_shell(text);
                facts.add(Effect::Unknown("this shell parses some text in its own way".to_owned()));
                facts
            }
            _ => CommandFacts::unknown_effect(format!(
                "what `{text}` runs is only known at run time"
            ))
            .with_risk(Risk::High.max(self.feed_risk(from))),
        }
    }

    /// A text that is run by way of another program, which hides it from a quick look.
    pub(super) fn indirect_effect(&self, text: &str) -> CommandFacts {
        if self.depth == 0 {
            return CommandFacts::default();
        }
        CommandFacts::from_effect(Effect::Runs(format!(
            "a shell with `{text}`, started through another program"
        )))
    }

    /// A shell that runs what it reads.
    pub(super) fn run_input(&mut self, name: &str) -> CommandFacts {
        match std::mem::replace(&mut self.input, Input::Inherited) {
            Input::Text(text) => {
                let mut facts =
                    CommandFacts::from_effect(Effect::Runs(format!("{name}: the text it reads")));
                facts.merge_with(self.walk_child_shell(&text));
                facts
            }
            Input::File(file) => CommandFacts::from_effect(Effect::Runs(file.to_string())),
            Input::Inherited | Input::Listing(_) => {
                CommandFacts::from_effect(Effect::Runs(name.to_owned()))
            }
            Input::Pipe(feed) => {
                self.note_feed(name, feed);
                CommandFacts::from_effect(Effect::Runs(format!("{name}: what is piped into it")))
                    .with_risk(risk_of(feed))
            }
        }
    }

    /// Returns the risk of running the data from standard input, and notes it as an oddity if it is odd.
    pub(super) fn input_risk(&mut self, from: usize) -> Risk {
        let feed = match &self.input {
            Input::Pipe(feed) => *feed,
            _ => InputSource::Plain,
        };
        self.note_feed("a program", feed);
        risk_of(feed).max(self.feed_risk(from))
    }

    /// Returns the risk of running the output of substitutions within this command.
    pub(super) fn feed_risk(&mut self, from: usize) -> Risk {
        let feed = feed_of(self.found.get(from..).unwrap_or_default());
        self.note_feed("a program", feed);
        risk_of(feed)
    }

    pub(super) fn fed_risk(&self, file: &Field) -> Risk {
        if file.known_text() == Some("/dev/fd/63") { Risk::Critical } else { Risk::Medium }
    }

    pub(super) fn note_feed(&mut self, name: &str, feed: InputSource) {
        match feed {
            InputSource::Plain => {}
            InputSource::Decoded => {
                self.oddities.push(format!("{name} runs text that is decoded first"));
            }
            InputSource::Network => {
                self.oddities.push(format!("{name} runs what comes from the network"));
            }
        }
    }
}

/// Shells whose language is the one read here.
fn is_bourne(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "ash" | "rbash")
}

fn risk_of(feed: InputSource) -> Risk {
    match feed {
        InputSource::Plain => Risk::Medium,
        InputSource::Decoded | InputSource::Network => Risk::Critical,
    }
}
