//! From a word of the tree to the fields it becomes.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::braces;
use super::field::Field;
use super::join::{ExpandedPiece, join_pieces};
use super::place::Folders;
use super::value::Value;
use crate::facts::FilePlace;
use crate::syntax::{Span, Word, WordPart, WordPartKind};

/// Words that braces of one word may become; beyond it the word is unknown.
const MAX_ALTERNATIVES: usize = 256;

/// The state on which expansion depends.
pub(crate) struct Expander<'a> {
    /// The text the words stand in.
    pub(crate) text: &'a str,
    /// Variables with what is known of them.
    pub(crate) variables: &'a BTreeMap<String, Value>,
    pub(crate) folders: &'a Folders,
    /// Substitutions that list names, by where they stand.
    pub(crate) listings: &'a HashMap<Span, Arc<[FilePlace]>>,
    pub(crate) home: Option<&'a PathBuf>,
    /// Expansions that may run or change something, and why that cannot be excluded.
    pub(crate) hazards: Vec<String>,
    /// Expanding may fail, which leaves the rest of the line.
    pub(crate) may_fail: bool,
    /// Variables shown that are likely secret.
    pub(crate) secrets: Vec<String>,
}

impl Expander<'_> {
    /// Expands a word to the words that a command gets in its place.
    pub(crate) fn expand_fields(&mut self, word: &Word) -> Vec<Field> {
        let written = word.span.text_in(self.text).to_owned();
        let Some(alternatives) = self.expand_alternatives(&word.parts) else {
            let is_pattern = written.contains(['*', '?', '[']);
            let start = String::new();
            return vec![Field::Unknown { written, start, splits: true, plain: false, is_pattern }];
        };
        let mut fields = Vec::new();
        for pieces in alternatives {
            join_pieces(pieces, &written, &mut fields);
        }
        fields
    }

    /// Expands a word where it stays one word: after `=`, `<` and the like. Braces and patterns stay as they are.
    pub(crate) fn expand_single(&mut self, word: &Word) -> Field {
        self.single_of(&word.parts, word.span.text_in(self.text))
    }

    fn single_of(&mut self, parts: &[WordPart], written: &str) -> Field {
        let mut pieces = vec![ExpandedPiece::Text(String::new())];
        for part in parts {
            match self.expand_part(part, true) {
                Some(more) => pieces.extend(more),
                None => pieces.push(ExpandedPiece::Unknown { quoted: true }),
            }
        }
        let mut fields = Vec::new();
        join_pieces(pieces, written, &mut fields);
        match fields.pop() {
            Some(field) if fields.is_empty() => field,
            _ => Field::from_known_start(written, ""),
        }
    }

    /// All ways to choose among the braces of a word; `None` when there are too many.
    fn expand_alternatives(&mut self, parts: &[WordPart]) -> Option<Vec<Vec<ExpandedPiece>>> {
        let mut all: Vec<Vec<ExpandedPiece>> = vec![Vec::new()];
        for part in parts {
            let choices: Vec<Vec<ExpandedPiece>> = match &part.kind {
                WordPartKind::BraceList(words) => {
                    let mut choices = Vec::new();
                    for word in words {
                        choices.extend(self.expand_alternatives(&word.parts)?);
                    }
                    choices
                }
                WordPartKind::BraceRange(range) => braces::expand_range(range, MAX_ALTERNATIVES)?
                    .into_iter()
                    .map(|text| vec![ExpandedPiece::Text(text)])
                    .collect(),
                _ => vec![self.expand_part(part, false)?],
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

    /// Returns the places of the names that a substitution lists.
    fn listed_at(&self, span: Span) -> Option<&[FilePlace]> {
        self.listings.get(&span).map(|places| &**places)
    }

    fn expand_double_quoted(&mut self, parts: &[WordPart]) -> Option<Vec<ExpandedPiece>> {
        let mut pieces = vec![ExpandedPiece::Text(String::new())];
        for part in parts {
            pieces.extend(self.expand_part(part, true)?);
        }
        Some(pieces)
    }

    /// Expands the substitution of a command at a place in the text.
    fn expand_substitution(&self, span: Span, quoted: bool) -> ExpandedPiece {
        match self.listed_at(span) {
            // The only name that is certain is a new one, which has no blanks.
            Some([FilePlace::Path(path)]) => {
                ExpandedPiece::Text(path.to_string_lossy().into_owned())
            }
            Some(places) if !quoted => {
                ExpandedPiece::Listed { places: places.into(), single: false }
            }
            _ => ExpandedPiece::Unknown { quoted },
        }
    }

    /// Expands one part of a word; `quoted` if the part is neither split nor a pattern.
    pub(super) fn expand_part(
        &mut self,
        part: &WordPart,
        quoted: bool,
    ) -> Option<Vec<ExpandedPiece>> {
        let written = || part.span.text_in(self.text).to_owned();
        Some(match &part.kind {
            WordPartKind::Literal(text)
            | WordPartKind::SingleQuoted(text)
            | WordPartKind::AnsiQuoted(Some(text)) => {
                vec![ExpandedPiece::Text(text.clone())]
            }
            WordPartKind::DoubleQuoted(parts) => self.expand_double_quoted(parts)?,
            WordPartKind::Glob(text) if quoted => vec![ExpandedPiece::Text(text.clone())],
            WordPartKind::Glob(text) => vec![ExpandedPiece::Glob(text.clone())],
            WordPartKind::ExtendedGlob { .. } if !quoted => vec![ExpandedPiece::Glob(written())],
            WordPartKind::Tilde(user) => vec![self.expand_tilde(user)],
            WordPartKind::Parameter(parameter) => vec![self.expand_parameter(parameter, quoted)],
            WordPartKind::Arithmetic(arithmetic) => {
                self.check_arithmetic(arithmetic);
                vec![ExpandedPiece::Number]
            }
            WordPartKind::CommandSubstitution(_) => {
                vec![self.expand_substitution(part.span, quoted)]
            }
            WordPartKind::ProcessSubstitution { .. } => {
                vec![ExpandedPiece::Text("/dev/fd/63".to_owned())]
            }
            WordPartKind::BraceList(_)
            | WordPartKind::BraceRange(_)
            | WordPartKind::ExtendedGlob { .. } => {
                vec![ExpandedPiece::Text(written())]
            }
            WordPartKind::AnsiQuoted(None)
            | WordPartKind::LocaleQuoted(_)
            | WordPartKind::Array(_) => {
                vec![ExpandedPiece::Unknown { quoted: true }]
            }
        })
    }
}
