//! Valid answers of servers with one element broken, each differently. The numbers come from a seed.

use serde_json::{Map, Value, json};

/// Which request an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    Tools,
    Call,
    Resources,
    Contents,
    Prompts,
    Messages,
}

const ALL: [Exchange; 6] = [
    Exchange::Tools,
    Exchange::Call,
    Exchange::Resources,
    Exchange::Contents,
    Exchange::Prompts,
    Exchange::Messages,
];

/// An answer, of which one element is broken.
#[derive(Debug)]
pub(super) struct Mutated {
    pub(super) exchange: Exchange,
    /// The message, with `ID` in the place of its id.
    pub(super) bytes: Vec<u8>,
    /// What each of the sound elements says.
    pub(super) sound: Vec<String>,
    /// What the broken one says where it can still be read, its name, and its number from one.
    pub(super) broken: (String, usize),
    /// The message ends before its end, so nothing of it can be known.
    pub(super) is_cut: bool,
}

/// Small numbers, the same for the same seed.
pub(super) struct Seeded(u64);

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 20).unwrap() % limit
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// An answer with a broken element.
pub(super) fn mutate(seeded: &mut Seeded) -> Mutated {
    let exchange = seeded.pick(&ALL);
    let count = 1 + seeded.below(6);
    let mut elements: Vec<Value> = (0..count).map(|at| element(exchange, at, seeded)).collect();
    let at = seeded.below(count);
    let how = seeded.below(4);
    if how < 2 {
        elements[at] = break_value(&elements[at], seeded);
    }
    let mut text = message(exchange, &elements);
    if how == 2 {
        text = break_text(&text, at, seeded);
    }
    let mut bytes = text.into_bytes();
    let mut is_cut = false;
    if how == 3 {
        match seeded.below(2) {
            0 => {
                // Not within the first words, where it might be no message at all.
                let from = bytes.iter().position(|byte| *byte == b',').unwrap_or(0) + 12;
                bytes.truncate(from + seeded.below(bytes.len() - from - 1));
                is_cut = true;
            }
            _ => {
                let marker = marker(at);
                let place = bytes.windows(marker.len()).position(|it| it == marker.as_bytes());
                bytes.insert(place.unwrap(), 0xff);
            }
        }
    }
    let sound = (0..count).filter(|other| *other != at).map(marker).collect();
    Mutated { exchange, bytes, sound, broken: (marker(at), at + 1), is_cut }
}

/// A word that only the element with that number has.
fn marker(at: usize) -> String {
    format!("element{at}")
}

fn message(exchange: Exchange, elements: &[Value]) -> String {
    let field = match exchange {
        Exchange::Tools => "tools",
        Exchange::Call => "content",
        Exchange::Resources => "resources",
        Exchange::Contents => "contents",
        Exchange::Prompts => "prompts",
        Exchange::Messages => "messages",
    };
    let list = Value::from(elements.to_vec());
    format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"{field}":{list}}}}}"#)
}

fn element(exchange: Exchange, at: usize, seeded: &mut Seeded) -> Value {
    let marker = marker(at);
    match exchange {
        Exchange::Tools => json!({
            "name": marker, "description": "does it", "title": "It",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "annotations": {"readOnlyHint": true}, "icons": [{"src": "x"}],
        }),
        Exchange::Call => part(&marker, seeded),
        Exchange::Resources => json!({
            "uri": format!("a://{marker}"), "name": "one", "description": "it", "mimeType": "text/plain", "size": 3,
        }),
        Exchange::Contents => json!({"uri": "a://b", "mimeType": "text/plain", "text": marker}),
        Exchange::Prompts => json!({
            "name": marker, "description": "asks", "arguments": [{"name": "x", "required": true}, {"name": "y"}],
        }),
        Exchange::Messages => json!({"role": "user", "content": {"type": "text", "text": marker}}),
    }
}

fn part(marker: &str, seeded: &mut Seeded) -> Value {
    match seeded.below(4) {
        0 => json!({"type": "resource", "resource": {"uri": "a://b", "text": marker}}),
        1 => json!({"type": "resource_link", "uri": format!("a://{marker}"), "name": "one"}),
        2 => json!({"type": "text", "text": marker, "annotations": {"audience": ["user"]}}),
        _ => json!({"type": "text", "text": marker}),
    }
}

/// Something that is not what a reader expects.
fn oddity(seeded: &mut Seeded) -> Value {
    match seeded.below(8) {
        0 => Value::Null,
        1 => json!(7),
        2 => json!(-1.5),
        3 => json!(true),
        4 => json!([]),
        5 => json!({}),
        6 => json!([{"a": [1]}]),
        _ => json!({"type": {"type": {}}}),
    }
}

/// An element of which something is missing, is of another kind, or is too much.
fn break_value(element: &Value, seeded: &mut Seeded) -> Value {
    let mut fields: Map<String, Value> = element.as_object().unwrap().clone();
    let keys: Vec<String> = fields.keys().cloned().collect();
    let key = keys[seeded.below(keys.len())].clone();
    match seeded.below(6) {
        0 => return oddity(seeded),
        1 => drop(fields.shift_remove(&key)),
        2 => drop(fields.insert(key, oddity(seeded))),
        3 => drop(fields.insert("unknown".to_owned(), oddity(seeded))),
        4 => {
            // One level deeper.
            if let Some(inner) = fields.get_mut(&key).and_then(Value::as_object_mut) {
                let keys: Vec<String> = inner.keys().cloned().collect();
                inner.insert(keys[seeded.below(keys.len())].clone(), oddity(seeded));
            } else {
                fields.insert(key, oddity(seeded));
            }
        }
        _ => {
            fields.insert("type".to_owned(), json!("hologram"));
        }
    }
    Value::Object(fields)
}

/// The text of a message in which something of one element is written as no JSON is.
fn break_text(text: &str, at: usize, seeded: &mut Seeded) -> String {
    let marker = marker(at);
    let deep = format!("{marker}\",\"deep\":{}1{},\"x\":\"", "[".repeat(2000), "]".repeat(2000));
    let with = |suffix: &str| format!("{marker}{suffix}");
    let new = match seeded.below(9) {
        0 => with("\\ud83d"),
        1 => with("\\ude00\\ud83d"),
        2 => with("\u{1}\t"),
        3 => with("\\x"),
        4 => with("\",\"n\":NaN,\"x\":\""),
        5 => with("\",\"n\":1e999,\"x\":\""),
        6 => with("\",\"n\":[1,],\"x\":\""),
        7 => with("\\u12"),
        _ => deep,
    };
    text.replacen(&marker, &new, 1)
}
