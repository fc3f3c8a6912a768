//! One elf from its start to its end: its limits are kept, and whatever happens comes to one report.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    CallId, duration,
    tool::{ChildControl, ChildEnd, ChildHandle, ChildLink, ChildResult, SpawnError, ToolSession},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    report::{ElfEnd, ElfReport},
    task::PlannedElf,
};

/// The time that an elf which is to stop has for that; then its session is ended.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// An elf that is about to run.
pub(super) struct ElfRun {
    pub(super) planned: PlannedElf,
    /// The session that it works for.
    pub(super) session: Arc<dyn ToolSession>,
    /// The call on whose behalf the elf is started.
    pub(super) call: CallId,
    /// The token that is cancelled when the parent's work is stopped, and with it the elf.
    pub(super) stop: CancellationToken,
    pub(super) link: ChildLink,
    pub(super) handle: ChildHandle,
    /// The signal that this elf alone is to stop.
    pub(super) cancel: Arc<Notify>,
}

impl ElfRun {
    /// Runs it to its end. Dropping the future ends the elf.
    pub(super) async fn run_to_end(self) -> ElfReport {
        let Self { planned, session, call, stop, link, handle, cancel } = self;
        let PlannedElf { name, child, time, .. } = planned;
        let begun = Instant::now();
        let mut work = session.spawn_child(call, child, link);
        let why = tokio::select! {
            biased;
            () = stop.cancelled() => "its parent was stopped".to_owned(),
            ended = &mut work => return build_report(name, &handle, begun, ended, None),
            () = cancel.notified() => "as asked".to_owned(),
            () = sleep(time) => format!("its time limit of {} is over", duration::format_duration(time)),
        };
        // What it has done until then is told.
        let _ended = handle.control.try_send(ChildControl::Cancel);
        let ended = if stop.is_cancelled() { None } else { timeout(GRACE, &mut work).await.ok() };
        drop(work);
        build_report(name, &handle, begun, ended.unwrap_or(Err(SpawnError::Stopped)), Some(why))
    }
}

/// The report of an elf that has ended; `stopped`: why it was stopped, where it was.
fn build_report(
    name: String,
    handle: &ChildHandle,
    begun: Instant,
    ended: Result<ChildResult, SpawnError>,
    stopped: Option<String>,
) -> ElfReport {
    let took = begun.elapsed();
    let (end, text, last, merge) = match ended {
        Ok(ChildResult { end, text, last, merge, .. }) => (end, text, last, merge),
        Err(error) => {
            let end = match error {
                SpawnError::Stopped => ChildEnd::Cancelled,
                error => ChildEnd::Failed(error.to_string()),
            };
            (end, String::new(), handle.status.borrow().clone(), None)
        }
    };
    let end = match end {
        ChildEnd::Completed => ElfEnd::Completed,
        ChildEnd::Cancelled => {
            ElfEnd::Cancelled(stopped.unwrap_or_else(|| "by the user".to_owned()))
        }
        ChildEnd::Failed(why) => ElfEnd::Failed(why),
    };
    ElfReport { name, end, text, last, took, merge }
}
