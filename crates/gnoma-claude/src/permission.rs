//! Asks the driving program whether a tool call may run (`can_use_tool`).
//!
//! The program stands where a person does: what it says is an answer to the question that would be put to
//! one, and nothing that would be refused unasked is put to it.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    CallId, RawJson, ToolCall,
    json_value::json,
    lifecycle::PointAnswer,
    session::{Inquiry, PermissionAnswer},
};
use gnoma_extend::claude::{our_input, their_input, their_name};
use gnoma_front::report;
use gnoma_guard::permission::{AddedRules, Origin, RuleAction};
use serde_json::Value;
use tokio::{sync::Notify, time::timeout};

use super::{
    control::ControlChannel,
    error::DriverError,
    rules,
    updates::{self, Update},
};

/// Longest wait for an answer.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Calls that are remembered to have been approved and were not asked for yet.
const MAX_APPROVED: usize = 4_096;

/// The changes that a program requests for the session along with its answers. A later request for the same thing
/// replaces an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestedChanges {
    /// True if the turn is to end.
    pub(super) interrupt: bool,
    /// Another permission mode, by its name there.
    pub(super) mode: Option<String>,
}

/// A call of a session: an id says which call of one message is meant, and no more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionCall {
    /// The session, where it is a sub-agent.
    pub(super) session: Option<String>,
    /// The id of the call within its message.
    pub(super) call: CallId,
}

/// The channel that asks the program for approval and remembers its answers. Clones share their state.
#[derive(Clone)]
pub(super) struct Permission(Arc<ApprovalState>);

struct ApprovalState {
    control: ControlChannel,
    /// The program answers questions.
    asks: bool,
    /// True if calls that need approval are denied.
    denies: AtomicBool,
    /// Calls that the program has let through, until they run.
    approved: Mutex<HashSet<SessionCall>>,
    /// Rules that came with its answers.
    since: AddedRules,
    wishes: Mutex<RequestedChanges>,
    /// The signal that wishes have arrived.
    wished: Notify,
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Permission {
    /// Creates a channel that asks the program if `asks` is true; otherwise calls that need approval are denied.
    pub(super) fn new(control: ControlChannel, asks: bool) -> Self {
        Self(Arc::new(ApprovalState {
            control,
            asks,
            denies: AtomicBool::new(false),
            approved: Mutex::default(),
            since: AddedRules::default(),
            wishes: Mutex::default(),
            wished: Notify::new(),
        }))
    }

    /// From now on nothing is asked, and what needs approval is denied; or no longer.
    pub(super) fn set_denies(&self, denies: bool) {
        self.0.denies.store(denies, Ordering::Relaxed);
    }

    /// True if the program can be asked at all.
    pub(super) fn can_ask(&self) -> bool {
        self.0.asks
    }

    /// The rules that came with its answers.
    pub(super) fn rules_since(&self) -> AddedRules {
        self.0.since.clone()
    }

    /// The program has let a call through before it was asked.
    pub(super) fn approve_call(&self, call: SessionCall) {
        let mut approved = lock_ignoring_poison(&self.0.approved);
        if approved.len() < MAX_APPROVED {
            approved.insert(call);
        }
    }

    /// Returns true if the program has approved the call. The approval is used up by this.
    pub(super) fn takes_approval(&self, call: &SessionCall) -> bool {
        lock_ignoring_poison(&self.0.approved).remove(call)
    }

    /// Removes the approval of the call.
    pub(super) fn revoke_approval(&self, call: &SessionCall) {
        lock_ignoring_poison(&self.0.approved).remove(call);
    }

    /// The turn of a session is over, and with it each of its calls.
    pub(super) fn forget_all(&self, session: Option<&str>) {
        lock_ignoring_poison(&self.0.approved).retain(|call| call.session.as_deref() != session);
    }

    /// Waits until the program requests changes of the session, and returns them. Safe to drop.
    pub(super) async fn next_wishes(&self) -> RequestedChanges {
        loop {
            let wishes = std::mem::take(&mut *lock_ignoring_poison(&self.0.wishes));
            if wishes != RequestedChanges::default() {
                return wishes;
            }
            self.0.wished.notified().await;
        }
    }

    /// Does what is wanted along with a decision about a call; what cannot be done is said. `allows`: the call
    /// is let through.
    pub(super) fn take_updates(&self, decision: &Value, allows: bool) {
        let behavior = decision.get("behavior").and_then(Value::as_str);
        let (updates, mut faults) =
            updates::parse_updates(decision, allows && behavior == Some("allow"));
        let since = &self.0.since;
        let mut wishes = RequestedChanges::default();
        for update in updates {
            match update {
                Update::Add(rule) => {
                    let text = format!(
                        "`{} {rule}` is not applied: there are too many rules",
                        rule.action
                    );
                    faults.extend((!since.add_rule(rule)).then_some(text));
                }
                Update::Clear(action) => since.clear(action),
                Update::Remove(rule) => {
                    let text = format!("`{} {rule}` stays: no answer has added it", rule.action);
                    faults.extend((!since.remove(&rule)).then_some(text));
                }
                Update::Mode(mode) => wishes.mode = Some(mode),
            }
        }
        let interrupt = decision.get("interrupt").and_then(Value::as_bool);
        wishes.interrupt = behavior == Some("deny") && interrupt == Some(true);
        for fault in faults {
            report::print_line(format_args!("gnoma: {fault}"));
        }
        let mut all = lock_ignoring_poison(&self.0.wishes);
        all.interrupt |= wishes.interrupt;
        all.mode = wishes.mode.or(all.mode.take());
        self.0.wished.notify_one();
    }

    /// A call is about to be asked for.
    pub(super) async fn before_question(
        &self,
        of: SessionCall,
        call: &ToolCall,
        reason: &str,
    ) -> PointAnswer {
        if lock_ignoring_poison(&self.0.approved).contains(&of) {
            return PointAnswer::default();
        }
        let input = their_input(&call.name, call.arguments.read().unwrap_or_default());
        let answer = self.request_permission(&call.name, &call.id, &input, reason).await;
        match answer.and_then(|answer| changed_arguments(&call.name, &input, &answer)) {
            Err(why) => PointAnswer { block: Some(why.to_string()), ..PointAnswer::default() },
            Ok(arguments) => {
                self.approve_call(of);
                PointAnswer { arguments, ..PointAnswer::default() }
            }
        }
    }

    /// The answer to a question that came up otherwise, such as in the middle of a call.
    pub(super) async fn ask_question(
        &self,
        call: ToolCall,
        reason: String,
        inquiry: Option<Inquiry>,
    ) -> PermissionAnswer {
        let input = match &inquiry {
            Some(Inquiry { choices }) => {
                their_input("ask", json!({"question": reason, "choices": choices}))
            }
            None => their_input(&call.name, call.arguments.read().unwrap_or_default()),
        };
        let name = if inquiry.is_some() { "ask" } else { &call.name };
        match self.request_permission(name, &call.id, &input, &reason).await {
            Err(why) => PermissionAnswer::Deny { reason: why.to_string() },
            Ok(answer) if inquiry.is_some() => parse_answer(&answer),
            Ok(answer) if updated_input(&answer).is_some_and(|it| *it != input) => {
                let reason = "its input cannot be changed any more".to_owned();
                PermissionAnswer::Deny { reason }
            }
            Ok(_) => PermissionAnswer::Allow,
        }
    }

    /// Asks the program for approval and returns its answer if it allows the call.
    ///
    /// # Errors
    /// Why the call may not run.
    async fn request_permission(
        &self,
        name: &str,
        call: &CallId,
        input: &Value,
        reason: &str,
    ) -> Result<Value, DriverError> {
        if !self.0.asks || self.0.denies.load(Ordering::Relaxed) {
            return Err(DriverError::NotApproved { reason: reason.to_owned() });
        }
        let request = json!({"subtype": "can_use_tool", "tool_name": their_name(name),
            "display_name": their_name(name), "input": input, "tool_use_id": call,
            "decision_reason": reason, "permission_suggestions": suggest_rules(name, input)});
        let answer = timeout(MAX_WAIT, self.0.control.send_request(request)).await;
        let answer = answer.unwrap_or(Err(DriverError::TimedOut));
        let answer = answer.map_err(|error| DriverError::NotAsked(Box::new(error)))?;
        self.take_updates(&answer, true);
        match answer.get("behavior").and_then(Value::as_str) {
            Some("allow") => Ok(answer),
            Some("deny") => {
                let message = answer.get("message").and_then(Value::as_str).unwrap_or_default();
                let message = if message.is_empty() { "it was denied" } else { message };
                Err(DriverError::Denied(message.to_owned()))
            }
            _ => Err(DriverError::UnclearAnswer),
        }
    }
}

/// The words of an answer to a question of the model's.
fn parse_answer(answer: &Value) -> PermissionAnswer {
    let answers = answer.pointer("/updatedInput/answers").and_then(Value::as_object);
    let first = answers.and_then(|answers| answers.values().next());
    match first {
        Some(Value::String(text)) => PermissionAnswer::Text { text: text.clone() },
        Some(Value::Array(texts)) => {
            let texts: Vec<_> = texts.iter().filter_map(Value::as_str).collect();
            PermissionAnswer::Text { text: texts.join(", ") }
        }
        _ => PermissionAnswer::Deny { reason: String::new() },
    }
}

/// The input that an answer wants.
fn updated_input(answer: &Value) -> Option<&Value> {
    answer.get("updatedInput").filter(|it| !it.is_null())
}

/// The arguments that a call is to have in place of `input`, where an answer changes them.
///
/// # Errors
/// They cannot be: then those that were to be changed do not run either.
fn changed_arguments(
    name: &str,
    input: &Value,
    answer: &Value,
) -> Result<Option<RawJson>, DriverError> {
    let Some(wanted) = updated_input(answer).filter(|it| *it != input) else { return Ok(None) };
    let ours = wanted.is_object().then(|| our_input(name, wanted.clone()));
    let arguments = ours.and_then(|ours| RawJson::from_value(&ours).ok());
    arguments.map(Some).ok_or(DriverError::InvalidInput)
}

/// Returns the permission updates that the program may offer as a lasting answer: they never cover more than calls
/// like this one.
fn suggest_rules(name: &str, input: &Value) -> Value {
    let text = |field: &str| {
        let text = input.get(field).and_then(Value::as_str);
        text.filter(|text| !text.contains(['*', '?']) && !text.trim().is_empty())
    };
    let inside = match name {
        "fs.write" | "fs.edit" => {
            return json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        }
        "bash" => text("command").map(str::to_owned),
        "fs.read" => text("file_path").map(|path| match path.starts_with('/') {
            true => format!("/{path}"),
            false => path.to_owned(),
        }),
        name if name.starts_with("mcp__") => Some(String::new()),
        _ => None,
    };
    let theirs = their_name(name);
    let can_be_read = |inside: &String| {
        let written =
            if inside.is_empty() { theirs.to_owned() } else { format!("{theirs}({inside})") };
        rules::parse_rules(RuleAction::Allow, &written, Origin::Session).is_ok()
    };
    let Some(inside) = inside.filter(can_be_read) else { return json!([]) };
    let mut rule = json!({"toolName": theirs});
    if let Some(fields) = rule.as_object_mut().filter(|_| !inside.is_empty()) {
        fields.insert("ruleContent".to_owned(), inside.into());
    }
    json!([{"type": "addRules", "behavior": "allow", "destination": "session", "rules": [rule]}])
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::task::JoinSet;

    use super::*;

    fn call() -> ToolCall {
        let arguments = RawJson::from_value(&json!({"path": "a", "content": "x"})).unwrap();
        ToolCall::new(CallId::new("c1"), "fs.write", arguments)
    }

    fn of(session: Option<&str>) -> SessionCall {
        SessionCall { session: session.map(str::to_owned), call: CallId::new("c1") }
    }

    /// What becomes of a call that the program answers so.
    async fn asked(answer: Result<Value, &str>) -> (PointAnswer, bool, RequestedChanges, Value) {
        let (control, mut out) = ControlChannel::new();
        let permission = Permission::new(control.clone(), true);
        let asking = permission.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { asking.before_question(of(None), &call(), "why").await });
        let request = out.recv().await.unwrap().message;
        let id = &request["request_id"];
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        control.on_response(&json!({"response": response}));
        let answer = tasks.join_next().await.unwrap().unwrap();
        let wishes = permission.next_wishes().now_or_never().unwrap_or_default();
        (answer, permission.takes_approval(&of(None)), wishes, request)
    }

    #[tokio::test]
    async fn permission_response_allows_denies_or_updates_input() {
        let input = json!({"file_path": "a", "content": "x"});
        let allow = json!({"behavior": "allow", "updatedInput": input});
        let (answer, approved, _, request) = asked(Ok(allow)).await;
        assert_eq!(request["request"]["tool_name"], "Write");
        assert_eq!(request["request"]["input"], input);
        assert_eq!((answer, approved), (PointAnswer::default(), true));
        let changed = json!({"behavior": "allow", "updatedInput": {"file_path": "b"}});
        let (answer, approved, ..) = asked(Ok(changed)).await;
        assert_eq!(answer.arguments.unwrap().get(), r#"{"path":"b"}"#);
        assert!(approved);
        let deny = json!({"behavior": "deny", "message": "no", "interrupt": true});
        let (answer, approved, wishes, _) = asked(Ok(deny)).await;
        assert_eq!((answer.block.as_deref(), approved), (Some("no"), false));
        assert_eq!(wishes, RequestedChanges { interrupt: true, mode: None });
        let no_object = json!({"behavior": "allow", "updatedInput": "rm -rf"});
        for broken in [Ok(json!({})), Ok(json!("allow")), Ok(no_object), Err("crashed")] {
            let (answer, approved, ..) = asked(broken).await;
            assert!(answer.block.is_some() && !approved);
        }
    }

    #[tokio::test]
    async fn permission_updates_apply_at_once_and_none_is_lost() {
        let (control, _out) = ControlChannel::new();
        let permission = Permission::new(control, true);
        let rule = json!({"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Bash"}]});
        let mode = json!({"type": "setMode", "mode": "plan"});
        for _ in 0..200 {
            let decision = json!({"behavior": "allow", "updatedPermissions": [mode]});
            permission.take_updates(&decision, true);
        }
        let denies = json!({"behavior": "deny", "interrupt": true, "updatedPermissions": [rule]});
        permission.take_updates(&denies, true);
        let wanted = RequestedChanges { interrupt: true, mode: Some("plan".to_owned()) };
        assert_eq!(permission.next_wishes().await, wanted);
        assert!(permission.next_wishes().now_or_never().is_none());
        let [rule] = rules::parse_rules(RuleAction::Deny, "Bash", Origin::Session)
            .unwrap()
            .try_into()
            .unwrap();
        assert!(permission.rules_since().remove(&rule));
    }

    #[tokio::test]
    async fn an_approval_is_for_one_call_of_one_session() {
        let (control, _out) = ControlChannel::new();
        let permission = Permission::new(control, false);
        assert!(permission.before_question(of(None), &call(), "why").await.block.is_some());
        permission.approve_call(of(None));
        let asked = permission.before_question(of(None), &call(), "why").await;
        assert_eq!(asked, PointAnswer::default());
        assert!(permission.before_question(of(Some("s")), &call(), "why").await.block.is_some());
        assert!(!permission.takes_approval(&of(Some("s"))) && permission.takes_approval(&of(None)));
        assert!(!permission.takes_approval(&of(None)));
        permission.approve_call(of(None));
        permission.approve_call(of(Some("s")));
        permission.forget_all(None);
        assert!(!permission.takes_approval(&of(None)) && permission.takes_approval(&of(Some("s"))));
    }

    #[test]
    fn suggested_rules_cover_only_this_call() {
        let inside = |name: &str, input: Value| {
            let all = suggest_rules(name, &input);
            all[0]["rules"][0]["ruleContent"].as_str().map(str::to_owned)
        };
        let bash = |command: &str| inside("bash", json!({"command": command}));
        assert_eq!(bash("npm test").as_deref(), Some("npm test"));
        for wide in ["rm *", "rm :*", "a && b", ""] {
            assert_eq!(suggest_rules("bash", &json!({"command": wide})), json!([]), "{wide}");
        }
        let read = |path: &str| inside("fs.read", json!({"file_path": path}));
        assert_eq!((read("a/b"), read("/etc/x")), (Some("a/b".into()), Some("//etc/x".into())));
        let server = suggest_rules("mcp__a__b", &json!({}));
        assert_eq!(server[0]["rules"], json!([{"toolName": "mcp__a__b"}]));
    }
}
