//! Lenient deserialization of values as servers really send them, without copying.
//!
//! Compatible servers put `null`, numbers or nothing where the reference says string, and a record must
//! not be lost for that. What is no text or no count at all reads as empty.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// A string of a record; borrowed from it where it holds no escapes.
///
/// `Option<Cow<str>>` would copy always: serde borrows only in a field that is `Cow` itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, unless it is empty.
    pub(crate) fn non_empty(&self) -> Option<&str> {
        Some(self.as_str()).filter(|text| !text.is_empty())
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }

    /// Returns the owned text of [`non_empty`](Self::non_empty).
    pub(crate) fn into_filled(self) -> Option<String> {
        (!self.is_empty()).then(|| self.into_string())
    }
}

/// A number of tokens or a position; `None` when nothing usable was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

/// Reads over a simple value that stands in the place of the wanted one.
macro_rules! skip_single {
    ($($method:ident($kind:ty)),*) => {
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        $(fn $method<E: Error>(self, _: $kind) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })*
    };
}

/// Methods of a visitor that step over single values, objects and lists.
macro_rules! skip_other {
    ($($method:ident($kind:ty)),*) => {
        skip_single!($($method($kind)),*);

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    skip_other!(visit_bool(bool), visit_i64(i64), visit_f64(f64));
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Count, E> {
        Ok(Count(Some(number)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Count, E> {
        // A float-to-integer cast saturates; below zero is no count.
        Ok(Count((number >= 0.0).then_some(number as u64)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Count, E> {
        Ok(Count(text.parse().ok()))
    }

    skip_other!(visit_bool(bool), visit_i64(i64));
}

/// A value of no use, read over a level at a time: to skip a list of objects in one go, `serde_json`
/// allocates. For fields that come with every record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SkippedValue;

impl<'de> Deserialize<'de> for SkippedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SkippedVisitor)
    }
}

struct SkippedVisitor;

impl<'de> Visitor<'de> for SkippedVisitor {
    type Value = SkippedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    skip_other!(visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str));
}

/// A list that nearly always holds one element, which then costs no allocation. An object in its place is its one
/// element.
#[derive(Debug)]
pub(crate) struct SmallList<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Default for SmallList<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> IntoIterator for SmallList<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SmallList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FewVisitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
            type Value = SmallList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            skip_single!(
                visit_bool(bool),
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64),
                visit_str(&str)
            );

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SmallList<T>, A::Error> {
                let only = T::deserialize(MapAccessDeserializer::new(map))?;
                Ok(SmallList { first: Some(only), rest: Vec::new() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SmallList<T>, A::Error> {
                let mut few = SmallList { first: seq.next_element()?, rest: Vec::new() };
                while let Some(more) = seq.next_element()? {
                    few.rest.push(more);
                }
                Ok(few)
            }
        }

        deserializer.deserialize_any(FewVisitor(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Record<'a> {
        #[serde(borrow)]
        text: Option<Text<'a>>,
        count: Count,
        list: SmallList<Count>,
    }

    fn read(json: &str) -> Record<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn json_string_without_escapes_is_borrowed() {
        let record = read(r#"{"text":"plain"}"#);
        assert!(matches!(record.text, Some(Text(Cow::Borrowed("plain")))));
        let record = read(r#"{"text":"a\nb"}"#);
        assert_eq!(record.text.unwrap().as_str(), "a\nb");
    }

    #[test]
    fn json_fields_of_unexpected_types_are_read_as_empty() {
        for other in ["null", "true", "7", "\"\""] {
            let record = format!(r#"{{"list":{other}}}"#);
            assert_eq!(read(&record).list.into_iter().count(), 0, "{other}");
        }
        assert_eq!(read(r#"{"list":{"a":1}}"#).list.into_iter().count(), 1);
        for other in ["null", "true", "[1,{}]", r#"{"a":[1]}"#] {
            let json = format!(r#"{{"text":{other},"count":{other}}}"#);
            let record = read(&json);
            assert!(record.text.unwrap_or_default().is_empty(), "{other}");
            assert_eq!(record.count, Count(None), "{other}");
        }
        let counts = read(r#"{"count":3.0,"list":[1,-2,"3",4.5]}"#);
        assert_eq!(counts.count, Count(Some(3)));
        let list: Vec<_> = counts.list.into_iter().map(|count| count.0).collect();
        assert_eq!(list, [Some(1), None, Some(3), Some(4)]);
    }
}
