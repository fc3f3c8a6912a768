//! Where references lead. Only within the document: nothing is ever fetched.

use std::collections::HashMap;

use serde_json::Value;

/// A reference that leads to no part of the schema.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReferenceError {
    #[error("`{0}` is in another document, and none is fetched; put it into `$defs`")]
    OtherDocument(String),
    #[error("`{0}` names an anchor that is not there")]
    NoAnchor(String),
}

/// The parts of a document that have a name of their own.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Parts with an address (`$id`): pointer and address. The whole document is the first.
    resources: Vec<(String, String)>,
    /// Anchors, by the pointer of the resource that they are in.
    anchors: HashMap<(String, String), String>,
}

impl Names {
    pub(crate) fn from_document(document: &Value) -> Self {
        let mut names = Self { resources: vec![Default::default()], ..Self::default() };
        names.collect(document, &mut String::new(), 0);
        names
    }

    fn collect(&mut self, value: &Value, pointer: &mut String, resource: usize) {
        let mut resource = resource;
        let length = pointer.len();
        match value {
            Value::Object(object) => {
                let text = |key: &str| object.get(key).and_then(Value::as_str);
                match text("$id").map(|id| id.split_once('#').unwrap_or((id, ""))) {
                    // Older drafts wrote anchors so.
                    Some(("", anchor)) => self.insert_anchor(resource, anchor, pointer),
                    Some((address, _)) => {
                        let base = self.resources.get(resource).map(|(_, base)| base.as_str());
                        let address = join_address(base.unwrap_or_default(), address);
                        if pointer.is_empty() {
                            self.resources.clear();
                        }
                        resource = self.resources.len();
                        self.resources.push((pointer.clone(), address));
                    }
                    None => (),
                }
                if let Some(anchor) = text("$anchor") {
                    self.insert_anchor(resource, anchor, pointer);
                }
                for (key, part) in object {
                    pointer.push('/');
                    pointer.push_str(&escape_pointer(key));
                    self.collect(part, pointer, resource);
                    pointer.truncate(length);
                }
            }
            Value::Array(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    pointer.push_str(&format!("/{at}"));
                    self.collect(part, pointer, resource);
                    pointer.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
        }
    }

    fn insert_anchor(&mut self, resource: usize, name: &str, pointer: &str) {
        let of = self.resources.get(resource).map(|(of, _)| of.clone()).unwrap_or_default();
        self.anchors.insert((of, name.to_owned()), pointer.to_owned());
    }

    /// Returns the pointer that a reference in the part at `from` leads to.
    ///
    /// # Errors
    /// It leads out of the document, or to no place in it.
    pub(crate) fn resolve(&self, reference: &str, from: &str) -> Result<String, ReferenceError> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let holds = |pointer: &str| {
            from.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let around = self.resources.iter().filter(|(pointer, _)| holds(pointer));
        let nearest = around.max_by_key(|(pointer, _)| pointer.len());
        let (own, base) = nearest.map_or(("", ""), |(pointer, base)| (pointer, base));
        let resource = if address.is_empty() {
            own
        } else {
            let wanted = join_address(base, address);
            let found = self.resources.iter().find(|(_, known)| *known == wanted);
            let pointer = found.map(|(pointer, _)| pointer.as_str());
            pointer.ok_or_else(|| ReferenceError::OtherDocument(reference.to_owned()))?
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(format!("{resource}{}", decode_fragment(fragment)));
        }
        let anchor = self.anchors.get(&(resource.to_owned(), fragment.to_owned()));
        anchor.cloned().ok_or_else(|| ReferenceError::NoAnchor(reference.to_owned()))
    }
}

/// A key as a part of a pointer.
pub(crate) fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// `address` as seen from `base`.
fn join_address(base: &str, address: &str) -> String {
    let is_whole = address.contains("://") || address.starts_with("urn:") || base.is_empty();
    if is_whole {
        return address.to_owned();
    }
    let authority = base.find("://").map_or(0, |at| at + 3);
    let path = base.get(authority..).and_then(|rest| rest.find('/')).map(|at| authority + at);
    let kept = match (address.starts_with('/'), path) {
        (true, Some(path)) => base.get(..path),
        (false, Some(_)) => base.rfind('/').and_then(|at| base.get(..=at)),
        (_, None) => None,
    };
    format!("{}{address}", kept.unwrap_or_default())
}

/// A fragment without its percent signs; what is none stays.
fn decode_fragment(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = match byte {
            Some(byte) => {
                bytes.push(byte);
                after.get(2..).unwrap_or_default()
            }
            None => {
                bytes.push(b'%');
                after
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}
