//! Whether a call may run, asked of the program that drives the session.
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
    lifecycle::PointAnswer,
    session::{Inquiry, PermissionAnswer},
};
use gnoma_extend::claude::{our_input, their_input, their_name};
use gnoma_guard::permission::{Origin, RuleAction};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{control::Control, rules};

/// Longest wait for an answer.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Wishes that may wait for the session.
const MAX_WISHES: usize = 64;
/// Calls that are remembered to have been approved and were not asked for yet.
const MAX_APPROVED: usize = 4_096;

/// What a program wants of the session along with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The turn ends.
    Interrupt,
    /// Another permission mode, by its name there.
    Mode(String),
    /// A rule that allows, as gnoma's rules are written.
    Rule(String),
}

/// Who is asked, and what was answered. Clones are the same.
#[derive(Clone)]
pub(super) struct Permission(Arc<Asking>);

struct Asking {
    control: Control,
    /// The program answers questions.
    asks: bool,
    /// What needs approval is denied.
    denies: AtomicBool,
    /// Calls that the program has let through, until they are asked for.
    approved: Mutex<HashSet<CallId>>,
    wishes: mpsc::Sender<Wish>,
}

impl Permission {
    /// Where the program `asks` to be asked, it is; else what needs approval is denied.
    pub(super) fn new(control: Control, asks: bool) -> (Self, mpsc::Receiver<Wish>) {
        let (wishes, wished) = mpsc::channel(MAX_WISHES);
        let (denies, approved) = (AtomicBool::new(false), Mutex::default());
        (Self(Arc::new(Asking { control, asks, denies, approved, wishes })), wished)
    }

    /// From now on nothing is asked, and what needs approval is denied; or no longer.
    pub(super) fn set_denies(&self, denies: bool) {
        self.0.denies.store(denies, Ordering::Relaxed);
    }

    /// Whether the program can be asked at all.
    pub(super) fn asks(&self) -> bool {
        self.0.asks
    }

    fn approved(&self) -> MutexGuard<'_, HashSet<CallId>> {
        self.0.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program has let a call through before it was asked.
    pub(super) fn approve(&self, call: CallId) {
        let mut approved = self.approved();
        if approved.len() < MAX_APPROVED {
            approved.insert(call);
        }
    }

    /// Whether the program has let the call through; once.
    pub(super) fn takes_approval(&self, call: &CallId) -> bool {
        self.approved().remove(call)
    }

    /// A call is about to be asked for.
    pub(super) async fn before_question(&self, call: &ToolCall, reason: &str) -> PointAnswer {
        if self.approved().contains(&call.id) {
            return PointAnswer::default();
        }
        let input = their_input(&call.name, call.arguments.read().unwrap_or_default());
        match self.asked(&call.name, &call.id, &input, reason).await {
            Err(why) => PointAnswer { block: Some(why), ..PointAnswer::default() },
            Ok(answer) => {
                self.approve(call.id.clone());
                let changed =
                    answer.get("updatedInput").filter(|it| it.is_object() && **it != input);
                let ours = changed.map(|it| our_input(&call.name, it.clone()));
                let arguments = ours.and_then(|ours| RawJson::of(&ours).ok());
                PointAnswer { arguments, ..PointAnswer::default() }
            }
        }
    }

    /// The answer to a question that came up otherwise, such as in the middle of a call.
    pub(super) async fn answer(
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
        match self.asked(name, &call.id, &input, &reason).await {
            Err(reason) => PermissionAnswer::Deny { reason },
            Ok(answer) if inquiry.is_some() => said(&answer),
            Ok(answer) if answer.get("updatedInput").is_some_and(|it| *it != input) => {
                let reason = "its input cannot be changed any more".to_owned();
                PermissionAnswer::Deny { reason }
            }
            Ok(_) => PermissionAnswer::Allow,
        }
    }

    /// What the program says where it allows.
    ///
    /// # Errors
    /// Why the call may not run.
    async fn asked(
        &self,
        name: &str,
        call: &CallId,
        input: &Value,
        reason: &str,
    ) -> Result<Value, String> {
        if !self.0.asks || self.0.denies.load(Ordering::Relaxed) {
            return Err(format!(
                "this needs approval, and whoever runs the session has not given it: {reason}"
            ));
        }
        let suggestions = match name {
            "fs.write" | "fs.edit" => {
                json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}])
            }
            _ => json!([{"type": "addRules", "behavior": "allow", "destination": "session",
                "rules": [{"toolName": their_name(name)}]}]),
        };
        let request = json!({"subtype": "can_use_tool", "tool_name": their_name(name),
            "display_name": their_name(name), "input": input, "tool_use_id": call,
            "decision_reason": reason, "permission_suggestions": suggestions});
        let answer = timeout(MAX_WAIT, self.0.control.ask(request)).await;
        let answer = answer.unwrap_or_else(|_| Err("it took too long".to_owned()));
        let answer = answer.map_err(|why| format!("approval could not be asked for: {why}"))?;
        for wish in wishes(&answer) {
            let _gone = self.0.wishes.try_send(wish);
        }
        match answer.get("behavior").and_then(Value::as_str) {
            Some("allow") => Ok(answer),
            Some("deny") => {
                let message = answer.get("message").and_then(Value::as_str).unwrap_or_default();
                Err(if message.is_empty() {
                    "it was denied".to_owned()
                } else {
                    message.to_owned()
                })
            }
            _ => Err("the answer was neither `allow` nor `deny`".to_owned()),
        }
    }
}

/// The words of an answer to a question of the model's.
fn said(answer: &Value) -> PermissionAnswer {
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

/// What is wanted along with an answer.
fn wishes(answer: &Value) -> Vec<Wish> {
    let mut wishes = Vec::new();
    if answer.get("interrupt").and_then(Value::as_bool) == Some(true) {
        wishes.push(Wish::Interrupt);
    }
    let updates = answer.get("updatedPermissions").and_then(Value::as_array);
    for update in updates.into_iter().flatten() {
        let text = |name: &str| update.get(name).and_then(Value::as_str);
        match (text("type"), text("behavior")) {
            (Some("setMode"), _) => wishes.extend(text("mode").map(|it| Wish::Mode(it.to_owned()))),
            (Some("addRules"), Some("allow")) => {
                let rules = update.get("rules").and_then(Value::as_array);
                wishes.extend(rules.into_iter().flatten().filter_map(rule).map(Wish::Rule));
            }
            _ => (),
        }
    }
    wishes
}

fn rule(rule: &Value) -> Option<String> {
    let name = rule.get("toolName").and_then(Value::as_str)?;
    let inside = rule.get("ruleContent").and_then(Value::as_str).unwrap_or_default();
    let text = if inside.is_empty() { name.to_owned() } else { format!("{name}({inside})") };
    let rules = rules::read(RuleAction::Allow, &text, Origin::Session).ok()?;
    Some(rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    fn call() -> ToolCall {
        let arguments = RawJson::of(&json!({"path": "a", "content": "x"})).unwrap();
        ToolCall::new(CallId::new("c1"), "fs.write", arguments)
    }

    /// What becomes of a call that the program answers so.
    async fn asked(answer: Result<Value, &str>) -> (PointAnswer, bool, Vec<Wish>, Value) {
        let (control, mut out) = Control::new();
        let (permission, mut wished) = Permission::new(control.clone(), true);
        let asking = permission.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { asking.before_question(&call(), "why").await });
        let request = out.recv().await.unwrap().message;
        let id = &request["request_id"];
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        control.answered(&json!({"response": response}));
        let answer = tasks.join_next().await.unwrap().unwrap();
        let mut wishes = Vec::new();
        while let Ok(wish) = wished.try_recv() {
            wishes.push(wish);
        }
        (answer, permission.takes_approval(&CallId::new("c1")), wishes, request)
    }

    #[tokio::test]
    async fn an_answer_allows_denies_or_changes() {
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
        assert_eq!(wishes, [Wish::Interrupt]);
        for broken in [Ok(json!({})), Ok(json!("allow")), Err("crashed")] {
            let (answer, approved, ..) = asked(broken).await;
            assert!(answer.block.is_some() && !approved);
        }
    }

    #[test]
    fn rules_and_modes_come_along() {
        let answer = json!({"behavior": "allow", "updatedPermissions": [
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            {"type": "addRules", "behavior": "allow", "rules": [
                {"toolName": "Bash", "ruleContent": "npm test:*"}, {"toolName": "Read"}]},
            {"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Read"}]},
        ]});
        let rule = |text: &str| Wish::Rule(text.to_owned());
        let wanted = [Wish::Mode("acceptEdits".into()), rule("bash(npm test *)"), rule("fs.read")];
        assert_eq!(wishes(&answer), wanted);
    }

    #[tokio::test]
    async fn where_nobody_asks_it_is_denied() {
        let (control, _out) = Control::new();
        let (permission, _wished) = Permission::new(control, false);
        assert!(permission.before_question(&call(), "why").await.block.is_some());
        permission.approve(CallId::new("c1"));
        assert_eq!(permission.before_question(&call(), "why").await, PointAnswer::default());
    }
}
