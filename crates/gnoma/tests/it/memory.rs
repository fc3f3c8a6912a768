//! What a person states for later sessions of a project.

use crate::{
    support::{World, says},
    tui::Person,
};

/// Says something and waits for what gnoma answers.
fn states(world: &World, line: &str, answer: &str) {
    let person = Person::ready(world, &[]);
    person.types(&format!("{line}\r"));
    person.waits_for(answer);
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_enabled_in_the_window_takes_effect_at_once() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    person.types("/memory add Use tabs\r");
    person.waits_for("the memory is off");
    person.types("/memory\r");
    person.waits_for("no model is told of it");
    assert!(!person.sees().contains("gnoma config set"), "{}", person.sees());
    person.types("/config set memory.enabled true\r");
    person.waits_for("Saved");
    person.types("/memory add Use tabs\r");
    person.waits_for("Remembered");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_lines_are_sent_to_models_only_if_memory_is_enabled() {
    let world = World::new([says("one"), says("two")]);
    states(&world, "/memory add Use tabs", "the memory is off");
    world.configure("[memory]\nenabled = true\n");
    states(&world, "/memory add Use tabs", "Remembered");
    states(&world, "/memory add ghp_1234567890abcdefghijABCDEFGHIJ123456", "never remembered");
    states(&world, "/memory", "1. Use tabs (said ");
    let run = world.run(&["look around"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let system = |world: &World| {
        let requests = world.server.requests();
        requests.last().unwrap().json()["messages"][0]["content"].to_string()
    };
    let told = system(&world);
    assert!(told.contains("stated by the user for all sessions\\n- Use tabs"), "{told}");
    assert!(!told.contains("said "), "the source costs no tokens: {told}");
    states(&world, "/memory edit 1 Use spaces", "Changed");
    states(&world, "/memory delete 2", "there is no line 2");
    world.configure("");
    let run = world.run(&["look around"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!system(&world).contains("Use spaces"));
}
