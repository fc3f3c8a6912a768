//! One simple command: assignments, words, redirections, then what it names.

use std::path::Path;

use super::Walker;
use super::assign::{add_variable_effect, calculated_names};
use super::command_facts::CommandFacts;
use super::obfuscation;
use super::program::quote_field;
use super::redirect::RedirectionFacts;
use crate::expand::{Field, Value};
use crate::facts::Effect;
use crate::syntax::{
    Arithmetic, AssignedValue, Command, Operation, Parameter, Script, SimpleCommand, Word,
    WordPart, WordPartKind,
};

impl Walker<'_> {
    pub(super) fn walk_simple(&mut self, command: &Command, simple: &SimpleCommand) {
        self.steps += 1;
        self.merge_failed_state();
        let before = self.state.clone();
        let text = command.span.text_in(&self.text).to_owned();
        let at = self.found.len();
        self.record_command(text.clone(), &[], CommandFacts::default());
        self.substitutions_of(command, simple);
        let mut facts = CommandFacts::default();
        self.look_for_descriptors(command, simple, &mut facts);
        let fields = self.expand_words(&simple.words, &mut facts);
        let cwd = self.state.folders.clone();
        let outer = (self.input.clone(), self.shown);
        let redirected = self.apply_redirections(&command.redirections);
        self.apply_streams(&redirected);
        facts.merge_with(redirected.facts);
        if simple.words.is_empty() {
            self.assign_all(&simple.assignments, &mut facts);
        } else {
            let kept = self.assign_before(&simple.assignments, fields.first(), &mut facts);
            let from = at + 1;
            let ran = self.run_command(&fields, from);
            facts.merge_with(ran);
            self.take_back(kept);
        }
        if self.may_fail(&command.redirections) {
            self.may_have_failed(before);
        }
        // What `exec` redirects stays so.
        if fields.len() != 1 || fields.first().and_then(Field::known_text) != Some("exec") {
            (self.input, self.shown) = outer;
        }
        facts.remove_covered_looks();
        let mut invocation = self.make_invocation(text, &fields, facts);
        invocation.cwd = cwd.likely_folder().map(Path::to_path_buf);
        if let Some(place) = self.found.get_mut(at) {
            *place = invocation;
        }
    }

    /// Expands the words of a command, and looks for obfuscation in them.
    fn expand_words(&mut self, words: &[Word], facts: &mut CommandFacts) -> Vec<Field> {
        let mut fields = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let text = word.span.text_in(&self.text);
            self.oddities.extend(obfuscation::in_word(word, text, at == 0));
            self.look_into_array(word, facts);
            fields.extend(self.expand_word(word, facts));
        }
        fields
    }

    /// Expands a word to the words that a command gets. The shell looks up the names that fit a pattern.
    pub(super) fn expand_word(&mut self, word: &Word, facts: &mut CommandFacts) -> Vec<Field> {
        let fields = self.expand_with(facts, |expander| expander.expand_fields(word));
        for pattern in fields.iter().filter(|field| field.is_pattern()) {
            facts.add_looks(&self.state.folders, pattern);
        }
        fields
    }

    /// `{a[b]}>file` sets an element of an array: its subscript is calculated.
    fn look_for_descriptors(
        &self,
        command: &Command,
        simple: &SimpleCommand,
        facts: &mut CommandFacts,
    ) {
        for word in &simple.words {
            let text = word.span.text_in(&self.text);
            let joined = command.redirections.iter().any(|it| it.span.start == word.span.end);
            if joined && text.starts_with('{') && text.ends_with(']') | text.ends_with('}') {
                facts.add(Effect::Unknown(format!(
                    "`{text}` may be evaluated as a subscript and run commands"
                )));
            }
        }
    }

    /// Input and output as redirections leave them.
    pub(super) fn apply_streams(&mut self, redirected: &RedirectionFacts) {
        if let Some(input) = &redirected.input {
            self.input = input.clone();
        }
        self.shown = redirected.shown.unwrap_or(self.shown);
    }

    /// Runs a command that another program starts: what it sets is gone when it ends.
    pub(super) fn walk_child_command(&mut self, fields: &[Field]) {
        self.walk_in_subshell(|walker| walker.walk_inner_command(fields));
    }

    /// Runs a command given as words within another one: it is a command of its own.
    pub(super) fn walk_inner_command(&mut self, fields: &[Field]) {
        let at = self.found.len();
        let cwd = self.state.folders.clone();
        let text = fields.iter().map(quote_field).collect::<Vec<_>>().join(" ");
        self.record_command(text.clone(), fields, CommandFacts::default());
        self.depth += 1;
        let facts = if self.depth > super::MAX_DEPTH {
            CommandFacts::unknown_effect("commands are nested too deeply to follow")
        } else {
            self.run_program(fields, at + 1)
        };
        self.depth -= 1;
        let mut invocation = self.make_invocation(text, fields, facts);
        invocation.cwd = cwd.likely_folder().map(Path::to_path_buf);
        if let Some(place) = self.found.get_mut(at) {
            *place = invocation;
        }
    }

    /// Runs what `fields` name: a function, a builtin or a program. `from` is where commands begin that
    /// belong to this one.
    fn run_command(&mut self, fields: &[Field], from: usize) -> CommandFacts {
        let Some(Field::Known(name)) = fields.first() else {
            return if fields.is_empty() {
                CommandFacts::default()
            } else {
                self.run_program(fields, from)
            };
        };
        let Some(function) = self.state.functions.get(name).cloned() else {
            return self.run_program(fields, from);
        };
        let before = self.state.clone();
        let mut facts = self.call_function(name, &function, fields.get(1..).unwrap_or_default());
        if !function.certain {
            let called = std::mem::replace(&mut self.state, before);
            facts.merge_with(self.run_program(fields, from));
            self.merge_failed_state();
            self.state.merge_with(called);
        }
        facts
    }

    /// `declare a=( … )`: subscripts in it are calculated.
    fn look_into_array(&mut self, word: &Word, facts: &mut CommandFacts) {
        for part in &word.parts {
            if let WordPartKind::Array(elements) = &part.kind {
                self.expand_array(elements, facts);
            }
        }
    }

    fn substitutions_of(&mut self, command: &Command, simple: &SimpleCommand) {
        for assignment in &simple.assignments {
            if let Some(subscript) = &assignment.subscript {
                self.walk_substitutions(subscript);
            }
            match &assignment.value {
                AssignedValue::Word(word) => self.walk_substitutions(word),
                AssignedValue::Array(elements) => {
                    for element in elements {
                        self.substitutions_of_element(element);
                    }
                }
            }
        }
        for word in &simple.words {
            self.walk_substitutions(word);
        }
        self.substitutions_of_redirections(&command.redirections);
    }

    fn substitutions_of_element(&mut self, element: &crate::syntax::ArrayElement) {
        if let Some(subscript) = &element.subscript {
            self.walk_substitutions(subscript);
        }
        self.walk_substitutions(&element.value);
    }

    /// Walks every command that stands in a word.
    pub(super) fn walk_substitutions(&mut self, word: &Word) {
        self.substitutions_in(&word.parts);
    }

    fn substitutions_in(&mut self, parts: &[WordPart]) {
        for part in parts {
            match &part.kind {
                WordPartKind::CommandSubstitution(script) => {
                    self.walk_substitution(script);
                    let listing = self.listing.take().filter(|_| is_one_pipeline(script));
                    match listing {
                        Some(listing) => self.listings.insert(part.span, listing.places),
                        None => self.listings.remove(&part.span),
                    };
                }
                WordPartKind::ProcessSubstitution { script, .. } => self.walk_substitution(script),
                WordPartKind::DoubleQuoted(parts) | WordPartKind::LocaleQuoted(parts) => {
                    self.substitutions_in(parts);
                }
                WordPartKind::Arithmetic(arithmetic) => self.substitutions_in(&arithmetic.parts),
                WordPartKind::Parameter(parameter) => self.substitutions_of_parameter(parameter),
                WordPartKind::ExtendedGlob { alternatives: words, .. }
                | WordPartKind::BraceList(words) => {
                    for word in words {
                        self.walk_substitutions(word);
                    }
                }
                WordPartKind::Array(elements) => {
                    for element in elements {
                        self.substitutions_of_element(element);
                    }
                }
                WordPartKind::Literal(_)
                | WordPartKind::SingleQuoted(_)
                | WordPartKind::AnsiQuoted(_)
                | WordPartKind::Glob(_)
                | WordPartKind::BraceRange(_)
                | WordPartKind::Tilde(_) => {}
            }
        }
    }

    fn walk_substitution(&mut self, script: &Script) {
        let shown = std::mem::replace(&mut self.shown, false);
        self.listing = None;
        self.walk_in_subshell(|walker| walker.walk_script(script));
        self.shown = shown;
    }

    fn substitutions_of_parameter(&mut self, parameter: &Parameter) {
        if let Some(subscript) = &parameter.subscript {
            self.walk_substitutions(subscript);
        }
        match &parameter.operation {
            Operation::Default(word)
            | Operation::AssignDefault(word)
            | Operation::Require(word)
            | Operation::Alternative(word)
            | Operation::RemovePrefix(word)
            | Operation::RemoveSuffix(word)
            | Operation::ChangeCase(word) => self.walk_substitutions(word),
            Operation::Replace { pattern, replacement } => {
                self.walk_substitutions(pattern);
                if let Some(replacement) = replacement {
                    self.walk_substitutions(replacement);
                }
            }
            Operation::Substring { offset, length } => {
                self.substitutions_in(&offset.parts);
                if let Some(length) = length {
                    self.substitutions_in(&length.parts);
                }
            }
            Operation::Value
            | Operation::Length
            | Operation::Names
            | Operation::Keys
            | Operation::Transform(_) => {}
        }
    }

    /// An expression of `(( ))` or of `for ((`.
    pub(super) fn walk_calculation(&mut self, arithmetic: &Arithmetic, facts: &mut CommandFacts) {
        self.substitutions_in(&arithmetic.parts);
        let text = arithmetic.span.text_in(&self.text).to_owned();
        let names = calculated_names(&text);
        for name in &names {
            self.state.set_if_new(name, Value::Number);
        }
        self.expand_with(facts, |expander| expander.check_arithmetic(arithmetic));
        for name in names {
            add_variable_effect(&name, Some(&Value::Number), facts);
            self.assign_variable(&name, Value::Number);
        }
    }
}

fn is_one_pipeline(script: &Script) -> bool {
    matches!(script.statements.as_slice(), [only] if only.rest.is_empty())
}
