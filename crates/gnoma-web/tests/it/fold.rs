//! The page's fold against the protocol's own, over random logs. Needs `node`; without it the test is skipped.

use std::{fs, path::Path, process::Stdio};

use gnoma_core::{
    Event,
    protocol::{Envelope, Epoch, SessionView},
    store::SessionId,
};
use serde_json::{Value, json};
use tokio::process::Command;

/// The kinds of events; one that is new does not compile, so that the page's fold is looked at, too.
macro_rules! kinds {
    ($($variant:ident)*) => {
        const KINDS: &[&str] = &[$(stringify!($variant)),*];
        fn kind(event: &Event) -> &'static str {
            match event { $(Event::$variant { .. } => stringify!($variant)),* }
        }
    };
}
kinds!(Started Info Models State ModeChanged ThinkingChanged PlanChanged Queued RoundStarted Routed ArmChanged Conferred
    Checking Checked Cost Compacted Uncompacted Context Text Thinking ToolCallDrafted ToolCallDelta Appended
    PermissionAsked PermissionDecided ToolStarted ToolProgress ToolEnded Usage Retrying Waiting Continuing Notice
    TurnEnded Unknown);

/// Logs that are folded.
const LOGS: u64 = 300;
/// Most events of one.
const MAX_EVENTS: u64 = 60;

/// Folds what it is given and says where it differs.
const SCRIPT: &str = r#"
import { apply, viewOf } from "./fold.mjs";
import { readFileSync } from "node:fs";
const sorted = (it) => Array.isArray(it) ? it.map(sorted)
  : it && typeof it === "object" ? Object.fromEntries(Object.keys(it).sort().map((name) => [name, sorted(it[name])])) : it;
let wrong = 0;
for (const [place, { start, log, end }] of JSON.parse(readFileSync("logs.json", "utf8")).entries()) {
  const view = viewOf(start);
  for (const envelope of log) { apply(view, envelope); apply(view, envelope); }
  const [a, b] = [JSON.stringify(sorted(view)), JSON.stringify(sorted(end))];
  if (a !== b && !wrong++) {
    let at = 0;
    while (a[at] === b[at]) at++;
    console.log(`log ${place}: ${a.slice(Math.max(0, at - 200), at + 200)}\n  and not ${b.slice(Math.max(0, at - 200), at + 200)}`);
  }
}
console.log(wrong ? `${wrong} differ` : "all are equal");
"#;

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn text(&mut self) -> String {
        match self.below(30) {
            0 => "lang: ääß€𝄞 ".repeat(20_000),
            1 => "x".repeat(70_000),
            _ => ["a", "", "Zeile\n", "ä€𝄞", "<b>", "\\\"\u{1}"][self.below(6) as usize].to_owned(),
        }
    }

    fn event(&mut self) -> Value {
        let call = json!({"id": format!("c{}", self.below(4)), "name": "bash", "arguments": {"command": "ls", "n": 1}});
        let id = call["id"].clone();
        let arm = json!({"provider": "p", "model": "m"});
        let (text, number) = (self.text(), self.below(9));
        let usage = json!({"input": number, "output": 2, "cache_read": 3, "cache_write": 0, "reasoning": 1});
        let result = json!({"call_id": id, "name": "bash", "parts": [{"text": {"text": text}}]});
        let error = json!({"kind": "overloaded", "provider": "p", "message": "busy"});
        let message = json!({"role": "assistant", "content": [{"text": {"text": text}}, {"tool_call": call}]});
        let results = json!({"role": "tool", "content": [{"tool_result": result}]});
        let choices = [
            json!({"started": {"session": "s", "cwd": "/work", "tools": ["bash"], "mode": "auto", "messages": number}}),
            json!({"info": {"folder": "~/w", "window": 8192, "commands": []}}),
            json!({"models": {"models": [{"name": "p/m", "about": "a", "current": true, "arm": arm, "window": null}]}}),
            json!({"state": "active"}),
            json!({"state": "active"}),
            json!({"state": "cancelling"}),
            json!({"state": "idle"}),
            json!({"mode_changed": {"mode": "plan"}}),
            json!({"thinking_changed": {"thinking": {"tokens": 8000}}}),
            json!({"thinking_changed": {"thinking": null}}),
            json!({"plan_changed": {"steps": [{"text": text, "status": "active"}, {"text": "b", "status": "completed"}, {"text": "c"}]}}),
            json!({"conferred": {"members": [arm], "chair": null, "author": arm}}),
            json!({"checking": {"arm": arm, "by": "make"}}),
            json!({"continuing": {"time": 1, "most": 3, "joins": false}}),
            json!({"queued": {"queue": [[{"text": {"text": text}}]]}}),
            json!({"round_started": {"round": number, "arm": arm, "why": "w"}}),
            json!({"routed": {"kind": "debug", "complexity": 4, "decided_by": "h", "strategy": "single", "arms": [arm], "why": "w", "candidates": ["c"], "seed": 1}}),
            json!({"arm_changed": {"from": arm, "to": arm, "why": "w", "retracted": true}}),
            json!({"checked": {"arm": arm, "by": "make", "passed": true, "evidence": text}}),
            json!({"cost": {"arm": arm, "call_micro_usd": (number > 2).then_some(1), "turn_micro_usd": 2, "session_micro_usd": number}}),
            json!({"compacted": {"summary": text, "messages": 3}}),
            json!({"uncompacted": {"summary": text, "messages": 1}}),
            json!({"uncompacted": {"summary": null, "messages": 0}}),
            json!({"context": {"tokens": 5_000, "window": 8_192, "fullness": "warning"}}),
            json!({"text": {"text": text}}),
            json!({"text": {"text": text}}),
            json!({"thinking": {"text": text}}),
            json!({"tool_call_drafted": {"call": id, "name": "bash"}}),
            json!({"tool_call_delta": {"call": id, "fragment": text}}),
            json!({"appended": message}),
            json!({"appended": results}),
            json!({"permission_asked": {"call": call, "reason": "r", "preview": text, "parts": ["a"], "dangers": ["r"]}}),
            json!({"permission_asked": {"call": call, "reason": "r", "inquiry": {"choices": ["x"]}, "during": id}}),
            json!({"permission_decided": {"call": id, "allowed": true, "reason": ""}}),
            json!({"tool_started": {"call": call}}),
            json!({"tool_progress": {"call": id, "text": text}}),
            json!({"tool_ended": {"call": call, "result": result, "diff": "-a\n+b", "duration_ms": 4}}),
            json!({"usage": {"round": usage, "turn": usage}}),
            json!({"retrying": {"error": error, "attempt": 2, "wait_ms": 3, "retracted": false}}),
            json!({"waiting": {"arm": arm, "waited_ms": 4, "limit_ms": 5}}),
            json!({"notice": {"level": "info", "text": text}}),
            json!({"turn_ended": {"outcome": {"complete": {"stop": "end_turn"}}, "rounds": 1, "usage": usage}}),
            json!("unknown"),
        ];
        choices[self.below(choices.len() as u64) as usize].clone()
    }
}

/// A log: what it begins with, its envelopes, and what the protocol's fold makes of them.
fn log(numbers: &mut Numbers) -> Value {
    let mut view = SessionView::new(SessionId::new("s"), Epoch(7), None);
    let mut begun = numbers.below(MAX_EVENTS);
    let mut start = json!(view);
    let mut envelopes = Vec::new();
    for seq in 1..=numbers.below(MAX_EVENTS) + begun {
        let event: Event = serde_json::from_value(numbers.event()).unwrap();
        // One of another epoch changes nothing.
        let epoch = Epoch(if numbers.below(20) == 0 { 6 } else { 7 });
        let envelope =
            Envelope { session: SessionId::new("s"), epoch, parent: None, seq, at_ms: 10, event };
        view.apply_envelope(&envelope);
        if begun > 0 {
            begun -= 1;
            start = json!(view);
        } else {
            envelopes.push(envelope);
        }
    }
    json!({ "start": start, "log": envelopes, "end": view })
}

#[test]
fn generated_logs_contain_every_kind_of_event() {
    let mut numbers = Numbers(20_261_123);
    let mut seen: Vec<&str> = Vec::new();
    for _ in 0..5_000 {
        seen.push(kind(&serde_json::from_value(numbers.event()).unwrap()));
    }
    for kind in KINDS {
        assert!(seen.contains(kind), "no log holds `{kind}`");
    }
}

#[tokio::test]
async fn page_state_equals_the_protocol_state_for_random_logs() {
    let folder = tempfile::tempdir().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/fold.js");
    fs::copy(page, folder.path().join("fold.mjs")).unwrap();
    fs::write(folder.path().join("test.mjs"), SCRIPT).unwrap();
    let mut numbers = Numbers(20_261_123);
    let logs: Vec<Value> = (0..LOGS).map(|_| log(&mut numbers)).collect();
    fs::write(folder.path().join("logs.json"), serde_json::to_vec(&logs).unwrap()).unwrap();
    let run = Command::new("node")
        .arg("test.mjs")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .await;
    let Ok(output) = run else {
        return gnoma_testkit::skip_test("`node` is not installed");
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "all are equal");
}
