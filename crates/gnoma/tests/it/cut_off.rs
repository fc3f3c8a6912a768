//! Elfs in the whole program when it is killed: what they did is saved with their session, the next start
//! says who was cut off and lets them go on, and nothing of them still runs.

use std::{fs, path::Path, time::Duration};

use gnoma_testkit::{Reply, Request, Server};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::{Run, World, calls, exists, finish, says};

/// How long one waits for another process to get somewhere.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// How often the program is killed, unless `GNOMA_KILLS` says another number.
const KILLS: u64 = 6;
/// The first kill comes by then, in milliseconds, and the last one this long after it.
const FIRST_MS: u64 = 60;
const SPAN_MS: u64 = 900;

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(MAX_WAIT, waiting).await.is_ok(), "never: {what}");
}

fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// The ids that the model is told it can go on with.
fn resumable(messages: &[Value]) -> Vec<String> {
    let told = messages.iter().map(text_of).filter(|text| text.starts_with("[system] gnoma ended"));
    let ids = told.flat_map(|text| text.split("(resume: ").skip(1));
    ids.map(|rest| rest.split(')').next().unwrap().to_owned()).collect()
}

/// A parent that starts four elfs, two of which run a command and two of which look around for ever; and that
/// has all go on that were cut off. One that goes on is done.
fn model(request: &Request) -> Reply {
    let json = request.json();
    let messages = json["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let is_elf = text_of(&messages[0]).contains("You are an elf");
    let is_result = last["role"] == "tool";
    if is_elf {
        return match text_of(last) {
            text if text.starts_with("You were cut off") => says("went on"),
            text if text.starts_with("run") => {
                let name = text.trim_start_matches("run ");
                calls(
                    "bash",
                    &json!({"command": format!("echo > {name}; exec sleep 31")}).to_string(),
                )
            }
            _ => calls("fs_ls", r#"{"path":"."}"#).with_delay(Duration::from_millis(300)),
        };
    }
    let cut_off = resumable(messages);
    if is_result && !text_of(last).contains("interrupted") {
        return says("all done");
    }
    match (text_of(last), cut_off.is_empty()) {
        ("go on", false) => {
            let tasks: Vec<_> =
                cut_off.iter().map(|id| json!({"task": "", "resume": id})).collect();
            calls("elf_spawn", &json!({"tasks": tasks}).to_string())
        }
        ("go on", true) => says("nothing was cut off"),
        _ => calls(
            "elf_spawn",
            r#"{"tasks":[{"task":"run one","name":"one"},{"task":"run two","name":"two"},"look","look"]}"#,
        ),
    }
}

fn world() -> World {
    let world = World::with(Server::start(model).unwrap()).among_files();
    // A project of its own, whatever lies around the folder.
    fs::create_dir(world.project.path().join(".git")).unwrap();
    world
}

const BYPASS: [&str; 2] = ["--permission", "bypass"];

async fn run(world: &World, args: &[&str]) -> Run {
    world.run(&[&BYPASS, args].concat()).await
}

/// Processes that still work in the project of a world.
fn orphans(project: &Path) -> Vec<String> {
    let works_there = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(project))
    };
    let all = fs::read_dir("/proc").unwrap().flatten().filter(works_there);
    all.map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default()).collect()
}

#[tokio::test]
async fn elfs_of_a_killed_program_are_reported_and_resume() {
    let world = world();
    let mut child = world.command(&[&BYPASS[..], &["work"]].concat()).spawn().unwrap();
    until("both commands run", || {
        exists(world.project.path(), "one") && exists(world.project.path(), "two")
    })
    .await;
    child.start_kill().unwrap();
    finish(child).await;
    let project = world.project.path().canonicalize().unwrap();
    until("nothing runs any more", || orphans(&project).is_empty()).await;

    let shown = world.run(&["sessions", "show"]).await.out;
    assert!(shown.contains("\n  `one` · cut off · 2 messages · "), "{shown}");
    assert_eq!(world.sessions().await.len(), 1, "elfs are not listed with the sessions of people");

    let resumed = run(&world, &["--continue", "go on"]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "all done\n"), "{resumed:?}");
    let told = "gnoma exited while elfs of this session were at work: `elf-1` (look), `elf-2` (look), `one` (run";
    assert!(resumed.err.contains(told), "{}", resumed.err);
    let last = world.last_request();
    let told = last.iter().find(|(_, text)| text.starts_with("[system] gnoma ended")).unwrap();
    assert!(told.1.contains("): run one; 2 messages, it was running bash"), "{told:?}");
    assert!(last.last().unwrap().1.starts_with("4 of 4 elfs completed"), "{last:?}");
    // An elf that goes on knows what it had said and done.
    let requests = world.server.requests();
    let went_on = requests.iter().map(Request::json).find(|json| {
        let messages = json["messages"].as_array().unwrap();
        text_of(messages.last().unwrap()).starts_with("You were cut off")
            && messages.iter().any(|message| text_of(message) == "run one")
    });
    let messages = went_on.unwrap()["messages"].clone();
    assert!(messages.to_string().contains("interrupted"), "{messages}");

    let shown = world.run(&["sessions", "show"]).await.out;
    assert!(shown.contains("\n  `one` · ended · "), "{shown}");
    let again = run(&world, &["--continue", "go on"]).await;
    assert!(!again.err.contains("were at work"), "told once: {again:?}");
}

#[tokio::test]
async fn an_elf_of_another_session_does_not_go_on() {
    let world = world();
    let mut child = world.command(&[&BYPASS[..], &["work"]].concat()).spawn().unwrap();
    until("a command runs", || exists(world.project.path(), "one")).await;
    child.start_kill().unwrap();
    finish(child).await;
    let resumed = run(&world, &["--continue", "go on"]).await;
    let asked = world.server.requests().last().unwrap().json()["messages"].clone();
    let ids = resumable(asked.as_array().unwrap());
    let id = ids.first().unwrap_or_else(|| panic!("{resumed:?}: {asked}"));
    let spawn = json!({"tasks": [{"task": "", "resume": id}]}).to_string();
    let other = World {
        server: Server::start_with_replies([calls("elf_spawn", &spawn), says("done")]).unwrap(),
        home: world.home,
        project: world.project,
    };
    other.configure("");
    run(&other, &["take it over"]).await;
    let told = other.last_request().pop().unwrap().1;
    assert!(told.contains(&format!("this session has no saved elf `{id}`")), "{told}");
}

#[tokio::test]
async fn elfs_in_incognito_leave_nothing() {
    let world = world();
    let args = [&BYPASS[..], &["--incognito", "work"]].concat();
    let mut child = world.command(&args).spawn().unwrap();
    until("a command runs", || exists(world.project.path(), "one")).await;
    child.start_kill().unwrap();
    finish(child).await;
    assert!(!world.home.path().join(".local/state/gnoma").exists());
}

#[tokio::test]
async fn program_killed_at_any_moment_leaves_recoverable_elfs() {
    let kills = option_env!("GNOMA_KILLS").and_then(|told| told.parse().ok());
    let kills: u64 = kills.unwrap_or(KILLS);
    for at in 0..kills {
        let wait_ms = FIRST_MS + at * SPAN_MS / kills;
        let world = world();
        let mut child = world.command(&[&BYPASS[..], &["work"]].concat()).spawn().unwrap();
        sleep(Duration::from_millis(wait_ms)).await;
        child.start_kill().ok();
        finish(child).await;
        let project = world.project.path().canonicalize().unwrap();
        until("nothing runs any more", || orphans(&project).is_empty()).await;
        let resumed = run(&world, &["--continue", "go on"]).await;
        if resumed.code == Some(2) {
            assert!(
                resumed.err.contains("no saved sessions in"),
                "after {wait_ms} ms: {resumed:?}"
            );
            continue;
        }
        assert_eq!(resumed.code, Some(0), "after {wait_ms} ms: {resumed:?}");
        let shown = world.json(&["sessions", "show", "--json"]).await;
        for elf in shown["elfs"].as_array().unwrap() {
            assert_eq!(elf["facts"]["child"]["is_open"], false, "after {wait_ms} ms: {elf}");
        }
        let repair = world.run(&["sessions", "repair"]).await;
        assert!(repair.out.starts_with("the database is intact"), "{repair:?}");
    }
}
