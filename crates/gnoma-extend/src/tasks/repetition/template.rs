//! Templates: a step in which the parts that differ between its occurrences are slots.

use super::word_tokens::{Vocabulary, WordToken};

/// A piece of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TemplatePart {
    /// A token that is the same in all occurrences.
    Literal(WordToken),
    /// Tokens that differ, or that some occurrences lack.
    Slot,
}

/// A step with slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) pieces: Vec<TemplatePart>,
}

impl Template {
    /// Makes a template without slots.
    pub(super) fn of_tokens(tokens: &[WordToken]) -> Self {
        Self { pieces: tokens.iter().copied().map(TemplatePart::Literal).collect() }
    }

    /// Returns the number of slots.
    pub(super) fn slot_count(&self) -> usize {
        self.pieces.iter().filter(|piece| **piece == TemplatePart::Slot).count()
    }

    /// Returns the words that are the same in all occurrences.
    pub(super) fn literal_words<'a>(
        &'a self,
        vocabulary: &'a Vocabulary,
    ) -> impl Iterator<Item = WordToken> + 'a {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePart::Literal(token) if vocabulary.is_word(*token) => Some(*token),
            TemplatePart::Literal(_) | TemplatePart::Slot => None,
        })
    }

    /// Returns the template that also fits another occurrence: what differs becomes a slot.
    pub(super) fn generalize(&self, tokens: &[WordToken], vocabulary: &Vocabulary) -> Self {
        if self.match_tokens(tokens).is_some() {
            return self.clone();
        }
        let kept = common_pieces(&self.pieces, tokens, vocabulary);
        let mut pieces = Vec::new();
        let (mut left, mut right) = (0, 0);
        for (at, token_at) in kept.into_iter().chain([(self.pieces.len(), tokens.len())]) {
            if at > left || token_at > right {
                pieces.push(TemplatePart::Slot);
            }
            pieces.extend(self.pieces.get(at).copied());
            (left, right) = (at + 1, token_at + 1);
        }
        let mut merged = Self { pieces };
        merged.join_slots(vocabulary);
        merged
    }

    /// Joins slots that only signs separate, and takes in the digits of a date or version beside a slot.
    fn join_slots(&mut self, vocabulary: &Vocabulary) {
        let mut pieces: Vec<TemplatePart> = Vec::new();
        for piece in self.pieces.drain(..) {
            if piece == TemplatePart::Slot {
                let last_slot = pieces.iter().rposition(|it| *it == TemplatePart::Slot);
                let is_sign = |it: &TemplatePart| matches!(it, TemplatePart::Literal(token) if !vocabulary.is_word(*token));
                if let Some(at) = last_slot.filter(|at| pieces[at + 1..].iter().all(is_sign)) {
                    pieces.truncate(at);
                }
            }
            pieces.push(piece);
        }
        self.pieces = pieces;
    }

    /// Takes digits into a slot that a dash or a dot joins to it: the year of a date, the end of a version.
    pub(super) fn widen_slots(&mut self, vocabulary: &Vocabulary) {
        let is_joint = |piece: Option<&TemplatePart>| matches!(piece, Some(TemplatePart::Literal(token)) if matches!(vocabulary.text(*token), "-" | "."));
        let is_digits = |piece: Option<&TemplatePart>| matches!(piece, Some(TemplatePart::Literal(token)) if vocabulary.text(*token).bytes().all(|b| b.is_ascii_digit()));
        let mut at = 0;
        while at < self.pieces.len() {
            if self.pieces[at] == TemplatePart::Slot {
                while is_joint(self.pieces.get(at + 1)) && is_digits(self.pieces.get(at + 2)) {
                    self.pieces.drain(at + 1..at + 3);
                }
                while at >= 2
                    && is_joint(self.pieces.get(at - 1))
                    && is_digits(self.pieces.get(at - 2))
                {
                    self.pieces.drain(at - 2..at);
                    at -= 2;
                }
            }
            at += 1;
        }
    }

    /// Returns the ranges of tokens that the slots stand for, the shortest first, or nothing if the template does not fit.
    pub(super) fn match_tokens(&self, tokens: &[WordToken]) -> Option<Vec<std::ops::Range<usize>>> {
        let width = tokens.len() + 1;
        let count = self.pieces.len();
        // `fits[i * width + j]`: the pieces from `i` fit the tokens from `j`.
        let mut fits = vec![false; (count + 1) * width];
        fits[count * width + tokens.len()] = true;
        for i in (0..count).rev() {
            for j in (0..width).rev() {
                fits[i * width + j] = match self.pieces[i] {
                    TemplatePart::Literal(token) => {
                        tokens.get(j) == Some(&token) && fits[(i + 1) * width + j + 1]
                    }
                    TemplatePart::Slot => {
                        fits[(i + 1) * width + j] || (j + 1 < width && fits[i * width + j + 1])
                    }
                };
            }
        }
        if !fits[0] {
            return None;
        }
        let mut ranges = Vec::new();
        let mut j = 0;
        for (i, piece) in self.pieces.iter().enumerate() {
            let start = j;
            match piece {
                TemplatePart::Literal(_) => j += 1,
                TemplatePart::Slot => {
                    while !fits[(i + 1) * width + j] {
                        j += 1;
                    }
                    ranges.push(start..j);
                }
            }
        }
        Some(ranges)
    }
}

/// The pieces that a template and an occurrence have in common, in order: words count for more than signs.
fn common_pieces(
    pieces: &[TemplatePart],
    tokens: &[WordToken],
    vocabulary: &Vocabulary,
) -> Vec<(usize, usize)> {
    let width = tokens.len() + 1;
    let mut best = vec![0_u32; (pieces.len() + 1) * width];
    let worth = |piece: &TemplatePart, token: &WordToken| match piece {
        TemplatePart::Literal(literal) if literal == token => {
            if vocabulary.is_word(*token) {
                4
            } else {
                1
            }
        }
        TemplatePart::Literal(_) | TemplatePart::Slot => 0,
    };
    for i in (0..pieces.len()).rev() {
        for j in (0..tokens.len()).rev() {
            let gain = worth(&pieces[i], &tokens[j]);
            let both = if gain > 0 { gain + best[(i + 1) * width + j + 1] } else { 0 };
            best[i * width + j] = both.max(best[(i + 1) * width + j]).max(best[i * width + j + 1]);
        }
    }
    let (mut i, mut j, mut kept) = (0, 0, Vec::new());
    while i < pieces.len() && j < tokens.len() {
        let gain = worth(&pieces[i], &tokens[j]);
        let here = best[i * width + j];
        if gain > 0 && here == gain + best[(i + 1) * width + j + 1] {
            kept.push((i, j));
            i += 1;
            j += 1;
        } else if here == best[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    kept
}
