//! Arguments of a call in the history, for wires that take nothing but a JSON object.

use gnoma_core::RawJson;
use serde::{Serialize, Serializer, ser::SerializeMap};

/// Serialises as the arguments themselves where they are an object. Anything else (a list, or the
/// text of a broken call) goes as `{"_raw": …}`: the wire takes it, and the model sees what it wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectArguments<'a>(pub(crate) &'a RawJson);

impl Serialize for ObjectArguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.get().starts_with('{') {
            return self.0.as_raw().serialize(serializer);
        }
        let mut object = serializer.serialize_map(Some(1))?;
        object.serialize_entry("_raw", self.0.as_raw())?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_go_byte_for_byte_and_others_are_wrapped() {
        for (arguments, wire) in [
            (r#"{"b": 1.0,"a":2}"#, r#"{"b": 1.0,"a":2}"#),
            (r#""{\"cut""#, r#"{"_raw":"{\"cut"}"#),
            ("[1]", r#"{"_raw":[1]}"#),
        ] {
            let json = RawJson::parse(arguments).unwrap();
            let sent = serde_json::to_string(&ObjectArguments(&json)).unwrap();
            assert_eq!(sent, wire);
        }
    }
}
