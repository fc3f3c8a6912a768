//! Steps of tasks: each is a turn of its own, also if another turn runs when it is wanted.

use std::sync::Arc;

use gnoma_core::{
    Command, Content, Event, ToolOutcome,
    session::{NoticeLevel, PermissionMode, SessionState, StepTurn},
    tool::Access,
};
use gnoma_engine::{Handle, PersistenceOptions, Routes, connect_arm};
use gnoma_guard::firewall::Connection;
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

use super::{MAX_WAIT, firewall, spawn};

fn session(answers: Vec<Answer>) -> Handle {
    let provider = Arc::new(FakeProvider::new(answers));
    let routes =
        Arc::new(Routes::with_single_arm(connect_arm(Connection::new(provider, false), "m")));
    let tool = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("done"));
    let mode = (PermissionMode::Auto, false);
    spawn(
        routes,
        firewall(),
        vec![Arc::new(tool) as _],
        mode,
        PersistenceOptions::default(),
        Vec::new(),
    )
}

fn step(text: &str) -> Command {
    let (text, announcement) = (text.to_owned(), format!("step {text}"));
    Command::RunStep(StepTurn { text, announcement, ..StepTurn::default() })
}

fn say(text: &str) -> Command {
    Command::Send { content: vec![Content::from_text(text)] }
}

/// The begin of the step, the begins and ends of turns, and what was said, up to the `idles`th end.
async fn course(handle: &mut Handle, idles: usize) -> Vec<String> {
    let mut course: Vec<String> = Vec::new();
    while course.iter().filter(|line| *line == "idle").count() < idles {
        let next = tokio::time::timeout(MAX_WAIT, handle.next()).await;
        course.extend(match next.expect("the session hangs").expect("the session closed") {
            Event::Notice { level: NoticeLevel::Info, text } => Some(text),
            Event::State(SessionState::Active) => Some("active".to_owned()),
            Event::State(SessionState::Idle) => Some("idle".to_owned()),
            Event::Appended(message) => Some(message.text_content()),
            _ => None,
        });
    }
    course
}

#[tokio::test(start_paused = true)]
async fn step_waits_for_the_end_of_another_turn() {
    let mut handle = session(vec![Answer::text("one"), Answer::text("two")]);
    assert!(handle.send_command(say("mine")) && handle.send_command(step("work")));
    let course = course(&mut handle, 2).await;
    let wanted = ["active", "mine", "one", "idle", "step work", "active", "work", "two", "idle"];
    assert_eq!(course, wanted);
}

#[tokio::test(start_paused = true)]
async fn step_that_waits_is_discarded_by_a_cancel() {
    let mut handle = session(vec![Answer::calls(&[("c", "write", "{}")]), Answer::text("next")]);
    assert!(
        handle.send_command(say("mine"))
            && handle.send_command(step("work"))
            && handle.send_command(Command::Cancel)
    );
    course(&mut handle, 1).await;
    assert!(handle.send_command(say("again")));
    let course = course(&mut handle, 1).await;
    assert!(!course.iter().any(|line| line.contains("work")), "{course:?}");
}
