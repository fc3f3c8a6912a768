//! One name of a path or a pattern, ready for comparing.

use crate::permission::pattern_overlap::{
    Dialect, Letter, PatternStep, fold_name, fold_pattern, pattern_letters, patterns_overlap,
    same_letter,
};

/// A name, folded as file systems that mind the least compare it.
#[derive(Clone, Debug)]
pub(super) struct Name {
    /// With what stands for others.
    pub(super) letters: Vec<PatternStep<Letter>>,
    pub(super) folded: String,
    pub(super) kind: NameKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A name without any pattern.
    Literal,
    /// A pattern that somebody could mean a certain name by, such as `.e*v`.
    Telling,
    /// A pattern for any name with an ending, such as `*.rs`.
    ByEnding,
    /// A pattern for everything.
    Anything,
}

/// Reports whether the names of a place can be these. Patterns for everything name nothing by themselves: at least
/// one name must tell.
pub(super) fn fits_names(place: &[Name], names: &[Name]) -> bool {
    let tells = |(wanted, name): (&Name, &Name)| match name.kind {
        NameKind::Literal | NameKind::Telling => true,
        NameKind::ByEnding => wanted.letters.first() == Some(&PatternStep::Run),
        NameKind::Anything => false,
    };
    place.iter().zip(names).all(|(wanted, name)| wanted.overlaps_name(name))
        && place.iter().zip(names).any(tells)
}

impl Name {
    pub(super) fn new(text: &str, dialect: Dialect) -> Self {
        let letters = match dialect {
            Dialect::Plain | Dialect::Rule => pattern_letters(&fold_name(text), dialect),
            Dialect::Shell => fold_pattern(text),
        };
        let literal: Option<String> = letters.iter().map(literal_letter).collect();
        let kind = if literal.is_some() { NameKind::Literal } else { kind_of(text, &letters) };
        Self { letters, folded: literal.unwrap_or_else(|| fold_name(text)), kind }
    }

    pub(super) fn overlaps_name(&self, other: &Self) -> bool {
        if self.kind == NameKind::Literal && other.kind == NameKind::Literal {
            return self.folded == other.folded;
        }
        patterns_overlap(&self.letters, &other.letters, same_letter).unwrap_or(true)
    }
}

/// The letter that a step means, if it is one.
fn literal_letter(step: &PatternStep<Letter>) -> Option<char> {
    match step {
        PatternStep::One(letter) => *letter,
        PatternStep::Run => None,
    }
}

fn kind_of(text: &str, letters: &[PatternStep<Letter>]) -> NameKind {
    let ending = text.strip_prefix("*.").filter(|ending| !ending.is_empty());
    if ending.is_some_and(|ending| ending.chars().all(char::is_alphanumeric)) {
        return NameKind::ByEnding;
    }
    let says = |letter: char| letter != '.' && letter != ' ';
    // `find` takes `[.]*` and `[+-/]*` for names that begin with a dot.
    let set = text.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let is_mark = |letter: char| !letter.is_alphanumeric() && !"-_[:".contains(letter);
    let begins_with_dot =
        set.is_some_and(|set| !set.starts_with(['!', '^']) && set.contains(is_mark));
    let tells = begins_with_dot
        || text.starts_with('.')
        || text.chars().any(char::is_alphanumeric)
        || letters.iter().filter_map(literal_letter).any(says);
    if tells { NameKind::Telling } else { NameKind::Anything }
}
