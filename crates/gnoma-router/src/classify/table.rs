//! The table of words that comes with gnoma, read once. The form is told at the head of `words.tsv`.

use std::sync::LazyLock;

use gnoma_packed::{packed, unpack};

use super::{lexicon::Lexicon, task_type::TaskType};

const SHIPPED: &[u8] = packed!("words.tsv");

/// The position at which a phrase counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhrasePosition {
    /// More where a command begins, less elsewhere.
    Verb,
    /// Only where a command begins.
    Head,
    /// The same weight at every place.
    Any,
}

/// The vote of a phrase for a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vote {
    /// For which; `None`: for none, although its words would.
    pub(super) kind: Option<TaskType>,
    pub(super) place: PhrasePosition,
    pub(super) weight: u32,
}

/// The role of a word in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    Lead,
    Join,
    Not,
}

/// The hint that a phrase gives beside the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// By so many points.
    Harder(u32),
    /// By so many points.
    Easier(u32),
    Project,
    /// The phrase does not mean this project, although its words would.
    General,
    Acts,
    Picture,
}

/// The marks by which pasted logs are known.
#[derive(Clone, Debug, Default)]
pub(super) struct LogMarks {
    start: Vec<String>,
    within: Vec<String>,
}

impl LogMarks {
    /// Reports whether a line is one of a log. `line` is in lower case.
    pub(super) fn matches_line(&self, line: &str) -> bool {
        let line = line.trim_start();
        self.start.iter().any(|mark| line.starts_with(mark.as_str()))
            || self.within.iter().any(|mark| line.contains(mark.as_str()))
    }
}

/// All that words say.
#[derive(Clone, Debug, Default)]
pub(super) struct PhraseTable {
    pub(super) votes: Lexicon<Vote>,
    pub(super) grammar: Lexicon<Grammar>,
    pub(super) hints: Lexicon<Hint>,
    pub(super) logs: LogMarks,
}

impl PhraseTable {
    /// The one that comes with gnoma.
    pub(super) fn built_in() -> &'static Self {
        static TABLE: LazyLock<PhraseTable> = LazyLock::new(|| {
            let mut table = PhraseTable::default();
            for line in table_lines(&unpack(SHIPPED)) {
                // Every line that comes with gnoma is tested to be readable.
                let _readable = table.read_line(line);
            }
            table
        });
        &TABLE
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let mut columns = line.split('\t');
        let (meaning, place) = (columns.next()?, columns.next()?);
        let weight: u32 = columns.next()?.parse().ok()?;
        let phrase = columns.next()?;
        match meaning {
            "lead" => self.grammar.add_phrase(phrase, Grammar::Lead),
            "join" => self.grammar.add_phrase(phrase, Grammar::Join),
            "not" => self.grammar.add_phrase(phrase, Grammar::Not),
            "hard" => self.hints.add_phrase(phrase, Hint::Harder(weight)),
            "easy" => self.hints.add_phrase(phrase, Hint::Easier(weight)),
            "project" => self.hints.add_phrase(phrase, Hint::Project),
            "general" => self.hints.add_phrase(phrase, Hint::General),
            "act" => self.hints.add_phrase(phrase, Hint::Acts),
            "see" => self.hints.add_phrase(phrase, Hint::Picture),
            "log" => self.mark_of_log(place, phrase),
            kind => self.add_vote(kind, place, weight, phrase),
        }
    }

    fn add_vote(&mut self, kind: &str, place: &str, weight: u32, phrase: &str) -> Option<()> {
        let kind = if kind == "-" { None } else { Some(kind.parse().ok()?) };
        let place = match place {
            "verb" => PhrasePosition::Verb,
            "head" => PhrasePosition::Head,
            "any" => PhrasePosition::Any,
            _ => return None,
        };
        self.votes.add_phrase(phrase, Vote { kind, place, weight })
    }

    fn mark_of_log(&mut self, place: &str, mark: &str) -> Option<()> {
        let marks = match place {
            "start" => &mut self.logs.start,
            "within" => &mut self.logs.within,
            _ => return None,
        };
        marks.push(mark.to_owned());
        Some(())
    }
}

/// The lines of a table that hold something.
pub(super) fn table_lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_shipped_phrase_table_parses() {
        for line in table_lines(&unpack(SHIPPED)) {
            assert!(PhraseTable::default().read_line(line).is_some(), "{line}");
            assert_eq!(line, line.to_lowercase());
        }
    }
}
