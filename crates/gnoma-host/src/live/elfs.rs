//! The elfs of a session as a person sees them: who works below it, on what, since when and for how much;
//! and how one of them is stopped.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_core::{
    duration,
    price::format_usd,
    protocol::{Reply, Request, RequestError, RequestErrorKind},
    store::SessionId,
    tool::{ChildState, ChildStatus},
};
use tokio::time::{sleep, timeout};

use super::{handle::SessionHandle, replier::Replier, shared::HostShared};

/// Levels that are shown; sessions do not start sessions deeper.
const MAX_LEVELS: usize = 8;

/// The time to wait for an elf that is being started, and the interval at which to look for it.
const MAX_START: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

const NONE: &str = "no elfs are at work";

/// An elf whose session is being made; it is known by its name until this is dropped.
pub(super) struct StartingElf {
    shared: Weak<HostShared>,
    elf: (SessionId, String),
}

impl StartingElf {
    pub(super) fn new(shared: &Arc<HostShared>, above: SessionId, name: String) -> Self {
        let elf = (above, name);
        shared.state.lock().starting.push(elf.clone());
        Self { shared: Arc::downgrade(shared), elf }
    }
}

impl Drop for StartingElf {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.state.lock();
        if let Some(at) = state.starting.iter().position(|elf| *elf == self.elf) {
            state.starting.swap_remove(at);
        }
    }
}

/// A session that another one started, with what is shown of it.
struct Elf {
    live: SessionHandle,
    name: String,
    status: ChildStatus,
    age_s: i64,
    level: usize,
    /// Micro-dollars of all below it.
    below_micro_usd: u64,
}

/// All below a session, each before those below it.
fn elfs_below(shared: &HostShared, above: &SessionId) -> Vec<Elf> {
    let now_ms = shared.opener.now_ms();
    let all: Vec<SessionHandle> = shared.state.lock().sessions.values().cloned().collect();
    let mut elfs = Vec::new();
    add_elfs_below(&all, above, (0, now_ms), &mut elfs);
    elfs
}

/// Adds those below a session; what they and all below them cost.
fn add_elfs_below(
    all: &[SessionHandle],
    above: &SessionId,
    (level, now_ms): (usize, i64),
    elfs: &mut Vec<Elf>,
) -> u64 {
    if level >= MAX_LEVELS {
        return 0;
    }
    let mut own: Vec<Elf> = all
        .iter()
        .filter(|live| live.is_child_of(above))
        .filter_map(|live| {
            let begun = live.log().with_view(|view| view.turn.as_ref().map(|turn| turn.started_ms));
            let age_s = begun.map_or(0, |begun| (now_ms - begun).max(0) / 1_000);
            let kept = live.kept.lock();
            let following = kept.following.as_ref()?;
            let (name, status) = (following.name().to_owned(), following.current_status().clone());
            drop(kept);
            let below_micro_usd = status.below_micro_usd;
            Some(Elf { live: live.clone(), name, status, age_s, level, below_micro_usd })
        })
        .collect();
    gnoma_core::sort::sort_by(&mut own, |one, other| {
        (&one.name, &one.status.session).cmp(&(&other.name, &other.status.session))
    });
    let mut micro_usd = 0;
    for elf in own {
        let (id, at) = (SessionId::new(elf.status.session.as_str()), elfs.len());
        elfs.push(elf);
        let below = add_elfs_below(all, &id, (level + 1, now_ms), elfs);
        if let Some(elf) = elfs.get_mut(at) {
            elf.below_micro_usd += below;
            micro_usd += elf.status.micro_usd + elf.below_micro_usd;
        }
    }
    micro_usd
}

impl Elf {
    fn to_line(&self) -> String {
        let ChildStatus { session, state, model, doing, usage, micro_usd, .. } = &self.status;
        let state = match state {
            ChildState::Starting => "starting",
            ChildState::Working if doing.is_empty() => "working",
            ChildState::Working => doing,
            ChildState::Asking => "waiting for you",
            ChildState::Ended => "ending",
        };
        let name = if self.name.is_empty() { session } else { &self.name };
        let mut parts = vec![name.clone()];
        parts.extend(model.clone());
        parts.push(state.to_owned());
        parts.push(format!("{} tokens", usage.total_tokens()));
        let below = self.below_micro_usd;
        if below > 0 {
            parts.push(format!(
                "{} ({} with its elfs)",
                format_usd(*micro_usd),
                format_usd(micro_usd + below)
            ));
        } else if *micro_usd > 0 {
            parts.push(format_usd(*micro_usd));
        }
        parts.push(duration::format_duration(Duration::from_secs(self.age_s.unsigned_abs())));
        format!("{}{}", "  ".repeat(self.level), parts.join(" · "))
    }
}

/// The tree of them, a line each.
pub(super) fn render_tree(shared: &Weak<HostShared>, above: &SessionId) -> String {
    let Some(shared) = shared.upgrade() else { return NONE.to_owned() };
    let elfs = elfs_below(&shared, above);
    let mut lines: Vec<_> = elfs.iter().map(Elf::to_line).collect();
    let starting = shared.state.lock().starting.clone();
    let starting = starting.into_iter().filter(|(by, _)| by == above);
    lines.extend(starting.map(|(_, name)| format!("{name} · starting")));
    if lines.is_empty() {
        lines.push(NONE.to_owned());
    }
    if let Ok(live) = shared.find_session(above) {
        lines.extend(live.kept.lock().merges.iter().cloned());
    }
    lines.join("\n")
}

/// Watches or cancels the elf that a person names. It may be about to start: people look for it as soon as its call
/// shows.
pub(super) async fn answer_request(
    shared: Weak<HostShared>,
    session: SessionId,
    request: Request,
    replier: Replier,
) {
    let outcome = match request {
        Request::WatchElf { name } => {
            wait_until_started(&shared, &name).await;
            watch_elf(&shared, &session, &name)
        }
        Request::CancelElf { name } => {
            wait_until_started(&shared, &name).await;
            cancel_elf(&shared, &session, &name).await
        }
        _ => Err(RequestError::new(RequestErrorKind::Invalid, "no request about an elf")),
    };
    replier.reply(outcome);
}

/// Waits until no elf of that name is being started.
async fn wait_until_started(shared: &Weak<HostShared>, name: &str) {
    let is_starting = || {
        let shared = shared.upgrade();
        shared.is_some_and(|shared| shared.state.lock().starting.iter().any(|(_, it)| it == name))
    };
    let waits = async {
        while is_starting() {
            sleep(STEP).await;
        }
    };
    timeout(MAX_START, waits).await.ok();
}

/// Stops the one of that name below a session.
async fn cancel_elf(
    shared: &Weak<HostShared>,
    above: &SessionId,
    name: &str,
) -> Result<Reply, RequestError> {
    let elfs = shared.upgrade().map(|shared| elfs_below(&shared, above)).unwrap_or_default();
    let elf = find_elf(&elfs, name)?;
    elf.live.ask(Request::Cancel).await?;
    Ok(Reply::Text(format!("elf `{name}` is stopping")))
}

/// The session of the elf of that name: one of all that the person's session has; without a name that one.
fn watch_elf(
    shared: &Weak<HostShared>,
    session: &SessionId,
    name: &str,
) -> Result<Reply, RequestError> {
    let gone = || RequestError::new(RequestErrorKind::Closed, "the process is ending");
    let shared = shared.upgrade().ok_or_else(gone)?;
    let mut top = session.clone();
    for _ in 0..MAX_LEVELS {
        match shared.find_session(&top)?.log().with_view(|view| view.parent.clone()) {
            Some(parent) => top = parent,
            None => break,
        }
    }
    if name.is_empty() {
        return Ok(Reply::Opened { session: top });
    }
    let elfs = elfs_below(&shared, &top);
    let session = SessionId::new(find_elf(&elfs, name)?.status.session.as_str());
    Ok(Reply::Opened { session })
}

/// The one of that name, or with that session.
fn find_elf<'a>(elfs: &'a [Elf], name: &str) -> Result<&'a Elf, RequestError> {
    let is_meant = |elf: &&Elf| elf.name == name || elf.status.session == name;
    let meant: Vec<&Elf> = elfs.iter().filter(is_meant).collect();
    match meant.as_slice() {
        [elf] => Ok(elf),
        [] => {
            let cause = format!("no elf `{name}` is at work");
            Err(RequestError::new(RequestErrorKind::NotFound, cause)
                .with_remedy("`/elfs` shows those that are."))
        }
        several => {
            let ids: Vec<_> = several.iter().map(|elf| elf.status.session.as_str()).collect();
            let cause = format!("{} elfs are called `{name}`", several.len());
            Err(RequestError::new(RequestErrorKind::Invalid, cause)
                .with_remedy(format!("Name one by its session: {}.", ids.join(", "))))
        }
    }
}
