//! From the tree of a command line to what it does.
//!
//! Walks every command in the order it would run and keeps what the shell would know: folder, variables,
//! functions, where input comes from. Branches are followed both ways, loops until nothing new is set.

mod assign;
mod builtins;
mod call;
mod command_facts;
mod control_flow;
mod declare;
mod env;
mod file_tests;
mod flow;
mod folders;
mod input;
mod listing;
mod obfuscation;
mod operand_places;
mod printf;
mod program;
mod redirect;
mod shells;
mod simple;
mod special;
mod state;
mod wrappers;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::expand::{Expander, Field, Value};
use crate::facts::{Analysis, Effect, FilePlace, Invocation, StartContext};
use crate::syntax::{self, Script, Span, Statement};
use command_facts::CommandFacts;
use input::{Input, Listing};
use state::ShellState;

/// Texts within texts (`bash -c`, `eval`) and calls within calls that are followed.
const MAX_DEPTH: usize = 16;
/// Lists within lists that are walked, over all texts and calls: the stack must hold them.
const MAX_NESTING: usize = 64;
/// Commands that are kept.
const MAX_COMMANDS: usize = 4_000;
/// Simple commands that are walked, those in loops and functions each time.
const MAX_STEPS: usize = 20_000;
/// Variables that are followed.
const MAX_VARIABLES: usize = 400;
/// Sub-commands a line may have before its mere length is odd.
const MAX_PLAIN_COMMANDS: usize = 50;

/// Analyses the effects that `text` has if it is run at `start`.
#[must_use]
pub fn analyse_command(text: &str, start: &StartContext) -> Analysis {
    let mut analysis = Analysis { oddities: obfuscation::in_text(text), ..Analysis::default() };
    match syntax::parse(text) {
        Ok(script) => {
            let mut walker = Walker::new(text, start);
            walker.walk_lines(&script);
            if walker.exhausted {
                analysis.unparsed = Some("it has more commands than gnoma follows".to_owned());
            }
            analysis.leaves_jobs = walker.leaves_jobs();
            analysis.commands = walker.found;
            analysis.other_words = walker.other_words;
            analysis.oddities.extend(walker.oddities);
        }
        Err(error) => analysis.unparsed = Some(error.to_string()),
    }
    if analysis.commands.len() > MAX_PLAIN_COMMANDS {
        let many = analysis.commands.len();
        analysis.oddities.push(format!(
            "{many} commands in one line are more than a person can \
                                        check"
        ));
    }
    analysis.oddities.dedup();
    analysis
}

/// Goes through a tree and gathers commands.
struct Walker<'a> {
    start: &'a StartContext,
    /// The text the tree's places are in.
    text: Arc<str>,
    state: ShellState,
    /// The state if the last command failed, when that is a different one.
    failed: Option<ShellState>,
    /// The state that may hold where loops and functions are left early.
    left: Option<ShellState>,
    /// The state that may hold where an expansion failed: the shell continues with the next line.
    aborted: Option<ShellState>,
    /// Variables that the functions being called made their own, with what they were.
    locals: Vec<Vec<(String, Option<Value>)>>,
    /// Loops that are being walked in this function.
    loops: usize,
    /// The number of times that a variable or the folder was set.
    changes: usize,
    /// A descriptor was closed, so what uses one may fail.
    closes: bool,
    /// Substitutions of this text that list names, with where these lie.
    listings: HashMap<Span, Arc<[FilePlace]>>,
    /// Names that the last pipeline printed, when it did nothing else.
    listing: Option<Listing>,
    input: Input,
    /// Output goes where the whole line's output goes, perhaps a terminal.
    shown: bool,
    /// Within something that runs beside the rest.
    beside: bool,
    /// The number of commands found when the last list was started in the background.
    jobs_until: Option<usize>,
    /// A trap ends what was started in the background.
    trap_ends_jobs: bool,
    depth: usize,
    /// Lists that are being walked.
    nesting: usize,
    /// Simple commands that were walked, those in loops and functions each time.
    steps: usize,
    /// True if a part was left out because there was too much.
    exhausted: bool,
    /// Functions that are being called.
    calls: Vec<String>,
    found: Vec<Invocation>,
    other_words: Vec<String>,
    oddities: Vec<String>,
}

impl<'a> Walker<'a> {
    fn new(text: &str, start: &'a StartContext) -> Self {
        Self {
            start,
            text: text.into(),
            state: ShellState::new(&start.cwd),
            failed: None,
            left: None,
            aborted: None,
            locals: Vec::new(),
            loops: 0,
            changes: 0,
            closes: false,
            listings: HashMap::new(),
            listing: None,
            input: Input::Inherited,
            shown: true,
            beside: false,
            jobs_until: None,
            trap_ends_jobs: false,
            depth: 0,
            nesting: 0,
            steps: 0,
            exhausted: false,
            calls: Vec::new(),
            found: Vec::new(),
            other_words: Vec::new(),
            oddities: Vec::new(),
        }
    }

    /// Expands with what is known now; `use_it` gets the expander, what it noted becomes effects.
    fn expand_with<T>(
        &mut self,
        facts: &mut CommandFacts,
        use_it: impl FnOnce(&mut Expander<'_>) -> T,
    ) -> T {
        let mut expander = Expander {
            text: &self.text,
            variables: &self.state.variables,
            folders: &self.state.folders,
            listings: &self.listings,
            home: self.start.home.as_ref(),
            hazards: Vec::new(),
            may_fail: false,
            secrets: Vec::new(),
        };
        let result = use_it(&mut expander);
        let Expander { hazards, secrets, may_fail, .. } = expander;
        for hazard in hazards {
            facts.add(Effect::Unknown(hazard));
        }
        for name in secrets {
            facts.add(Effect::Secret(format!("variable `{name}`")));
        }
        if may_fail {
            self.may_abort();
        }
        result
    }

    /// Adds a command that stands for itself.
    fn record_command(&mut self, text: String, words: &[Field], facts: CommandFacts) {
        if self.found.len() >= MAX_COMMANDS {
            self.exhausted = true;
            return;
        }
        let invocation = self.make_invocation(text, words, facts);
        self.found.push(invocation);
    }

    fn make_invocation(&self, text: String, words: &[Field], facts: CommandFacts) -> Invocation {
        Invocation {
            text,
            words: words.iter().map(|word| word.known_text().map(str::to_owned)).collect(),
            cwd: self.state.folders.likely_folder().map(Path::to_path_buf),
            effects: facts.effects,
            risk: facts.risk,
        }
    }

    /// Walks with a copy of what is known, as a subshell does.
    fn walk_in_subshell<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.merge_failed_state();
        let state = self.state.clone();
        let (left, aborted) = (self.left.take(), self.aborted.take());
        let result = walk(self);
        self.state = state;
        self.failed = None;
        (self.left, self.aborted) = (left, aborted);
        result
    }

    /// Reads `text` as commands of another shell: variables and functions of this one are not there.
    fn walk_child_shell(&mut self, text: &str) -> CommandFacts {
        let calls = std::mem::take(&mut self.calls);
        let loops = std::mem::take(&mut self.loops);
        let facts = self.walk_in_subshell(|walker| {
            walker.state.functions.clear();
            walker.state.stubborn.clear();
            walker.state.forget_values();
            walker.walk_text(text)
        });
        (self.calls, self.loops) = (calls, loops);
        facts
    }

    /// Reads `text` as commands and walks them in this shell.
    fn walk_text(&mut self, text: &str) -> CommandFacts {
        if self.depth >= MAX_DEPTH {
            return CommandFacts::unknown_effect("commands are nested too deeply to follow");
        }
        let script = match syntax::parse(text) {
            Ok(script) => script,
            Err(error) => {
                return CommandFacts::unknown_effect(format!(
                    "gnoma cannot parse its commands: {error}"
                ));
            }
        };
        self.oddities.extend(obfuscation::in_text(text));
        let text = std::mem::replace(&mut self.text, text.into());
        let listings = std::mem::take(&mut self.listings);
        let aborted = self.aborted.take();
        self.depth += 1;
        self.walk_lines(&script);
        self.resume_after_abort();
        self.depth -= 1;
        self.aborted = aborted;
        self.listings = listings;
        self.text = text;
        CommandFacts::default()
    }

    /// Walks a whole text: a line that fails does not keep the next from running.
    fn walk_lines(&mut self, script: &Script) {
        let room = MAX_COMMANDS.saturating_sub(self.other_words.len());
        let spans = script.words_outside_commands().into_iter().take(room);
        self.other_words.extend(spans.map(|span| span.text_in(&self.text).to_owned()));
        let mut end = script.span.start;
        for statement in &script.statements {
            let between = Span { start: end, end: statement.span.start };
            if between.text_in(&self.text).contains('\n') {
                self.resume_after_abort();
            }
            end = statement.span.end;
            self.nested_list(script, |walker| walker.step_statement(statement));
        }
    }

    fn walk_script(&mut self, script: &Script) {
        self.nested_list(script, |walker| {
            for statement in &script.statements {
                walker.step_statement(statement);
            }
        });
    }

    fn step_statement(&mut self, statement: &Statement) {
        self.exhausted |= self.steps >= MAX_STEPS;
        if !self.exhausted {
            self.walk_statement(statement);
        }
    }

    fn nested_list(&mut self, script: &Script, walk: impl FnOnce(&mut Self)) {
        if self.nesting >= MAX_NESTING {
            let text = script.span.text_in(&self.text).to_owned();
            return self.record_command(
                text,
                &[],
                CommandFacts::unknown_effect("it is nested too deeply to follow"),
            );
        }
        self.nesting += 1;
        walk(self);
        self.nesting -= 1;
    }
}
