//! Arguments of a call: as they are read from any wire, and as they are written for wires that take
//! nothing but a JSON object.

use std::borrow::Cow;

use gnoma_core::{RawJson, call_arguments::is_stand_in, stream::Slot};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

use crate::lenient_values::Text;

/// The JSON text of the arguments. Some wires have the JSON itself, some a string that holds it, and
/// servers mix them up.
pub(crate) fn text_of(raw: &RawValue) -> Cow<'_, str> {
    let raw = raw.get();
    if !raw.starts_with('"') {
        return Cow::Borrowed(raw);
    }
    let text: Text<'_> = serde_json::from_str(raw).unwrap_or_default();
    Cow::Owned(text.into_string())
}

/// Most calls of an answer that are remembered as unfilled.
const MAX_UNFILLED: usize = 128;

/// Calls that came whole, with nothing but a stand-in for their arguments: some servers send such a call again,
/// under its id, once its arguments are there.
#[derive(Debug, Default)]
pub(crate) struct UnfilledCalls(Vec<(String, String, Slot)>);

impl UnfilledCalls {
    /// Remembers a call if its `arguments` are a stand-in.
    pub(crate) fn record_call(&mut self, (id, name): (&str, &str), arguments: &str, slot: Slot) {
        if !id.is_empty() && is_stand_in(arguments) && self.0.len() < MAX_UNFILLED {
            self.0.push((id.to_owned(), name.to_owned(), slot));
        }
    }

    /// Takes the block of the call that is sent again under this id.
    pub(crate) fn take_slot(&mut self, (id, name): (&str, &str)) -> Option<Slot> {
        let at = self.0.iter().position(|(known, tool, _)| known == id && tool == name)?;
        Some(self.0.swap_remove(at).2)
    }
}

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
    fn tool_call_arguments_are_read_as_json_string_or_object() {
        for (raw, text) in [
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            (r#""{\"a\": 1}""#, r#"{"a": 1}"#),
            (r#""""#, ""),
            ("null", "null"),
        ] {
            assert_eq!(text_of(serde_json::from_str(raw).unwrap()), text);
        }
    }

    #[test]
    fn tool_call_arguments_are_sent_verbatim_and_non_objects_wrapped() {
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
