//! Two sessions in one host: neither changes what the other sends, and no placeholder crosses.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use gnoma_core::{
    EventStream, ModelInfo, ModelRequest, Provider, ProviderError, StopReason, StreamEvent,
    ToolOutcome,
    protocol::{Overrides, SessionSpec},
    session::{PermissionMode, SessionState},
    tool::{Access, BoxFuture, Touches},
};
use gnoma_testkit::FakeTool;
use proptest::prelude::*;

use super::support::{Window, World, kept, say};

/// Interleavings of two sessions, unless `GNOMA_WALKS` says another number.
const INTERLEAVINGS: u32 = 150;

/// Answers by what it is asked alone, so that its answers do not depend on who asks when.
#[derive(Default)]
struct Echo {
    /// What was asked, by the session that asked.
    asked: Mutex<HashMap<String, Vec<String>>>,
}

impl Provider for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let asked = format!("{request:?}");
        let session = request.system.rsplit(' ').next().unwrap_or_default().to_owned();
        // The last secret that it was told, or one that nobody has told it.
        let placeholder = asked.rfind("{{secret:").map_or("{{secret:none:9}}", |start| {
            let end = asked[start..].find("}}").unwrap();
            &asked[start..start + end + 2]
        });
        let arguments = format!(r#"{{"path":"/a","content":"{placeholder}"}}"#);
        let is_question =
            matches!(request.messages.last(), Some(last) if last.tool_results().next().is_none());
        let events = if is_question {
            let (id, name) = (format!("c{}", request.messages.len()), "write".to_owned());
            vec![
                StreamEvent::ToolCallStart { slot: 0, id, name },
                StreamEvent::ToolCallDelta { slot: 0, fragment: arguments },
                StreamEvent::ToolCallDone { slot: 0 },
                StreamEvent::Stop(StopReason::ToolUse),
            ]
        } else {
            let text = format!("written {}", request.messages.len());
            vec![StreamEvent::TextDelta { slot: 0, text }, StreamEvent::Stop(StopReason::EndTurn)]
        };
        self.asked.lock().unwrap().entry(session).or_default().push(asked);
        let wait = Duration::from_millis(3);
        Box::pin(stream::iter(events).then(move |event| async move {
            tokio::time::sleep(wait).await;
            Ok(event)
        }))
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

fn secret(session: usize) -> String {
    let tail = if session == 0 { "L5m6N7o8P9q0R1" } else { "R4m5N6o7P8q9R0" };
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1", tail].concat()
}

/// What each session asked, and with what its tool was called.
type Course = (Vec<String>, Vec<String>);

/// Opens two sessions and has those that are named talk, each message after a wait.
async fn talk(talks: [Option<&[u64]>; 2]) -> [Course; 2] {
    let echo = Arc::new(Echo::default());
    let shared = Arc::clone(&echo);
    let tool = FakeTool::new("write", Access::Edit, |_| ToolOutcome::done("done"))
        .touching(Touches::path("path"));
    let world = World::new(Box::new(move |_| Arc::clone(&shared) as _), vec![tool.clone()]);
    let host = world.host();
    let mut opener = Window::new(&host, "opener");
    let overrides = Overrides { mode: Some(PermissionMode::Bypass), ..Overrides::default() };
    let spec = SessionSpec { overrides, ..kept() };
    let sessions = [opener.open(spec.clone()).await, opener.open(spec).await];
    let side = |number: usize| {
        let mut window = Window::new(&host, &format!("w{number}"));
        let session = sessions[number].clone();
        async move {
            window.attach(&session).await;
            for (turn, wait) in talks[number].unwrap_or_default().iter().enumerate() {
                tokio::time::sleep(Duration::from_millis(*wait)).await;
                let text = format!("turn {turn}, my token is {}", secret(number));
                window.ask(Some(&session), say(&text)).await.unwrap();
                window.until_state(&session, SessionState::Active).await;
                window.until_state(&session, SessionState::Idle).await;
            }
        }
    };
    tokio::join!(side(0), side(1));
    let calls: Vec<_> = tool.calls().iter().map(|call| call.arguments.get().to_owned()).collect();
    [0, 1].map(|number| {
        let asked = echo.asked.lock().unwrap().get(sessions[number].as_str()).cloned();
        let of = |call: &&String| call.contains(&secret(number));
        (asked.unwrap_or_default(), calls.iter().filter(of).cloned().collect())
    })
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(future)
}

#[test]
fn what_a_session_sends_does_not_depend_on_another_one() {
    const TURNS: usize = 4;
    let even = [5; TURNS];
    let alone = [run(talk([Some(&even), None])), run(talk([None, Some(&even)]))];
    for (number, course) in [(0, &alone[0][0]), (1, &alone[1][1])] {
        assert_eq!((course.0.len(), course.1.len()), (2 * TURNS, TURNS));
        assert!(course.0.iter().all(|asked| !asked.contains(&secret(number))), "a secret was sent");
    }
    let told = option_env!("GNOMA_WALKS").and_then(|told| told.parse().ok());
    let cases = told.unwrap_or(INTERLEAVINGS);
    let config = ProptestConfig { cases, ..ProptestConfig::default() };
    let waits = || prop::collection::vec(0_u64..20, TURNS..=TURNS);
    proptest!(config, |(left in waits(), right in waits())| {
        let [one, other] = run(talk([Some(&left), Some(&right)]));
        prop_assert_eq!(&one, &alone[0][0]);
        prop_assert_eq!(&other, &alone[1][1]);
    });
}
