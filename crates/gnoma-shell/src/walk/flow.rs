//! Lists, pipes and constructs: what runs after what, and with which knowledge.

use std::sync::Arc;

use super::Walker;
use super::builtins::is_name;
use super::facts_of::Facts;
use super::input::{Feed, Input, feed_of};
use super::state::{Function, State};
use crate::expand::{Field, Value};
use crate::facts::{Effect, Risk};
use crate::syntax::{
    Command, CommandKind, Condition, Loop, Pipeline, Script, SimpleCommand, Statement, Test, Word,
};

/// Operators of `[[ ]]` that calculate both sides.
const CALCULATING: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Walker<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) {
        if statement.background {
            let beside = std::mem::replace(&mut self.beside, true);
            self.apart(|walker| walker.list(statement));
            self.beside = beside;
        } else {
            self.list(statement);
        }
    }

    fn list(&mut self, statement: &Statement) {
        let mut before = self.state.clone();
        // What holds where a part was passed over because one before it failed or succeeded.
        let mut passed: Option<State> = None;
        self.pipeline(&statement.first);
        for (condition, pipeline) in &statement.rest {
            let succeeded = self.state.clone();
            match condition {
                Condition::AfterSuccess => {
                    match &mut passed {
                        Some(passed) => passed.or(succeeded.clone()),
                        None => passed = Some(succeeded.clone()),
                    }
                    self.pipeline(pipeline);
                }
                Condition::AfterFailure => {
                    self.state.or(before);
                    if let Some(passed) = passed.clone() {
                        self.state.or(passed);
                    }
                    self.pipeline(pipeline);
                    if ends_shell(pipeline) {
                        self.state = succeeded.clone();
                        passed = None;
                    } else {
                        self.state.or(succeeded.clone());
                    }
                }
            }
            before = succeeded;
        }
        if let Some(passed) = passed {
            // A `cd` is taken to succeed; else nothing after it could be placed.
            let (cwd, stack) = (self.state.cwd.clone(), self.state.stack.clone());
            self.state.or(passed);
            (self.state.cwd, self.state.stack) = (cwd, stack);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        let Some((last, stages)) = pipeline.stages.split_last() else { return };
        if stages.is_empty() {
            self.depth += usize::from(pipeline.timed);
            self.command(&last.command);
            self.depth -= usize::from(pipeline.timed);
            return;
        }
        let (input, shown) = (self.input.clone(), self.shown);
        let mut feed = Feed::Plain;
        for (at, stage) in pipeline.stages.iter().enumerate() {
            let from = self.found.len();
            self.shown = shown && at == stages.len();
            self.apart(|walker| walker.command(&stage.command));
            feed = feed.max(feed_of(self.found.get(from..).unwrap_or_default()));
            self.input = self.printed(&stage.command).map_or(Input::Pipe(feed), Input::Text);
        }
        self.input = input;
        self.shown = shown;
    }

    /// What a stage prints, when it is a plain `echo`.
    fn printed(&self, command: &Command) -> Option<String> {
        let CommandKind::Simple(simple) = &command.kind else { return None };
        let words: Option<Vec<String>> = simple.words.iter().map(Word::constant).collect();
        let words = words?;
        let (program, rest) = words.split_first()?;
        let plain = program == "echo"
            && command.redirections.is_empty()
            && simple.assignments.is_empty()
            && !self.state.functions.contains_key("echo")
            && rest.iter().all(|word| !word.starts_with('-') && !word.contains('\\'));
        plain.then(|| rest.join(" "))
    }

    pub(super) fn command(&mut self, command: &Command) {
        if let CommandKind::Simple(simple) = &command.kind {
            return self.simple(command, simple);
        }
        let (input, shown) = (self.input.clone(), self.shown);
        if !matches!(command.kind, CommandKind::Function { .. }) {
            self.redirect_construct(command);
        }
        self.construct(command);
        self.input = input;
        self.shown = shown;
    }

    fn construct(&mut self, command: &Command) {
        match &command.kind {
            CommandKind::Simple(simple) => self.simple(command, simple),
            CommandKind::Group(script) => self.script(script),
            CommandKind::Subshell(script) => self.apart(|walker| walker.script(script)),
            CommandKind::If { branches, otherwise } => self.branches(branches, otherwise.as_ref()),
            CommandKind::While { condition, body, .. } => self.repeated(&[condition, body]),
            CommandKind::For(names) | CommandKind::Select(names) => self.for_each(names),
            CommandKind::ArithmeticFor { header, body } => {
                let mut facts = Facts::default();
                for part in header {
                    self.calculated(part, &mut facts);
                }
                self.record_if_any(command.span.of(&self.text).to_owned(), facts);
                self.repeated(&[body]);
            }
            CommandKind::Case { subject, arms } => {
                self.look_at_words(
                    std::iter::once(subject).chain(arms.iter().flat_map(|arm| &arm.patterns)),
                );
                let before = self.state.clone();
                for arm in arms {
                    let entered = self.state.clone();
                    self.state.or(before.clone());
                    self.script(&arm.body);
                    self.state.or(entered);
                }
            }
            CommandKind::Function { name, body } => self.define(name, body),
            CommandKind::Arithmetic(arithmetic) => {
                let mut facts = Facts::default();
                self.calculated(arithmetic, &mut facts);
                self.record_if_any(command.span.of(&self.text).to_owned(), facts);
            }
            CommandKind::Test(test) => {
                let mut facts = Facts::default();
                self.test(test, &mut facts);
                self.record_if_any(command.span.of(&self.text).to_owned(), facts);
            }
            CommandKind::Coprocess { body, name } => {
                let name = name.as_deref().unwrap_or("COPROC");
                self.assign_and_warn(name, Value::Unknown);
                self.depth += 1;
                self.apart(|walker| walker.command(body));
                self.depth -= 1;
            }
        }
    }

    /// Effects that stand in no simple command are one of their own.
    pub(super) fn record_if_any(&mut self, text: String, facts: Facts) {
        if !facts.effects.is_empty() {
            self.record(text, &[], facts);
        }
    }

    fn branches(&mut self, branches: &[(Script, Script)], otherwise: Option<&Script>) {
        let mut ends = Vec::new();
        for (condition, body) in branches {
            self.script(condition);
            let failed = self.state.clone();
            self.script(body);
            ends.push(std::mem::replace(&mut self.state, failed));
        }
        if let Some(otherwise) = otherwise {
            self.script(otherwise);
        }
        for end in ends {
            self.state.or(end);
        }
    }

    /// Walks a body that runs any number of times: what it sets is not known from the start.
    fn repeated(&mut self, scripts: &[&Script]) {
        let before = self.state.clone();
        let found = self.found.len();
        for script in scripts {
            self.script(script);
        }
        let changed = self.state != before;
        if changed {
            self.found.truncate(found);
            self.state.or(before.clone());
            let widened = self.state.clone();
            for script in scripts {
                self.script(script);
            }
            self.state.or(widened);
            self.state.or(before);
        }
    }

    fn for_each(&mut self, names: &Loop) {
        let mut facts = Facts::default();
        let mut fields = Vec::new();
        for word in names.words.iter().flatten() {
            self.substitutions(word);
            fields.extend(self.expand(&mut facts, |expander| expander.fields(word)));
        }
        self.record_if_any(format!("for {}", names.name), facts);
        let value = if names.words.is_some() { value_of_all(&fields) } else { Value::Unknown };
        self.assign_and_warn(&names.name, value);
        self.repeated(&[&names.body]);
    }

    /// Words that only compare: what they expand may still run something.
    fn look_at_words<'w>(&mut self, words: impl Iterator<Item = &'w Word>) {
        for word in words {
            self.substitutions(word);
            let mut facts = Facts::default();
            self.expand(&mut facts, |expander| expander.single(word));
            self.record_if_any(word.span.of(&self.text).to_owned(), facts);
        }
    }

    fn test(&mut self, test: &Test, facts: &mut Facts) {
        match test {
            Test::Word(word) => self.compared(word, false, facts),
            Test::Unary(operator, word) => {
                let named = word.constant().is_some_and(|name| is_name(&name));
                let calculates = matches!(operator.as_str(), "-v" | "-R") && !named;
                self.compared(word, calculates, facts);
            }
            Test::Binary(binary) => {
                let calculates = CALCULATING.contains(&binary.operator.as_str());
                self.compared(&binary.left, calculates, facts);
                self.compared(&binary.right, calculates, facts);
            }
            Test::Not(test) | Test::Group(test) => self.test(test, facts),
            Test::And(tests) | Test::Or(tests) => {
                for test in tests {
                    self.test(test, facts);
                }
            }
        }
    }

    fn compared(&mut self, word: &Word, calculates: bool, facts: &mut Facts) {
        self.substitutions(word);
        self.expand(facts, |expander| {
            if calculates {
                expander.look_at_subscript(word);
            } else {
                expander.single(word);
            }
        });
    }

    fn define(&mut self, name: &str, body: &Command) {
        let function =
            Function { text: Arc::clone(&self.text), body: Arc::new(body.clone()), certain: true };
        self.apart(|walker| walker.command(body));
        self.state.functions.insert(name.to_owned(), function);
    }

    /// Calls a function: what its body does is what the call does.
    pub(super) fn call(&mut self, name: &str, function: &Function, arguments: &[Field]) -> Facts {
        if self.calls.iter().any(|call| call == name) {
            let risk = if self.beside || !self.shown { Risk::Critical } else { Risk::High };
            return Facts::of(Effect::System(format!("`{name}` starts itself again and again")))
                .with_risk(risk);
        }
        if self.calls.len() >= super::MAX_DEPTH {
            return Facts::unknown("functions call each other too deeply to follow");
        }
        let outer = self.bind(arguments);
        self.calls.push(name.to_owned());
        let text = std::mem::replace(&mut self.text, Arc::clone(&function.text));
        let found = std::mem::take(&mut self.found);
        self.command(&function.body);
        let inner = std::mem::replace(&mut self.found, found);
        self.text = text;
        self.calls.pop();
        self.unbind(outer);
        let mut facts = Facts::default();
        for command in inner {
            facts.join(Facts { effects: command.effects, risk: command.risk });
        }
        facts
    }

    /// Sets `$1` and so on; gives back what they were.
    fn bind(&mut self, arguments: &[Field]) -> Vec<(String, Option<Value>)> {
        let named = arguments.iter().take(9).enumerate();
        named
            .map(|(at, field)| {
                let name = (at + 1).to_string();
                let value =
                    field.known().map_or(Value::Unknown, |text| Value::Text(text.to_owned()));
                let before = self.state.variables.insert(name.clone(), value);
                (name, before)
            })
            .collect()
    }

    fn unbind(&mut self, outer: Vec<(String, Option<Value>)>) {
        for (name, before) in outer {
            match before {
                Some(value) => self.state.variables.insert(name, value),
                None => self.state.variables.remove(&name),
            };
        }
    }
}

/// Whether a pipeline leaves the shell, the function or the loop: nothing after it runs.
fn ends_shell(pipeline: &Pipeline) -> bool {
    let [stage] = pipeline.stages.as_slice() else { return false };
    match &stage.command.kind {
        CommandKind::Simple(SimpleCommand { words, .. }) => words
            .first()
            .and_then(Word::constant)
            .is_some_and(|word| matches!(word.as_str(), "exit" | "return" | "break" | "continue")),
        CommandKind::Group(script) => script
            .statements
            .last()
            .is_some_and(|last| last.rest.is_empty() && ends_shell(&last.first)),
        _ => false,
    }
}

/// What is known of a variable that goes through `fields`.
fn value_of_all(fields: &[Field]) -> Value {
    if let [Field::Known(text)] = fields {
        return Value::Text(text.clone());
    }
    if let [Field::Pattern(pattern)] = fields {
        return Value::Match(pattern.clone());
    }
    let known: Option<Vec<&str>> = fields.iter().map(Field::known).collect();
    let Some(known) = known else { return Value::Unknown };
    let numbers = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if known.iter().all(numbers) {
        return Value::Number;
    }
    let plain = |text: &&str| {
        !text.is_empty()
            && !text.starts_with('-')
            && !text.contains([' ', '\t', '\n', '*', '?', '['])
    };
    if known.iter().all(plain) { Value::Plain } else { Value::Unknown }
}
