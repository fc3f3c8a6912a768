//! Redirections: files they read and write, and what a command's input becomes.

use super::Walker;
use super::builtins::is_name;
use super::command_facts::{CommandFacts, is_nowhere};
use super::input::{Input, InputSource};
use crate::expand::{Field, Value};
use crate::facts::{Effect, Risk};
use crate::syntax::{Command, Descriptor, HereDocument, Redirection, Target, Word};

/// Paths that the shell itself takes for connections.
const NETWORK: [&str; 2] = ["/dev/tcp/", "/dev/udp/"];

/// The effects of the redirections of a command.
#[derive(Debug, Default)]
pub(super) struct RedirectionFacts {
    pub(super) facts: CommandFacts,
    /// Standard input, when it is changed.
    pub(super) input: Option<Input>,
    /// The new target of standard output, if it is changed: true if it may be a terminal.
    pub(super) shown: Option<bool>,
}

impl Walker<'_> {
    /// Redirections of a construct are a command of their own when they do something.
    pub(super) fn redirect_construct(&mut self, command: &Command) {
        self.substitutions_of_redirections(&command.redirections);
        let redirected = self.apply_redirections(&command.redirections);
        self.apply_streams(&redirected);
        let texts =
            command.redirections.iter().map(|redirection| redirection.span.text_in(&self.text));
        let text = texts.collect::<Vec<_>>().join(" ");
        self.record_if_any(text, redirected.facts);
    }

    pub(super) fn substitutions_of_redirections(&mut self, redirections: &[Redirection]) {
        for redirection in redirections {
            match &redirection.target {
                Target::HereDocument(document) => {
                    if let Some(body) = document.body() {
                        self.walk_substitutions(body);
                    }
                }
                target => {
                    if let Some(word) = target.word() {
                        self.walk_substitutions(word);
                    }
                }
            }
        }
    }

    pub(super) fn apply_redirections(&mut self, redirections: &[Redirection]) -> RedirectionFacts {
        let mut redirected = RedirectionFacts::default();
        for redirection in redirections {
            self.redirect_one(redirection, &mut redirected);
        }
        redirected
    }

    /// The number of the file that is redirected; `None` where the operator says which.
    fn descriptor_number(
        &mut self,
        descriptor: Option<&Descriptor>,
        facts: &mut CommandFacts,
    ) -> Option<u32> {
        match descriptor? {
            Descriptor::Number(number) => Some(*number),
            Descriptor::Variable(name) => {
                if !is_name(name) {
                    facts.add(Effect::Unknown(format!(
                        "`{name}` is evaluated as a subscript and may run commands"
                    )));
                }
                self.assign_and_warn(name, Value::Number);
                Some(u32::MAX)
            }
        }
    }

    fn redirect_one(&mut self, redirection: &Redirection, redirected: &mut RedirectionFacts) {
        let number = self.descriptor_number(redirection.descriptor.as_ref(), &mut redirected.facts);
        let is_input = number.is_none_or(|number| number == 0);
        let is_output = number.is_none_or(|number| number == 1);
        match &redirection.target {
            Target::Read(word) => {
                let field = self.open_target(word, false, &mut redirected.facts);
                if is_input {
                    redirected.input = Some(self.input_from(field));
                }
            }
            Target::Write(word) | Target::Clobber(word) | Target::Append(word) => {
                let field = self.open_target(word, true, &mut redirected.facts);
                if is_output {
                    redirected.shown = Some(may_be_terminal(&field));
                }
            }
            Target::WriteBoth(word) | Target::AppendBoth(word) => {
                let field = self.open_target(word, true, &mut redirected.facts);
                redirected.shown = Some(may_be_terminal(&field));
            }
            Target::ReadWrite(word) => {
                self.open_target(word, false, &mut redirected.facts);
                self.open_target(word, true, &mut redirected.facts);
            }
            Target::DuplicateInput(word) => {
                self.duplicate_descriptor(word, false, is_input, redirected);
            }
            Target::DuplicateOutput(word) => {
                self.duplicate_descriptor(word, true, is_output, redirected);
            }
            Target::HereString(word) => {
                let field = self
                    .expand_with(&mut redirected.facts, |expander| expander.expand_single(word));
                redirected.input = Some(text_input(&field));
            }
            Target::HereDocument(document) => {
                let field = self.expand_document(document, &mut redirected.facts);
                if is_input {
                    redirected.input = Some(text_input(&field));
                }
            }
        }
    }

    /// Expands the text of a here-document.
    fn expand_document(&mut self, document: &HereDocument, facts: &mut CommandFacts) -> Field {
        let body = document.body();
        body.map_or(Field::Known(String::new()), |body| {
            self.expand_with(facts, |expander| expander.expand_single(body))
        })
    }

    /// True if one of the redirections may fail, so that the command does not run.
    pub(super) fn may_fail(&self, redirections: &[Redirection]) -> bool {
        redirections.iter().any(|redirection| match &redirection.target {
            Target::HereString(_) | Target::HereDocument(_) => false,
            target => {
                target.word().and_then(Word::constant_text).is_none_or(|text| match text.as_str() {
                    "0" | "1" | "2" => self.closes,
                    "/dev/null" => false,
                    _ => true,
                })
            }
        })
    }

    fn input_from(&self, field: Field) -> Input {
        match field.known_text() {
            Some("/dev/stdin" | "-" | "/dev/fd/0") => self.input.clone(),
            Some(text) if text.starts_with("/dev/fd/") => Input::Pipe(InputSource::Plain),
            _ => Input::File(field),
        }
    }

    /// `<&` and `>&`: a descriptor, or a file.
    fn duplicate_descriptor(
        &mut self,
        word: &Word,
        output: bool,
        standard: bool,
        redirected: &mut RedirectionFacts,
    ) {
        let field =
            self.expand_with(&mut redirected.facts, |expander| expander.expand_single(word));
        let is_descriptor = field.known_text().is_some_and(|text| {
            let digits = text.strip_suffix('-').unwrap_or(text);
            digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        if is_descriptor {
            self.closes |= field.known_text().is_some_and(|text| text.ends_with('-'));
            if output && standard && !matches!(field.known_text(), Some("1" | "-")) {
                redirected.shown = Some(true);
            } else if !output && standard {
                redirected.input = Some(Input::Pipe(InputSource::Plain));
            }
        } else if output {
            self.add_file_effect(&field, true, &mut redirected.facts);
            redirected.shown = Some(may_be_terminal(&field));
        } else {
            redirected
                .facts
                .add(Effect::Unknown(format!("gnoma does not know descriptor `{field}`")));
        }
    }

    /// A file that is opened by a redirection.
    fn open_target(&mut self, word: &Word, writes: bool, facts: &mut CommandFacts) -> Field {
        let fields = self.expand_with(facts, |expander| expander.expand_fields(word));
        let field = match fields.as_slice() {
            [field] => field.clone(),
            _ => Field::unknown_word(word.span.text_in(&self.text)),
        };
        self.add_file_effect(&field, writes, facts);
        field
    }

    fn add_file_effect(&mut self, field: &Field, writes: bool, facts: &mut CommandFacts) {
        let start = field.known_start();
        if let Some(address) = NETWORK.iter().find_map(|path| start.strip_prefix(path)) {
            let host = address.split('/').next().filter(|host| !host.is_empty());
            facts.add(Effect::Network(host.map(str::to_owned)));
            facts.at_least(Risk::Critical);
            return;
        }
        if field.known_text().is_some_and(is_nowhere) && field.known_text() != Some("-") {
            return;
        }
        if matches!(field, Field::Unknown { .. })
            && NETWORK.iter().any(|path| path.starts_with(start))
        {
            facts.add(Effect::Unknown(format!("`{field}` may be a network address")));
        }
        facts.add_at_places(
            if writes { Effect::Write } else { Effect::Read },
            self.state.folders.resolve_places(field),
        );
    }
}

fn text_input(field: &Field) -> Input {
    field.known_text().map_or(Input::Pipe(InputSource::Plain), |text| Input::Text(text.to_owned()))
}

/// True if output to this target may be seen.
fn may_be_terminal(field: &Field) -> bool {
    let start = field.known_start();
    field.known_text() != Some("/dev/null")
        && (start.starts_with("/dev/")
            || field.known_text().is_none() && "/dev/".starts_with(start))
}
