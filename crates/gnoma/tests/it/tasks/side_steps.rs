//! Steps that run side by side, steps that want a role, and what the history tells of them.

use gnoma_core::StopReason;
use gnoma_testkit::{Script, Wire};
use serde_json::Value;

use super::*;
use crate::support::calls;

const BYPASS: [&str; 2] = ["--permission", "bypass"];

async fn run(world: &World, line: &[&str]) -> crate::support::Run {
    world.run(&[&BYPASS, line].concat()).await
}

/// The record of the only run.
fn record(world: &World) -> Value {
    let records = world.records();
    assert_eq!(records.len(), 1, "{records:?}");
    serde_json::from_str(&records[0]).unwrap()
}

fn states(world: &World) -> Vec<String> {
    let record = record(world);
    let steps = record["steps"].as_array().unwrap().iter();
    steps.map(|step| step["state"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn prompts_side_by_side_are_elfs_whose_results_the_next_step_sees() {
    let world = World::new([says("found"), says("found"), says("the sum")]);
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## Look here {parallel}\nLook at a.\n## Look there {parallel}\nLook at b.\n\
         ## List {parallel}\n```sh\necho lis\"\"ted\n```\n## Sum up\nSum it up.\n",
    );
    let dry = world.run(&["task", "run", "t", "--dry-run"]).await;
    assert!(dry.out.contains("2. Look there (prompt, beside step 1)"), "{dry:?}");
    let ran = run(&world, &["task", "run", "t"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "Task t, steps 1, 2, 3 of 4 side by side: Look here · Look there · List",
        "Task t, step 2 of 4 (Look there) done in ",
        "Task t is done: 4 steps",
    ] {
        assert!(ran.err.contains(part), "{part}: {ran:?}");
    }
    assert_eq!(world.server.requests().len(), 3);
    let said = world.said_by_people();
    let parts = ["“Look here” of the task t", "“Look there”", "\nlisted\n", "Sum it up."];
    let places = parts.map(|part| said.find(part).unwrap_or_else(|| panic!("{part}: {said}")));
    assert!(places.is_sorted() && said.matches("found").count() == 2, "{said}");
    let record = record(&world);
    let models = |at: usize| record["steps"][at]["models"].as_array().map_or(0, Vec::len);
    assert_eq!([models(0), models(1), models(2), models(3)], [1, 1, 0, 1], "{record}");
    let history = world.run(&["task", "history", "t"]).await;
    assert!(history.out.contains("    step 2 (Look there): test/m1, "), "{history:?}");
}

#[tokio::test]
async fn router_learns_each_prompt_of_steps_side_by_side_as_a_kind_of_its_own() {
    let world = World::new([says("found"), says("found"), says("found")]);
    super::failure::two_arms(&world);
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## Here {parallel}\nExplain a.\n## There {parallel}\nExplain b.\n## Sum\nExplain c.\n",
    );
    assert_eq!(run(&world, &["task", "run", "t"]).await.code, Some(0));
    let stats = world.json(&["router", "stats", "--json"]).await;
    let believed = stats["believed"].as_array().unwrap().iter();
    let kinds: Vec<&str> = believed.map(|it| it["kind"].as_str().unwrap()).collect();
    for kind in ["explain/t/Here", "explain/t/There", "explain/t/Sum"] {
        assert!(kinds.contains(&kind), "{kind}: {stats}");
    }
}

#[tokio::test]
async fn failed_step_fails_those_beside_it_after_their_end_and_only_it_runs_again() {
    let world = World::new([says("three")]);
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## A {parallel}\n```sh\ncat needed.txt\n```\n## B {parallel}\n```sh\necho \"b\"e\n```\n\
         ## C {parallel}\n```sh\necho c >> ran.txt\n```\n## D\nSay three.\n",
    );
    let ran = run(&world, &["task", "run", "t"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.err.contains("stronger"), "commands have no model: {ran:?}");
    for part in ["(A) failed after", "(B) done in", "stopped at step 1 of 4 (A), which failed"] {
        assert!(ran.err.contains(part), "{part}: {ran:?}");
    }
    // What would have changed something has not begun.
    assert_eq!(states(&world), ["failed", "done", "waiting", "waiting"]);
    assert!(!exists(world.project.path(), "ran.txt"));
    world.write("needed.txt", "f0und");
    let refused = run(&world, &["task", "resume"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(!refused.err.contains("stronger") && refused.err.contains("--skip"), "{refused:?}");
    let ran = run(&world, &["task", "resume", "--again"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((states(&world), world.read("ran.txt").as_str()), (vec!["done".into(); 4], "c\n"));
    let said = world.said_by_people();
    assert_eq!((said.matches("$ echo \"b\"e").count(), said.matches("f0und").count()), (1, 1));
}

#[tokio::test]
async fn commands_that_change_something_run_one_after_the_other() {
    let world = World::new([]);
    let step = |number: usize| {
        format!("## {number} {{parallel}}\n```sh\nsleep 0.1\necho {number} >> out.txt\n```\n")
    };
    world.put_home(".config/gnoma/tasks/t.md", &(1..=12).map(step).collect::<String>());
    let ran = run(&world, &["task", "run", "t"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let wanted: String = (1..=12).map(|number| format!("{number}\n")).collect();
    assert_eq!(world.read("out.txt"), wanted);
    assert!(ran.err.contains("steps 11, 12 of 12 side by side"), "at most ten at once: {ran:?}");
}

#[tokio::test]
async fn commands_that_only_read_run_side_by_side_without_a_mark() {
    let world = World::new([says("summed up")]);
    world.write("seen.txt", "s33n");
    let command = |title: &str, text: &str| format!("## {title}\n```sh\n{text}\n```\n");
    let task = [
        command("One", "cat seen.txt"),
        command("Two", "ls"),
        command("Three", "echo 3 > three.txt"),
        command("Four", "cat three.txt"),
        "## Sum\nSum it up.\n".to_owned(),
    ];
    world.put_home(".config/gnoma/tasks/t.md", &task.concat());
    let dry = world.run(&["task", "run", "t", "--dry-run"]).await;
    assert!(dry.out.contains("2. Two (command, beside step 1)"), "{dry:?}");
    let ran = run(&world, &["task", "run", "t"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("Task t, steps 1, 2 of 5 side by side: One · Two"), "{ran:?}");
    assert_eq!(states(&world), ["done"; 5]);
    let said = world.said_by_people();
    let parts = ["“One”", "s33n", "“Two”", "“Three”", "“Four”", "\n3\n", "Sum it up."];
    let places = parts.map(|part| said.find(part).unwrap_or_else(|| panic!("{part}: {said}")));
    assert!(places.is_sorted(), "{said}");
}

#[tokio::test]
async fn step_is_asked_of_the_model_that_has_its_role() {
    let world = World::new([says("one"), says("two")]);
    world.configure(
        "[provider.models]\ntest = [\"m1\", \"tiny\"]\n[router.roles]\neditor = \"test/tiny\"\n",
    );
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "---\nmodel: m1\n---\n## A {role=editor}\nExplain it.\n## B\nExplain it.\n",
    );
    let ran = run(&world, &["task", "run", "t"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = world.server.requests();
    let asked: Vec<String> = requests.iter().map(|it| it.json()["model"].to_string()).collect();
    assert_eq!(asked, ["\"tiny\"", "\"m1\""]);
}

fn refuses() -> Reply {
    let script = Script::text(["No."]).with_stop(StopReason::ContentFilter);
    Wire::OpenAi.stream_reply(&script)
}

#[tokio::test]
async fn prompts_side_by_side_that_models_refuse_are_not_done() {
    let world = World::new([refuses(), refuses()]);
    let text = "## A {parallel}\nLook at a.\n## B {parallel}\nLook at b.\n";
    world.put_home(".config/gnoma/tasks/t.md", text);
    let ran = run(&world, &["task", "run", "t"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the model refused; step 2 (B) failed: "), "{ran:?}");
    let refused = run(&world, &["task", "resume"]).await;
    let both = "step 1 of 2 (`A`) failed, step 2 (`B`) failed, so they may have had effects";
    assert!(refused.err.contains(both) && refused.err.contains("--stronger"), "{refused:?}");
    let history = world.run(&["task", "history", "t"]).await;
    assert!(history.out.contains("step 2 (B): the model refused"), "{history:?}");
    assert_eq!(states(&world), ["failed", "failed"]);
}

#[tokio::test]
async fn prompt_that_fails_is_split_into_what_ran_when_it_went_well() {
    let made = calls("bash", r#"{"command":"echo v > made.txt"}"#);
    let world = World::new([made, says("made"), refuses(), refuses(), refuses()]);
    world.put_home(".config/gnoma/tasks/t.md", "## Make it\nMake the file.\n");
    assert_eq!(run(&world, &["task", "run", "t"]).await.code, Some(0));
    for _ in 0..3 {
        assert_eq!(run(&world, &["task", "run", "t"]).await.code, Some(1));
    }
    let repair = run(&world, &["task", "repair", "t"]).await;
    assert!(repair.out.contains("-Make the file.\n"), "{repair:?}");
    assert!(repair.out.contains("+```sh\n+echo v > made.txt\n"), "{repair:?}");
}

#[tokio::test]
async fn task_that_is_not_used_is_mentioned_in_the_list() {
    let world = World::new([says("one")]);
    for name in ["old", "used", "fresh", "inner"] {
        world.put_home(&format!(".config/gnoma/tasks/{name}.md"), "Say one.\n");
    }
    world.put_home(".config/gnoma/tasks/outer.md", "## A\n/task inner\n");
    for name in ["old", "used", "inner"] {
        let path = world.home.path().join(format!(".config/gnoma/tasks/{name}.md"));
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(24_000 * 60 * 60)).unwrap();
    }
    assert_eq!(run(&world, &["task", "run", "used"]).await.code, Some(0));
    let list = world.run(&["task", "list"]).await;
    assert!(list.out.contains("not used for 90 days: old (`gnoma task delete"), "{list:?}");
}
