//! Lists, pipes and constructs: what runs after what, and with which knowledge.

use std::sync::Arc;

use super::Walker;
use super::command_facts::CommandFacts;
use super::input::{Input, InputSource, feed_of};
use super::state::Function;
use super::{
    builtins::{ends_jobs, is_name},
    file_tests::{compares_files, looks_at_only_file},
};
use crate::expand::{Field, Value};
use crate::facts::{Effect, Risk};
use crate::syntax::{
    Arithmetic, CaseArm, CaseEnding, Command, CommandKind, Condition, Loop, Pipeline, Script,
    Statement, Test, Word,
};

/// Operators of `[[ ]]` that calculate both sides.
const CALCULATING: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Walker<'_> {
    pub(super) fn walk_statement(&mut self, statement: &Statement) {
        if statement.background {
            let beside = std::mem::replace(&mut self.beside, true);
            self.walk_in_subshell(|walker| walker.walk_list(statement));
            self.beside = beside;
            self.jobs_until = Some(self.found.len());
        } else {
            self.walk_list(statement);
        }
    }

    /// Reports whether what was started in the background may run on when the line ends.
    pub(super) fn leaves_jobs(&self) -> bool {
        self.jobs_until.is_some_and(|until| {
            !self.trap_ends_jobs && !self.found.iter().skip(until).any(ends_jobs)
        })
    }

    fn walk_list(&mut self, statement: &Statement) {
        self.walk_pipeline(&statement.first);
        let (mut done, mut failed) = self.end_states();
        for (condition, pipeline) in &statement.rest {
            if self.exhausted {
                break;
            }
            match condition {
                Condition::AfterSuccess => {
                    self.state = done;
                    self.walk_pipeline(pipeline);
                    let ends = self.end_states();
                    done = ends.0;
                    failed.merge_with(ends.1);
                }
                Condition::AfterFailure => {
                    self.state = failed;
                    self.walk_pipeline(pipeline);
                    let ends = self.end_states();
                    done.merge_with(ends.0);
                    failed = ends.1;
                }
            }
        }
        self.state = done;
        self.failed = Some(failed);
    }

    fn walk_pipeline(&mut self, pipeline: &Pipeline) {
        let Some((last, stages)) = pipeline.stages.split_last() else { return };
        if stages.is_empty() {
            let from = self.found.len();
            self.depth += usize::from(pipeline.timed);
            self.walk_command(&last.command);
            self.depth -= usize::from(pipeline.timed);
            self.listing = self.listed_since(from);
        } else {
            self.walk_stages(pipeline, stages.len());
        }
        if pipeline.negated {
            let (done, failed) = self.end_states();
            (self.state, self.failed) = (failed, Some(done));
        }
    }

    fn walk_stages(&mut self, pipeline: &Pipeline, last: usize) {
        let (input, shown) = (self.input.clone(), self.shown);
        let mut feed = InputSource::Plain;
        for (at, stage) in pipeline.stages.iter().enumerate() {
            let from = self.found.len();
            self.shown = shown && at == last;
            self.walk_in_subshell(|walker| walker.walk_command(&stage.command));
            feed = feed.max(feed_of(self.found.get(from..).unwrap_or_default()));
            self.listing = self.listed_since(from).filter(|_| !stage.pipes_errors);
            self.input = match (self.printed_text(&stage.command), &self.listing) {
                (Some(text), _) => Input::Text(text),
                (None, Some(listing)) => Input::Listing(listing.clone()),
                (None, None) => Input::Pipe(feed),
            };
        }
        self.input = input;
        self.shown = shown;
    }

    /// Returns the text that a stage prints, if it is a plain `echo`.
    fn printed_text(&self, command: &Command) -> Option<String> {
        let CommandKind::Simple(simple) = &command.kind else { return None };
        let words: Option<Vec<String>> = simple.words.iter().map(Word::constant_text).collect();
        let words = words?;
        let (program, rest) = words.split_first()?;
        let plain = program == "echo"
            && command.redirections.is_empty()
            && simple.assignments.is_empty()
            && !self.state.functions.contains_key("echo")
            && rest.iter().all(|word| !word.starts_with('-') && !word.contains('\\'));
        plain.then(|| rest.join(" "))
    }

    pub(super) fn walk_command(&mut self, command: &Command) {
        if let CommandKind::Simple(simple) = &command.kind {
            return self.walk_simple(command, simple);
        }
        self.merge_failed_state();
        let (input, shown) = (self.input.clone(), self.shown);
        let before = self.state.clone();
        let defines = matches!(command.kind, CommandKind::Function { .. });
        if !defines {
            self.redirect_construct(command);
        }
        self.walk_construct(command);
        if !defines && self.may_fail(&command.redirections) {
            self.may_have_failed(before);
        }
        self.input = input;
        self.shown = shown;
    }

    fn walk_construct(&mut self, command: &Command) {
        match &command.kind {
            CommandKind::Simple(simple) => self.walk_simple(command, simple),
            CommandKind::Group(script) => self.walk_script(script),
            CommandKind::Subshell(script) => {
                self.walk_in_subshell(|walker| walker.walk_script(script));
            }
            CommandKind::If { branches, otherwise } => {
                self.walk_branches(branches, otherwise.as_ref());
            }
            CommandKind::While { until, condition, body } => {
                self.while_loop(*until, condition, body);
            }
            CommandKind::For(names) => self.for_each(names, false),
            CommandKind::Select(names) => self.for_each(names, true),
            CommandKind::ArithmeticFor { header, body } => {
                self.walk_arithmetic(command, header);
                self.walk_rounds(|walker| {
                    walker.walk_script(body);
                    None
                });
            }
            CommandKind::Case { subject, arms } => {
                self.look_at_words(
                    std::iter::once(subject).chain(arms.iter().flat_map(|arm| &arm.patterns)),
                );
                self.walk_arms(arms);
            }
            CommandKind::Function { name, body } => self.define_function(name, body),
            CommandKind::Arithmetic(arithmetic) => self.walk_arithmetic(command, [arithmetic]),
            CommandKind::Test(test) => {
                let mut facts = CommandFacts::default();
                self.walk_test(test, &mut facts);
                self.record_if_any(command.span.text_in(&self.text).to_owned(), facts);
            }
            CommandKind::Coprocess { body, name } => {
                self.walk_coprocess(name.as_deref().unwrap_or("COPROC"), body);
            }
        }
    }

    fn while_loop(&mut self, until: bool, condition: &Script, body: &Script) {
        self.walk_rounds(|walker| {
            walker.walk_script(condition);
            let (done, failed) = walker.end_states();
            let (goes_on, ends) = if until { (failed, done) } else { (done, failed) };
            walker.state = goes_on;
            walker.walk_script(body);
            Some(ends)
        });
    }

    /// Arithmetic that stands in no simple command.
    fn walk_arithmetic<'t>(
        &mut self,
        command: &Command,
        parts: impl IntoIterator<Item = &'t Arithmetic>,
    ) {
        let mut facts = CommandFacts::default();
        for part in parts {
            self.walk_calculation(part, &mut facts);
        }
        self.record_if_any(command.span.text_in(&self.text).to_owned(), facts);
    }

    fn walk_coprocess(&mut self, name: &str, body: &Command) {
        self.assign_and_warn(name, Value::Unknown);
        self.assign_variable(&format!("{name}_PID"), Value::Unknown);
        self.depth += 1;
        self.walk_in_subshell(|walker| walker.walk_command(body));
        self.depth -= 1;
    }

    /// Effects that stand in no simple command are one of their own.
    pub(super) fn record_if_any(&mut self, text: String, facts: CommandFacts) {
        if !facts.effects.is_empty() {
            self.record_command(text, &[], facts);
        }
    }

    fn walk_branches(&mut self, branches: &[(Script, Script)], otherwise: Option<&Script>) {
        let mut ends = Vec::new();
        for (condition, body) in branches {
            self.walk_script(condition);
            let (done, failed) = self.end_states();
            self.state = done;
            self.walk_script(body);
            self.merge_failed_state();
            ends.push(std::mem::replace(&mut self.state, failed));
        }
        if let Some(otherwise) = otherwise {
            self.walk_script(otherwise);
            self.merge_failed_state();
        }
        for end in ends {
            self.state.merge_with(end);
        }
    }

    /// Arms of a `case`: each may be the one, and some go on to the next.
    fn walk_arms(&mut self, arms: &[CaseArm]) {
        let before = self.state.clone();
        let mut end = before.clone();
        let mut entered = before;
        for arm in arms {
            self.state = entered.clone();
            self.walk_script(&arm.body);
            self.merge_failed_state();
            end.merge_with(self.state.clone());
            if arm.ending != CaseEnding::Done {
                entered.merge_with(self.state.clone());
            }
        }
        self.state = end;
    }

    fn for_each(&mut self, names: &Loop, chosen: bool) {
        let mut facts = CommandFacts::default();
        let mut fields = Vec::new();
        for word in names.words.iter().flatten() {
            self.walk_substitutions(word);
            fields.extend(self.expand_word(word, &mut facts));
        }
        self.record_if_any(format!("for {}", names.name), facts);
        let before = self.state.clone();
        if names.words.is_none() || chosen {
            self.assign_and_warn(&names.name, Value::Unknown);
        } else if !fields.is_empty() {
            self.assign_and_warn(&names.name, value_of_all(&fields));
        }
        if chosen {
            self.assign_variable("REPLY", Value::Unknown);
        }
        self.walk_rounds(|walker| {
            walker.walk_script(&names.body);
            None
        });
        if fields.iter().all(Field::may_be_many) {
            self.state.merge_with(before);
        }
    }

    /// Words that only compare: what they expand may still run something.
    fn look_at_words<'w>(&mut self, words: impl Iterator<Item = &'w Word>) {
        for word in words {
            self.walk_substitutions(word);
            let mut facts = CommandFacts::default();
            self.expand_with(&mut facts, |expander| expander.expand_single(word));
            self.record_if_any(word.span.text_in(&self.text).to_owned(), facts);
        }
    }

    fn walk_test(&mut self, test: &Test, facts: &mut CommandFacts) {
        match test {
            Test::Word(word) => self.walk_test_word(word, false, facts),
            Test::Unary(operator, word) => {
                if looks_at_only_file(operator) {
                    self.look_at_file(word, facts);
                }
                let named = word.constant_text().is_some_and(|name| is_name(&name));
                let calculates = matches!(operator.as_str(), "-v" | "-R") && !named;
                self.walk_test_word(word, calculates, facts);
            }
            Test::Binary(binary) => {
                if compares_files(&binary.operator) {
                    self.look_at_file(&binary.left, facts);
                    self.look_at_file(&binary.right, facts);
                }
                let calculates = CALCULATING.contains(&binary.operator.as_str());
                self.walk_test_word(&binary.left, calculates, facts);
                self.walk_test_word(&binary.right, calculates, facts);
            }
            Test::Not(test) | Test::Group(test) => self.walk_test(test, facts),
            Test::And(tests) | Test::Or(tests) => {
                for test in tests {
                    self.walk_test(test, facts);
                }
            }
        }
    }

    /// Adds the look at the file that a word of `[[ ]]` names. Its other effects are added by the caller.
    fn look_at_file(&mut self, word: &Word, facts: &mut CommandFacts) {
        let mut ignored = CommandFacts::default();
        let file = self.expand_with(&mut ignored, |expander| expander.expand_single(word));
        facts.add_looks(&self.state.folders, &file);
    }

    fn walk_test_word(&mut self, word: &Word, calculates: bool, facts: &mut CommandFacts) {
        self.walk_substitutions(word);
        self.expand_with(facts, |expander| {
            if calculates {
                expander.look_at_subscript(word);
            } else {
                expander.expand_single(word);
            }
        });
    }

    fn define_function(&mut self, name: &str, body: &Command) {
        let function = Function {
            text: Arc::clone(&self.text),
            body: Arc::new(body.clone()),
            certain: true,
            several: false,
        };
        self.calls.push(name.to_owned());
        self.walk_in_subshell(|walker| {
            walker.within_function(&[], |walker| {
                walker.shift_arguments();
                walker.walk_command(body);
            });
        });
        self.calls.pop();
        self.state.functions.insert(name.to_owned(), function);
    }

    /// Calls a function: what its body does is what the call does.
    pub(super) fn call_function(
        &mut self,
        name: &str,
        function: &Function,
        arguments: &[Field],
    ) -> CommandFacts {
        if self.calls.iter().any(|call| call == name) {
            let risk = if self.beside || !self.shown { Risk::Critical } else { Risk::High };
            return CommandFacts::from_effect(Effect::System(format!(
                "`{name}` calls itself without end"
            )))
            .with_risk(risk);
        }
        if self.calls.len() >= super::MAX_DEPTH {
            return CommandFacts::unknown_effect("functions call each other too deeply to follow");
        }
        self.calls.push(name.to_owned());
        let text = std::mem::replace(&mut self.text, Arc::clone(&function.text));
        let listings = std::mem::take(&mut self.listings);
        let found = std::mem::take(&mut self.found);
        self.within_function(arguments, |walker| walker.walk_command(&function.body));
        let inner = std::mem::replace(&mut self.found, found);
        self.listings = listings;
        self.text = text;
        self.calls.pop();
        let mut facts = CommandFacts::default();
        if function.several {
            facts.add(Effect::Unknown(format!(
                "which definition of `{name}` runs is only known at run time"
            )));
        }
        for command in inner {
            facts.merge_with(CommandFacts { effects: command.effects, risk: command.risk });
        }
        facts
    }
}

/// Returns the known value of a variable that takes each of `fields` in turn.
fn value_of_all(fields: &[Field]) -> Value {
    if let [field @ (Field::Pattern(_) | Field::Listed { .. })] = fields {
        return Value::from_field(field);
    }
    let choices: Option<Vec<Vec<&str>>> = fields.iter().map(Field::possible_texts).collect();
    let Some(choices) = choices else { return Value::Unknown };
    let texts = || choices.iter().flatten().map(|text| (*text).to_owned());
    if texts().all(|text| Value::Text(text).is_number()) {
        return Value::Number;
    }
    Value::one_of(texts())
}
