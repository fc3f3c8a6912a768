//! What a person said is never summarised away, and what breaks a cache is named.

use std::sync::Arc;

use gnoma_core::{Command, Event, Message, StopReason, StreamEvent, Usage, tool::Access};
use gnoma_engine::{LastRequest, PersistenceOptions, Routes, connect_arm};
use gnoma_guard::firewall::Connection;
use gnoma_router::Arm;
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

use super::{Run, spawn_gauged};

/// Facts and rules as people say them, and the turn in which they do.
const PLANTED: [(usize, &str); 12] = [
    (1, "Never push to the branch release-2.7 without asking me."),
    (4, "Our staging database is called heron-blue and lives in Falkenstein."),
    (9, "Always use tabs in the Go files, also in generated ones."),
    (15, "The customer's ticket is ACME-4711; mention it in commit messages."),
    (22, "No, the retry limit is 7, not 5; I got that wrong before."),
    (31, "My colleague Odalys owns the billing module, so ask before touching it."),
    (38, "Do not log e-mail addresses anywhere."),
    (47, "The deploy window is Thursday 14:30 UTC."),
    (55, "Prefer the crate smol_str over plain strings in hot paths."),
    (63, "The test server answers only on port 48213."),
    (76, "From now on answer me in British English."),
    (90, "The licence header must say Copyright Quillfeather Ltd."),
];

fn told(text: &str, input: u64, cache_read: u64) -> Answer {
    Answer::from_events(vec![
        Ok(StreamEvent::TextDelta { slot: 0, text: text.into() }),
        Ok(StreamEvent::Usage(Usage { input, cache_read, output: 9, ..Usage::default() })),
        Ok(StreamEvent::Stop(StopReason::EndTurn)),
    ])
}

fn begin(window: Option<u32>, gauge: &Arc<LastRequest>) -> Run {
    let provider = Arc::new(FakeProvider::new(Vec::new()));
    let connection = Connection::new(Arc::clone(&provider) as _, false);
    let (arm, connection) = connect_arm(connection, "m");
    let arm = (Arm { context_window: window, ..arm }, connection);
    let look = Arc::new(FakeTool::new("look", Access::Read, |_| {
        gnoma_core::ToolOutcome::success_text("x")
    }));
    let routes = Arc::new(Routes::with_single_arm(arm));
    let handle = spawn_gauged(routes, vec![look], PersistenceOptions::default(), Arc::clone(gauge));
    Run { handle, provider }
}

fn is_compacted(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Compacted { .. }))
}

#[tokio::test(start_paused = true)]
async fn twelve_planted_facts_survive_three_compactions_by_a_bad_summariser() {
    let mut run = begin(Some(200_000), &Arc::default());
    let filler = "I looked into it and changed a few things, as you asked. ".repeat(20);
    for turn in 0..100 {
        let planted = PLANTED.iter().find(|(at, _)| *at == turn).map_or("", |(_, text)| text);
        let said = format!(
            "Please go on with part {turn} of the work and tell me how it went. {planted} Thank you."
        );
        run.provider.push(Answer::text(&filler));
        run.say(&said);
        run.until_idle().await;
        if [30, 60, 95].contains(&turn) {
            run.provider.push(Answer::text("They talked about work."));
            run.handle.send_command(Command::Compact { focus: String::new() });
            assert!(is_compacted(&run.until_idle().await));
        }
    }
    let request = run.provider.requests().pop().unwrap();
    let all: String = request.messages.iter().map(|it| it.text_content()).collect();
    let lost: Vec<_> = PLANTED.iter().filter(|(_, text)| !all.contains(text)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn compaction_summary_can_be_edited_and_undone() {
    let gauge = Arc::default();
    let mut run = begin(None, &gauge);
    for turn in 0..6 {
        run.provider.push(Answer::text("an answer of some length, so that there is something"));
        run.say(&format!("a wish of some length, which is number {turn}"));
        run.until_idle().await;
    }
    let whole = run.provider.requests().pop().unwrap().messages;
    run.provider.push(Answer::text("in short"));
    run.handle.send_command(Command::Compact { focus: String::new() });
    run.until_idle().await;
    let shown = gauge.summary().unwrap();
    assert!(shown.contains("number 0") && shown.ends_with("in short"), "{shown}");
    let summary = shown.replace("in short", "about tabs");
    run.handle.send_command(Command::EditSummary { summary: summary.clone() });
    run.until(|event| matches!(event, Event::Compacted { .. })).await;
    assert_eq!(gauge.summary(), Some(summary));
    for expected in [Some("in short"), None] {
        run.handle.send_command(Command::UndoCompaction);
        run.until(|event| matches!(event, Event::Uncompacted { .. })).await;
        assert_eq!(gauge.summary().is_some(), expected.is_some());
    }
    run.handle.send_command(Command::UndoCompaction);
    run.until(
        |event| matches!(event, Event::Notice { text, .. } if text.contains("nothing to undo")),
    )
    .await;
    run.provider.push(Answer::text("fine"));
    run.say("go on");
    run.until_idle().await;
    let now = run.provider.requests().pop().unwrap().messages;
    assert_eq!(now[..whole.len()], whole, "as if nothing had been compacted");
}

fn begins_with(later: &[Arc<Message>], before: &[Arc<Message>]) -> bool {
    later.len() >= before.len() && later[..before.len()] == *before
}

#[tokio::test(start_paused = true)]
async fn prompt_prefix_changes_only_at_reported_cache_invalidations() {
    let gauge = Arc::<LastRequest>::default();
    let mut run = begin(Some(200_000), &gauge);
    let modes = gnoma_core::session::PermissionMode::ALL;
    let mut breaks = Vec::new();
    for turn in 0..50 {
        run.provider.push(told("an answer of some length, so that there is something", 100, 1_900));
        run.say(&format!("a wish of some length, which is number {turn}"));
        run.until_idle().await;
        let mode = modes[turn % modes.len()];
        run.handle.send_command(Command::SetMode { mode });
        run.until(|event| matches!(event, Event::ModeChanged { .. })).await;
        if turn == 20 {
            run.provider.push(Answer::text("in short"));
            run.handle.send_command(Command::Compact { focus: String::new() });
            run.until_idle().await;
        }
        if turn == 40 {
            let more = ["look", "planted"].map(|name| {
                let done = |_: &gnoma_core::ToolCall| gnoma_core::ToolOutcome::success_text("x");
                Arc::new(FakeTool::new(name, Access::Read, done)) as Arc<dyn gnoma_core::Tool>
            });
            assert!(run.handle.tools_changed(more.to_vec()));
        }
    }
    let requests: Vec<_> =
        run.provider.requests().into_iter().filter(|request| !request.tools.is_empty()).collect();
    for (number, pair) in (2..).zip(requests.windows(2)) {
        let same = pair[0].system == pair[1].system
            && pair[0].tools == pair[1].tools
            && begins_with(&pair[1].messages, &pair[0].messages);
        if !same {
            breaks.push(number);
        }
    }
    let words = gauge.describe_cache();
    assert_eq!(breaks, [22, 42], "{words}");
    assert!(words.contains("call 22: conversation: compacted"), "{words}");
    assert!(words.contains("call 42: tools: +planted"), "{words}");
    assert_eq!(words.matches("call ").count(), 2, "{words}");
}
