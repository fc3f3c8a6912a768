//! Tasks that are suggested of what was done several times, from stored sessions to a run of the task.

use gnoma_testkit::Reply;

use crate::{
    support::{World, calls, exists, says},
    tui::Person,
};

/// What the model does for a release: two commands.
fn release(version: &str) -> [Reply; 3] {
    [
        calls("bash", &format!(r#"{{"command":"echo {version} > VERSION.txt"}}"#)),
        calls("bash", &format!(r#"{{"command":"mkdir -p released && touch released/{version}"}}"#)),
        says(&format!("Version {version} is released.")),
    ]
}

impl World {
    async fn releases(&self, message: &str) {
        let run = self.run(&["--permission", "bypass", message]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
    }
}

#[tokio::test]
async fn chore_of_three_sessions_is_suggested_saved_and_run() {
    let world = World::new(["v1.0.0", "v1.1.0", "v2.0.0"].iter().flat_map(|it| release(it)));
    world.releases("release v1.0.0").await;
    world.releases("and now release v1.1.0 please").await;
    let twice = world.run(&["task", "suggestions"]).await;
    assert!(twice.out.contains("no new chore"), "{twice:?}");
    world.releases("v2.0.0: release it").await;
    let found = world.run(&["task", "suggestions"]).await;
    let parts = [
        "release VERSION",
        "3 times, in 3 sessions",
        "VERSION: v2.0.0, v1.1.0, v1.0.0",
        "- echo * > VERSION.txt",
        "- touch released/*",
    ];
    for part in parts {
        assert!(found.out.contains(part), "{part}: {}", found.out);
    }
    let json = world.json(&["task", "suggestions", "--output-format", "json"]).await;
    assert_eq!(json["suggestions"][0]["occurrences"].as_array().unwrap().len(), 3, "{json}");
    // Nobody can be asked, so nothing is saved.
    let refused = world.run(&["task", "suggestions", "--save", "release"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let saved =
        world.run(&["task", "suggestions", "--save", "release", "--as", "ship", "--yes"]).await;
    assert_eq!(saved.code, Some(0), "{saved:?}");
    assert!(saved.out.contains("+touch released/\"${version}\""), "{}", saved.out);
    let run = world.run(&["--permission", "bypass", "task", "run", "ship", "v3.0.0"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("VERSION.txt"), "v3.0.0\n");
    assert!(exists(world.project.path(), "released/v3.0.0"));
    let after = world.run(&["task", "suggestions"]).await;
    assert!(after.out.contains("no new chore"), "the task does it: {after:?}");
    assert!(after.out.contains("left out: release ") && after.out.contains("`ship` does that"));
}

#[tokio::test]
async fn sessions_that_are_deleted_are_suggested_no_longer() {
    let world = World::new(["v1", "v2", "v3"].iter().flat_map(|it| release(it)));
    for version in ["v1", "v2", "v3"] {
        world.releases(&format!("release {version}")).await;
    }
    assert!(world.run(&["task", "suggestions"]).await.out.contains("3 times"));
    let folder = world.home.path().join(".local/state/gnoma/suggestions");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    let session = world.sessions().await.remove(0);
    let deleted = world.run(&["sessions", "delete", &session, "--yes"]).await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    assert!(world.run(&["task", "suggestions"]).await.out.contains("no new chore"));
    let incognito = world.run(&["--incognito", "task", "suggestions"]).await;
    assert_eq!(incognito.code, Some(2), "{incognito:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn third_time_is_offered_once_at_the_terminal_and_can_be_declined() {
    let versions = ["v1.0.0", "v1.1.0", "v2.0.0", "v2.1.0"];
    let world = World::new(versions.iter().flat_map(|it| release(it)));
    world.releases("release v1.0.0").await;
    world.releases("release v1.1.0").await;
    let person = Person::ready(&world, &["--permission", "bypass"]);
    person.types("release v2.0.0\r");
    person.waits_for("You have done this 3 times: release VERSION");
    person.types("/task save release\r");
    person.waits_for("Save the task release?");
    person.types("n");
    person.waits_until("an answer", |person| !person.sees().contains("Save the task release?"));
    person.types("/task never\r");
    person.waits_for("not offered again");
    person.types("release v2.1.0\r");
    person.waits_for("Version v2.1.0 is released.");
    assert_eq!(person.leaves().0.code(), Some(0));
    let folder = world.home.path().join(".local/state/gnoma/suggestions");
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let offers = files.find(|path| path.to_string_lossy().ends_with(".offers.json")).unwrap();
    let offers = std::fs::read_to_string(offers).unwrap();
    assert!(offers.contains(r#""declined":["#) && offers.contains("touch"), "{offers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn setting_turns_offers_off() {
    let world = World::new(["v1", "v2", "v3"].iter().flat_map(|it| release(it)));
    world.configure("[tasks]\nsuggest = \"off\"\n");
    world.releases("release v1").await;
    world.releases("release v2").await;
    let person = Person::ready(&world, &["--permission", "bypass"]);
    person.types("release v3\r");
    person.waits_for("Version v3 is released.");
    assert_eq!(person.leaves().0.code(), Some(0));
    assert!(!exists(world.home.path(), ".local/state/gnoma/suggestions"));
    // What is asked for is answered, and leaves nothing.
    assert!(world.run(&["task", "suggestions"]).await.out.contains("3 times"));
    let folder = world.home.path().join(".local/state/gnoma/suggestions");
    assert!(std::fs::read_dir(folder).map_or(0, Iterator::count) == 0);
}
