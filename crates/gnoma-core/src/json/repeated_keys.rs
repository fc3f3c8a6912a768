//! Keys that one object of a document has more than once: readers keep the last, and people lose the others.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Most keys that are named.
const MAX_KEYS: usize = 8;

/// Returns the keys that stand more than once in one object of `text`, as dotted paths (`mcpServers.db`), each once.
/// A text that is not JSON has none. Comments and commas behind the last item are allowed, as in
/// [`from_hand`](super::from_hand).
#[must_use]
pub fn repeated_keys(text: &str) -> Vec<String> {
    let plain = super::without_comments(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(&plain);
    let walk = KeyWalk { path: String::new(), found: &mut found };
    if walk.deserialize(&mut reader).is_err() {
        found.clear();
    }
    found
}

/// A value on the way through a document.
struct KeyWalk<'a> {
    /// The path of the value.
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for KeyWalk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyWalk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let separator = if self.path.is_empty() { "" } else { "." };
            let path = format!("{}{separator}{key}", self.path);
            if !seen.insert(key) && self.found.len() < MAX_KEYS && !self.found.contains(&path) {
                self.found.push(path.clone());
            }
            map.next_value_seed(KeyWalk { path, found: self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { path, found } = self;
        while items.next_element_seed(KeyWalk { path: path.clone(), found })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_named_with_their_path() {
        for (text, keys) in [
            (r#"{"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 2}]}"#, vec![]),
            (
                r#"{"mcpServers": {"db": {}, "files": {}, "db": {}, "db": {}}}"#,
                vec!["mcpServers.db"],
            ),
            ("{\"hooks\": {}, // mine\n \"hooks\": {\"x\": [null, true, 1.5]},}", vec!["hooks"]),
            (r#"{"a": [{"b": "", "b": -1}], "a": []}"#, vec!["a.b", "a"]),
            (r#"{"a": 1, "a": 2"#, vec![]),
            ("", vec![]),
        ] {
            assert_eq!(repeated_keys(text), keys, "{text}");
        }
    }
}
