//! The short run of a corpus on the ordinary toolchain: every seed and mutants of it, the same ones
//! each time. It guards what fuzzing has found; finding more is libFuzzer's work.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Mutants of each seed.
const MUTANTS: usize = 150;

/// Changes that make one mutant, at most.
const MAX_CHANGES: usize = 4;

/// Most that one change takes out or doubles.
const MAX_CHANGED_BYTES: usize = 64;

/// Longest mutant.
const MAX_INPUT_BYTES: usize = 16 << 10;

/// Bytes that mean something in JSON, in event streams, in UTF-8 and in commands.
const TELLING: &[u8] = b"\"\\{}[]:,\n\r 0-9eE.'`<#;|\0\x7F\x80\xC3\xEF\xBB\xBF\xFF";

/// Runs `body` on the seeds in `folder` and on their mutants. Seeds are the files with an extension:
/// what libFuzzer adds has none.
///
/// # Panics
/// When there is no seed, or `body` panics; the message holds the input.
pub(crate) fn run(folder: &Path, body: impl Fn(&[u8])) {
    let seeds = seeds(folder);
    assert!(!seeds.is_empty(), "there are no seeds in {}", folder.display());
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for (name, seed) in &seeds {
        check(name, seed, &body);
        for _ in 0..MUTANTS {
            check(name, &mutant(seed, &mut random), &body);
        }
    }
}

fn check(name: &str, input: &[u8], body: impl Fn(&[u8])) {
    let went = catch_unwind(AssertUnwindSafe(|| body(input)));
    assert!(went.is_ok(), "`{name}` breaks a law as: {}", input.escape_ascii());
}

fn seeds(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut seeds: Vec<_> = files
        .filter(|path| path.extension().is_some())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some((name, fs::read(&path).ok()?))
        })
        .collect();
    seeds.sort();
    seeds
}

fn mutant(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(MAX_CHANGES) {
        change(&mut bytes, random);
    }
    bytes.truncate(MAX_INPUT_BYTES);
    bytes
}

fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = (at + 1 + random.below(MAX_CHANGED_BYTES)).min(bytes.len());
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => bytes.insert(at, TELLING[random.below(TELLING.len())]),
        3 => {
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        4 => move_line(bytes, random),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// Copies a line to another place or takes it away: most bodies are records in lines.
fn move_line(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let line = random.below(lines.len());
    if random.below(2) == 0 {
        lines.remove(line);
    } else {
        let to = random.below(lines.len());
        lines.insert(to, lines[line]);
    }
    *bytes = lines.concat();
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // What is cut off does not matter: any number will do.
        self.0 as usize % bound
    }
}
