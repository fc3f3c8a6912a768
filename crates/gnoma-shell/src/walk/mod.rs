//! From the tree of a command line to what it does.
//!
//! Walks every command in the order it would run and keeps what the shell would know: folder, variables,
//! functions, where input comes from. Branches are followed both ways, loops once with what they set unknown.

mod assign;
mod builtins;
mod env;
mod facts_of;
mod flow;
mod input;
mod odd;
mod program;
mod redirect;
mod shells;
mod simple;
mod special;
mod state;
mod wrappers;

use std::path::Path;
use std::sync::Arc;

use crate::expand::{Expander, Field};
use crate::facts::{Analysis, Effect, Invocation, Start};
use crate::syntax::{self, Script};
use facts_of::Facts;
use input::Input;
use state::State;

/// Texts within texts (`bash -c`, `eval`) and calls within calls that are followed.
const MAX_DEPTH: usize = 16;
/// Lists within lists that are walked, over all texts and calls: the stack must hold them.
const MAX_NESTING: usize = 160;
/// Commands that are kept.
const MAX_COMMANDS: usize = 4_000;
/// Simple commands that are walked, those in loops and functions each time.
const MAX_STEPS: usize = 20_000;
/// Sub-commands a line may have before its mere length is odd.
const MAX_PLAIN_COMMANDS: usize = 50;

/// What `text` does when it is run at `start`.
#[must_use]
pub fn analyse(text: &str, start: &Start) -> Analysis {
    let mut analysis = Analysis { oddities: odd::in_text(text), ..Analysis::default() };
    match syntax::parse(text) {
        Ok(script) => {
            let mut walker = Walker::new(text, start);
            walker.script(&script);
            if walker.exhausted {
                analysis.unparsed = Some("it has more commands than are followed".to_owned());
            }
            analysis.commands = walker.found;
            analysis.oddities.extend(walker.oddities);
        }
        Err(error) => analysis.unparsed = Some(error.to_string()),
    }
    if analysis.commands.len() > MAX_PLAIN_COMMANDS {
        let many = analysis.commands.len();
        analysis.oddities.push(format!("{many} commands in one line are more than a person reads"));
    }
    analysis.oddities.dedup();
    analysis
}

/// Goes through a tree and gathers commands.
struct Walker<'a> {
    start: &'a Start,
    /// The text the tree's places are in.
    text: Arc<str>,
    state: State,
    input: Input,
    /// Output goes where the whole line's output goes, perhaps a terminal.
    shown: bool,
    /// Within something that runs beside the rest.
    beside: bool,
    depth: usize,
    /// Lists that are being walked.
    nesting: usize,
    /// Simple commands that were walked, those in loops and functions each time.
    steps: usize,
    /// Something was left out because there was too much.
    exhausted: bool,
    /// Functions that are being called.
    calls: Vec<String>,
    found: Vec<Invocation>,
    oddities: Vec<String>,
}

impl<'a> Walker<'a> {
    fn new(text: &str, start: &'a Start) -> Self {
        let state = State { cwd: Some(start.cwd.clone()), ..State::default() };
        Self {
            start,
            text: text.into(),
            state,
            input: Input::Inherited,
            shown: true,
            beside: false,
            depth: 0,
            nesting: 0,
            steps: 0,
            exhausted: false,
            calls: Vec::new(),
            found: Vec::new(),
            oddities: Vec::new(),
        }
    }

    fn cwd(&self) -> Option<&Path> {
        self.state.cwd.as_deref()
    }

    /// Expands with what is known now; `use_it` gets the expander, what it noted becomes effects.
    fn expand<T>(&self, facts: &mut Facts, use_it: impl FnOnce(&mut Expander<'_>) -> T) -> T {
        let mut expander = Expander {
            text: &self.text,
            variables: &self.state.variables,
            cwd: self.cwd(),
            home: self.start.home.as_ref(),
            hazards: Vec::new(),
            secrets: Vec::new(),
        };
        let result = use_it(&mut expander);
        for hazard in expander.hazards {
            facts.add(Effect::Unknown(hazard));
        }
        for name in expander.secrets {
            facts.add(Effect::Secret(format!("variable `{name}`")));
        }
        result
    }

    /// Adds a command that stands for itself.
    fn record(&mut self, text: String, words: &[Field], facts: Facts) {
        if self.found.len() >= MAX_COMMANDS {
            self.exhausted = true;
            return;
        }
        let invocation = self.invocation(text, words, facts);
        self.found.push(invocation);
    }

    fn invocation(&self, text: String, words: &[Field], facts: Facts) -> Invocation {
        Invocation {
            text,
            words: words.iter().map(|word| word.known().map(str::to_owned)).collect(),
            cwd: self.state.cwd.clone(),
            effects: facts.effects,
            risk: facts.risk,
        }
    }

    /// Walks with a copy of what is known, as a subshell does.
    fn apart(&mut self, walk: impl FnOnce(&mut Self)) {
        let state = self.state.clone();
        walk(self);
        self.state = state;
    }

    /// Reads `text` as commands and walks them in this shell.
    fn nested(&mut self, text: &str) -> Facts {
        if self.depth >= MAX_DEPTH {
            return Facts::unknown("commands are nested too deeply to follow");
        }
        let script = match syntax::parse(text) {
            Ok(script) => script,
            Err(error) => {
                return Facts::unknown(format!("its commands are not understood: {error}"));
            }
        };
        self.oddities.extend(odd::in_text(text));
        let text = std::mem::replace(&mut self.text, text.into());
        self.depth += 1;
        self.script(&script);
        self.depth -= 1;
        self.text = text;
        Facts::default()
    }

    fn script(&mut self, script: &Script) {
        if self.nesting >= MAX_NESTING {
            let text = script.span.of(&self.text).to_owned();
            return self.record(text, &[], Facts::unknown("it is nested too deeply to follow"));
        }
        self.nesting += 1;
        for statement in &script.statements {
            self.exhausted |= self.steps >= MAX_STEPS;
            if !self.exhausted {
                self.statement(statement);
            }
        }
        self.nesting -= 1;
    }
}
