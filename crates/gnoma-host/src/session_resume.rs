//! Resumes a stored session: finds it and locks it.

use std::sync::Arc;

use anyhow::Context as _;
use gnoma_core::{
    Message, Usage,
    info::ResumedFrom,
    protocol::{HistoryNote, SessionSpec, Start},
    store::{
        Entry, HoldReport, Holder, Record, SessionFacts, SessionId, SessionStore as _,
        StoreErrorKind,
    },
    text_truncation,
};
use gnoma_engine::resume;

use crate::{
    HostError, HostErrorKind, Notices, Project, Result, clock,
    project_history::{ProjectHistory, cannot_write},
    shared::ProcessResources,
};

/// Characters of what an elf was to do.
const MAX_TASK_CHARS: usize = 60;

/// A held session and its conversation.
pub struct ContinuedSession {
    /// The saved sessions of the session's project.
    pub past: ProjectHistory,
    /// The id of the session; the copy's if it continues in one.
    pub id: SessionId,
    /// The conversation of the session, as a model receives it.
    pub history: Vec<Arc<Message>>,
    /// The stored notes on the conversation beside its messages.
    pub notes: Vec<HistoryNote>,
    /// The tokens of its calls.
    pub used: ConversationUsage,
    /// The size of the conversation, as its provider reported it.
    pub measured: Option<resume::MeasuredPrefix>,
    /// The title and age of the session, for people.
    pub resumed: ResumedFrom,
}

/// Tokens of a conversation that continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationUsage {
    /// The tokens of the last call, which still fill the context window; none after a summary.
    pub last_call: Usage,
    /// The tokens of all calls.
    pub all: Usage,
}

impl ConversationUsage {
    fn from_entries(path: &[Entry]) -> Self {
        let mut used = Self::default();
        for entry in path {
            match &entry.record {
                Record::Used(usage) => {
                    used.last_call = *usage;
                    used.all += *usage;
                }
                Record::Summary { .. } => used.last_call = Usage::default(),
                _ => (),
            }
        }
        used
    }
}

/// Holds the session that `start` names, or a copy of it; `None` if it names none.
///
/// # Errors
/// The settings do not allow sessions to continue, there is no such session, or it is open elsewhere
/// ([`HostErrorKind::Held`]).
pub async fn resume_session(project: &Project, start: &Start) -> Result<Option<ContinuedSession>> {
    let (named, fork) = match start {
        Start::New => return Ok(None),
        Start::Newest { fork } => (None, *fork),
        Start::Stored { id, fork } => (Some(id.as_str()), *fork),
    };
    may_continue(project)?;
    let past = ProjectHistory::open(project)?;
    let mut facts = past.find_session(named).await?;
    let resumed =
        ResumedFrom { title: facts.title.clone(), changed_ms: facts.changed_ms, is_copy: fork };
    if fork {
        facts = past.store.session_facts(past.fork(&facts.id, None).await?).await?;
    }
    let id = facts.id;
    let taken = past.store.hold_session(id.clone(), project.now_ms()).await;
    let taken = match taken.map_err(|error| (error.kind.clone(), error)) {
        Ok(taken) => taken,
        Err((StoreErrorKind::Held { by }, _)) => {
            return Err(session_held_error(&id, &by, project.now_ms()));
        }
        // The session continues all the same; a later notice says that new messages are not saved.
        Err((kind, _)) if cannot_write(&kind) => HoldReport::default(),
        Err((_, error)) => return Err(error).context(format!("cannot continue `{id}`"))?,
    };
    report_interruptions(&project.notices, &taken);
    // What a copy shares with its source is counted there.
    let path = match facts.forked_from {
        Some(_) => past.load_path(&id, None).await?,
        None => past.recent_entries(&id).await?,
    };
    let mut used = ConversationUsage::from_entries(&path);
    if facts.forked_from.is_none() {
        used.all = facts.usage;
    }
    let history = resume::rebuild_history(&path);
    let notes = resume::rebuild_notes(&path);
    let measured = resume::last_measured(&path);
    Ok(Some(ContinuedSession { past, id, history, notes, used, measured, resumed }))
}

/// Returns a number of calls in words, and the verb for it.
fn counted_calls(count: usize) -> (String, &'static str) {
    if count == 1 { ("a call".to_owned(), "was") } else { (format!("{count} calls"), "were") }
}

/// Says which calls and elfs of a session ended with the process that had it before.
fn report_interruptions(notices: &Notices, taken: &HoldReport) {
    if !taken.interrupted.is_empty() {
        let (calls, were) = counted_calls(taken.interrupted.len());
        notices.info(format_args!(
            "gnoma exited while {calls} of this session {were} running; the model is told so"
        ));
    }
    if !taken.unapproved.is_empty() {
        let (calls, _) = counted_calls(taken.unapproved.len());
        notices.info(format_args!(
            "gnoma exited while {calls} of this session waited for approval; none of it ran, and the model is told so"
        ));
    }
    if !taken.cut_off.is_empty() {
        let names = taken.cut_off.iter().map(describe_elf).collect::<Vec<_>>().join(", ");
        notices.info(format_args!(
            "gnoma exited while elfs of this session were at work: {names}. The model knows; ask \
             it to resume them"
        ));
    }
}

/// Holds an elf that a stored session started earlier.
///
/// # Errors
/// The session has started no such elf, nothing of it is saved, or it cannot be held.
pub(crate) async fn take_child(
    project: &Project,
    parent: Option<&SessionId>,
    id: &str,
) -> Result<ContinuedSession> {
    let unknown =
        || HostError::usage(format!("this session has no saved elf `{id}` that could be resumed"));
    let child = ProjectHistory::open(project)?.store.session_facts(SessionId::new(id)).await.ok();
    let of = child.and_then(|facts| facts.child).map(|child| child.parent);
    if of.is_none() || of.as_ref() != parent {
        return Err(unknown());
    }
    let start = Start::Stored { id: id.to_owned(), fork: false };
    resume_session(project, &start).await?.ok_or_else(unknown)
}

/// An elf in a few words.
fn describe_elf(facts: &SessionFacts) -> String {
    let name = facts.child.as_ref().map_or("", |child| child.name.as_str());
    format!("`{name}` ({})", text_truncation::head_chars(&facts.title, MAX_TASK_CHARS))
}

/// The stored session that a spec names. It is not held.
///
/// # Errors
/// The settings cannot be read or let none continue, or there is no such session.
pub(crate) async fn find_stored_session(
    shared: ProcessResources,
    spec: SessionSpec,
) -> Result<SessionId> {
    let project = Project::open(spec, Notices::without_sink(), shared)?;
    may_continue(&project)?;
    let named = match &project.spec.start {
        Start::Stored { id, .. } => Some(id.as_str()),
        Start::New | Start::Newest { .. } => None,
    };
    Ok(ProjectHistory::open(&project)?.find_session(named).await?.id)
}

/// Checks that the settings let a session be continued.
///
/// # Errors
/// The settings do not allow it.
pub fn may_continue(project: &Project) -> Result<()> {
    let why = if project.is_incognito() {
        "incognito cannot continue a session"
    } else if project.keeping.session.keep {
        return Ok(());
    } else {
        "`session.keep` is off, so the session cannot be continued"
    };
    Err(HostError::usage(why))
}

fn session_held_error(id: &SessionId, by: &Holder, now_ms: i64) -> HostError {
    let since = clock::describe_age(by.since_ms, now_ms);
    let remedy = format!("close it there, or continue in a copy: gnoma --resume {id} --fork \"…\"");
    HostError {
        kind: HostErrorKind::Held,
        cause: format!("session `{id}` is open in {by} (opened {since})"),
        remedy: Some(remedy),
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::store::EntryId;

    use super::*;

    #[test]
    fn resumed_context_size_is_the_last_call_until_compaction() {
        let tokens = |input| Usage { input, ..Usage::default() };
        let summary = Record::Summary { text: "short".to_owned(), up_to: EntryId(1) };
        let records = [Record::Used(tokens(10)), Record::Used(tokens(20)), summary];
        let entry = |(id, record)| Entry { id: EntryId(id), parent: None, at_ms: 0, record };
        let path: Vec<Entry> = (1..).zip(records).map(entry).collect();
        assert_eq!(
            ConversationUsage::from_entries(&path[..2]),
            ConversationUsage { last_call: tokens(20), all: tokens(30) }
        );
        assert_eq!(
            ConversationUsage::from_entries(&path),
            ConversationUsage { last_call: tokens(0), all: tokens(30) }
        );
    }
}
