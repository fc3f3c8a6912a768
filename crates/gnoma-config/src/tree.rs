//! One layer of settings before validation: the same tree for files, variables and flags.

use std::ops::Range;

use crate::expand::{self, Environment, ExpandError};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A value and where it stands in its file; an empty span at 0 for what stands in none.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) tree: Tree,
    pub(crate) span: Range<usize>,
}

/// A value as it was written. It may hold secrets, so it cannot be printed.
#[derive(Clone)]
pub(crate) enum Tree {
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Vec<Field>),
    /// A value that no key takes, named by this text.
    Other(&'static str),
}

/// One key of a table.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) name_span: Range<usize>,
    pub(crate) node: Node,
}

impl Tree {
    /// The type in words, with its article.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Number(_) => "a decimal number",
            Self::Bool(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(words) => words,
        }
    }
}

impl Tree {
    /// The text under `name`, when this is a table that has one and it is not empty.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        let Self::Table(fields) = self else {
            return None;
        };
        match &fields.iter().find(|field| field.name == name)?.node.tree {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Reports whether a text in this tree refers to a variable.
    pub(crate) fn has_variable(&self) -> bool {
        match self {
            Self::Text(text) => expand::has_variable(text),
            Self::List(items) => items.iter().any(|item| item.tree.has_variable()),
            Self::Table(fields) => fields.iter().any(|field| field.node.tree.has_variable()),
            Self::Integer(_) | Self::Number(_) | Self::Bool(_) | Self::Other(_) => false,
        }
    }

    /// This value with its variables put in; those of tables stay, as no key takes a table.
    pub(crate) fn expand_variables(&self, env: &Environment) -> Result<Self, ExpandError> {
        match self {
            Self::Text(text) => expand::expand_variables(text, env).map(Self::Text),
            Self::List(items) => {
                let expanded = items.iter().map(|item| {
                    Ok(Node { tree: item.tree.expand_variables(env)?, span: item.span.clone() })
                });
                expanded.collect::<Result<_, _>>().map(Self::List)
            }
            other => Ok(other.clone()),
        }
    }
}

/// The tree of a parsed file.
pub(crate) fn of_file(document: Spanned<DeTable<'_>>) -> Node {
    let span = document.span();
    Node { tree: of_table(document.into_inner()), span }
}

fn of_table(table: DeTable<'_>) -> Tree {
    let fields = table.into_iter().map(|(name, value)| Field {
        name_span: name.span(),
        name: name.into_inner().into_owned(),
        node: of_spanned(value),
    });
    let mut fields: Vec<_> = fields.collect();
    // Findings come in the order of the file.
    gnoma_core::sort::by_key(&mut fields, |field| field.name_span.start);
    Tree::Table(fields)
}

fn of_spanned(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let tree = match value.into_inner() {
        DeValue::String(text) => Tree::Text(text.into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Tree::Other("a number that is too large"), Tree::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or(Tree::Other("an unreadable number"), Tree::Number)
        }
        DeValue::Boolean(truth) => Tree::Bool(truth),
        DeValue::Datetime(_) => Tree::Other("a date"),
        DeValue::Array(items) => Tree::List(items.into_iter().map(of_spanned).collect()),
        DeValue::Table(table) => of_table(table),
    };
    Node { tree, span }
}

/// The tree of a value that comes from no file.
pub(crate) fn of_value(value: &toml::Value) -> Node {
    let tree = match value {
        toml::Value::String(text) => Tree::Text(text.clone()),
        toml::Value::Integer(number) => Tree::Integer(*number),
        toml::Value::Float(number) => Tree::Number(*number),
        toml::Value::Boolean(truth) => Tree::Bool(*truth),
        toml::Value::Datetime(_) => Tree::Other("a date"),
        toml::Value::Array(items) => Tree::List(items.iter().map(of_value).collect()),
        toml::Value::Table(table) => {
            let fields = table.iter().map(|(name, value)| Field {
                name: name.clone(),
                name_span: 0..0,
                node: of_value(value),
            });
            Tree::Table(fields.collect())
        }
    };
    Node { tree, span: 0..0 }
}
