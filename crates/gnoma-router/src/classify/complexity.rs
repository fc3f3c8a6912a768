//! How hard a task seems, and what its words say beside the type.

use super::{
    table::{Hint, PhraseTable},
    task_type::TaskType,
    text_words::{ParsedText, Region},
};

/// The highest complexity.
pub const MOST_COMPLEXITY: u8 = 100;
/// Words of one's own for one point: who has much to say wants much.
const WORDS_PER_POINT: usize = 8;
/// Points that length brings at most.
const MOST_BY_LENGTH: usize = 25;
/// Points for each file, and for each item of a list.
const POINTS_PER_NAME: usize = 2;
const POINTS_PER_ITEM: usize = 4;
/// Points that files and items bring at most, each.
const MOST_BY_PARTS: usize = 16;
/// Times that one word counts.
const MOST_REPEATS: u8 = 2;

/// The hints that words give beside the type.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    pub(super) harder: u32,
    pub(super) easier: u32,
    /// This project is meant.
    pub(super) project: bool,
    /// True if something must be done.
    pub(super) acts: bool,
    /// A picture must be seen.
    pub(super) picture: bool,
}

/// Only the person's own words hint at anything.
pub(super) fn find_hints(reading: &ParsedText, table: &PhraseTable) -> Hints {
    let mut hints = Hints::default();
    let mut counted = vec![0_u8; table.hints.len()];
    let own = reading.words.iter().enumerate().filter(|(_, word)| word.region == Region::Plain);
    for (place, _) in own {
        let word = |at| reading.word_in_sentence(place, at);
        let Some(found) = table.hints.find_phrase(place, word, |_| Some(0)) else { continue };
        let Some(times) = counted.get_mut(found.entry).filter(|times| **times < MOST_REPEATS)
        else {
            continue;
        };
        *times += 1;
        match found.meaning {
            Hint::Harder(points) => hints.harder += points,
            Hint::Easier(points) => hints.easier += points,
            Hint::General => {}
            Hint::Project => hints.project = true,
            Hint::Acts => hints.acts = true,
            Hint::Picture => hints.picture = true,
        }
    }
    hints
}

pub(super) fn score_complexity(kind: TaskType, reading: &ParsedText, hints: &Hints) -> u8 {
    let length = (reading.plain_words() / WORDS_PER_POINT).min(MOST_BY_LENGTH);
    let names = (reading.names.len() * POINTS_PER_NAME).min(MOST_BY_PARTS);
    let items = (reading.items * POINTS_PER_ITEM).min(MOST_BY_PARTS);
    let parts = u32::try_from(length + names + items).unwrap_or(u32::MAX);
    let points = (u32::from(kind.usual_complexity()) + parts + hints.harder)
        .saturating_sub(hints.easier)
        .min(u32::from(MOST_COMPLEXITY));
    u8::try_from(points).unwrap_or(MOST_COMPLEXITY).max(kind.least_complexity())
}
