//! What the words of a text weigh for each type of task.

use super::{
    lexicon::PhraseMatch,
    table::{PhrasePosition, PhraseTable, Vote},
    task_type::TaskType,
    text_words::{ParsedText, Region, TextWord},
};

/// Times that one phrase counts: whoever repeats a word wants it no more.
const MOST_REPEATS: u8 = 2;
/// Words that a negation reaches.
const NEGATION_REACH: usize = 3;
/// Percent that a verb weighs where a command begins, and elsewhere.
const VERB_AT_HEAD: u32 = 150;
const VERB_ELSEWHERE: u32 = 50;
/// Percent that what follows the first clause that says anything weighs. Questions count in full: they are what is
/// wanted, wherever they stand.
const LATER_CLAUSE: u32 = 45;
/// Points for debugging that a pasted log is worth.
const LOG_POINTS: u32 = 50;
/// Points for explaining that a question is worth.
const QUESTION_POINTS: u32 = 10;
const PERCENT: u32 = 100;

/// Percent that words of a region weigh.
fn region_percent(region: Region) -> u32 {
    match region {
        Region::Plain => 100,
        Region::Quoted => 25,
        Region::Log => 10,
        Region::Code => 5,
    }
}

/// Points of each type that has any, highest first; equals in the order of [`TaskType::ALL`].
pub(super) fn by_type(reading: &ParsedText, table: &PhraseTable) -> Vec<(TaskType, u32)> {
    let mut tally = TypeTally::new(table.votes.len());
    let mut taken = vec![false; reading.words.len()];
    let mut negated_until = 0;
    for (place, word) in reading.words.iter().enumerate() {
        let free_word = |at| match taken.get(at) {
            Some(false) => reading.word_in_sentence(place, at),
            // What counted already is passed over as if it were a name.
            Some(true) => reading.word_in_sentence(place, at).map(|_| ""),
            None => None,
        };
        match table.votes.find_phrase(place, free_word, |vote| weight_at(vote, word)) {
            Some(found) => {
                if place >= negated_until {
                    tally.count_match(&found, word);
                }
                mark_taken(&mut taken, &found.places);
            }
            None if word.negates => negated_until = place + 1 + NEGATION_REACH,
            None => {}
        }
        if reading.breaks_after(place) {
            negated_until = 0;
        }
    }
    if reading.has_log {
        tally.add_points(TaskType::Debug, LOG_POINTS);
    }
    if reading.asks {
        tally.add_points(TaskType::Explain, QUESTION_POINTS);
    }
    tally.into_ranked()
}

fn mark_taken(taken: &mut [bool], places: &[usize]) {
    for place in places {
        if let Some(taken) = taken.get_mut(*place) {
            *taken = true;
        }
    }
}

/// Returns the weight of a phrase that begins with this word; `None` where it says nothing.
fn weight_at(vote: &Vote, word: &TextWord) -> Option<u32> {
    let percent = match (vote.place, word.head) {
        (PhrasePosition::Any, _) | (PhrasePosition::Head, true) => PERCENT,
        (PhrasePosition::Verb, true) => VERB_AT_HEAD,
        (PhrasePosition::Verb, false) => VERB_ELSEWHERE,
        (PhrasePosition::Head, false) => return None,
    };
    Some(vote.weight * percent / PERCENT)
}

struct TypeTally {
    points: [(TaskType, u32); TaskType::ALL.len()],
    counted: Vec<u8>,
    first_clause: Option<usize>,
}

impl TypeTally {
    fn new(phrases: usize) -> Self {
        Self {
            points: TaskType::ALL.map(|kind| (kind, 0)),
            counted: vec![0; phrases],
            first_clause: None,
        }
    }

    fn count_match(&mut self, found: &PhraseMatch<'_, Vote>, word: &TextWord) {
        let Some(kind) = found.meaning.kind else { return };
        let Some(times) = self.counted.get_mut(found.entry) else { return };
        let Some(weight) = weight_at(found.meaning, word) else { return };
        if *times == MOST_REPEATS {
            return;
        }
        *times += 1;
        let own = word.region == Region::Plain;
        let first = if own { *self.first_clause.get_or_insert(word.clause) } else { word.clause };
        let later = word.clause > first && !word.asked;
        let clause_percent = if later { LATER_CLAUSE } else { PERCENT };
        let weight = weight * region_percent(word.region) / PERCENT;
        self.add_points(kind, weight * clause_percent / PERCENT);
    }

    fn add_points(&mut self, kind: TaskType, points: u32) {
        if let Some((_, sum)) = self.points.iter_mut().find(|(other, _)| *other == kind) {
            *sum += points;
        }
    }

    fn into_ranked(self) -> Vec<(TaskType, u32)> {
        let mut ranked: Vec<_> = { self.points }.into_iter().filter(|(_, sum)| *sum > 0).collect();
        gnoma_core::sort::by_key(&mut ranked, |(_, sum)| std::cmp::Reverse(*sum));
        ranked
    }
}
