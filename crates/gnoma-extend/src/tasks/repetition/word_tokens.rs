//! Cuts commands, paths and messages into words and the signs between them, and numbers them.

use std::collections::HashMap;

/// Most tokens of one command that are looked at; the rest of a longer one is ignored.
const MAX_TOKENS: usize = 96;

/// The number of a token's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WordToken(u32);

/// The texts of tokens by their numbers.
#[derive(Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<Box<str>, WordToken>,
    texts: Vec<(Box<str>, bool)>,
}

impl Vocabulary {
    /// Cuts a text into words (letters and digits of any script), single signs, and one token for each white space.
    pub(super) fn tokenize(&mut self, text: &str) -> Vec<WordToken> {
        split_tokens(text).take(MAX_TOKENS).map(|piece| self.intern_word(piece)).collect()
    }

    /// Returns the text of a token.
    pub(super) fn text(&self, token: WordToken) -> &str {
        self.texts.get(token.0 as usize).map_or("", |(text, _)| text)
    }

    /// Returns whether a token consists of letters and digits.
    pub(super) fn is_word(&self, token: WordToken) -> bool {
        self.texts.get(token.0 as usize).is_some_and(|(_, is_word)| *is_word)
    }

    /// Joins the texts of tokens.
    pub(super) fn join(&self, tokens: &[WordToken]) -> String {
        tokens.iter().map(|token| self.text(*token)).collect()
    }

    fn intern_word(&mut self, text: &str) -> WordToken {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let token = WordToken(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push((text.into(), text.chars().any(char::is_alphanumeric)));
        self.numbers.insert(text.into(), token);
        token
    }
}

/// Cuts a text into words, single signs, and one space for each white space.
pub(super) fn split_tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let class = class_of(first);
        let end = match class {
            Class::Sign => first.len_utf8(),
            Class::Latin | Class::Other | Class::Space => {
                rest.find(|c| class_of(c) != class).unwrap_or(rest.len())
            }
        };
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some(if class == Class::Space { " " } else { piece })
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Letters and digits of Latin script.
    Latin,
    /// Letters of other scripts: they stand beside Latin words without a space.
    Other,
    Space,
    Sign,
}

/// The end of the Latin letters in Unicode.
const LATIN_END: char = '\u{250}';

fn class_of(c: char) -> Class {
    if c.is_alphanumeric() {
        if c < LATIN_END { Class::Latin } else { Class::Other }
    } else if c.is_whitespace() {
        Class::Space
    } else {
        Class::Sign
    }
}
