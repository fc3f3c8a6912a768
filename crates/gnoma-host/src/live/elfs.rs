//! The elfs of a session as a person sees them: who works below it, on what, since when and for how much;
//! and how one of them is stopped.

use std::{sync::Weak, time::Duration};

use gnoma_core::{
    duration,
    protocol::{Reply, Request, RequestError, RequestErrorKind},
    store::SessionId,
    tool::{ChildState, ChildStatus},
};

use super::{handle::Live, replier::Replier, shared::Shared};

/// Levels that are shown; sessions do not start sessions deeper.
const MAX_LEVELS: usize = 8;

const NONE: &str = "no elfs are at work";

/// A session that another one started, with what is shown of it.
struct Elf {
    live: Live,
    name: String,
    status: ChildStatus,
    age_s: i64,
    level: usize,
    /// Micro-dollars of all below it.
    below_micro_usd: u64,
}

/// All below a session, each before those below it.
fn below(shared: &Shared, above: &SessionId) -> Vec<Elf> {
    let now_ms = shared.opener.now_ms();
    let all: Vec<Live> = shared.state().sessions.values().cloned().collect();
    let mut elfs = Vec::new();
    add(&all, above, (0, now_ms), &mut elfs);
    elfs
}

/// Adds those below a session; what they and all below them cost.
fn add(all: &[Live], above: &SessionId, (level, now_ms): (usize, i64), elfs: &mut Vec<Elf>) -> u64 {
    if level >= MAX_LEVELS {
        return 0;
    }
    let mut own: Vec<Elf> = all
        .iter()
        .filter(|live| live.is_child_of(above))
        .filter_map(|live| {
            let begun = live.log().with_view(|view| view.turn.as_ref().map(|turn| turn.started_ms));
            let age_s = begun.map_or(0, |begun| (now_ms - begun).max(0) / 1_000);
            let kept = live.kept();
            let following = kept.following.as_ref()?;
            let (name, status) = (following.name().to_owned(), following.now().clone());
            drop(kept);
            let below_micro_usd = status.below_micro_usd;
            Some(Elf { live: live.clone(), name, status, age_s, level, below_micro_usd })
        })
        .collect();
    gnoma_core::sort::by(&mut own, |one, other| {
        (&one.name, &one.status.session).cmp(&(&other.name, &other.status.session))
    });
    let mut micro_usd = 0;
    for elf in own {
        let (id, at) = (SessionId::new(elf.status.session.as_str()), elfs.len());
        elfs.push(elf);
        let below = add(all, &id, (level + 1, now_ms), elfs);
        if let Some(elf) = elfs.get_mut(at) {
            elf.below_micro_usd += below;
            micro_usd += elf.status.micro_usd + elf.below_micro_usd;
        }
    }
    micro_usd
}

impl Elf {
    fn line(&self) -> String {
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
        parts.push(format!("{} tokens", usage.total()));
        let below = self.below_micro_usd;
        if below > 0 {
            parts.push(format!("{} ({} with its elfs)", usd(*micro_usd), usd(micro_usd + below)));
        } else if *micro_usd > 0 {
            parts.push(usd(*micro_usd));
        }
        parts.push(duration::words(Duration::from_secs(self.age_s.unsigned_abs())));
        format!("{}{}", "  ".repeat(self.level), parts.join(" · "))
    }
}

fn usd(micro_usd: u64) -> String {
    format!("${}.{:04}", micro_usd / 1_000_000, micro_usd % 1_000_000 / 100)
}

/// The tree of them, a line each.
pub(super) fn told(shared: &Weak<Shared>, above: &SessionId) -> String {
    let Some(shared) = shared.upgrade() else { return NONE.to_owned() };
    let elfs = below(&shared, above);
    let mut lines: Vec<_> = elfs.iter().map(Elf::line).collect();
    if lines.is_empty() {
        lines.push(NONE.to_owned());
    }
    if let Ok(live) = shared.session(above) {
        lines.extend(live.kept().merges.iter().cloned());
    }
    lines.join("\n")
}

/// Stops the one of that name below a session.
pub(super) async fn cancel(shared: Weak<Shared>, above: SessionId, name: String, replier: Replier) {
    let elfs = shared.upgrade().map(|shared| below(&shared, &above)).unwrap_or_default();
    let outcome = match meant(&elfs, &name) {
        Ok(elf) => {
            let stopped = elf.live.ask(Request::Cancel).await;
            stopped.map(|_| Reply::Text(format!("elf `{name}` is stopping")))
        }
        Err(error) => Err(error),
    };
    replier.reply(outcome);
}

/// The session of the elf of that name: one of all that the person's session has; without a name that one.
pub(super) fn watched(
    shared: &Weak<Shared>,
    session: &SessionId,
    name: &str,
) -> Result<Reply, RequestError> {
    let gone = || RequestError::new(RequestErrorKind::Closed, "the process is ending");
    let shared = shared.upgrade().ok_or_else(gone)?;
    let mut top = session.clone();
    for _ in 0..MAX_LEVELS {
        match shared.session(&top)?.log().with_view(|view| view.parent.clone()) {
            Some(parent) => top = parent,
            None => break,
        }
    }
    if name.is_empty() {
        return Ok(Reply::Opened { session: top });
    }
    let elfs = below(&shared, &top);
    let session = SessionId::new(meant(&elfs, name)?.status.session.as_str());
    Ok(Reply::Opened { session })
}

/// The one of that name, or with that session.
fn meant<'a>(elfs: &'a [Elf], name: &str) -> Result<&'a Elf, RequestError> {
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
