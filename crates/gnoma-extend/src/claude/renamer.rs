//! Arguments in another form while they are still being written: a transducer over JSON text that is cut
//! anywhere. Only names and numbers at the top are touched; everything else goes through as it is.

use super::shape::{self, ToolShape};

/// Most of one name or number that is held back, in bytes; a longer one goes through as it is.
const MAX_HELD_BYTES: usize = 64;

/// The direction of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameDirection {
    /// From theirs to ours.
    In,
    /// From ours to theirs.
    Out,
}

/// The part of the JSON text that the next character belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonPlace {
    /// Between names and values.
    Between,
    /// A name at the top.
    Name,
    /// A text that is not examined.
    Text,
    /// After a backslash in a text.
    Escape,
    /// A number at the top that counts otherwise.
    Number,
}

/// Puts the arguments of one call into another form, piece by piece.
pub struct Renamer {
    shape: Option<&'static ToolShape>,
    way: RenameDirection,
    place: JsonPlace,
    depth: usize,
    /// A name is next, where a text begins at the top.
    expects_name: bool,
    /// The name that the value belongs to, as ours.
    current: String,
    held: String,
    /// All of it, where the form is another altogether.
    whole: String,
}

impl Renamer {
    /// For a call of the tool that we call `ours`.
    #[must_use]
    pub fn new(ours: &str, way: RenameDirection) -> Self {
        Self {
            shape: shape::of_ours(ours).filter(|shape| !shape.is_same()),
            way,
            place: JsonPlace::Between,
            depth: 0,
            expects_name: false,
            current: String::new(),
            held: String::new(),
            whole: String::new(),
        }
    }

    /// Takes a piece; gives what can be passed on of it.
    pub fn push(&mut self, piece: &str) -> String {
        let Some(shape) = self.shape else { return piece.to_owned() };
        if shape.is_built_otherwise() {
            self.whole.push_str(piece);
            return String::new();
        }
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.push_char(shape, c, &mut out);
        }
        out
    }

    /// The call is complete: returns the rest.
    pub fn finish(&mut self) -> String {
        let Some(shape) = self.shape else { return String::new() };
        if !shape.is_built_otherwise() {
            return std::mem::take(&mut self.held);
        }
        let whole = std::mem::take(&mut self.whole);
        match gnoma_core::json::from_str(&whole) {
            Ok(value) => match self.way {
                RenameDirection::In => shape::our_input(shape.ours, value).to_string(),
                RenameDirection::Out => shape::their_input(shape.ours, value).to_string(),
            },
            Err(_) => whole,
        }
    }

    fn push_char(&mut self, shape: &ToolShape, c: char, out: &mut String) {
        match self.place {
            JsonPlace::Between => self.push_between_tokens(shape, c, out),
            JsonPlace::Text | JsonPlace::Escape => {
                out.push(c);
                self.place = match (self.place, c) {
                    (JsonPlace::Escape, _) => JsonPlace::Text,
                    (_, '\\') => JsonPlace::Escape,
                    (_, '"') => JsonPlace::Between,
                    _ => JsonPlace::Text,
                };
            }
            JsonPlace::Name => self.push_name_char(shape, c, out),
            JsonPlace::Number if c.is_ascii_digit() && self.held.len() < MAX_HELD_BYTES => {
                self.held.push(c);
            }
            JsonPlace::Number => {
                self.finish_number(shape, c, out);
                self.place = JsonPlace::Between;
                self.push_between_tokens(shape, c, out);
            }
        }
    }

    fn push_between_tokens(&mut self, shape: &ToolShape, c: char, out: &mut String) {
        let counts = || shape.numbers.iter().any(|(name, _)| *name == self.current);
        match c {
            '"' if self.depth == 1 && self.expects_name => {
                self.place = JsonPlace::Name;
                self.held.clear();
            }
            '"' => self.place = JsonPlace::Text,
            '{' | '[' => {
                self.depth += 1;
                self.expects_name = c == '{' && self.depth == 1;
            }
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            ',' if self.depth == 1 => self.expects_name = true,
            ':' if self.depth == 1 => self.expects_name = false,
            digit if digit.is_ascii_digit() && self.depth == 1 && counts() => {
                self.place = JsonPlace::Number;
                self.held = digit.to_string();
                return;
            }
            _ => (),
        }
        out.push(c);
    }

    fn push_name_char(&mut self, shape: &ToolShape, c: char, out: &mut String) {
        let is_plain = c != '\\' && self.held.len() < MAX_HELD_BYTES;
        if c != '"' && is_plain {
            return self.held.push(c);
        }
        let name = std::mem::take(&mut self.held);
        if c != '"' {
            // None of the names that differ.
            out.push_str(&name);
            self.current.clear();
            out.push(c);
            self.place = if c == '\\' { JsonPlace::Escape } else { JsonPlace::Text };
            return;
        }
        let (ours, theirs) = match self.way {
            RenameDirection::In => {
                let key = shape.keys.iter().find(|(_, theirs)| *theirs == name);
                (key.map_or(name.clone(), |(ours, _)| (*ours).to_owned()), name)
            }
            RenameDirection::Out => {
                let key = shape.keys.iter().find(|(ours, _)| *ours == name);
                (name.clone(), key.map_or(name, |(_, theirs)| (*theirs).to_owned()))
            }
        };
        out.push_str(if self.way == RenameDirection::In { &ours } else { &theirs });
        out.push('"');
        self.current = ours;
        self.place = JsonPlace::Between;
    }

    /// A number has ended before `c`.
    fn finish_number(&mut self, shape: &ToolShape, c: char, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let counting = shape.numbers.iter().find(|(name, _)| *name == self.current);
        let whole = !matches!(c, '.' | 'e' | 'E' | '0'..='9');
        match (counting, held.parse::<i64>()) {
            (Some((_, counting)), Ok(number)) if whole => {
                let number = match self.way {
                    RenameDirection::In => counting.to_ours(number),
                    RenameDirection::Out => counting.to_theirs(number),
                };
                out.push_str(&number.to_string());
            }
            _ => out.push_str(&held),
        }
        // The rest of a number that is none of ours is no second one.
        self.current.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn renamed(name: &str, way: RenameDirection, text: &str, size: usize) -> String {
        let mut renamer = Renamer::new(name, way);
        let chars: Vec<char> = text.chars().collect();
        let mut out = String::new();
        for piece in chars.chunks(size) {
            out.push_str(&renamer.push(&piece.iter().collect::<String>()));
        }
        out + &renamer.finish()
    }

    #[test]
    fn streamed_argument_renaming_is_the_same_for_any_chunk_boundaries() {
        let samples = [
            (
                "bash",
                json!({"command": "a \"timeout\": 5 {\\", "timeout": 2500, "run_in_background": true}),
            ),
            ("fs.read", json!({"file_path": "ä/\"file_path\"", "offset": 12, "limit": 3})),
            (
                "fs.edit",
                json!({"file_path": "a", "edits": [{"file_path": "x", "old_string": "}"}]}),
            ),
            ("fs.write", json!({"content": "{\"file_path\": 1}", "file_path": "b"})),
            ("ask", json!({"questions": [{"question": "q", "options": [{"label": "a"}]}]})),
            ("mcp__a__b", json!({"file_path": 1})),
            ("fs.read", json!({"offset": 1.5, "file_path": null})),
        ];
        for (name, value) in samples {
            for size in [1, 2, 3, 7, 1000] {
                let text = renamed(name, RenameDirection::In, &value.to_string(), size);
                let got: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(got, shape::our_input(name, value.clone()), "{name} {size}");
                if name != "ask" {
                    let back = renamed(name, RenameDirection::Out, &text, size);
                    let back: Value = serde_json::from_str(&back).unwrap();
                    assert_eq!(back, shape::their_input(name, got), "{name} {size}");
                }
            }
        }
    }

    #[test]
    fn streamed_argument_renaming_passes_invalid_json_through() {
        for text in ["", "hello", "{\"file_pa", "[1,2", "{{\"file_path\":}", "\"a\\"] {
            let out = renamed("fs.write", RenameDirection::In, text, 2);
            assert!(out.len() <= text.len(), "{text} {out}");
        }
    }
}
