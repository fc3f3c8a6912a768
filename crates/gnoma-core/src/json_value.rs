//! JSON values as they are written in the source.
//!
//! Like `serde_json::json`, but what a field costs in the program is a row of a table: a name and a borrowed value. The
//! other one makes and moves each value on its own and cleans up after each, 230 bytes of code a field.

use serde::Serialize;
use serde_json::{Map, Value};

/// A type from which a JSON value can be made.
pub trait ToJson {
    /// The value; null if JSON cannot hold it.
    fn to_json(&self) -> Value;
}

impl<T: Serialize> ToJson for T {
    fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// An object of these fields.
pub struct Fields<'f>(pub &'f [(&'f str, &'f dyn ToJson)]);

impl ToJson for Fields<'_> {
    fn to_json(&self) -> Value {
        let mut map = Map::with_capacity(self.0.len());
        for (name, value) in self.0 {
            map.insert((*name).to_owned(), value.to_json());
        }
        Value::Object(map)
    }
}

/// A list of these values.
pub struct Items<'i>(pub &'i [&'i dyn ToJson]);

impl ToJson for Items<'_> {
    fn to_json(&self) -> Value {
        Value::Array(self.0.iter().map(|item| item.to_json()).collect())
    }
}

/// A value: `{ "name": value, … }`, `[value, …]`, or anything that can be written as JSON; objects and lists may stand
/// in each other.
#[macro_export]
macro_rules! make_json {
    (@part null) => { &() as &dyn $crate::json_value::ToJson };
    (@part { $($fields:tt)* }) => {
        &$crate::make_json!(@fields [] $($fields)*) as &dyn $crate::json_value::ToJson
    };
    (@part [ $($items:tt)* ]) => {
        &$crate::make_json!(@items [] $($items)*) as &dyn $crate::json_value::ToJson
    };
    (@part $value:expr) => { &$value as &dyn $crate::json_value::ToJson };
    (@fields [$($done:tt)*]) => { $crate::json_value::Fields(&[$($done)*]) };
    (@fields [$($done:tt)*] $name:tt : $value:tt $(, $($rest:tt)*)?) => {
        $crate::make_json!(@fields [$($done)* ($name, $crate::make_json!(@part $value)),] $($($rest)*)?)
    };
    (@fields [$($done:tt)*] $name:tt : $value:expr $(, $($rest:tt)*)?) => {
        $crate::make_json!(@fields [$($done)* ($name, $crate::make_json!(@part $value)),] $($($rest)*)?)
    };
    (@items [$($done:tt)*]) => { $crate::json_value::Items(&[$($done)*]) };
    (@items [$($done:tt)*] $value:tt $(, $($rest:tt)*)?) => {
        $crate::make_json!(@items [$($done)* $crate::make_json!(@part $value),] $($($rest)*)?)
    };
    (@items [$($done:tt)*] $value:expr $(, $($rest:tt)*)?) => {
        $crate::make_json!(@items [$($done)* $crate::make_json!(@part $value),] $($($rest)*)?)
    };
    ($($value:tt)+) => { $crate::json_value::ToJson::to_json($crate::make_json!(@part $($value)+)) };
}

pub use crate::make_json as json;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::json;

    #[test]
    fn values_are_those_of_serde_json() {
        let (text, number, missing) = ("a".to_owned(), 7_u64, None::<&str>);
        let ours = json!({
            "text": text, "upper": text.to_uppercase(), "null": null, "missing": missing,
            "list": [1, null, [], {}, [text, number], { "x": -1.5 }], "empty": {},
            "same": 1, "same": true,
        });
        let theirs = serde_json::json!({
            "text": text, "upper": text.to_uppercase(), "null": null, "missing": missing,
            "list": [1, null, [], {}, [text, number], { "x": -1.5 }], "empty": {},
            "same": 1, "same": true,
        });
        assert_eq!(ours.to_string(), theirs.to_string());
        assert_eq!(json!([ours]), serde_json::json!([ours]));
        assert_eq!((json!(number), json!(missing)), (Value::from(7), Value::Null));
    }
}
