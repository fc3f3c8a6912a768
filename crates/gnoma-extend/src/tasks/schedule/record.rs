//! A schedule as it is kept.

use std::path::PathBuf;

use gnoma_core::session::PermissionMode;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{
    due::{NextRun, ScheduleProgress},
    rule::{ScheduleRule, zone_named},
};

/// The form of records that this version reads and writes.
const VERSION: u32 = 1;

/// A task that runs by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// The form of the record.
    pub version: u32,
    /// A number that people name it by.
    pub id: u32,
    /// The name of the task, and its arguments.
    pub words: Vec<String>,
    /// The session whose last turn it continues, in the place of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The rule that says when the schedule runs.
    pub rule: ScheduleRule,
    /// The time zone of its days and times; empty for that of the machine.
    #[serde(default)]
    pub zone: String,
    /// The time at which the schedule was made, in milliseconds since 1970.
    pub made_ms: i64,
    /// The most that a run may cost, in millionths of a dollar.
    pub budget_micro_usd: u64,
    /// The permission mode that the person has set for it; without one, runs have `plan`, or a stricter one of the
    /// settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// The folder in which the schedule runs.
    pub folder: PathBuf,
    /// Further folders to work in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_folders: Vec<PathBuf>,
    /// Profile of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The provider that runs ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that runs ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `true` if nothing runs until the person resumes the schedule.
    #[serde(default)]
    pub is_paused: bool,
    /// The progress of the schedule.
    #[serde(default)]
    pub progress: ScheduleProgress,
    /// The last run of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ScheduledRun>,
}

/// A run that a schedule began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledRun {
    /// The time at which the run began, in milliseconds since 1970.
    pub began_ms: i64,
    /// The session that it runs in; empty if it could not begin.
    pub session: String,
    /// The end of the run in a sentence; `None`: the run goes on, or the server was killed.
    pub end: Option<String>,
}

impl ScheduleRecord {
    /// Returns the form that records have now.
    #[must_use]
    pub const fn current_version() -> u32 {
        VERSION
    }

    /// Returns whether its form is one that this version reads.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.version == VERSION && !self.words.is_empty()
    }

    /// Returns whether both run the same at the same times in the same folder.
    #[must_use]
    pub fn is_same_order(&self, other: &Self) -> bool {
        let order = |it: &Self| (it.words.clone(), it.rule, it.zone.clone(), it.folder.clone());
        order(self) == order(other)
    }

    /// Returns its time zone; `None` if this machine does not know it.
    #[must_use]
    pub fn time_zone(&self) -> Option<TimeZone> {
        zone_named(&self.zone)
    }

    /// Returns what is due, without a change; `None` while it is paused or its time zone is unknown.
    #[must_use]
    pub fn peek_next_run(&self, now_ms: i64) -> Option<NextRun> {
        let zone = Some(self).filter(|it| !it.is_paused)?.time_zone()?;
        Some(self.progress.peek_next_run(self.rule, &zone, self.made_ms, now_ms))
    }

    /// Takes in the time of the clock, as [`ScheduleProgress::advance_clock`] does; `None` while it is paused or its time zone is
    /// unknown.
    pub fn advance_clock(&mut self, now_ms: i64) -> Option<NextRun> {
        let zone = Some(&*self).filter(|it| !it.is_paused)?.time_zone()?;
        Some(self.progress.advance_clock(self.rule, &zone, self.made_ms, now_ms))
    }

    /// Lets it run again after a pause. What passed meanwhile is left out.
    pub fn resume(&mut self, now_ms: i64) {
        self.is_paused = false;
        if let Some(zone) = self.time_zone() {
            self.progress.skip_past_runs(self.rule, &zone, self.made_ms, now_ms);
        }
    }

    /// Returns whether no run will come any more.
    #[must_use]
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.peek_next_run(now_ms) == Some(NextRun::Over)
    }
}
