//! Runs that were stopped, failed or killed: which one continues, with what, and what of it stays in the conversation.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

const NEEDS: &str = "## One\n```sh\necho one >> ran.txt\n```\n## Two\n```sh\ncat needed.txt\n```\n";
const ALL: [&str; 2] = ["--permission", "bypass"];

fn put_task(world: &World, name: &str, text: &str) {
    world.put_home(&format!(".config/gnoma/tasks/{name}.md"), text);
}

async fn run(world: &World, line: &[&str]) -> crate::support::Run {
    world.run(&[&ALL, line].concat()).await
}

#[tokio::test]
async fn only_the_newest_run_is_resumed_and_it_is_named() {
    let world = World::new([says("fine")]);
    put_task(&world, "failing", NEEDS);
    put_task(&world, "fine", "Say fine.");
    assert_eq!(run(&world, &["task", "run", "failing"]).await.code, Some(1));
    assert_eq!(run(&world, &["task", "run", "fine"]).await.code, Some(0));
    let refused = run(&world, &["task", "resume"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("the last run (`fine`) is done"), "{refused:?}");
    let refused = run(&world, &["task", "resume", "fine"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    world.write("needed.txt", "here");
    let resumed = run(&world, &["task", "resume", "failing", "--again"]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("Resuming the run of `failing` from "), "{resumed:?}");
    assert_eq!(world.read("ran.txt"), "one\n");
}

#[tokio::test]
async fn resume_takes_options_before_and_behind_its_words() {
    for line in [
        &["task", "resume", "--again", "--output-format", "json"][..],
        &["task", "resume", "t", "--again", "--output-format", "json"],
        &["--output-format", "json", "task", "resume", "--again"],
        &["task", "run", "--resume", "--again", "--output-format", "json"],
        &["task", "run", "--resume", "t", "--again", "--output-format", "json"],
        &["task", "run", "t", "--resume", "--again", "--output-format=json"],
    ] {
        let world = World::new([]);
        put_task(&world, "t", NEEDS);
        assert_eq!(run(&world, &["task", "run", "t"]).await.code, Some(1));
        world.write("needed.txt", "here");
        let resumed = run(&world, line).await;
        assert_eq!(resumed.code, Some(0), "{line:?}: {resumed:?}");
        let report: serde_json::Value = serde_json::from_str(&resumed.out).unwrap();
        assert_eq!(report["state"], "done", "{line:?}");
    }
}

#[tokio::test]
async fn recorded_values_are_checked_against_the_task_as_it_is_now() {
    let world = World::new([]);
    let task = |arguments: &str| format!("---\narguments:\n  {arguments}\n---\n{NEEDS}");
    put_task(&world, "t", &task("level: text"));
    assert_eq!(run(&world, &["task", "run", "t", "high"]).await.code, Some(1));
    for (arguments, part) in [
        ("level: number", "`high` is not a number"),
        ("height: text", "no argument `level` any more"),
        ("level: text\n  more: text", "the argument `more` is missing"),
    ] {
        put_task(&world, "t", &task(arguments));
        let refused = run(&world, &["task", "resume", "--again"]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.err.contains("cannot be resumed: ") && refused.err.contains(part),
            "{refused:?}"
        );
    }
    assert_eq!(world.read("ran.txt"), "one\n");
}

/// A made-up token, which has no form that is known.
pub(super) const TOKEN: &str = "9XK3Zo7mjHLEtiJrEgGXJ5eCm5ACESSkgZrIlVCKuHpX5SsKK01q1pKh72N379JE";

#[tokio::test]
async fn value_that_is_a_secret_by_the_name_of_its_argument_is_not_recorded() {
    let world = World::new([says("called")]);
    put_task(
        &world,
        "t",
        "---\narguments: token\n---\n## One\nCall it.\n## Two\n```sh\ncat x\n```\n",
    );
    assert_eq!(run(&world, &["task", "run", "t", TOKEN]).await.code, Some(1));
    assert!(!world.records()[0].contains(TOKEN), "{:?}", world.records());
    let refused = run(&world, &["task", "resume", "--again"]).await;
    assert!(refused.err.contains("its arguments contained a secret"), "{refused:?}");
}

#[tokio::test]
async fn question_without_an_answer_is_not_skipped() {
    let world = World::new([]);
    put_task(&world, "t", "## Ask\n? Push it?\n## Then\n```sh\necho \"$answer\" > ran.txt\n```\n");
    let asked = run(&world, &["task", "run", "t"]).await;
    assert!(asked.code == Some(1) && asked.err.contains("nobody is there to answer"), "{asked:?}");
    let refused = run(&world, &["task", "resume", "--skip"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("step 1 (`Ask`) asks a question and cannot be left out"));
    assert!(refused.err.contains("--again") && !exists(world.project.path(), "ran.txt"));
}

#[tokio::test]
async fn stopped_step_leaves_its_command_and_output_in_the_conversation() {
    let world = World::new([says("three")]);
    put_task(&world, "t", "## One\n```sh\necho beg\"\"un\nsleep 50\n```\n## Two\nSay three.\n");
    let child = world.command(&[&ALL[..], &["task", "run", "t"]].concat()).spawn().unwrap();
    for _ in 0..600 {
        let has_begun = |record: &String| record.contains(r#""state":"begun""#);
        if world.records().iter().any(has_begun) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The command has to print before it is stopped.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let stopped = crate::support::finish(child).await;
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    let resumed = run(&world, &["task", "resume", "--skip"]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let said = world.said_by_people();
    for part in ["the step “One” of the task t", "sleep 50", "begun\n[stopped before it ended]"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}
