//! The steps that start the session of a child: its place below its parent, its preparation, its task.

use std::sync::{Arc, Weak};

use gnoma_core::{
    info::ChildInfo,
    protocol::{Detach, SessionSpec},
    store::SessionId,
    sync::Mutex,
    tool::{ChildTask, Parent, SpawnError},
};
use tokio::sync::watch;

use super::{
    child_result::to_spawn_error,
    elfs::StartingElf,
    handle::{SessionHandle, SessionMeta},
    ports::{ChildOpening, PreparedSession, Services},
    session_start::{self, SessionStartup},
    shared::HostShared,
};
use crate::Notices;

/// A child with an id, a budget and rights below its parent, before its session is prepared.
pub(super) struct ReservedChild {
    pub(super) services: Arc<dyn Services>,
    pub(super) opening: ChildOpening,
    /// The remembered facts about the child's parent.
    pub(super) above: Weak<Mutex<SessionMeta>>,
    /// Shows the child among the elfs of its parent until its session is there.
    pub(super) starting: StartingElf,
}

/// Gives a child its id, its part of the budget and its rights.
pub(super) fn reserve_child(
    shared: &Weak<HostShared>,
    parent: &Parent,
    task: ChildTask,
    notices: Notices,
) -> Result<ReservedChild, SpawnError> {
    let shared = shared.upgrade().ok_or(SpawnError::Unavailable)?;
    let by = SessionId::new(parent.session.as_str());
    let starting = StartingElf::new(&shared, by.clone(), task.name.clone());
    let above = shared.find_session(&by).map_err(to_spawn_error)?;
    let resumed = task.resume.as_deref().map(SessionId::new);
    if let Some(id) = resumed.as_ref().filter(|id| shared.find_session(id).is_ok()) {
        return Err(SpawnError::Failed(format!("elf `{id}` is at work, so it cannot be resumed")));
    }
    let given = Some(SessionId::new(task.id.as_str())).filter(|_| !task.id.is_empty());
    let id = resumed.or(given).unwrap_or_else(|| shared.opener.new_id());
    let kept = above.kept.lock();
    let rights = kept.rights.clone().ok_or(SpawnError::Unavailable)?;
    let scope = Arc::new(kept.scope.in_turn(parent.turn.as_str()));
    let scope = scope.for_child(id.as_str(), task.limit_micro_usd);
    let scope = scope.map_err(|deep| SpawnError::TooMany(deep.to_string()))?;
    let spawner = Arc::clone(&shared.spawner);
    let opening = ChildOpening { id, task, scope, rights, notices, spawner };
    let (services, above) = (Arc::clone(&kept.services), Arc::downgrade(&above.kept));
    Ok(ReservedChild { services, opening, above, starting })
}

/// Prepares the session of a child and opens all of it, so that the call learns what goes wrong.
pub(super) async fn prepare_opened(
    services: &dyn Services,
    opening: ChildOpening,
    info: ChildInfo,
) -> Result<(SessionSpec, PreparedSession), SpawnError> {
    let (spec, mut prepared) = services.prepare_child(opening).await.map_err(to_spawn_error)?;
    prepared.info.child = Some(info);
    let opened = prepared.opening.await.map_err(to_spawn_error)?;
    prepared.opening = Box::pin(async { Ok(opened) });
    // Windows come and go; it ends with its turn.
    Ok((SessionSpec { detach: Detach::Keep, ..spec }, prepared))
}

/// Starts a prepared session; also returns what counts the changes of sessions, from before its start on.
pub(super) fn start_prepared(
    shared: &Weak<HostShared>,
    id: &SessionId,
    startup: SessionStartup,
    prepared: PreparedSession,
) -> Result<(SessionHandle, watch::Receiver<u64>), SpawnError> {
    let shared = shared.upgrade().ok_or(SpawnError::Unavailable)?;
    let changed = shared.changed.subscribe();
    session_start::start_session(&shared, startup, prepared).map_err(to_spawn_error)?;
    let live = shared.find_session(id).map_err(to_spawn_error)?;
    Ok((live, changed))
}
