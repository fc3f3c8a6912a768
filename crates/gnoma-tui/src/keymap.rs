//! Key bindings: a table from chord to action for each part of the screen that keys go to. The built-in table is a
//! data file, and a person's own file of the same form changes it. What an action does is decided by those who ask;
//! chords of several keys are not known here.

mod action;
mod context;
mod key;
mod read;

use std::collections::HashMap;

pub use action::Action;
pub use context::Context;
pub use key::{Code, Key, KeyError};
pub use read::KeymapError;

/// The built-in table, which also says which actions each context has.
const BUILT_IN: &str = include_str!("../data/keys.toml");

/// A key that a person's own table took from another action of the same context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyConflict {
    /// The context in which the key works.
    pub context: Context,
    /// The key that was taken.
    pub key: Key,
    /// The action that the key had before.
    pub from: Action,
    /// The action that the key has now.
    pub by: Action,
}

/// The actions of all keys.
#[derive(Clone, Debug, Default)]
pub struct Keymap {
    actions: HashMap<(Context, Key), Action>,
    /// The keys of every action that a context has, in the order of the table.
    keys: HashMap<(Context, Action), Vec<Key>>,
}

impl Keymap {
    /// The table that comes with the program.
    #[must_use]
    pub fn built_in() -> Self {
        // The data file is part of the program; a test reads it.
        let bindings = read::read_bindings(BUILT_IN, None).unwrap_or_default();
        let mut keymap = Self::default();
        for binding in bindings {
            keymap.bind(binding.context, binding.action, binding.keys);
        }
        keymap
    }

    /// The built-in table with a person's own over it, and the keys that changed hands.
    ///
    /// # Errors
    ///
    /// When the text is not TOML, names a part, an action or a key that does not exist, or gives one
    /// key to two actions of a context. Nothing of it is used then.
    pub fn with_own(text: &str) -> Result<(Self, Vec<KeyConflict>), KeymapError> {
        let mut keymap = Self::built_in();
        let bindings = read::read_bindings(text, Some(&|context| keymap.actions(context)))?;
        // First all the keys that are given up, so that two actions can swap theirs.
        for binding in &bindings {
            keymap.unbind(binding.context, binding.action);
        }
        let mut taken = Vec::new();
        for binding in bindings {
            taken.extend(keymap.bind(binding.context, binding.action, binding.keys));
        }
        Ok((keymap, taken))
    }

    /// Returns the action that the key asks for in this context, or everywhere.
    #[must_use]
    pub fn action(&self, context: Context, key: Key) -> Option<Action> {
        let here = self.actions.get(&(context, key));
        here.or_else(|| self.actions.get(&(Context::Global, key))).copied()
    }

    /// Returns the action that the key asks for in this context alone.
    #[must_use]
    pub fn action_here(&self, context: Context, key: Key) -> Option<Action> {
        self.actions.get(&(context, key)).copied()
    }

    /// The keys of an action, the one to show first.
    #[must_use]
    pub fn keys(&self, context: Context, action: Action) -> &[Key] {
        self.keys.get(&(context, action)).map_or(&[], Vec::as_slice)
    }

    /// The actions that a context has, in a fixed order, whether keys lead to them or not.
    #[must_use]
    pub fn actions(&self, context: Context) -> Vec<Action> {
        let known = |action: &Action| self.keys.contains_key(&(context, *action));
        Action::ALL.iter().copied().filter(known).collect()
    }

    fn unbind(&mut self, context: Context, action: Action) {
        for key in self.keys.insert((context, action), Vec::new()).unwrap_or_default() {
            self.actions.remove(&(context, key));
        }
    }

    fn bind(&mut self, context: Context, action: Action, keys: Vec<Key>) -> Vec<KeyConflict> {
        let mut taken = Vec::new();
        for &key in &keys {
            let Some(from) = self.actions.insert((context, key), action) else { continue };
            if from != action {
                if let Some(left) = self.keys.get_mut(&(context, from)) {
                    left.retain(|other| *other != key);
                }
                taken.push(KeyConflict { context, key, from, by: action });
            }
        }
        self.keys.insert((context, action), keys);
        taken
    }
}
