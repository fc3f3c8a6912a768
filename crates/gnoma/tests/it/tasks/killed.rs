//! Runs that are killed at any moment: after they are resumed, no step that had ended ran twice, none is left out, and
//! each is in the conversation.

use serde_json::Value;

use super::*;

/// Steps of the run. Each appends its number to a file, so that a step that runs twice shows.
const STEPS: usize = 5;
/// Kills if [`KILLS`] does not say how many.
const USUAL_KILLS: u64 = 20;
/// The variable that holds the number of kills.
const KILLS: &str = "GNOMA_KILLS";
/// A run takes about this long; kills are spread over it.
const RUN_MS: u64 = 1_000;

/// `mark`: the options behind each heading.
fn counting_task(mark: &str) -> String {
    let step = |number: usize| {
        format!(
            "## Step {number}{mark}\n```sh\nsleep 0.02\necho {number} >> count.txt\nsleep 0.02\n```\n"
        )
    };
    (1..=STEPS).map(step).collect()
}

/// The states of the steps of the only recorded run; empty if nothing of it is recorded.
fn states(world: &World) -> Vec<String> {
    let records = world.records();
    let Some(record) = records.first() else { return Vec::new() };
    let record: Value = serde_json::from_str(record).unwrap();
    let steps = record["steps"].as_array().unwrap().iter();
    steps.map(|step| step["state"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "how often it is killed is said from outside")]
async fn killed_at_any_moment_no_ended_step_runs_twice_and_none_is_left_out() {
    let kills = std::env::var(KILLS).ok().and_then(|count| count.parse().ok());
    let kills = kills.unwrap_or(USUAL_KILLS);
    let (mut cut_off, mut between) = (0, 0);
    for kill in 0..kills {
        let world = World::new([says("the sum")]);
        // Every other run has its steps side by side.
        let mark = if kill % 2 == 0 { "" } else { " {parallel}" };
        world.put_home(".config/gnoma/tasks/t.md", &counting_task(mark));
        let line = ["--permission", "bypass", "task", "run", "t"];
        let mut child = world.command(&line).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(RUN_MS * (kill + 1) / kills)).await;
        child.kill().await.unwrap();
        // What the killed command still writes.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let before = states(&world);
        if before.is_empty() || before.iter().all(|state| state == "done") {
            continue;
        }
        let begun = before.iter().position(|state| state == "begun");
        (cut_off, between) =
            (cut_off + u32::from(begun.is_some()), between + u32::from(begun.is_none()));
        let resume = ["--permission", "bypass", "task", "resume"];
        let mut run = world.run(&resume).await;
        if begun.is_some() {
            assert_eq!(
                run.code,
                Some(2),
                "a step that had begun runs only if it is wanted: {run:?}"
            );
            run = world.run(&[&resume[..], &["--again"]].concat()).await;
        }
        assert_eq!(run.code, Some(0), "{before:?}: {run:?}");
        let count = world.read("count.txt");
        for number in 1..=STEPS {
            let times = count.lines().filter(|line| *line == number.to_string()).count();
            // Only a step that had begun may have been done before it is repeated.
            let most = if before[number - 1] == "begun" { 2 } else { 1 };
            assert!((1..=most).contains(&times), "step {number}, {before:?}: {count}");
        }
        assert!(states(&world).iter().all(|state| state == "done"));
        // The next turn sees what each step said.
        let next = world.run(&["-c", "Sum up."]).await;
        assert_eq!(next.code, Some(0), "{before:?}: {next:?}");
        let said = world.said_by_people();
        for number in 1..=STEPS {
            assert!(said.contains(&format!("“Step {number}”")), "{before:?}: {said}");
        }
    }
    assert!(cut_off + between > 0, "no run was killed in its middle");
}
