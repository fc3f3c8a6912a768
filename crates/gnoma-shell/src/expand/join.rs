//! Pieces of a word, and the words they are joined to.

use super::Field;

/// A piece of a word.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(String),
    /// A known value outside of quotes: split at blanks, may be a pattern.
    Loose(String),
    Glob(String),
    Unknown {
        quoted: bool,
    },
    /// One word that is no option.
    Plain,
    Number,
}

/// Joins pieces to the words they become.
pub(super) fn join(pieces: Vec<Piece>, written: &str, fields: &mut Vec<Field>) {
    let mut open = Open::default();
    for piece in pieces {
        match piece {
            Piece::Text(text) => open.push(&text),
            Piece::Glob(text) => {
                open.push(&text);
                open.pattern = true;
            }
            Piece::Number | Piece::Plain => open.close_off(true, false),
            Piece::Unknown { quoted } => open.close_off(false, !quoted),
            Piece::Loose(text) => open.split(&text, written, fields),
        }
    }
    open.finish(written, fields);
}

/// A word that is being joined.
#[derive(Default)]
struct Open {
    text: String,
    /// Something was given, if only an empty quote.
    begun: bool,
    pattern: bool,
    /// From here on it is not known.
    unknown: bool,
    splits: bool,
    plain: bool,
}

impl Open {
    fn push(&mut self, text: &str) {
        self.begun = true;
        if !self.unknown {
            self.text.push_str(text);
        }
    }

    /// Adds a value outside of quotes: blanks in it end words.
    fn split(&mut self, value: &str, written: &str, fields: &mut Vec<Field>) {
        for (at, word) in value.split([' ', '\t', '\n']).enumerate() {
            if at > 0 {
                self.finish(written, fields);
            }
            if !word.is_empty() {
                self.push(word);
                self.pattern |= word.contains(['*', '?', '[']);
            }
        }
    }

    /// The rest of the word is unknown; when nothing stands before it, `plain` says it is no option.
    fn close_off(&mut self, plain: bool, splits: bool) {
        self.plain |= plain && !self.unknown;
        self.begun = true;
        self.unknown = true;
        self.splits |= splits;
    }

    fn finish(&mut self, written: &str, fields: &mut Vec<Field>) {
        let open = std::mem::take(self);
        if !open.begun {
            return;
        }
        fields.push(if open.unknown {
            let splits = open.splits || open.pattern;
            Field::Unknown {
                written: written.to_owned(),
                start: open.text,
                splits,
                plain: open.plain,
            }
        } else if open.pattern {
            Field::Pattern(open.text)
        } else {
            Field::Known(open.text)
        });
    }
}
