//! Takes a checkpoint of files before a tool call changes them.
//!
//! Decides which calls need this, and waits for the port beside the session, in the call's own task: calls that
//! only read never wait. What a checkpoint contains and how it is restored is up to the port.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use gnoma_core::{
    ToolCall, ToolSpec,
    store::{Checkpoints, Durability, Record, StoreError},
    tool::{Access, Grant, TouchedResource},
};
use gnoma_guard::firewall::Firewall;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::{
    persistence_options::CheckpointFailurePolicy, record::RecordSender,
    session_notices::NoticeSender,
};

/// Characters of a label.
const MAX_LABEL_CHARS: usize = 80;

/// Bytes of an argument that are looked at for a label.
const MAX_LABEL_SOURCE_BYTES: usize = 4096;

/// Label of what is kept when a turn is over.
const AFTER_TURN: &str = "after the turn";

/// The reason why a call does not run: the files before it could not be saved.
#[derive(thiserror::Error)]
#[error("not run: could not checkpoint the files first ({0})")]
pub(crate) struct CheckpointError(#[source] StoreError);

gnoma_core::debug_as_display!(CheckpointError);

/// The port, with what a session adds to it.
pub(crate) struct CheckpointSaver {
    pub(crate) checkpoints: Arc<dyn Checkpoints>,
    pub(crate) unkept: CheckpointFailurePolicy,
    pub(crate) ink: Option<RecordSender>,
    pub(crate) asides: NoticeSender,
    /// States are kept in the order in which it was asked for them.
    order: Mutex<()>,
    has_told: AtomicBool,
}

impl CheckpointSaver {
    pub(crate) fn new(
        checkpoints: Arc<dyn Checkpoints>,
        unkept: CheckpointFailurePolicy,
        ink: Option<RecordSender>,
        asides: NoticeSender,
        is_told: bool,
    ) -> Self {
        let (order, has_told) = (Mutex::default(), AtomicBool::new(is_told));
        Self { checkpoints, unkept, ink, asides, order, has_told }
    }

    /// Reports whether a call may begin while the checkpoint of the files before it is still being saved: true if
    /// the call runs even without a checkpoint and no other save is under way.
    pub(crate) fn may_be_beside(&self) -> bool {
        matches!(self.unkept, CheckpointFailurePolicy::Run) && self.order.try_lock().is_ok()
    }

    /// Saves the files before a call. An error is the reason why the call must not run.
    pub(crate) async fn keep_before(&self, label: String) -> Result<(), CheckpointError> {
        match (self.save_checkpoint(label).await, self.unkept) {
            (Ok(()), _) | (Err(_), CheckpointFailurePolicy::Run) => Ok(()),
            (Err(error), CheckpointFailurePolicy::Refuse) => Err(CheckpointError(error)),
        }
    }

    /// Keeps what a turn has made, so that later changes are the person's own.
    pub(crate) async fn keep_after_turn(&self) {
        // A failure has been told.
        drop(self.save_checkpoint(AFTER_TURN.to_owned()).await);
    }

    async fn save_checkpoint(&self, label: String) -> Result<(), StoreError> {
        let _in_order = self.order.lock().await;
        match self.checkpoints.save_checkpoint(label).await {
            Ok(id) => {
                if let Some(ink) = &self.ink {
                    let record = Record::Checkpoint { id };
                    ink.store_record(record, Durability::Process, false).await;
                }
                Ok(())
            }
            Err(error) => {
                self.tell_once(&error.sentence);
                Err(error)
            }
        }
    }

    fn tell_once(&self, why: &str) {
        if self.has_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let remedy = match self.unkept {
            CheckpointFailurePolicy::Run => "changes made now cannot be undone with `gnoma rewind`",
            CheckpointFailurePolicy::Refuse => "calls that could change files are not run",
        };
        self.asides.warn(format!("could not checkpoint the files: {why}; {remedy}"));
    }
}

/// Reports whether a judged call can change nothing except what its tool itself holds.
pub(crate) fn only_reads(spec: &ToolSpec, call: &ToolCall, grant: &Grant) -> bool {
    // Outside the sandbox nothing holds a command to what it was taken for.
    let is_held = grant.reads_only && !grant.outside;
    let reads = |touches: &TouchedResource| match touches {
        TouchedResource::Command(_) => is_held,
        TouchedResource::Action(name, looks) => text_argument(call, name)
            .is_some_and(|action| looks.iter().any(|look| **look == *action)),
        TouchedResource::Path(_) | TouchedResource::Url(_) => false,
    };
    spec.access == Access::Read || (!spec.touches.is_empty() && spec.touches.iter().all(reads))
}

/// Returns the label of a call in the list of checkpoints: the tool and the beginning of what it touches, without
/// secrets.
pub(crate) fn checkpoint_label(spec: &ToolSpec, call: &ToolCall, firewall: &Firewall) -> String {
    let touched = spec.touches.iter().find_map(|touches| text_argument(call, touches.argument()));
    let mut touched = touched.unwrap_or_default();
    // Cut where no secret can be cut in two and slip through: between words, before looking.
    if touched.len() > MAX_LABEL_SOURCE_BYTES {
        touched.truncate(touched.floor_char_boundary(MAX_LABEL_SOURCE_BYTES));
        touched.truncate(touched.rfind(char::is_whitespace).unwrap_or(0));
    }
    let clean = firewall.redact_text(&touched);
    let words = clean.split_whitespace().fold(call.name.clone(), |line, word| line + " " + word);
    clip_label(&words)
}

fn clip_label(line: &str) -> String {
    match line.char_indices().nth(MAX_LABEL_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

fn text_argument(call: &ToolCall, name: &str) -> Option<String> {
    match call.arguments.read::<Value>().ok()?.get_mut(name)?.take() {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        CallId, RawJson,
        tool::{Tier, ToolKind},
    };
    use gnoma_guard::{
        firewall::{self, Policy},
        secrets::Scanner,
    };
    use serde_json::json;

    use super::*;

    fn spec(access: Access, touches: TouchedResource) -> ToolSpec {
        ToolSpec {
            name: "t".into(),
            description: String::new(),
            parameters: RawJson::empty_object(),
            access,
            touches: [touches].into(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        }
    }

    fn call(arguments: &Value) -> ToolCall {
        ToolCall::new(CallId::new("c"), "t", RawJson::from_value(arguments).unwrap())
    }

    fn firewall() -> Firewall {
        Firewall::new(firewall::FirewallOptions {
            scanner: Scanner::new(Default::default()).unwrap(),
            policy: Policy::default(),
            allowed: Vec::new(),
            first_placeholder: 1,
        })
    }

    #[test]
    fn checkpoint_is_taken_before_any_call_not_known_to_be_read_only() {
        let none = call(&json!({}));
        let held = Grant { reads_only: true, ..Grant::default() };
        let loose = Grant { outside: true, ..held.clone() };
        let command = spec(Access::Execute, TouchedResource::command("command"));
        assert!(only_reads(
            &spec(Access::Read, TouchedResource::url("url")),
            &none,
            &Grant::default()
        ));
        assert!(only_reads(&command, &none, &held));
        assert!(!only_reads(&command, &none, &loose));
        assert!(!only_reads(&command, &none, &Grant::default()));
        assert!(!only_reads(
            &spec(Access::Edit, TouchedResource::path("p")),
            &none,
            &Grant::default()
        ));
        let job = spec(Access::Execute, TouchedResource::action("action", ["list"]));
        for (action, reads) in [("list", true), ("write", false)] {
            let call = call(&json!({ "action": action }));
            assert_eq!(only_reads(&job, &call, &Grant::default()), reads, "{action}");
        }
    }

    #[test]
    fn checkpoint_label_is_short_and_redacts_secrets() {
        let token = ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
        let shell = spec(Access::Execute, TouchedResource::command("command"));
        let named = |command: &str| {
            checkpoint_label(&shell, &call(&json!({ "command": command })), &firewall())
        };
        assert_eq!(named("make\n  all"), "t make all");
        let secret = named(&format!("push --token={token}"));
        assert!(secret.starts_with("t push --token=") && !secret.contains(&token[4..]), "{secret}");
        assert_eq!(named(&"x ".repeat(10_000)).chars().count(), MAX_LABEL_CHARS + 1);
        let cut = format!("{} {token}", "y ".repeat(MAX_LABEL_SOURCE_BYTES / 2 - 5));
        assert!(!named(&cut).contains("gh"));
    }
}
