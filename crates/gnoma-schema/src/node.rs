//! A schema as it is checked: its parts in a list, which name each other by their place.

use std::collections::HashMap;

use regex_automata::meta::Regex;
use serde_json::Value;

use crate::number::Decimal;

/// The place of a part in the list.
pub(crate) type NodeId = usize;

/// A part of a schema.
#[derive(Clone, Debug)]
pub(crate) enum SchemaNode {
    /// Takes everything or nothing.
    Always(bool),
    /// All of these hold; those that ask what was looked at come last.
    Rules(Vec<Constraint>),
}

/// The types of values, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(pub(crate) u8);

impl Types {
    pub(crate) const NAMES: [&str; 7] =
        ["null", "boolean", "integer", "number", "string", "array", "object"];

    /// The types by these names; `None` where one is no type.
    pub(crate) fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        names.into_iter().try_fold(Self(0), |so_far, name| {
            let at = Self::NAMES.iter().position(|known| *known == name)?;
            Some(Self(so_far.0 | 1 << at))
        })
    }

    /// Reports whether a value is of one of these types.
    pub(crate) fn matches_value(self, value: &Value) -> bool {
        let names: &[&str] = match value {
            Value::Null => &["null"],
            Value::Bool(_) => &["boolean"],
            Value::Number(number) if Decimal::from_number(number).is_integer() => {
                &["integer", "number"]
            }
            Value::Number(_) => &["number"],
            Value::String(_) => &["string"],
            Value::Array(_) => &["array"],
            Value::Object(_) => &["object"],
        };
        Self::from_names(names.iter().copied()).is_some_and(|own| own.0 & self.0 != 0)
    }

    /// For people: `string or null`.
    pub(crate) fn to_words(self) -> String {
        let names = Self::NAMES.iter().enumerate().filter(|(at, _)| self.0 & 1 << at != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }
}

/// The kind of limit on a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Least,
    Above,
    Most,
    Below,
    MultipleOf,
}

/// The elements of a value that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedUnit {
    Characters,
    Items,
    Properties,
}

/// A regular expression with the words it came in.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) words: String,
    pub(crate) regex: Regex,
}

/// The requirements for properties: by name, by pattern, and for all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Properties {
    pub(crate) named: HashMap<String, NodeId>,
    pub(crate) matching: Vec<(Pattern, NodeId)>,
    pub(crate) others: Option<NodeId>,
}

/// One thing that a part demands.
#[derive(Clone, Debug)]
pub(crate) enum Constraint {
    Type(Types),
    OneOf(Vec<Value>),
    Number(Bound, Decimal),
    Count {
        of: CountedUnit,
        least: u64,
        most: Option<u64>,
    },
    Pattern(Pattern),
    Items {
        first: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains {
        part: NodeId,
        least: u64,
        most: Option<u64>,
    },
    Unique,
    Required(Vec<String>),
    Properties(Properties),
    Names(NodeId),
    /// If the property is present, the listed ones must be present as well.
    Needs(Vec<(String, Vec<String>)>),
    /// If the property is present, this part of the schema applies.
    Brings(Vec<(String, NodeId)>),
    Same(NodeId),
    All(Vec<NodeId>),
    Any(Vec<NodeId>),
    One(Vec<NodeId>),
    Not(NodeId),
    If {
        test: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    OtherItems(NodeId),
    OtherProperties(NodeId),
}
