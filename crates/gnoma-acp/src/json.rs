//! JSON objects as they are written in the source. Like `serde_json::json`, but what each object costs in
//! the program is a list of its fields and one call.

use std::mem;

use serde_json::{Map, Value};

/// An object of these fields.
pub(crate) fn object(fields: &mut [(&str, Value)]) -> Value {
    let mut map = Map::with_capacity(fields.len());
    for (name, value) in fields {
        map.insert((*name).to_owned(), mem::take(value));
    }
    Value::Object(map)
}

/// What can stand in an object.
pub(crate) trait Json {
    /// It as a value.
    fn json(&self) -> Value;
}

impl Json for Value {
    fn json(&self) -> Value {
        self.clone()
    }
}

impl Json for str {
    fn json(&self) -> Value {
        Value::from(self)
    }
}

impl Json for String {
    fn json(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl Json for bool {
    fn json(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for i64 {
    fn json(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for u64 {
    fn json(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for f64 {
    fn json(&self) -> Value {
        Value::from(*self)
    }
}

impl<T: Json + ?Sized> Json for &T {
    fn json(&self) -> Value {
        (*self).json()
    }
}

impl<T: Json> Json for Option<T> {
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Json::json)
    }
}

impl<T: Json> Json for [T] {
    fn json(&self) -> Value {
        self.iter().map(Json::json).collect()
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self) -> Value {
        self.as_slice().json()
    }
}

/// A value: `{ "name": value, … }`, with objects and lists of values in it as they stand.
macro_rules! json {
    (@fields [$($done:tt)*]) => { [$($done)*] };
    (@fields [$($done:tt)*] $name:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::json::json!(@fields [$($done)* ($name, $crate::json::json!({ $($inner)* })),] $($($rest)*)?)
    };
    (@fields [$($done:tt)*] $name:tt : [$($inner:tt),* $(,)?] $(, $($rest:tt)*)?) => {
        $crate::json::json!(@fields
            [$($done)* ($name, serde_json::Value::Array(vec![$($crate::json::json!($inner)),*])),]
            $($($rest)*)?)
    };
    (@fields [$($done:tt)*] $name:tt : $value:expr $(, $($rest:tt)*)?) => {
        $crate::json::json!(@fields [$($done)* ($name, $crate::json::Json::json(&$value)),] $($($rest)*)?)
    };
    ({ $($fields:tt)* }) => {
        $crate::json::object(&mut $crate::json::json!(@fields [] $($fields)*))
    };
    ($value:expr) => { $crate::json::Json::json(&$value) };
}

pub(crate) use json;
