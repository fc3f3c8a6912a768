//! Schedules: made, listed and refused on the command line, run by a server.

use std::time::Instant;

use serde_json::Value;

use super::*;
use crate::serve::Served;

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);
/// A schedule of the task, once a day.
const DAILY: [&str; 9] = [
    "task",
    "schedule",
    "release",
    "v1.2.0",
    "--every",
    "day 0:00",
    "--budget",
    "0.50",
    "--zone=UTC",
];

impl World {
    fn schedule_file(&self) -> std::path::PathBuf {
        self.home.path().join(".local/state/gnoma/schedules/1.json")
    }

    fn schedule(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.schedule_file()).unwrap()).unwrap()
    }

    /// Makes the schedule believe that it last looked two days ago, as after a sleep.
    fn misses_runs(&self) {
        let mut schedule = self.schedule();
        let seen = schedule["progress"]["seen"].as_i64().unwrap();
        schedule["progress"]["seen"] = (seen - 2).into();
        std::fs::write(self.schedule_file(), schedule.to_string()).unwrap();
    }

    async fn waits_for_schedule(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let schedule = self.schedule();
            if is_so(&schedule) {
                return schedule;
            }
            assert!(Instant::now() < end, "no {what}: {schedule}");
            tokio::time::sleep(STEP).await;
        }
    }
}

#[tokio::test]
async fn time_of_another_zone_is_told_in_that_zone() {
    let world = world([]);
    let line = ["task", "schedule", "release", "v1", "--at", "18:34", "--zone", "Asia/Kathmandu"];
    let made = world.run(&[&line[..], &["--budget", "1"]].concat()).await;
    assert!(made.out.contains("18:34 (Asia/Kathmandu), in mode"), "{made:?}");
    let list = world.run(&["task", "schedules"]).await;
    assert!(list.out.contains("once (Asia/Kathmandu), next "), "{list:?}");
    assert!(list.out.contains("18:34\n"), "{list:?}");
}

#[tokio::test]
async fn schedule_is_made_listed_paused_resumed_and_deleted() {
    let world = world([]);
    let empty = world.run(&["task", "schedules"]).await;
    assert!(empty.out.starts_with("no schedules."), "{empty:?}");
    let made = world.run(&DAILY).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(
        made.out.contains("schedule 1: release v1.2.0 every day 00:00, the first time "),
        "{made:?}"
    );
    assert!(made.out.contains("mode plan, for at most $0.50"), "{made:?}");
    assert!(made.err.contains("none runs now"), "{made:?}");
    let mode = std::fs::metadata(world.schedule_file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let list = world.run(&["task", "schedules"]).await;
    assert!(list.out.contains("1  release v1.2.0: every day 00:00 (UTC), next "), "{list:?}");
    let paused = world.run(&["task", "schedules", "pause", "1"]).await;
    assert_eq!(paused.code, Some(0), "{paused:?}");
    let list = world.json(&["task", "schedules", "--output-format", "json"]).await;
    let first = &list["schedules"][0];
    assert_eq!((&first["paused"], &first["next_ms"]), (&true.into(), &Value::Null), "{list}");
    let resumed = world.run(&["task", "schedules", "resume", "1"]).await;
    assert!(resumed.out.contains("schedule 1 (release v1.2.0) runs"), "{resumed:?}");
    let deleted = world.run(&["task", "schedules", "delete", "1"]).await;
    assert_eq!(deleted.out, "deleted schedule 1\n", "{deleted:?}");
    let gone = world.run(&["task", "schedules", "pause", "1"]).await;
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(
        gone.err.contains("there is no schedule 1; `gnoma task schedules` lists them"),
        "{gone:?}"
    );
}

#[tokio::test]
async fn schedule_that_cannot_run_is_refused_in_a_sentence() {
    let world = world([]);
    std::fs::create_dir_all(world.project.path().join(".gnoma/tasks")).unwrap();
    world.write(".gnoma/tasks/theirs.md", "Do it.");
    let every = ["--every", "day 9:00"];
    world.put_home(".config/gnoma/tasks/call.md", "---\narguments: token\n---\nCall it.\n");
    let cases: [(&[&str], &str); 12] = [
        // It is known as a secret only by the name of its argument.
        (&["call", super::resume::TOKEN, "--every", "day 9:00"], "an argument contains a secret"),
        (&["release", "v1", "--at", "2020-01-01 09:00"], "`2020-01-01 09:00` has passed"),
        (&["release", "v1", "--at", "soon"], "`soon` is no time"),
        (&["release", "v1", "--every", "noon"], "`noon` is neither a day, a time nor an interval"),
        (&["release", "v1", "--every", "1m"], "no interval from 5m"),
        (&["release", "--every", "day 9:00"], "version"),
        (&["missing", "--every", "day 9:00"], "there is no task `missing`"),
        (&["theirs", "--every", "day 9:00"], "have not trusted the project"),
        (
            &["release", "v1", "--every", "day 9:00", "--zone", "Mars/Base"],
            "no time zone `Mars/Base`",
        ),
        (&["release", "v1", "--when-limits-reset"], "no model is at its limit"),
        (
            &["release", "v1", "--every", "day 9:00", "--permission", "bypass"],
            "cannot have the mode bypass",
        ),
        (&["release", "v1", "--every", "day 9:00", "--incognito"], "nothing is saved in incognito"),
    ];
    for (words, part) in cases {
        let run = world.run(&[&["task", "schedule", "--budget", "1"], words].concat()).await;
        assert_eq!(run.code, Some(2), "{words:?}: {run:?}");
        assert!(run.err.contains(part), "{words:?}: {run:?}");
    }
    let free = world.run(&[&["task", "schedule", "release", "v1"][..], &every].concat()).await;
    assert!(free.code == Some(2) && free.err.contains("--budget"), "{free:?}");
    assert!(!world.schedule_file().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_schedule_runs_once_also_after_a_restart_and_with_two_servers() {
    let world = world([says("the entry"), says("the sum")]);
    world.run(&DAILY).await;
    world.misses_runs();
    let second = world.home.path().join("second");
    std::fs::create_dir_all(&second).unwrap();
    let mut other = world.command(&["serve"]).env("XDG_RUNTIME_DIR", &second).spawn().unwrap();
    let served = Served::starts(&world, &[]);
    let ended = world.waits_for_schedule("end", |it| it["last"]["end"].is_string()).await;
    let end = ended["last"]["end"].as_str().unwrap();
    // In mode plan, the command of the task reads only, so it runs.
    assert!(end.starts_with("Task release is done: 3 steps in"), "{ended}");
    assert_eq!(world.server.requests().len(), 2);
    let session = ended["last"]["session"].as_str().unwrap().to_owned();
    assert_eq!(world.sessions().await, [session]);
    drop(served);
    let _served = Served::starts(&world, &[]);
    let looked = world.run(&["task", "schedules"]).await;
    assert!(looked.out.contains("Task release is done"), "{looked:?}");
    assert_eq!(world.schedule()["progress"], ended["progress"]);
    assert_eq!(world.records().len(), 1, "it ran once");
    other.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_that_a_scheduled_run_needs_waits_as_a_question() {
    let world = World::new([]);
    world.put_home(".config/gnoma/tasks/t.md", "## Ask\n? Push it?\n");
    let line = ["task", "schedule", "t", "--every", "day 0:00", "--budget", "1", "--zone", "UTC"];
    world.run(&line).await;
    world.misses_runs();
    let _served = Served::starts(&world, &[]);
    let end = Instant::now() + PATIENCE;
    loop {
        let all = world.json(&["ps", "--json"]).await;
        if all[0]["status"]["questions"] == 1 {
            break;
        }
        assert!(Instant::now() < end, "nothing asks: {all}");
        tokio::time::sleep(STEP).await;
    }
    let list = world.run(&["task", "schedules"]).await;
    assert!(list.out.contains("it goes on"), "{list:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_run_costs_no_more_than_its_budget() {
    let world = world([says("never")]);
    let dear = "[[arms]]\nid = \"test/m1\"\ninput_price = 1000\noutput_price = 1000\n";
    world.configure(dear);
    let mut line = DAILY;
    line[7] = "0.000001";
    world.run(&line).await;
    world.misses_runs();
    let _served = Served::starts(&world, &[]);
    let ended = world.waits_for_schedule("end", |it| it["last"]["end"].is_string()).await;
    let end = ended["last"]["end"].as_str().unwrap();
    assert!(end.contains("stopped at step 1 of 3"), "{ended}");
    assert!(world.server.requests().is_empty(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_a_scheduled_run_is_told_to_hooks() {
    let world = world([says("the entry"), says("the sum")]);
    let hook = "[[hooks]]\nname = \"mine\"\nevent = \"notification\"\nexec = \"cat > told.json\"\n";
    world.configure(hook);
    world.run(&DAILY).await;
    world.misses_runs();
    let _served = Served::starts(&world, &[]);
    let told = world.project.path().join("told.json");
    let is_told =
        || std::fs::read_to_string(&told).is_ok_and(|it| it.contains("Task release is done"));
    world.waits_for_schedule("hook", |_| is_told()).await;
}
