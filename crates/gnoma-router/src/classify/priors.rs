//! Measured results named by benchmarks, under the names of task types. The router learns by type, and what others
//! measured comes by kinds of their own, such as `fix` or `greenfield`; the table `priors.tsv` says which tell about
//! which. A type without any starts where the arm stands over all kinds.

use std::collections::BTreeMap;

use super::{table::table_lines, task_type::TaskType};
use crate::{arm::Prior, task::TaskKind};

const LIKENESS: &str = include_str!("priors.tsv");
const PERCENT: f64 = 100.0;

/// The measured kinds that tell about a type, and the percent of their tasks that count.
#[must_use]
pub fn measured_as(kind: TaskType) -> Vec<(TaskKind, f64)> {
    let read = |line: &str| -> Option<(TaskKind, f64)> {
        let mut columns = line.split('\t');
        let kind_told: TaskType = columns.next()?.parse().ok()?;
        let measured = TaskKind::new(columns.next()?);
        let percent: f64 = columns.next()?.parse().ok()?;
        (kind_told == kind).then_some((measured, percent))
    };
    table_lines(LIKENESS).filter_map(read).collect()
}

/// Results by measured kind, brought under the types they tell about. Several kinds are averaged by their tasks.
#[must_use]
pub fn by_type(measured: &BTreeMap<TaskKind, Prior>) -> BTreeMap<TaskKind, Prior> {
    let pooled = |kind: TaskType| {
        let told: Vec<(&Prior, f64)> = measured_as(kind)
            .into_iter()
            .filter_map(|(kind, percent)| {
                let prior = measured.get(&kind)?;
                Some((prior, prior.tasks * percent / PERCENT))
            })
            .filter(|(_, tasks)| tasks.is_finite() && *tasks > 0.0)
            .collect();
        let tasks: f64 = told.iter().map(|(_, tasks)| tasks).sum();
        let mean = |of: fn(&Prior) -> f64| {
            told.iter().map(|(prior, tasks)| of(prior) * tasks).sum::<f64>() / tasks
        };
        let prior =
            Prior { quality: mean(|prior| prior.quality), cost: mean(|prior| prior.cost), tasks };
        (!told.is_empty()).then(|| (kind.task_kind(), prior))
    };
    gnoma_core::sort::to_map(TaskType::ALL.into_iter().filter_map(pooled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_shipped_task_likeness_table_parses() {
        let read: usize = TaskType::ALL.into_iter().map(|kind| measured_as(kind).len()).sum();
        assert_eq!(read, table_lines(LIKENESS).count());
    }

    #[test]
    fn priors_of_several_task_kinds_are_averaged_by_task_count() {
        let prior = |quality, tasks| Prior { quality, cost: 1.0, tasks };
        let measured = BTreeMap::from([
            (TaskKind::new("fix"), prior(0.8, 300.0)),
            (TaskKind::new("fix-pro"), prior(0.4, 100.0)),
            (TaskKind::new("chess"), prior(0.1, 100.0)),
        ]);
        let told = by_type(&measured);
        assert_eq!(told.len(), 1);
        let debug = told[&TaskKind::new("debug")];
        assert!((debug.quality - 0.7).abs() < 1e-9);
        assert!((debug.tasks - 400.0).abs() < 1e-9);
    }
}
