//! The lines of the protocol as they are read.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::Deserialize;

pub(super) enum ReplayLine {
    Init(Init),
    Task(TaskLine),
    Result(ResultLine),
    Outcome(OutcomeLine),
    End,
}

impl ReplayLine {
    /// Reads a line twice, once for its type: a derived reader of a tagged enum is a second copy of the
    /// readers of all its parts.
    pub(super) fn parse_line(line: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum LineType {
            Init,
            Task,
            Result,
            Outcome,
            End,
        }
        #[derive(Deserialize)]
        struct Typed {
            r#type: LineType,
        }
        Ok(match gnoma_core::json::from_str::<Typed>(line)?.r#type {
            LineType::Init => Self::Init(gnoma_core::json::from_str(line)?),
            LineType::Task => Self::Task(gnoma_core::json::from_str(line)?),
            LineType::Result => Self::Result(gnoma_core::json::from_str(line)?),
            LineType::Outcome => Self::Outcome(gnoma_core::json::from_str(line)?),
            LineType::End => Self::End,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct Init {
    #[serde(default)]
    pub(super) seed: u64,
    pub(super) value_usd: f64,
    pub(super) max_attempts: usize,
    pub(super) verifier: Option<VerifierLine>,
    #[serde(default)]
    pub(super) pools: Vec<PoolLine>,
    pub(super) tasks_per_day: Option<f64>,
    pub(super) arms: Vec<ArmLine>,
}

/// That it is there is all that counts: what a check costs comes with each result.
#[derive(Deserialize)]
pub(super) struct VerifierLine {}

#[derive(Deserialize)]
pub(super) struct PoolLine {
    pub(super) id: String,
    pub(super) cap_usd_per_day: f64,
}

#[derive(Deserialize)]
pub(super) struct ArmLine {
    pub(super) id: String,
    pub(super) provider: String,
    pub(super) pool: Option<String>,
    pub(super) release_date: Option<String>,
    pub(super) openness: Option<String>,
    pub(super) output_price: Option<f64>,
    pub(super) prior: Option<BTreeMap<String, PriorLine>>,
}

#[derive(Deserialize)]
pub(super) struct PriorLine {
    pub(super) q: f64,
    pub(super) cost_usd: f64,
    pub(super) n: f64,
}

#[derive(Deserialize)]
pub(super) struct TaskLine {
    pub(super) id: String,
    #[serde(default)]
    pub(super) t: u64,
    #[serde(default)]
    pub(super) day: u64,
    pub(super) kind: String,
    pub(super) available: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct ResultLine {
    pub(super) arm: String,
    pub(super) verdict: Option<bool>,
    pub(super) cost_usd: f64,
    #[serde(default)]
    pub(super) last: bool,
    pub(super) attempts_left: usize,
    #[serde(default)]
    pub(super) available: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct OutcomeLine {
    pub(super) attempts: Vec<AttemptLine>,
}

#[derive(Deserialize)]
pub(super) struct AttemptLine {
    pub(super) arm: String,
    pub(super) verdict: Option<bool>,
    pub(super) cost_usd: f64,
    pub(super) resolved: Option<bool>,
}

/// Days since 1970-01-01 of `YYYY-MM-DD`.
pub(super) fn days_since_epoch(date: &str) -> Option<i32> {
    const FIRST: Date = jiff::civil::date(1970, 1, 1);
    let date: Date = date.parse().ok()?;
    i32::try_from(date.duration_since(FIRST).as_hours() / 24).ok()
}

#[cfg(test)]
mod tests {
    use super::days_since_epoch;

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(days_since_epoch("1970-01-01"), Some(0));
        assert_eq!(days_since_epoch("2000-03-01"), Some(11_017));
        assert_eq!(days_since_epoch("2026-05-28"), Some(20_601));
        assert_eq!(days_since_epoch("2026-13-01"), None);
        assert_eq!(days_since_epoch("soon"), None);
    }
}
