//! Turns that ended because every model was at its limit.

use std::time::Instant;

use serde_json::Value;

use super::*;
use crate::{serve::Served, tui::Person};

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

fn limited() -> Reply {
    let body = r#"{"error":{"message":"slow down","type":"rate_limit"}}"#;
    Reply::json(429, body).with_header("retry-after", "600")
}

impl World {
    fn continuation_file(&self) -> std::path::PathBuf {
        self.home.path().join(".local/state/gnoma/schedules/1.json")
    }

    fn continuation(&self) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.continuation_file()).ok()?).ok()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_that_ended_at_a_limit_continues_after_the_window_is_closed() {
    let world = World::new([limited(), says("continued")]);
    let person = Person::ready(&world, &[]);
    person.types("explain this\r");
    person.waits_for("Every model is at its limit");
    person.types("1");
    person.waits_for("This turn continues at");
    let mut planned = world.continuation().unwrap();
    person.leaves();
    let list = world.run(&["task", "schedules"]).await;
    assert!(list.out.contains("continue ") && !list.out.contains("at most"), "{list:?}");
    // The limit is over.
    assert_eq!(world.run(&["router", "reset", "--yes"]).await.code, Some(0));
    planned["rule"]["once"]["at_ms"] = 1.into();
    std::fs::write(world.continuation_file(), planned.to_string()).unwrap();
    let _served = Served::starts(&world, &[]);
    let end = Instant::now() + PATIENCE;
    while !world.continuation().is_some_and(|it| it["last"]["end"].is_string()) {
        assert!(Instant::now() < end, "not continued: {:?}", world.continuation());
        tokio::time::sleep(STEP).await;
    }
    let ended = world.continuation().unwrap();
    let text = ended["last"]["end"].as_str().unwrap();
    assert!(text.starts_with("the turn was continued"), "{ended}");
    assert_eq!(world.sessions().await, [planned["session"].as_str().unwrap().to_owned()]);
    let said = world.said_by_people();
    assert!(said.contains("explain this") && said.contains("Continue with what"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_the_person_cancels_the_continuation() {
    let world = World::new([limited(), limited(), says("done")]);
    let person = Person::ready(&world, &[]);
    person.types("explain this\r");
    person.waits_for("Every model is at its limit");
    // Without a yes, nothing is planned.
    person.types("n");
    person.waits_until("no question", |person| !person.sees().contains("continue then"));
    assert!(world.continuation().is_none());
    person.types("again\r");
    person.waits_for("continue then");
    person.types("1");
    person.waits_for("This turn continues at");
    assert_eq!(world.run(&["router", "reset", "--yes"]).await.code, Some(0));
    person.types("explain it now\r");
    person.waits_until("a cancelled plan", |_| world.continuation().is_none());
    person.leaves();
}
