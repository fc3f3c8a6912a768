//! The prompts that were sent before: going back through them, searching them, and their form as
//! lines of a file. Reading and writing that file is for others.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::composer::Draft;

/// Prompts that are kept; the oldest go first.
const MAX_ENTRIES: usize = 10_000;
/// A longer prompt is not kept.
const MAX_ENTRY_BYTES: usize = 256 << 10;
/// Bytes of all prompts that are kept; the oldest go first.
const MAX_BYTES: usize = 16 << 20;

/// All prompts, and the place in them while somebody goes through them.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The prompts, the oldest first.
    entries: VecDeque<String>,
    bytes: usize,
    /// The entry that is shown; `None` when it is what is being written.
    place: Option<usize>,
    /// The drafts that were written or changed at each place that was left; under `usize::MAX` the one that was
    /// being written before.
    left: BTreeMap<usize, Draft>,
}

/// The place under which the unsent draft is stored while entries are shown.
const UNSENT: usize = usize::MAX;

impl History {
    /// The prompts of a file, the oldest first: one JSON string a line. Other lines are passed over.
    #[must_use]
    pub fn from_lines(text: &str) -> Self {
        let mut history = Self::default();
        for line in text.lines() {
            if let Ok(entry) = serde_json::from_str::<String>(line) {
                history.push(&entry);
            }
        }
        history
    }

    /// Adds a prompt and goes back to what is being written. Returns the line to add to the file;
    /// `None` when it is not kept: blank, too long or the same as the last one.
    pub fn push(&mut self, entry: &str) -> Option<String> {
        self.stop_browsing();
        let is_same = self.entries.back().is_some_and(|last| last == entry);
        if is_same || entry.trim().is_empty() || entry.len() > MAX_ENTRY_BYTES {
            return None;
        }
        self.bytes += entry.len();
        self.entries.push_back(entry.to_owned());
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let oldest = self.entries.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.len());
        }
        serde_json::to_string(entry).ok()
    }

    /// Goes to the prompt before; `current` is what is written now and is kept. `None`, and nothing
    /// kept, when there is none before.
    pub fn recall_older(&mut self, current: Draft) -> Option<Draft> {
        let place = self.place.unwrap_or(self.entries.len()).checked_sub(1)?;
        Some(self.switch_entry(Some(place), current))
    }

    /// Goes to the prompt after, in the end to what was being written. `None`, and nothing kept,
    /// when that is shown already.
    pub fn recall_newer(&mut self, current: Draft) -> Option<Draft> {
        let place = self.place? + 1;
        Some(self.switch_entry((place < self.entries.len()).then_some(place), current))
    }

    /// Goes back to what is being written. Returns what was being written before somebody went through
    /// the prompts, and the prompts that were changed on the way: they are not kept here any more.
    pub fn stop_browsing(&mut self) -> (Draft, Vec<Draft>) {
        self.place = None;
        let mut left = std::mem::take(&mut self.left);
        let unsent = left.remove(&UNSENT).unwrap_or_default();
        left.retain(|place, draft| self.entries.get(*place) != Some(&draft.text));
        (unsent, left.into_values().collect())
    }

    /// Returns the drafts that would be lost with the program while a person goes through the prompts: those that
    /// were changed on the way, and the one that was being written before.
    pub fn unsaved_drafts(&self) -> impl Iterator<Item = &Draft> {
        let is_changed =
            |place: &usize, draft: &Draft| self.entries.get(*place) != Some(&draft.text);
        self.left
            .iter()
            .filter(move |(place, draft)| is_changed(place, draft))
            .map(|(_, draft)| draft)
    }

    /// The prompts that contain `query`, the newest first and each only once. An upper-case letter matches only
    /// itself, a lower-case letter both cases.
    #[must_use]
    pub fn search(&self, query: &str, max: usize) -> Vec<&str> {
        let mut seen = HashSet::new();
        let entries = self.entries.iter().rev().map(String::as_str);
        entries
            .filter(|entry| matches_query(entry, query) && seen.insert(*entry))
            .take(max)
            .collect()
    }

    /// The number of prompts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Reports whether there are no prompts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn switch_entry(&mut self, place: Option<usize>, current: Draft) -> Draft {
        self.left.insert(self.place.unwrap_or(UNSENT), current);
        self.place = place;
        let changed = self.left.remove(&place.unwrap_or(UNSENT));
        let entry = || place.and_then(|place| self.entries.get(place)).cloned().unwrap_or_default();
        changed.unwrap_or_else(|| entry().into())
    }
}

fn matches_query(entry: &str, query: &str) -> bool {
    if query.chars().any(char::is_uppercase) {
        return entry.contains(query);
    }
    entry.contains(query) || entry.to_lowercase().contains(query)
}

/// An incremental search, as with Ctrl+R.
#[derive(Clone, Debug, Default)]
pub struct Search {
    query: String,
    /// Hits that were passed on the way to older ones.
    passed: usize,
}

impl Search {
    /// Returns the text that is searched for.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Searches for a longer text, from the newest prompt on.
    pub fn add_char(&mut self, c: char) {
        self.query.push(c);
        self.passed = 0;
    }

    /// Searches for a shorter text, from the newest prompt on.
    pub fn delete_char(&mut self) {
        self.query.pop();
        self.passed = 0;
    }

    /// Goes to the next older hit, if there is one.
    pub fn select_older(&mut self, history: &History) {
        if history.search(&self.query, self.passed + 2).len() > self.passed + 1 {
            self.passed += 1;
        }
    }

    /// Goes to the next newer hit, if there is one.
    pub fn select_newer(&mut self) {
        self.passed = self.passed.saturating_sub(1);
    }

    /// The match; `None` if the query is empty or matches nothing.
    #[must_use]
    pub fn current_match<'a>(&self, history: &'a History) -> Option<&'a str> {
        if self.query.is_empty() {
            return None;
        }
        history.search(&self.query, self.passed + 1).get(self.passed).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[&str]) -> History {
        let mut history = History::default();
        for entry in entries {
            history.push(entry);
        }
        history
    }

    #[test]
    fn history_recall_preserves_the_unsent_draft_and_edits() {
        let mut history = history(&["one", "two"]);
        assert_eq!(history.recall_older("unsent".into()), Some("two".into()));
        assert_eq!(history.recall_older("two, changed".into()), Some("one".into()));
        assert_eq!(history.recall_older("one".into()), None);
        assert_eq!(history.recall_newer("one".into()), Some("two, changed".into()));
        assert_eq!(history.recall_newer("two, changed".into()), Some("unsent".into()));
        assert_eq!(history.recall_newer("unsent".into()), None);
        history.recall_older("unsent".into());
        history.push("three");
        assert_eq!(history.recall_older(Draft::default()), Some("three".into()));
    }

    #[test]
    fn history_file_round_trips_and_skips_broken_lines() {
        let mut written = History::default();
        let entries = ["two\nlines", "quo\"te", "quo\"te", "  ", "é\t"];
        let lines: Vec<_> = entries.iter().filter_map(|entry| written.push(entry)).collect();
        assert_eq!(lines.len(), 3);
        let file = format!("{}\nbroken {{\n42\n", lines.join("\n"));
        assert_eq!(History::from_lines(&file).entries, written.entries);
    }

    #[test]
    fn history_drops_oldest_entries_and_refuses_huge_ones() {
        let mut history = History::default();
        assert_eq!(history.push(&"x".repeat(MAX_ENTRY_BYTES + 1)), None);
        for number in 0..=MAX_ENTRIES {
            history.push(&number.to_string());
        }
        assert_eq!(history.len(), MAX_ENTRIES);
        assert_eq!(history.search("", 1), ["10000"]);
        assert_eq!(history.search("0", MAX_ENTRIES).last(), Some(&"10"));
        for number in 0..100 {
            history.push(&number.to_string().repeat(MAX_ENTRY_BYTES / 2));
        }
        assert!(history.bytes <= MAX_BYTES && history.len() > 60, "{}", history.len());
    }

    #[test]
    fn history_search_steps_through_older_matches_and_back() {
        let history = history(&["cargo test", "git log", "Cargo build", "cargo test", "ls"]);
        let mut search = Search::default();
        assert_eq!(search.current_match(&history), None);
        "cargo".chars().for_each(|c| search.add_char(c));
        assert_eq!(search.current_match(&history), Some("cargo test"));
        search.select_older(&history);
        assert_eq!(search.current_match(&history), Some("Cargo build"));
        search.select_older(&history);
        assert_eq!(search.current_match(&history), Some("Cargo build"), "each but once");
        search.select_newer();
        assert_eq!(search.current_match(&history), Some("cargo test"));
        search.add_char('!');
        assert_eq!(search.current_match(&history), None);
        search.delete_char();
        assert_eq!(search.current_match(&history), Some("cargo test"));
        assert_eq!(history.search("Cargo", 9), ["Cargo build"]);
    }
}
