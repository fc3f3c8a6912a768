//! Redirections: files they read and write, and what a command's input becomes.

use super::Walker;
use super::facts_of::{Facts, is_nowhere};
use super::input::{Feed, Input};
use crate::expand::{Field, Value, place};
use crate::facts::{Effect, Risk};
use crate::syntax::{Command, Descriptor, Redirection, Target, Word};

/// Paths that the shell itself takes for connections.
const NETWORK: [&str; 2] = ["/dev/tcp/", "/dev/udp/"];

/// What the redirections of a command do.
#[derive(Debug, Default)]
pub(super) struct Redirected {
    pub(super) facts: Facts,
    /// Standard input, when it is changed.
    pub(super) input: Option<Input>,
    /// Standard output goes elsewhere than before.
    pub(super) hidden: bool,
}

impl Walker<'_> {
    /// Redirections of a construct are a command of their own when they do something.
    pub(super) fn redirect_construct(&mut self, command: &Command) {
        self.substitutions_of_redirections(&command.redirections);
        let redirected = self.redirect(&command.redirections);
        self.enter(&redirected);
        let texts = command.redirections.iter().map(|redirection| redirection.span.of(&self.text));
        let text = texts.collect::<Vec<_>>().join(" ");
        self.record_if_any(text, redirected.facts);
    }

    pub(super) fn substitutions_of_redirections(&mut self, redirections: &[Redirection]) {
        for redirection in redirections {
            match &redirection.target {
                Target::HereDocument(document) => {
                    if let Some(body) = document.body() {
                        self.substitutions(body);
                    }
                }
                target => {
                    if let Some(word) = target.word() {
                        self.substitutions(word);
                    }
                }
            }
        }
    }

    pub(super) fn redirect(&mut self, redirections: &[Redirection]) -> Redirected {
        let mut redirected = Redirected::default();
        for redirection in redirections {
            self.redirect_one(redirection, &mut redirected);
        }
        redirected
    }

    fn redirect_one(&mut self, redirection: &Redirection, redirected: &mut Redirected) {
        let number = match &redirection.descriptor {
            Some(Descriptor::Number(number)) => Some(*number),
            Some(Descriptor::Variable(name)) => {
                self.assign_and_warn(name, Value::Number);
                Some(u32::MAX)
            }
            None => None,
        };
        let is_input = number.is_none_or(|number| number == 0);
        let is_output = number.is_none_or(|number| number == 1);
        match &redirection.target {
            Target::Read(word) => {
                let field = self.opened(word, false, &mut redirected.facts);
                if is_input {
                    redirected.input = Some(self.input_from(field));
                }
            }
            Target::Write(word) | Target::Clobber(word) | Target::Append(word) => {
                let field = self.opened(word, true, &mut redirected.facts);
                redirected.hidden |= is_output && field.known() != Some("/dev/tty");
            }
            Target::WriteBoth(word) | Target::AppendBoth(word) => {
                self.opened(word, true, &mut redirected.facts);
                redirected.hidden = true;
            }
            Target::ReadWrite(word) => {
                self.opened(word, false, &mut redirected.facts);
                self.opened(word, true, &mut redirected.facts);
            }
            Target::DuplicateInput(word) => self.duplicated(word, false, redirected),
            Target::DuplicateOutput(word) => self.duplicated(word, true, redirected),
            Target::HereString(word) => {
                let field = self.expand(&mut redirected.facts, |expander| expander.single(word));
                redirected.input = Some(text_input(&field));
            }
            Target::HereDocument(document) => {
                let field = document.body().map(|body| {
                    self.expand(&mut redirected.facts, |expander| expander.single(body))
                });
                let field = field.unwrap_or(Field::Known(String::new()));
                if is_input {
                    redirected.input = Some(text_input(&field));
                }
            }
        }
    }

    fn input_from(&self, field: Field) -> Input {
        match field.known() {
            Some("/dev/stdin" | "-" | "/dev/fd/0") => self.input.clone(),
            Some("/dev/fd/63") => Input::Pipe(Feed::Plain),
            _ => Input::File(field),
        }
    }

    /// `<&` and `>&`: a descriptor, or a file.
    fn duplicated(&mut self, word: &Word, output: bool, redirected: &mut Redirected) {
        let field = self.expand(&mut redirected.facts, |expander| expander.single(word));
        let is_descriptor = field.known().is_some_and(|text| {
            let digits = text.strip_suffix('-').unwrap_or(text);
            digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        if is_descriptor {
            redirected.hidden |= output && field.known() != Some("1");
        } else if output {
            self.touched(&field, true, &mut redirected.facts);
            redirected.hidden = true;
        } else {
            redirected.facts.add(Effect::Unknown(format!("descriptor `{field}` is not known")));
        }
    }

    /// A file that is opened by a redirection.
    fn opened(&mut self, word: &Word, writes: bool, facts: &mut Facts) -> Field {
        let fields = self.expand(facts, |expander| expander.fields(word));
        let field = match fields.as_slice() {
            [field] => field.clone(),
            _ => Field::unknown(word.span.of(&self.text)),
        };
        self.touched(&field, writes, facts);
        field
    }

    fn touched(&mut self, field: &Field, writes: bool, facts: &mut Facts) {
        let start = field.start();
        if let Some(address) = NETWORK.iter().find_map(|path| start.strip_prefix(path)) {
            let host = address.split('/').next().filter(|host| !host.is_empty());
            facts.add(Effect::Network(host.map(str::to_owned)));
            facts.at_least(Risk::Critical);
            return;
        }
        if field.known().is_some_and(is_nowhere) && field.known() != Some("-") {
            return;
        }
        if matches!(field, Field::Unknown { .. })
            && NETWORK.iter().any(|path| path.starts_with(start))
        {
            facts.add(Effect::Unknown(format!("`{field}` may be a network address")));
        }
        let place = place::place(field, self.cwd());
        facts.add(if writes { Effect::Write(place) } else { Effect::Read(place) });
    }
}

fn text_input(field: &Field) -> Input {
    field.known().map_or(Input::Pipe(Feed::Plain), |text| Input::Text(text.to_owned()))
}
