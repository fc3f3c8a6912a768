//! What a command line has set so far: folder, variables, functions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::expand::Value;
use crate::syntax::Command;

/// A function with the text its body stands in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Function {
    pub(super) text: Arc<str>,
    pub(super) body: Arc<Command>,
    /// False when it is only perhaps defined.
    pub(super) certain: bool,
}

/// What a shell has set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    /// `None` once it could not be followed.
    pub(super) cwd: Option<PathBuf>,
    /// For `cd -`.
    pub(super) before: Option<PathBuf>,
    /// Of `pushd`.
    pub(super) stack: Vec<Option<PathBuf>>,
    pub(super) variables: BTreeMap<String, Value>,
    pub(super) functions: BTreeMap<String, Function>,
}

impl State {
    /// What holds when either this or `other` may be so.
    pub(super) fn or(&mut self, other: Self) {
        if self.cwd != other.cwd {
            self.cwd = None;
        }
        if self.before != other.before {
            self.before = None;
        }
        if self.stack != other.stack {
            self.stack.clear();
        }
        for (name, value) in &mut self.variables {
            let other = other.variables.get(name);
            if other != Some(value) {
                let numbers = value.is_number() && other.is_some_and(Value::is_number);
                *value = if numbers { Value::Number } else { Value::Unknown };
            }
        }
        for name in other.variables.into_keys() {
            self.variables.entry(name).or_insert(Value::Unknown);
        }
        for (name, function) in &mut self.functions {
            function.certain &= other.functions.get(name) == Some(function);
        }
        for (name, mut function) in other.functions {
            function.certain = false;
            self.functions.entry(name).or_insert(function);
        }
    }

    /// Goes to a folder that may not be known.
    pub(super) fn go(&mut self, to: Option<PathBuf>) {
        self.before = std::mem::replace(&mut self.cwd, to);
    }
}
