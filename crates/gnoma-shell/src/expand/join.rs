//! Pieces of a word, and the words they are joined to.

use std::sync::Arc;

use super::Field;
use crate::facts::FilePlace;

/// Texts a word may be one of; beyond it the word is unknown.
pub(super) const MAX_CHOICES: usize = 32;

/// A piece of a word.
#[derive(Clone, Debug)]
pub(super) enum ExpandedPiece {
    Text(String),
    /// A known value outside of quotes: split at blanks, may be a pattern.
    Loose(String),
    Glob(String),
    Unknown {
        quoted: bool,
    },
    /// One of these, as part of one word.
    OneOf(Vec<String>),
    /// Names that a program lists; one name within one word when it is `single`.
    Listed {
        places: Arc<[FilePlace]>,
        single: bool,
    },
    Number,
    /// The number of the shell, or of the process that it started last.
    Process {
        may_be_empty: bool,
        quoted: bool,
    },
}

/// Joins pieces to the words they become.
pub(super) fn join_pieces(pieces: Vec<ExpandedPiece>, written: &str, fields: &mut Vec<Field>) {
    let mut given = pieces
        .iter()
        .filter(|piece| !matches!(piece, ExpandedPiece::Text(text) if text.is_empty()));
    match (given.next(), given.next()) {
        (Some(ExpandedPiece::Listed { places, .. }), None) => {
            let (written, places) = (written.to_owned(), Arc::clone(places));
            let start = String::new();
            return fields.push(Field::Listed { written, start, places, exact: false });
        }
        (Some(ExpandedPiece::Process { may_be_empty, quoted }), None) => {
            let (written, may_be_empty) = (written.to_owned(), *may_be_empty);
            let may_vanish = may_be_empty && !quoted;
            return fields.push(Field::Process { written, may_be_empty, may_vanish });
        }
        _ => {}
    }
    if let Some(choices) = combine_choices(&pieces) {
        return fields.push(Field::OneOf { written: written.to_owned(), choices });
    }
    let mut open = OpenField::default();
    for piece in pieces {
        match piece {
            ExpandedPiece::Text(text) => open.push(&text),
            ExpandedPiece::Glob(text) => {
                open.push(&text);
                open.pattern = true;
            }
            ExpandedPiece::Number => open.close_off(true, false),
            ExpandedPiece::Process { may_be_empty, quoted } => {
                open.close_off(!may_be_empty, may_be_empty && !quoted);
            }
            ExpandedPiece::OneOf(texts) => {
                let plain = texts.iter().all(|text| !text.is_empty() && !text.starts_with('-'));
                open.close_off(plain, false);
            }
            ExpandedPiece::Listed { single, .. } => open.close_off(false, !single),
            ExpandedPiece::Unknown { quoted } => open.close_off(false, !quoted),
            ExpandedPiece::Loose(text) => open.push_split(&text, written, fields),
        }
    }
    open.finish(written, fields);
}

/// All texts that certain pieces can become, when one of these is not the same each time.
fn combine_choices(pieces: &[ExpandedPiece]) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    for piece in pieces {
        let texts = match piece {
            ExpandedPiece::Text(text) => std::slice::from_ref(text),
            ExpandedPiece::OneOf(texts) => texts.as_slice(),
            ExpandedPiece::Loose(_)
            | ExpandedPiece::Glob(_)
            | ExpandedPiece::Unknown { .. }
            | ExpandedPiece::Listed { .. }
            | ExpandedPiece::Process { .. }
            | ExpandedPiece::Number => return None,
        };
        let more =
            all.iter().flat_map(|start| texts.iter().map(move |text| format!("{start}{text}")));
        all = more.take(MAX_CHOICES + 1).collect();
    }
    let varies = pieces.iter().any(|piece| matches!(piece, ExpandedPiece::OneOf(_)));
    (varies && all.len() <= MAX_CHOICES).then_some(all)
}

/// A word that is being joined.
#[derive(Default)]
struct OpenField {
    text: String,
    /// True if the word has begun, even if only with an empty quote.
    begun: bool,
    pattern: bool,
    /// From here on it is not known.
    unknown: bool,
    splits: bool,
    plain: bool,
}

impl OpenField {
    fn push(&mut self, text: &str) {
        self.begun = true;
        if !self.unknown {
            self.text.push_str(text);
        }
    }

    /// Adds a value outside of quotes: blanks in it end words.
    fn push_split(&mut self, value: &str, written: &str, fields: &mut Vec<Field>) {
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
                is_pattern: open.pattern,
            }
        } else if open.pattern {
            Field::Pattern(open.text)
        } else {
            Field::Known(open.text)
        });
    }
}
