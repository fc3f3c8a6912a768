//! The status of a child for its starter: its model, its activity, its changes and its spending.
//! Pure except for the channel.

use std::collections::BTreeSet;

use gnoma_core::{
    CallId, Event, ToolCall, Usage, text_truncation,
    tool::{ChildState, ChildStatus, tool_label},
};
use gnoma_engine::gate::NOBODY_TO_ASK;
use serde_json::Value;
use tokio::sync::watch;

/// Most changed files that are named.
const MAX_CHANGED: usize = 500;
/// Characters of what a call touches.
const MAX_SHOWN_CHARS: usize = 60;
/// Bytes of a call that are looked at for it.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// Folds what a session does into what its starter learns of it.
pub(super) struct ChildStatusFold {
    name: String,
    status: watch::Sender<ChildStatus>,
    now: ChildStatus,
    changed: BTreeSet<String>,
    /// The usage of the session's turns before this one.
    before: Usage,
    /// The last reviewer of the session's work, and what it found.
    found: (String, String),
    /// The session's questions that wait for a user.
    asked: BTreeSet<CallId>,
}

impl ChildStatusFold {
    /// The session, and whether its conversation is saved.
    pub(super) fn new(
        (session, is_saved): (String, bool),
        name: String,
        status: watch::Sender<ChildStatus>,
    ) -> Self {
        let now = ChildStatus { session, is_saved, ..ChildStatus::default() };
        status.send_replace(now.clone());
        let (changed, before, found, asked) = Default::default();
        Self { name, status, now, changed, before, found, asked }
    }

    /// Returns the starter's name for the session.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current status of the session.
    pub(super) fn current_status(&self) -> &ChildStatus {
        &self.now
    }

    /// Applies an event of the session to its status.
    pub(super) fn apply_event(&mut self, event: &Event) {
        let now = &mut self.now;
        match event {
            Event::RoundStarted { arm, .. } => {
                now.model = Some(arm.to_string());
                now.rounds += 1;
                set_activity(now, "waiting for the model");
            }
            Event::ArmChanged { to, .. } => now.model = Some(to.to_string()),
            Event::Thinking { .. } => set_activity(now, "thinking"),
            Event::Text { .. } => set_activity(now, "writing"),
            Event::ToolCallDrafted { name, .. } => {
                set_activity(now, &format!("preparing {}", tool_label(name)));
            }
            Event::ToolStarted { call } => set_activity(now, &describe_call(call)),
            Event::PermissionAsked { call, .. } => self.open_question(call),
            Event::PermissionDecided { call, allowed, reason } => {
                self.close_question(call, reason, *allowed);
            }
            Event::ToolEnded { diff: Some(diff), .. } if self.changed.len() < MAX_CHANGED => {
                self.changed.extend(changed_files(diff));
                now.changed = self.changed.iter().cloned().collect();
            }
            Event::Checking { by, .. } => set_activity(now, &format!("checked by {by}")),
            Event::Checked { passed, by, evidence, .. } => {
                now.passed = Some(*passed);
                self.found = (by.clone(), evidence.clone());
            }
            Event::Usage { turn, .. } => {
                now.usage = self.before;
                now.usage += *turn;
            }
            Event::Cost { session_micro_usd, .. } => now.micro_usd = *session_micro_usd,
            Event::TurnEnded { usage, .. } => self.end_turn(*usage),
            _ => return,
        }
        self.publish_status();
    }

    fn end_turn(&mut self, usage: Usage) {
        self.before += usage;
        self.now.usage = self.before;
        self.now.state = ChildState::Ended;
        self.now.doing.clear();
    }

    fn open_question(&mut self, call: &ToolCall) {
        self.asked.insert(call.id.clone());
        self.now.state = ChildState::Asking;
    }

    fn close_question(&mut self, call: &CallId, reason: &str, is_allowed: bool) {
        self.asked.remove(call);
        if self.asked.is_empty() {
            self.now.state = ChildState::Working;
        }
        if !is_allowed && reason.contains(NOBODY_TO_ASK) {
            self.now.unattended_denial.get_or_insert_with(|| reason.to_owned());
        }
    }

    /// Forgets the verdict on the session's work, because the work is checked again.
    pub(super) fn forget_verdict(&mut self) {
        self.now.passed = None;
    }

    /// Returns the last reviewer of the session's work, and what it found.
    pub(super) fn last_review(&self) -> (&str, &str) {
        (&self.found.0, &self.found.1)
    }

    /// Adds the cost of a session that this one started and that has ended.
    pub(super) fn add_child_cost(&mut self, last: &ChildStatus) {
        self.now.below_micro_usd += last.micro_usd + last.below_micro_usd;
        self.publish_status();
    }

    fn publish_status(&mut self) {
        let now = &self.now;
        self.status.send_if_modified(|told| {
            let is_new = told != now;
            if is_new {
                told.clone_from(now);
            }
            is_new
        });
    }
}

fn set_activity(now: &mut ChildStatus, what: &str) {
    if matches!(now.state, ChildState::Starting | ChildState::Ended) {
        now.state = ChildState::Working;
    }
    if now.doing != what {
        what.clone_into(&mut now.doing);
    }
}

/// A call in a few words: its tool, and the first text of its arguments.
fn describe_call(call: &ToolCall) -> String {
    let label = tool_label(&call.name);
    let arguments = call.arguments.get();
    let values = (arguments.len() <= MAX_SHOWN_BYTES).then(|| call.arguments.read::<Value>().ok());
    let Some(Some(Value::Object(values))) = values else { return label.into_owned() };
    let preferred = ["path", "command", "pattern", "url", "name"];
    let named = preferred.iter().filter_map(|name| values.get(*name)).chain(values.values());
    let Some(text) = named.filter_map(Value::as_str).next() else { return label.into_owned() };
    let line = text.lines().next().unwrap_or_default().trim();
    let head = text_truncation::head_chars(line, MAX_SHOWN_CHARS);
    let mark = if head.len() < text.trim().len() { "…" } else { "" };
    format!("{label} {head}{mark}")
}

/// The files that a diff changes.
fn changed_files(diff: &str) -> impl Iterator<Item = String> {
    let lines: Vec<&str> = diff.lines().collect();
    let files = lines.windows(2).filter_map(|pair| match pair {
        [old, new] if old.starts_with("--- ") => {
            let name = new.strip_prefix("+++ b/").or_else(|| old.strip_prefix("--- a/"));
            name.map(ToOwned::to_owned)
        }
        _ => None,
    });
    files.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use gnoma_core::{ModelRef, RawJson, ToolResult};
    use serde_json::json;

    use super::*;

    fn call(name: &str, arguments: &Value) -> ToolCall {
        ToolCall::new(CallId::new("c"), name, RawJson::from_value(arguments).unwrap())
    }

    fn followed(events: &[Event]) -> ChildStatus {
        let (status, told) = watch::channel(ChildStatus::default());
        let mut following =
            ChildStatusFold::new(("s1".to_owned(), false), "elf".to_owned(), status);
        events.iter().for_each(|event| following.apply_event(event));
        assert_eq!(*told.borrow(), *following.current_status());
        following.current_status().clone()
    }

    #[test]
    fn child_session_status_shows_the_current_tool_call() {
        let arm = ModelRef { provider: "p".to_owned(), model: "m".to_owned() };
        let began = Event::RoundStarted { round: 1, arm, why: String::new() };
        let read = call("fs.read", &json!({"max": 3, "path": "src/a.rs"}));
        let running = followed(&[began, Event::ToolStarted { call: read }]);
        assert_eq!(running.model.as_deref(), Some("p/m"));
        assert_eq!((running.doing.as_str(), running.rounds), ("Read src/a.rs", 1));
        assert_eq!(running.state, ChildState::Working);
        let long = call("bash", &json!({"command": "word ".repeat(40)}));
        let doing = followed(&[Event::ToolStarted { call: long }]).doing;
        assert!(doing.starts_with("Bash word word") && doing.ends_with('…'), "{doing}");
        assert!(doing.chars().count() <= "bash ".len() + MAX_SHOWN_CHARS + 1, "{doing}");
        let huge = call("bash", &json!({"command": "x".repeat(MAX_SHOWN_BYTES)}));
        assert_eq!(followed(&[Event::ToolStarted { call: huge }]).doing, "Bash");
    }

    #[test]
    fn child_session_status_lists_changed_files_and_open_questions() {
        let edit = call("fs.edit", &json!({"path": "b.rs"}));
        let diff =
            "--- /dev/null\n+++ b/b.rs\n@@ -0,0 +1 @@\n+++ b/no.rs\n--- a/a.rs\n+++ b/a.rs\n";
        let ended = Event::ToolEnded {
            result: ToolResult::from_text(&edit, "edited", false),
            call: edit.clone(),
            diff: Some(diff.to_owned()),
            duration_ms: 1,
            command: None,
        };
        let asked = Event::PermissionAsked {
            call: edit.clone(),
            reason: String::new(),
            preview: None,
            always: None,
            inquiry: None,
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        };
        let status = followed(&[ended, asked.clone()]);
        assert_eq!(
            (status.changed, status.state),
            (vec!["a.rs".into(), "b.rs".into()], ChildState::Asking)
        );
        let decided =
            Event::PermissionDecided { call: edit.id, allowed: true, reason: String::new() };
        let usage = Usage { input: 3, ..Usage::default() };
        let spent = Event::Usage { round: usage, turn: usage };
        let status = followed(&[asked, decided, spent]);
        assert_eq!((status.state, status.usage), (ChildState::Working, usage));
    }
}
