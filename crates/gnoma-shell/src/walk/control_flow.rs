//! Where commands do not simply follow each other: they fail, leave a loop or a function, or abort a line.

use super::Walker;
use super::builtins::is_at_most_a_number;
use super::state::ShellState;
use crate::expand::{Field, Value};

/// Rounds after which what a loop sets is taken to be anything.
const MAX_ROUNDS: usize = 5;

impl Walker<'_> {
    /// Goes on whether the last command failed or not.
    pub(super) fn merge_failed_state(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.state.merge_with(failed);
        }
    }

    /// Returns the shell's state after the last command: if it succeeded, and if it failed.
    pub(super) fn end_states(&mut self) -> (ShellState, ShellState) {
        let failed = self.failed.take().unwrap_or_else(|| self.state.clone());
        (self.state.clone(), failed)
    }

    /// The last command may have failed, with nothing done.
    pub(super) fn may_have_failed(&mut self, before: ShellState) {
        let mut failed = self.failed.take().unwrap_or_else(|| self.state.clone());
        failed.merge_with(before);
        self.failed = Some(failed);
    }

    /// An expansion may fail here.
    pub(super) fn may_abort(&mut self) {
        let mut state = self.state.clone();
        for (name, outer) in self.locals.iter().flatten() {
            state.set_variable(name, merge_values(state.variables.get(name), outer.as_ref()));
        }
        ShellState::merge_into(&mut self.aborted, state);
    }

    /// The next line runs also where this one was aborted.
    pub(super) fn resume_after_abort(&mut self) {
        self.merge_failed_state();
        if let Some(aborted) = self.aborted.take() {
            self.state.merge_with(aborted);
        }
    }

    /// `exit`, `return`, `break` and `continue`.
    pub(super) fn leave_block(&mut self, name: &str, words: &[Field]) {
        if !is_at_most_a_number(words) {
            return self.may_abort();
        }
        match name {
            "exit" | "logout" => {}
            "return" if !self.calls.is_empty() => {
                ShellState::merge_into(&mut self.left, self.state.clone());
            }
            "break" | "continue" if self.loops > 0 => {
                ShellState::merge_into(&mut self.left, self.state.clone());
            }
            _ => return,
        }
        self.state.gone = true;
    }

    /// Walks a round again and again until it sets nothing new. `round` gives what holds where the loop
    /// ends before its body.
    pub(super) fn walk_rounds(&mut self, round: impl Fn(&mut Self) -> Option<ShellState>) {
        self.merge_failed_state();
        let outer = self.left.take();
        let found = self.found.len();
        self.loops += 1;
        let mut end = self.state.clone();
        for at in 0..=MAX_ROUNDS {
            let head = self.state.clone();
            self.found.truncate(found);
            end = round(self).unwrap_or_else(|| head.clone());
            self.merge_failed_state();
            if let Some(left) = self.left.clone() {
                self.state.merge_with(left);
            }
            end.merge_with(self.state.clone());
            self.state.merge_with(head.clone());
            if self.state == head {
                break;
            }
            self.exhausted |= at == MAX_ROUNDS;
            if at + 2 >= MAX_ROUNDS {
                self.state.forget_all();
            }
        }
        self.loops -= 1;
        self.state = end;
        let left = self.left.take().filter(|_| self.loops > 0 || !self.calls.is_empty());
        self.left = outer;
        if let Some(left) = left {
            ShellState::merge_into(&mut self.left, left);
        }
    }

    /// Runs a function's body: what it makes its own is as it was, or as it is left, afterwards.
    pub(super) fn within_function(&mut self, arguments: &[Field], body: impl FnOnce(&mut Self)) {
        self.merge_failed_state();
        let outer = self.bind_arguments(arguments);
        let left = self.left.take();
        let loops = std::mem::take(&mut self.loops);
        self.locals.push(Vec::new());
        body(self);
        self.merge_failed_state();
        if let Some(left) = self.left.take() {
            self.state.merge_with(left);
        }
        (self.left, self.loops) = (left, loops);
        for (name, value) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            let now = merge_values(self.state.variables.get(&name), value.as_ref());
            self.state.set_variable(&name, now);
        }
        self.unbind_arguments(outer);
    }

    /// Sets `$1` and so on; gives back what they were.
    fn bind_arguments(&mut self, arguments: &[Field]) -> Vec<(String, Option<Value>)> {
        let certain = arguments.iter().take_while(|field| !field.may_be_many()).count();
        (1..10)
            .map(|at: usize| {
                let value = match arguments.get(at - 1) {
                    _ if at > certain && certain < arguments.len() => Value::Unknown,
                    Some(field) => Value::from_field(field),
                    None => Value::Text(String::new()),
                };
                (at.to_string(), self.state.set_variable(&at.to_string(), value))
            })
            .collect()
    }

    fn unbind_arguments(&mut self, outer: Vec<(String, Option<Value>)>) {
        for (name, before) in outer {
            match before {
                Some(value) => self.state.set_variable(&name, value),
                None => self.state.unset_variable(&name),
            };
        }
    }

    /// `$1` and so on are others now.
    pub(super) fn shift_arguments(&mut self) {
        for at in 1..10 {
            self.state.set_variable(&at.to_string(), Value::Unknown);
        }
    }
}

/// Returns the known value of a variable that has one value or the other. A variable that was not set may come from
/// outside.
fn merge_values(one: Option<&Value>, other: Option<&Value>) -> Value {
    match (one, other) {
        (Some(one), Some(other)) => one.merge_with(other),
        _ => Value::Unknown,
    }
}
