//! Reads a table of keys from TOML. Every complaint names its line and what would be allowed.

use thiserror::Error;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    action::Action,
    context::Context,
    key::{Key, KeyError},
};

/// The reason why a table of keys cannot be used.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum KeymapError {
    /// The table is not TOML.
    #[error("line {line}: {why}")]
    Syntax {
        /// The number of the line, from 1.
        line: usize,
        /// The message of the reader.
        why: String,
    },
    /// A part of this name does not exist.
    #[error(
        "line {line}: `[{name}]` is not a section of this file; the sections are composer, normal, picker, permission and global"
    )]
    Context {
        /// The number of the line, from 1.
        line: usize,
        /// The name that was read.
        name: String,
    },
    /// The context has no such action.
    #[error("line {line}: `{name}` is not an action of [{context}]; allowed are {allowed}")]
    Action {
        /// The number of the line, from 1.
        line: usize,
        /// The name that was read.
        name: String,
        /// The name of the context.
        context: &'static str,
        /// The names of its actions.
        allowed: String,
    },
    /// There is something else in place of keys.
    #[error(
        "line {line}: `{name}` must be a key such as \"ctrl+r\" or a list of keys, not {found}"
    )]
    Shape {
        /// The number of the line, from 1.
        line: usize,
        /// The name of the action that the keys are for.
        name: String,
        /// The kind of value that was found.
        found: &'static str,
    },
    /// A key cannot be read.
    #[error("line {line}: {why}")]
    Key {
        /// The number of the line, from 1.
        line: usize,
        /// The fault of the key's name.
        why: KeyError,
    },
    /// The key is needed for typing.
    #[error(
        "line {line}: `{key}` types text and cannot do anything else in [{context}]; hold ctrl or alt with it"
    )]
    Typing {
        /// The number of the line, from 1.
        line: usize,
        /// The key that is needed for typing.
        key: Key,
        /// The name of the context.
        context: &'static str,
    },
    /// One key was given to two actions of a context.
    #[error(
        "line {line}: `{key}` does both `{first}` and `{second}` in [{context}]; keep one of them"
    )]
    Conflict {
        /// From 1, of the second.
        line: usize,
        /// The key that was given to both.
        key: Key,
        /// The name of the action that had it.
        first: &'static str,
        /// The name of the action that was given it too.
        second: &'static str,
        /// The name of the context.
        context: &'static str,
    },
}

gnoma_core::debug_as_display!(KeymapError);

/// One line of a table.
pub(super) struct Binding {
    pub(super) context: Context,
    pub(super) action: Action,
    pub(super) keys: Vec<Key>,
}

/// The actions that a context may have; `None` allows every action.
pub(super) type AllowedActions<'a> = Option<&'a dyn Fn(Context) -> Vec<Action>>;

/// The lines of a table.
pub(super) fn read_bindings(
    text: &str,
    allowed: AllowedActions<'_>,
) -> Result<Vec<Binding>, KeymapError> {
    let reader = Reader { text, allowed };
    let table = DeTable::parse(text).map_err(|error| KeymapError::Syntax {
        line: reader.line_number(error.span().map_or(0, |span| span.start)),
        why: error.message().to_owned(),
    })?;
    let mut bindings = Vec::new();
    for (name, part) in table.get_ref() {
        let context = reader.parse_context(name)?;
        let DeValue::Table(actions) = part.get_ref() else {
            let found = part.get_ref().type_str();
            let line = reader.line_number(part.span().start);
            return Err(KeymapError::Shape { line, name: name.get_ref().to_string(), found });
        };
        reader.parse_part(context, actions, &mut bindings)?;
    }
    Ok(bindings)
}

struct Reader<'a> {
    text: &'a str,
    allowed: AllowedActions<'a>,
}

impl Reader<'_> {
    fn line_number(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn parse_context(
        &self,
        name: &Spanned<toml::de::DeString<'_>>,
    ) -> Result<Context, KeymapError> {
        let wanted = name.get_ref();
        Context::ALL.into_iter().find(|context| context.name() == wanted).ok_or_else(|| {
            KeymapError::Context {
                line: self.line_number(name.span().start),
                name: wanted.to_string(),
            }
        })
    }

    fn parse_part(
        &self,
        context: Context,
        actions: &DeTable<'_>,
        bindings: &mut Vec<Binding>,
    ) -> Result<(), KeymapError> {
        let first_of_part = bindings.len();
        // In the order of the text, so that the second of two that clash is the one complained of.
        let mut entries: Vec<_> = actions.iter().collect();
        gnoma_core::sort::by_key(&mut entries, |(name, _)| name.span().start);
        for (name, value) in entries {
            let action = self.parse_action(context, name)?;
            let mut keys = Vec::new();
            for (key, offset) in self.parse_keys(name.get_ref(), value)? {
                if key.typed_char().is_some() && is_for_typing(context) {
                    let (line, context) = (self.line_number(offset), context.name());
                    return Err(KeymapError::Typing { line, key, context });
                }
                let of_part = bindings.get(first_of_part..).unwrap_or_default();
                if let Some(other) = of_part.iter().find(|other| other.keys.contains(&key)) {
                    return Err(KeymapError::Conflict {
                        line: self.line_number(offset),
                        key,
                        first: other.action.name(),
                        second: action.name(),
                        context: context.name(),
                    });
                }
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            bindings.push(Binding { context, action, keys });
        }
        Ok(())
    }

    fn parse_action(
        &self,
        context: Context,
        name: &Spanned<toml::de::DeString<'_>>,
    ) -> Result<Action, KeymapError> {
        let allowed = self.allowed.map(|allowed| allowed(context));
        let is_allowed =
            |action: &Action| allowed.as_ref().is_none_or(|allowed| allowed.contains(action));
        Action::from_name(name.get_ref()).filter(is_allowed).ok_or_else(|| {
            let names: Vec<_> = allowed.unwrap_or_default().into_iter().map(Action::name).collect();
            KeymapError::Action {
                line: self.line_number(name.span().start),
                name: name.get_ref().to_string(),
                context: context.name(),
                allowed: names.join(", "),
            }
        })
    }

    /// The keys and the position of each in the text.
    fn parse_keys(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(Key, usize)>, KeymapError> {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|item| self.parse_key(name, item)).collect(),
            _ => Ok(vec![self.parse_key(name, value)?]),
        }
    }

    fn parse_key(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(Key, usize), KeymapError> {
        let offset = value.span().start;
        let line = self.line_number(offset);
        let DeValue::String(text) = value.get_ref() else {
            let found = value.get_ref().type_str();
            return Err(KeymapError::Shape { line, name: name.to_owned(), found });
        };
        let key = text.parse().map_err(|why| KeymapError::Key { line, why })?;
        Ok((key, offset))
    }
}

/// Reports whether letters type words in this context.
fn is_for_typing(context: Context) -> bool {
    match context {
        Context::Composer | Context::Picker | Context::Global => true,
        Context::Normal | Context::Permission => false,
    }
}
