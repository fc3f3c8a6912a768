//! Scores of the older gnoma (`quality.json`), as weak evidence. Pure.
//!
//! The file: `{"scores": {arm: {task: {"Value": 0.8, "Count": 12}}}}`. A score is a fading mean of
//! guesses about single arms, so it counts for a few tasks, however many it was made of.

use std::collections::BTreeMap;

use gnoma_config::settings::arm_named;
use gnoma_core::ModelRef;
use gnoma_router::{Attempt, AttemptResult, Router, TaskKind, TaskOutcome, classify::TaskType};
use serde::Deserialize;

/// Tasks that a score counts for at most.
const MOST_TASKS: u32 = 4;
/// Scores that are taken over at most.
const MOST_SCORES: usize = 5_000;
const MICRO: f64 = 1e6;

#[derive(Deserialize)]
struct File {
    scores: BTreeMap<String, BTreeMap<String, Score>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Score {
    #[serde(rename = "Value", alias = "value")]
    value: f64,
    #[serde(rename = "Count", alias = "count")]
    count: u64,
}

/// The scores that were found in a file.
#[derive(Debug, PartialEq)]
pub struct Quality {
    scores: Vec<(ModelRef, TaskKind, f64, u32)>,
    /// Scores of arms or tasks that mean nothing here, or that are no scores.
    pub lost: usize,
}

impl Quality {
    /// Reads a file of scores.
    ///
    /// # Errors
    /// It is no such file.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let file: File = gnoma_core::json::from_str(text)?;
        let mut quality = Self { scores: Vec::new(), lost: 0 };
        for (arm, tasks) in file.scores {
            for (task, score) in tasks {
                match parse_score(&arm, &task, score) {
                    Some(score) if quality.scores.len() < MOST_SCORES => quality.scores.push(score),
                    Some(_) | None => quality.lost += 1,
                }
            }
        }
        Ok(quality)
    }

    /// Returns the number of scores that are imported.
    pub fn score_count(&self) -> usize {
        self.scores.len()
    }

    /// The arms that it speaks of.
    pub fn arms(&self) -> impl Iterator<Item = &ModelRef> {
        self.scores.iter().map(|(arm, ..)| arm)
    }

    /// Teaches them to a router.
    pub fn teach_router(&self, router: &mut Router) {
        for (arm, kind, value, tasks) in &self.scores {
            let right = (value * f64::from(*tasks)).round();
            for task in 0..*tasks {
                // It says nothing of costs: what is expected anyway changes nothing.
                let cost = router.estimate_arm(arm, kind).cost * MICRO;
                let attempt =
                    Attempt { arm: arm.clone(), verdict: None, cost_micro_usd: cost as u64 };
                let is_right = Some(f64::from(task) < right);
                let tried = AttemptResult { attempt, right: is_right, weight: 1.0 };
                router.record_outcome(&TaskOutcome { kind: kind.clone(), tried: vec![tried] });
            }
        }
    }
}

fn parse_score(arm: &str, task: &str, score: Score) -> Option<(ModelRef, TaskKind, f64, u32)> {
    let kind: TaskType = task.parse().ok()?;
    let tasks = u32::try_from(score.count).unwrap_or(u32::MAX).min(MOST_TASKS);
    let makes_sense = (0.0..=1.0).contains(&score.value) && tasks > 0;
    makes_sense.then_some((arm_named(arm)?, kind.task_kind(), score.value, tasks))
}

#[cfg(test)]
mod tests {
    use gnoma_router::Tuning;
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"{"scores": {
        "mistral/large": {"Debug": {"Value": 1.0, "Count": 90}, "SecurityReview": {"Value": 0.0, "Count": 3}},
        "nobody": {"debug": {"Value": 0.5, "Count": 1}},
        "a/b": {"poetry": {"Value": 0.5, "Count": 1}, "explain": {"Value": 7.0, "Count": 1}}
    }, "classifier": {"slm": 3}}"#;

    #[test]
    fn quality_import_takes_valid_scores_and_counts_the_rest() {
        let quality = Quality::read(TEXT).unwrap();
        assert_eq!((quality.score_count(), quality.lost), (2, 3));
        assert!(Quality::read("[]").is_err());
    }

    #[test]
    fn imported_quality_scores_are_weak_evidence() {
        let (mut router, quality) = (Router::new(Tuning::default()), Quality::read(TEXT).unwrap());
        let arm = ModelRef { provider: "mistral".into(), model: "large".into() };
        let at =
            |router: &Router, kind: TaskType| router.estimate_arm(&arm, &kind.task_kind()).quality;
        let before = at(&router, TaskType::Debug);
        quality.teach_router(&mut router);
        let (good, bad) = (at(&router, TaskType::Debug), at(&router, TaskType::SecurityReview));
        assert!(good > before && good < 0.95, "{before} {good}");
        assert!(bad < good);
    }

    proptest! {
        #[test]
        fn quality_import_never_panics_and_bounds_task_counts(text in "\\PC{0,80}", value in any::<f64>(), count in any::<u64>()) {
            let _none = Quality::read(&text);
            let score = parse_score("a/b", "debug", Score { value, count });
            prop_assert!(score.is_none_or(|(.., tasks)| tasks <= MOST_TASKS));
        }
    }
}
