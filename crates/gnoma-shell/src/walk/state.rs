//! What a command line has set so far: folder, variables, functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::expand::{Folders, Value};
use crate::syntax::Command;

/// A function with the text its body stands in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Function {
    pub(super) text: Arc<str>,
    pub(super) body: Arc<Command>,
    /// False when it is only perhaps defined.
    pub(super) certain: bool,
    /// True if the function may have another body as well.
    pub(super) several: bool,
}

/// The settings of a shell: its folders, variables and functions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShellState {
    pub(super) folders: Folders,
    /// The folder before the last `cd`, for `cd -`.
    pub(super) before: Option<Folders>,
    /// The folder stack of `pushd`.
    pub(super) stack: Vec<Folders>,
    /// Shared: most commands set none.
    pub(super) variables: Arc<BTreeMap<String, Value>>,
    pub(super) functions: BTreeMap<String, Function>,
    /// Variables that need not become what they are assigned: read-only ones and the like.
    pub(super) stubborn: BTreeSet<String>,
    /// Variables that may be arrays.
    pub(super) arrays: BTreeSet<String>,
    /// True if execution does not get here: the shell, the loop or the function was left.
    pub(super) gone: bool,
}

impl ShellState {
    pub(super) fn new(cwd: &Path) -> Self {
        Self {
            folders: Folders::new(cwd),
            before: None,
            stack: Vec::new(),
            variables: Arc::default(),
            functions: BTreeMap::new(),
            stubborn: BTreeSet::new(),
            arrays: BTreeSet::new(),
            gone: false,
        }
    }

    /// Merges in another state, so that either this or `other` may be true.
    pub(super) fn merge_with(&mut self, other: Self) {
        match (self.gone, other.gone) {
            (false, true) => return,
            (true, false) => {
                *self = other;
                return;
            }
            (true, true) | (false, false) => {}
        }
        self.folders.merge_with(&other.folders);
        if self.before != other.before {
            self.before = None;
        }
        if self.stack != other.stack {
            self.stack.clear();
        }
        self.stubborn.extend(other.stubborn);
        self.arrays.extend(other.arrays);
        self.or_variables(&other.variables);
        self.or_functions(other.functions);
    }

    fn or_variables(&mut self, other: &Arc<BTreeMap<String, Value>>) {
        if Arc::ptr_eq(&self.variables, other) {
            return;
        }
        let mine = Arc::make_mut(&mut self.variables);
        for (name, value) in mine.iter_mut() {
            let other = other.get(name).unwrap_or(&Value::Unknown);
            if value != other {
                *value = value.merge_with(other);
            }
        }
        for name in other.keys() {
            if !mine.contains_key(name) {
                mine.insert(name.clone(), Value::Unknown);
            }
        }
    }

    fn or_functions(&mut self, other: BTreeMap<String, Function>) {
        for (name, function) in &mut self.functions {
            match other.get(name) {
                Some(same) if same.body == function.body => {
                    function.certain &= same.certain;
                    function.several |= same.several;
                }
                Some(_) => function.several = true,
                None => function.certain = false,
            }
        }
        for (name, mut function) in other {
            function.certain = false;
            self.functions.entry(name).or_insert(function);
        }
    }

    /// Keeps only which names were set, not to what.
    pub(super) fn forget_all(&mut self) {
        self.folders = self.folders.to_unknown();
        self.before = None;
        self.stack.clear();
        self.forget_values();
        for function in self.functions.values_mut() {
            function.certain = false;
            function.several = true;
        }
    }

    pub(super) fn forget_values(&mut self) {
        for value in Arc::make_mut(&mut self.variables).values_mut() {
            *value = Value::Unknown;
        }
    }

    /// Sets a variable; gives back what it was.
    pub(super) fn set_variable(&mut self, name: &str, value: Value) -> Option<Value> {
        Arc::make_mut(&mut self.variables).insert(name.to_owned(), value)
    }

    pub(super) fn set_if_new(&mut self, name: &str, value: Value) {
        if !self.variables.contains_key(name) {
            self.set_variable(name, value);
        }
    }

    pub(super) fn unset_variable(&mut self, name: &str) -> Option<Value> {
        Arc::make_mut(&mut self.variables).remove(name)
    }

    pub(super) fn change_folder(&mut self, to: Folders) {
        self.before = Some(std::mem::replace(&mut self.folders, to));
    }

    /// Adds a state to those that may be so.
    pub(super) fn merge_into(all: &mut Option<Self>, state: Self) {
        match all {
            Some(all) => all.merge_with(state),
            None => *all = Some(state),
        }
    }
}
