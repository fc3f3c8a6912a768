//! From a word of the tree to the fields it becomes.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::braces;
use super::field::Field;
use super::join::{Piece, join};
use super::place::Folders;
use super::value::Value;
use crate::facts::Place;
use crate::syntax::{Part, PartKind, Span, Word};

/// Words that braces of one word may become; beyond it the word is unknown.
const MAX_ALTERNATIVES: usize = 256;

/// What expansion depends on.
pub(crate) struct Expander<'a> {
    /// The text the words stand in.
    pub(crate) text: &'a str,
    /// Variables with what is known of them.
    pub(crate) variables: &'a BTreeMap<String, Value>,
    pub(crate) folders: &'a Folders,
    /// Substitutions that list names, by where they stand.
    pub(crate) listings: &'a HashMap<Span, Arc<[Place]>>,
    pub(crate) home: Option<&'a PathBuf>,
    /// Expansions that may run or change something, and why that cannot be excluded.
    pub(crate) hazards: Vec<String>,
    /// Expanding may fail, which leaves the rest of the line.
    pub(crate) may_fail: bool,
    /// Variables shown that are likely secret.
    pub(crate) secrets: Vec<String>,
}

impl Expander<'_> {
    /// What a word becomes among the words of a command.
    pub(crate) fn fields(&mut self, word: &Word) -> Vec<Field> {
        let written = word.span.of(self.text).to_owned();
        let Some(alternatives) = self.alternatives(&word.parts) else {
            return vec![Field::unknown(&written)];
        };
        let mut fields = Vec::new();
        for pieces in alternatives {
            join(pieces, &written, &mut fields);
        }
        fields
    }

    /// What a word becomes where it stays one word: after `=`, `<` and the like. Braces and patterns
    /// stay as they are.
    pub(crate) fn single(&mut self, word: &Word) -> Field {
        self.single_of(&word.parts, word.span.of(self.text))
    }

    fn single_of(&mut self, parts: &[Part], written: &str) -> Field {
        let mut pieces = vec![Piece::Text(String::new())];
        for part in parts {
            match self.pieces(part, true) {
                Some(more) => pieces.extend(more),
                None => pieces.push(Piece::Unknown { quoted: true }),
            }
        }
        let mut fields = Vec::new();
        join(pieces, written, &mut fields);
        match fields.pop() {
            Some(field) if fields.is_empty() => field,
            _ => Field::begins(written, ""),
        }
    }

    /// All ways to choose among the braces of a word; `None` when there are too many.
    fn alternatives(&mut self, parts: &[Part]) -> Option<Vec<Vec<Piece>>> {
        let mut all: Vec<Vec<Piece>> = vec![Vec::new()];
        for part in parts {
            let choices: Vec<Vec<Piece>> = match &part.kind {
                PartKind::BraceList(words) => {
                    let mut choices = Vec::new();
                    for word in words {
                        choices.extend(self.alternatives(&word.parts)?);
                    }
                    choices
                }
                PartKind::BraceRange(range) => braces::range(range, MAX_ALTERNATIVES)?
                    .into_iter()
                    .map(|text| vec![Piece::Text(text)])
                    .collect(),
                _ => vec![self.pieces(part, false)?],
            };
            if all.len().saturating_mul(choices.len()) > MAX_ALTERNATIVES {
                return None;
            }
            all = all
                .iter()
                .flat_map(|before| {
                    choices.iter().map(|choice| before.iter().chain(choice).cloned().collect())
                })
                .collect();
        }
        Some(all)
    }

    /// What one part becomes; `quoted` when it is neither split nor a pattern.
    pub(super) fn pieces(&mut self, part: &Part, quoted: bool) -> Option<Vec<Piece>> {
        let written = || part.span.of(self.text).to_owned();
        Some(match &part.kind {
            PartKind::Literal(text)
            | PartKind::SingleQuoted(text)
            | PartKind::AnsiQuoted(Some(text)) => {
                vec![Piece::Text(text.clone())]
            }
            PartKind::DoubleQuoted(parts) => {
                let mut pieces = vec![Piece::Text(String::new())];
                for part in parts {
                    pieces.extend(self.pieces(part, true)?);
                }
                pieces
            }
            PartKind::Glob(text) if quoted => vec![Piece::Text(text.clone())],
            PartKind::Glob(text) => vec![Piece::Glob(text.clone())],
            PartKind::ExtendedGlob { .. } if !quoted => vec![Piece::Glob(written())],
            PartKind::Tilde(user) => vec![self.tilde(user)],
            PartKind::Parameter(parameter) => vec![self.parameter(parameter, quoted)],
            PartKind::Arithmetic(arithmetic) => {
                self.arithmetic(arithmetic);
                vec![Piece::Number]
            }
            PartKind::CommandSubstitution(_) => match self.listings.get(&part.span) {
                Some(places) if !quoted => {
                    vec![Piece::Listed { places: Arc::clone(places), single: false }]
                }
                _ => vec![Piece::Unknown { quoted }],
            },
            PartKind::ProcessSubstitution { .. } => vec![Piece::Text("/dev/fd/63".to_owned())],
            PartKind::BraceList(_) | PartKind::BraceRange(_) | PartKind::ExtendedGlob { .. } => {
                vec![Piece::Text(written())]
            }
            PartKind::AnsiQuoted(None) | PartKind::LocaleQuoted(_) | PartKind::Array(_) => {
                vec![Piece::Unknown { quoted: true }]
            }
        })
    }
}
