//! Turns that ended because every model was at its limit, and continue once one can be called again: in their session while
//! it is open, and otherwise by a server, as a schedule.

use gnoma_core::{
    ErrorKind,
    ledger::Level,
    protocol::{Environment, Overrides, SessionSpec},
    session::PermissionMode,
    store::SessionId,
};
use gnoma_extend::tasks::schedule::{
    ScheduleProgress, ScheduleRecord, ScheduleRule, ScheduleStore,
};
use gnoma_router::pool::Pool;

use crate::{Folders as _, HostError, Project, Result, preview};

/// The folder within the state folder for schedules.
const SCHEDULES: &str = "schedules";

/// The message that continues a turn.
pub(crate) const CONTINUE_MESSAGE: &str = "Continue with what the limits of the models ended.";
/// The name of a schedule that continues a turn, in the place of a task's.
const WORD: &str = "continue";
/// The time in milliseconds that the session has, if it is open, before a server continues the turn.
const SERVER_DELAY_MS: i64 = 60_000;

/// A turn that continues later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Continuation {
    /// The number of its schedule; `None` in incognito, where only the open session continues it.
    id: Option<u32>,
    /// The moment from which a model can be called again, in milliseconds since 1970.
    pub(crate) at_ms: i64,
}

/// Returns the schedules of the person whose environment it is.
#[must_use]
pub fn schedule_store(environment: &Environment) -> ScheduleStore {
    ScheduleStore::new(environment.state_dir().join(SCHEDULES))
}

/// Returns the moment from which a model can be called again.
///
/// # Errors
/// No model is at a limit, or the limits cannot be read.
pub async fn limits_reset_ms(project: &Project) -> Result<i64> {
    let ready = preview::prepare_preview(project, None).await?;
    let now_ms = ready.routes.now_ms();
    let rests =
        ready.routes.with_state(|state| state.tracker.vitals.health.resting_targets(now_ms));
    let at_limit = |kind| matches!(kind, ErrorKind::RateLimited | ErrorKind::Quota);
    let of_models = rests.iter().filter(|rest| at_limit(rest.kind)).map(|rest| rest.until_ms).min();
    let levels = preview::limit_levels(project, &ready.routes).await;
    let of_money = levels.iter().filter(|level| is_used_up(level)).filter_map(|it| it.resets_at_ms);
    // A cap holds back every model, so it must reset as well.
    of_money.max().max(of_models).ok_or_else(|| {
        let remedy = Some("`gnoma router pools` shows the limits".to_owned());
        HostError { remedy, ..HostError::usage("no model is at its limit, so none will reset") }
    })
}

/// Returns whether a cap on the spending of all sessions or of the project is used up.
fn is_used_up(level: &Level) -> bool {
    let is_shared = matches!(Pool::parse(&level.pool), Some(Pool::All | Pool::Project(_)));
    is_shared && level.used >= level.limit.most
}

/// Saves that the last turn of a session continues when limits reset, in this mode. Nothing runs unseen in the mode
/// bypass.
///
/// # Errors
/// No model is at a limit that is known to reset, or the disk refuses.
pub(crate) async fn schedule_continuation(
    project: &Project,
    session: &SessionId,
    mode: PermissionMode,
) -> Result<Continuation> {
    let at_ms = limits_reset_ms(project).await?;
    if project.is_incognito() {
        return Ok(Continuation { id: None, at_ms });
    }
    let SessionSpec { folder, more_folders, profile, overrides, .. } = project.spec.clone();
    let Overrides { provider, model, .. } = overrides;
    let now_ms = project.now_ms();
    let due_ms = at_ms.saturating_add(SERVER_DELAY_MS);
    let record = ScheduleRecord {
        version: ScheduleRecord::current_version(),
        id: 0,
        words: vec![WORD.to_owned(), session.to_string()],
        session: Some(session.to_string()),
        rule: ScheduleRule::Once { at_ms: due_ms, at_limits: true },
        zone: String::new(),
        made_ms: now_ms,
        budget_micro_usd: 0,
        mode: Some(if mode == PermissionMode::Bypass { PermissionMode::Auto } else { mode }),
        folder,
        more_folders,
        profile,
        provider,
        model,
        is_paused: false,
        progress: ScheduleProgress::default(),
        last: None,
    };
    let saved = schedule_store(project.environment()).insert(record, now_ms);
    let id = saved.map_err(|error| HostError::failure(error.to_string()))?.id;
    Ok(Continuation { id: Some(id), at_ms })
}

/// Takes a continuation from the schedules, so that no server runs it. Returns whether it was still there.
pub(crate) fn take_continuation(project: &Project, continuation: Continuation) -> bool {
    let store = schedule_store(project.environment());
    continuation.id.is_none_or(|id| store.delete(id, project.now_ms()).is_ok())
}
