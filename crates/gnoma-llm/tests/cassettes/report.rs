//! The outcome of all replays as a table for people.

use std::collections::BTreeMap;

use gnoma_testkit::cassette::{Api, Exceptions};

use crate::{
    compare::{self, Difference, FIELDS},
    replay::{Readings, SIZES},
};

/// Characters of a value that the table shows.
const SHOWN_CHARS: usize = 110;

/// A table and the number of its failures.
pub(crate) struct Report {
    /// For people.
    pub(crate) text: String,
    /// Recordings that failed.
    pub(crate) failures: usize,
}

#[derive(Default)]
struct Tally {
    replayed: usize,
    failed: usize,
    by_field: BTreeMap<&'static str, usize>,
}

/// Compares everything.
pub(crate) fn of(readings: &[Readings], exceptions: &Exceptions) -> Report {
    let mut tallies: BTreeMap<Api, Tally> = BTreeMap::new();
    let mut left_out: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    let mut table = String::new();
    for one in readings {
        let mut found = differences(one);
        for field in FIELDS {
            if let Some(reason) = exceptions.reason_for(&one.cassette, field) {
                let (times, needed) = left_out.entry((field, reason)).or_default();
                *times += 1;
                *needed += usize::from(found.keys().any(|difference| difference.field == field));
                found.retain(|difference, _| difference.field != field);
            }
        }
        let tally = tallies.entry(one.cassette.api).or_default();
        tally.replayed += 1;
        tally.failed += usize::from(!found.is_empty());
        for (difference, sizes) in &found {
            *tally.by_field.entry(difference.field).or_default() += 1;
            show(&mut table, &one.cassette.id, difference, sizes);
        }
    }
    summary(&mut table, &tallies, &left_out);
    Report { failures: tallies.values().map(|tally| tally.failed).sum(), text: table }
}

/// What differs, and at which sizes.
fn differences(one: &Readings) -> BTreeMap<Difference, Vec<usize>> {
    let mut found: BTreeMap<Difference, Vec<usize>> = BTreeMap::new();
    for (size, reading) in SIZES.into_iter().zip(&one.by_size) {
        let differences = match reading {
            Ok(reading) => compare::differences(&one.cassette, reading),
            Err(what) => vec![Difference {
                field: "run",
                expected: "an answer".to_owned(),
                got: what.clone(),
            }],
        };
        for difference in differences {
            found.entry(difference).or_default().push(size);
        }
    }
    found
}

fn show(table: &mut String, id: &str, difference: &Difference, sizes: &[usize]) {
    let Difference { field, expected, got } = difference;
    let sizes = if sizes.len() == SIZES.len() {
        String::new()
    } else {
        let names: Vec<_> = sizes.iter().map(|size| name(*size)).collect();
        format!(" (at {})", names.join(", "))
    };
    let (expected, got) = (shortened(expected), shortened(got));
    table.push_str(&format!(
        "{id}\n    {field}{sizes}\n      expected {expected}\n      got      {got}\n"
    ));
}

fn name(size: usize) -> String {
    if size == usize::MAX { "whole".to_owned() } else { size.to_string() }
}

/// The first characters of `text`, on one line.
pub(crate) fn shortened(text: &str) -> String {
    let mut out: String = text.chars().take(SHOWN_CHARS).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out.replace('\n', "⏎")
}

fn summary(
    out: &mut String,
    tallies: &BTreeMap<Api, Tally>,
    left_out: &BTreeMap<(&str, &str), (usize, usize)>,
) {
    let sizes: Vec<_> = SIZES.into_iter().map(name).collect();
    out.push_str(&format!("\nreplayed at pieces of {} bytes\n", sizes.join(", ")));
    for (api, tally) in tallies {
        let Tally { replayed, failed, by_field } = tally;
        let api = api.to_string();
        out.push_str(&format!("{api:<24} {replayed:>5} replayed {failed:>5} failed"));
        for (field, times) in by_field {
            out.push_str(&format!("  {field} {times}"));
        }
        out.push('\n');
    }
    let total: usize = left_out.values().map(|(times, _)| times).sum();
    out.push_str(&format!("not compared, by cassettes/unsupported.toml: {total}\n"));
    for ((field, reason), (times, needed)) in left_out {
        out.push_str(&format!("  {times:>4} {field} ({needed} would fail): {reason}\n"));
    }
}
