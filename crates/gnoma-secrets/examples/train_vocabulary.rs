//! Makes `data/vocabulary.txt`: the letter groups by which `language` tells words from random strings.
//!
//!     cargo run --release -p gnoma-secrets --example train_vocabulary -- FOLDER... > data/vocabulary.txt
//!
//! Reads every text file of the folders, counts its words (runs of letters, cut where the case changes), then
//! joins the most frequent pair of neighbouring groups again and again (byte-pair encoding), and prints the
//! groups in order of use. Any large mix of prose and source code will do; nothing of a single file shows,
//! because only words of several files count. Not part of the crate.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Groups in the vocabulary, single letters included.
const PIECES: usize = 6_000;
/// No group is longer: the reader packs five bits a letter.
const MAX_PIECE_LETTERS: usize = 12;
/// Longer runs of letters are data, not words.
const MAX_WORD_LETTERS: usize = 20;
/// A word must come in as many files.
const MIN_FILES: u32 = 4;
/// Larger files are data.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Folders deeper than this are not entered.
const MAX_DEPTH: usize = 16;

#[expect(clippy::print_stdout, reason = "a program whose output is the file")]
fn main() -> ExitCode {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut files_of_word = HashMap::new();
    for folder in &folders {
        count_folder(folder, 0, &mut files_of_word);
    }
    let mut words: Vec<Word> = files_of_word
        .into_iter()
        .filter(|(_, files)| *files >= MIN_FILES)
        .map(|(word, files)| Word { pieces: word.chars().map(String::from).collect(), files })
        .collect();
    words.sort_by(|a, b| a.pieces.cmp(&b.pieces));
    while vocabulary_size(&words) < PIECES {
        let Some(pair) = most_frequent_pairs(&words) else { break };
        for pair in pair {
            words.iter_mut().for_each(|word| word.join(&pair));
        }
    }
    println!(
        "# Letter groups, most used first. Made by examples/train_vocabulary.rs from prose and source code."
    );
    for piece in by_use(&words).into_iter().take(PIECES) {
        println!("{piece}");
    }
    ExitCode::SUCCESS
}

/// A word as it is cut so far, with the number of files that have it.
struct Word {
    pieces: Vec<String>,
    files: u32,
}

impl Word {
    fn join(&mut self, pair: &(String, String)) {
        let mut joined: Vec<String> = Vec::with_capacity(self.pieces.len());
        let mut pieces = std::mem::take(&mut self.pieces).into_iter().peekable();
        while let Some(mut piece) = pieces.next() {
            if piece == pair.0
                && let Some(next) = pieces.next_if_eq(&pair.1)
            {
                piece.push_str(&next);
            }
            joined.push(piece);
        }
        self.pieces = joined;
    }
}

fn count_folder(folder: &Path, depth: usize, files_of_word: &mut HashMap<String, u32>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < MAX_DEPTH {
            count_folder(&entry.path(), depth + 1, files_of_word);
        } else if kind.is_file() && entry.metadata().is_ok_and(|facts| facts.len() < MAX_FILE_BYTES)
        {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            count_words(&text, files_of_word);
        }
    }
}

/// Counts each word of a file once.
fn count_words(text: &str, files_of_word: &mut HashMap<String, u32>) {
    let mut seen = std::collections::HashSet::new();
    for run in text.split(|letter: char| !letter.is_ascii_alphabetic()) {
        for word in humps(run) {
            let word = word.to_ascii_lowercase();
            if word.len() <= MAX_WORD_LETTERS && !word.is_empty() && seen.insert(word.clone()) {
                *files_of_word.entry(word).or_default() += 1;
            }
        }
    }
}

/// Cuts `camelCase` before its capitals and keeps `UPPER` whole.
fn humps(run: &str) -> Vec<&str> {
    let bytes = run.as_bytes();
    let starts_word = |at: &usize| {
        let here = bytes[*at].is_ascii_uppercase();
        here && (bytes[at - 1].is_ascii_lowercase()
            || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase))
    };
    let mut cuts: Vec<usize> = vec![0];
    cuts.extend((1..run.len()).filter(starts_word));
    cuts.push(run.len());
    cuts.windows(2).map(|cut| &run[cut[0]..cut[1]]).collect()
}

/// Frequent words count less than in proportion, or the words of code would crowd out the others.
fn weight(files: u32) -> f64 {
    f64::from(files).powf(0.75)
}

/// The most frequent pairs that do not touch each other, a few at a time for speed.
fn most_frequent_pairs(words: &[Word]) -> Option<Vec<(String, String)>> {
    const PAIRS_A_ROUND: usize = 40;
    let mut counts: HashMap<(&str, &str), f64> = HashMap::new();
    for word in words {
        for pair in word.pieces.windows(2) {
            if pair[0].len() + pair[1].len() <= MAX_PIECE_LETTERS {
                *counts.entry((&pair[0], &pair[1])).or_default() += weight(word.files);
            }
        }
    }
    let mut pairs: Vec<_> = counts.into_iter().collect();
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let floor = pairs.first()?.1 * 0.8;
    let mut chosen: Vec<(String, String)> = Vec::new();
    for ((left, right), count) in pairs.into_iter().take(PAIRS_A_ROUND) {
        let touches = chosen
            .iter()
            .any(|pair| [&pair.0, &pair.1].iter().any(|piece| **piece == left || **piece == right));
        if count >= floor && !touches {
            chosen.push((left.to_owned(), right.to_owned()));
        }
    }
    Some(chosen)
}

fn vocabulary_size(words: &[Word]) -> usize {
    let pieces: std::collections::HashSet<&String> =
        words.iter().flat_map(|word| &word.pieces).collect();
    pieces.len()
}

fn by_use(words: &[Word]) -> Vec<&str> {
    let mut counts: HashMap<&str, f64> = HashMap::new();
    for word in words {
        for piece in &word.pieces {
            *counts.entry(piece).or_default() += weight(word.files);
        }
    }
    let mut pieces: Vec<_> = counts.into_iter().collect();
    pieces.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    pieces.into_iter().map(|(piece, _)| piece).collect()
}
