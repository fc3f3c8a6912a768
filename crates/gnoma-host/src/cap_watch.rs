//! Warns once when the spending cap of a day or month nears.

use std::{sync::Arc, time::Duration};

use gnoma_core::{Event, ledger::Level, tool::BoxFuture};
use gnoma_router::pool::describe_level;

use crate::{
    Project, clock,
    notify::{Notification, NotificationSender},
    shared::KnownUse,
};

/// The parts of a cap at which the person is told, in percent, the largest first.
const NEAR_PERCENT: [u64; 2] = [95, 80];
/// The time between two looks at the ledger in a turn, in milliseconds.
const LOOK_EVERY_MS: i64 = 10_000;
/// Most caps and periods whose use is remembered.
const MAX_KNOWN: usize = 64;
/// Longest time that a look at the ledger takes.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

/// Reads the levels of caps at a time in milliseconds since 1970.
pub(crate) type LevelReader = Box<dyn Fn(i64) -> BoxFuture<'static, Vec<Level>> + Send + Sync>;

/// Watches the caps for one session.
pub(crate) struct CapWatch {
    project: Arc<Project>,
    sender: Option<Arc<NotificationSender>>,
    read_levels: LevelReader,
    /// The spending of the session, in micro-dollars.
    spent: u64,
    looked_ms: i64,
}

impl CapWatch {
    /// Begins to watch caps, whose levels `read_levels` reads.
    pub(crate) fn new(
        project: &Arc<Project>,
        sender: Option<&Arc<NotificationSender>>,
        read_levels: LevelReader,
    ) -> Self {
        let (project, sender) = (Arc::clone(project), sender.cloned());
        Self { project, sender, read_levels, spent: 0, looked_ms: 0 }
    }

    /// Takes in what happens.
    pub(crate) fn observe(&mut self, event: &Event) {
        let now_ms = self.project.now_ms();
        let is_due = match event {
            Event::Cost { session_micro_usd, .. } => {
                self.spent = *session_micro_usd;
                // A clock can be set back.
                (now_ms - self.looked_ms).abs() >= LOOK_EVERY_MS
            }
            Event::TurnEnded { .. } => self.spent > 0,
            _ => false,
        };
        if is_due {
            self.looked_ms = now_ms;
            let (project, sender) = (Arc::clone(&self.project), self.sender.clone());
            let look =
                look_at_caps(project, sender, self.spent, now_ms, (self.read_levels)(now_ms));
            self.project.shared.run_in_background(look);
        }
    }
}

async fn look_at_caps(
    project: Arc<Project>,
    sender: Option<Arc<NotificationSender>>,
    spent: u64,
    now_ms: i64,
    levels: BoxFuture<'static, Vec<Level>>,
) {
    let Ok(levels) = tokio::time::timeout(LOOK_PATIENCE, levels).await else { return };
    let near = project.shared.with_known_use(|known| find_near(known, levels, spent));
    for level in near {
        let text = describe_level(&level, now_ms, clock::local_time_zone);
        project.notices.warning(&text);
        if let Some(telemetry) = &project.telemetry {
            telemetry.log_near_cap(&level, now_ms);
        }
        if let Some(sender) = &sender {
            sender.deliver(Notification::cap(text)).await;
        }
    }
}

/// Returns the caps of which a part worth telling was passed since the last look, or by what the session spent.
fn find_near(known: &mut KnownUse, mut levels: Vec<Level>, spent: u64) -> Vec<Level> {
    levels.retain(|level| {
        let key = (level.pool.clone(), level.resets_at_ms.unwrap_or_default());
        let before = known.get(&key).copied().unwrap_or(level.used.saturating_sub(spent));
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, level.used.max(before));
        let passes = |percent: u64| {
            let part = u128::from(level.limit.most) * u128::from(percent);
            let is_passed = |used: u64| u128::from(used) * 100 >= part;
            is_passed(level.used) && !is_passed(before)
        };
        level.limit.most > 0 && NEAR_PERCENT.into_iter().any(passes)
    });
    levels
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::{Limit, Unit, Window};

    use super::*;

    fn level(used: u64, end_ms: i64) -> Vec<Level> {
        let limit = Limit { unit: Unit::MicroUsd, window: Window::Day, most: 1_000 };
        vec![Level { pool: "all".into(), limit, used, held: 0, resets_at_ms: Some(end_ms) }]
    }

    #[test]
    fn spending_cap_warning_appears_once_in_the_session_that_crosses_it() {
        let mut known = KnownUse::new();
        let mut near =
            |used, end_ms, spent| find_near(&mut known, level(used, end_ms), spent).len();
        assert_eq!(near(850, 1, 10), 0, "others have passed it before");
        assert_eq!(near(940, 1, 100), 0);
        assert_eq!((near(951, 1, 111), near(990, 1, 150)), (1, 0));
        assert_eq!((near(10, 2, 150), near(799, 2, 150), near(999, 2, 150)), (0, 0, 1));
        assert_eq!(near(900, 3, 150), 1, "the first look sees what the session spent");
    }

    #[test]
    fn zero_spending_cap_gives_no_warning() {
        let mut none = level(0, 1);
        none[0].limit.most = 0;
        assert!(find_near(&mut KnownUse::new(), none, 0).is_empty());
    }
}
