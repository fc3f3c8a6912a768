//! What others measured of models at work, for arms nobody has tried here. The figures, their source and their day
//! are in `priors.tsv`; they are published shares and costs of one agent on public benchmarks, so they are a start
//! and not a promise. Which kind of benchmark tells about which task is the classification's to say.
//!
//! Only who makes arms for real use asks this. A replay brings its own priors or none.

use std::collections::BTreeMap;

use crate::{
    arm::{Prior, Published},
    task::TaskKind,
};

const SHIPPED: &str = include_str!("priors.tsv");
const SOURCE: &str = "# source ";
/// Longest id that is looked up, in bytes.
const MAX_ID_BYTES: usize = 256;
/// Words behind a model's name that say how it is packed or offered, not which it is.
const PACKING: &[&str] = &["fp4", "fp8", "instruct", "latest", "nvfp4", "preview"];

/// Returns what was measured of the model with this id on the wire, whichever provider serves it: its results by the
/// benchmark's kinds of task, such as `fix`, and over all its tasks.
#[must_use]
pub fn find_measured(model: &str) -> Option<Published> {
    find_in_table(SHIPPED, model)
}

/// Returns the sources of the figures, with their days.
pub fn data_sources() -> impl Iterator<Item = &'static str> {
    SHIPPED.lines().filter_map(|line| line.strip_prefix(SOURCE))
}

fn find_in_table(text: &str, model: &str) -> Option<Published> {
    if model.len() > MAX_ID_BYTES {
        return None;
    }
    let asked = normalise_model_id(model);
    let named = parse_rows(text).map(|row| row.model).filter(|name| is_same(name, &asked));
    let name = named.max_by_key(|name| name.len())?;
    let by_kind: BTreeMap<TaskKind, Prior> = gnoma_core::sort::to_map(
        parse_rows(text)
            .filter(|row| row.model == name)
            .map(|row| (TaskKind::new(row.kind), row.prior)),
    );
    Some(Published { overall: pool_kinds(&by_kind), by_kind, ..Published::default() })
}

struct PriorRow<'a> {
    model: &'a str,
    kind: &'a str,
    prior: Prior,
}

/// The lines that make sense; others are as if they were not there.
fn parse_rows(text: &str) -> impl Iterator<Item = PriorRow<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.split('\t');
        let (model, kind) = (columns.next()?, columns.next()?);
        let mut number = || columns.next()?.parse::<f64>().ok().filter(|number| number.is_finite());
        let prior = Prior { quality: number()?, cost: number()?, tasks: number()? };
        let sane = (0.0..=1.0).contains(&prior.quality) && prior.cost >= 0.0 && prior.tasks >= 1.0;
        (sane && !model.is_empty() && !kind.is_empty()).then_some(PriorRow { model, kind, prior })
    })
}

/// Returns the prior for all tasks together.
fn pool_kinds(by_kind: &BTreeMap<TaskKind, Prior>) -> Option<Prior> {
    let tasks: f64 = by_kind.values().map(|prior| prior.tasks).sum();
    let mean = |of: fn(&Prior) -> f64| {
        by_kind.values().map(|prior| of(prior) * (prior.tasks / tasks)).sum::<f64>()
    };
    // Shares of so many tasks that the sum is past all numbers tell nothing.
    (tasks.is_finite() && tasks > 0.0).then(|| Prior {
        quality: mean(|prior| prior.quality),
        cost: mean(|prior| prior.cost),
        tasks,
    })
}

/// The part of an id that says which model it is: the last, before a colon, in small letters with hyphens for dots.
fn normalise_model_id(id: &str) -> String {
    let last = id.rsplit('/').next().unwrap_or(id);
    let name = last.split([':', '@']).next().unwrap_or(last);
    name.to_ascii_lowercase().replace('.', "-")
}

/// Reports whether `asked` is `name`, or `name` with its date, size or packing behind it.
fn is_same(name: &str, asked: &str) -> bool {
    let Some(rest) = asked.strip_prefix(name) else { return false };
    let Some(rest) = rest.strip_prefix('-') else { return rest.is_empty() };
    let mut after_year = false;
    rest.split('-').all(|piece| {
        let digits = piece.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits && (piece.len() >= 3 || (after_year && piece.len() == 2));
        after_year |= digits && piece.len() == 4;
        number || PACKING.contains(&piece) || is_size(piece)
    })
}

/// Such as `120b` or, of a mixture of experts, `a3b`.
fn is_size(piece: &str) -> bool {
    let number = piece.strip_prefix('a').unwrap_or(piece).strip_suffix('b').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_line_of_the_shipped_model_quality_table_is_found() {
        let lines = SHIPPED.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(parse_rows(SHIPPED).count(), lines);
        for row in parse_rows(SHIPPED) {
            let found = find_measured(row.model).unwrap();
            assert_eq!(
                found.by_kind.get(&TaskKind::new(row.kind)),
                Some(&row.prior),
                "{}",
                row.model
            );
            let overall = found.overall.unwrap();
            assert!(overall.tasks >= row.prior.tasks && (0.0..=1.0).contains(&overall.quality));
        }
        assert!(data_sources().count() > 0 && data_sources().all(|source| source.contains("20")));
    }

    #[test]
    fn model_priors_match_date_and_variant_suffixes_but_no_other_model() {
        let text = "a-2-5\tfix\t0.5\t1\t10\na-2-5-code\tfix\t0.7\t1\t10\n";
        let quality = |id: &str| {
            find_in_table(text, id)
                .and_then(|found| found.overall)
                .map(|prior| (prior.quality * 10.0).round())
        };
        for id in
            ["A-2.5", "v/a-2.5:free", "a-2-5-20260205", "a-2.5-2026-02-05", "a-2-5-30b-a3b-fp8"]
        {
            assert_eq!(quality(id), Some(5.0), "{id}");
        }
        assert_eq!(quality("x/y/a-2.5-code-preview"), Some(7.0));
        for id in ["a-2", "a-2-5-1", "a-2-5-mini", "a-2-55", "a-2-5-12-01", "a-2-5-", "", "b-a-2-5"]
        {
            assert_eq!(quality(id), None, "{id}");
        }
    }

    #[test]
    fn model_priors_of_all_kinds_are_pooled_by_task_count() {
        let found = find_in_table("m\tfix\t0.8\t1\t300\nm\ttalk\t0.4\t5\t100\n", "m").unwrap();
        let overall = found.overall.unwrap();
        assert!((overall.quality - 0.7).abs() < 1e-9 && (overall.cost - 2.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn model_prior_table_parser_never_panics(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            lines in proptest::collection::vec("[ab#-]{0,3}\t?[ab]?\t?[0-9.eE-]{0,4}\t?[0-9inf.-]{0,4}\t?[0-9e]{0,4}", 0..8),
            id in "[ab:@/0-9é-]{0,8}",
        ) {
            let _odd = find_in_table(&String::from_utf8_lossy(&bytes), &id);
            if let Some(found) = find_in_table(&lines.join("\n"), &id) {
                prop_assert!(!found.by_kind.is_empty());
                prop_assert!(found.overall.is_some_and(|prior| prior.quality.is_finite() && prior.cost.is_finite()));
            }
        }
    }
}
