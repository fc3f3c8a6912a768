//! The demo, signals, and waiting.

use std::time::{Duration, Instant};

use gnoma_core::StopReason;
use gnoma_testkit::{End, Failure, Reply, ReplyBody, RetryAfter, Script, Wire};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::support::{World, calls, exists, finish, says};

#[tokio::test]
async fn the_demo_ends_with_the_test_passing() {
    let world = World::new([]);
    let run = world.run(&["demo"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("provider `replay`"), "{}", run.err);
    assert!(run.err.contains("the project's test passes"), "{}", run.err);
    assert!(run.out.contains("Fixed"), "{}", run.out);
    // What the README shows is what the program says.
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let said = run.out.lines().chain(run.err.lines());
    for line in said.filter(|line| !line.contains("working in a copy")) {
        assert!(readme.lines().any(|shown| shown == line), "the README does not show: {line}");
    }
}

#[tokio::test]
async fn no_settings_change_the_demo() {
    let world = World::new([]);
    world.configure("[permission]\nmode = \"deny\"\n");
    world.write("config.toml", "[permission]\nmode = \"deny\"\n");
    let mut command = world.command(&["demo"]);
    command.env("OLLAMA_HOST", "no address:at all");
    let run = finish(command.spawn().unwrap()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[tokio::test]
async fn demo_with_closed_output_ends_quietly() {
    let world = World::new([]);
    let mut child = world.command(&["demo"]).spawn().unwrap();
    drop(child.stdout.take());
    let run = finish(child).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.err.contains("still fails"), "{run:?}");
}

fn interrupt(child: &tokio::process::Child) {
    send(child, Signal::INT);
}

fn send(child: &tokio::process::Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn an_interrupt_stops_the_answer_and_closes_the_connection() {
    let script = Script::text(["first words "; 20]);
    let world = World::new([Wire::OpenAi.stream_reply(&script).with_end(End::Stall(600))]);
    let child = world.command(&["talk"]).spawn().unwrap();
    while world.server.bytes_sent() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    interrupt(&child);
    let run = finish(child).await;
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(run.out.contains("first words"), "{run:?}");
    tokio::time::timeout(Duration::from_secs(30), world.server.client_gone()).await.unwrap();
}

#[tokio::test]
async fn being_stopped_ends_running_commands_with_all_they_started() {
    for signal in [Signal::INT, Signal::TERM] {
        stopping_ends_commands(signal).await;
    }
    if hangups_are_ignored() {
        gnoma_testkit::skip_test("the tests run under `nohup`, which gnoma honours");
    } else {
        stopping_ends_commands(Signal::HUP).await;
    }
}

/// Whether whoever started the tests had SIGHUP, signal 1, ignored.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

async fn stopping_ends_commands(signal: Signal) {
    // Unlike any other process's: behind walls numbers of processes mean nothing outside.
    let nap = format!("300.{}{}", std::process::id(), signal.as_raw());
    let command = format!(r#"{{"command":"sleep {nap} & setsid sleep {nap} & touch up; wait"}}"#);
    let world = World::new([calls("bash", &command)]);
    let child = world.command(&["--permission", "bypass", "wait"]).spawn().unwrap();
    while !exists(world.project.path(), "up") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let started = Instant::now();
    send(&child, signal);
    let run = finish(child).await;
    assert_eq!(run.code, Some(128 + signal.as_raw()), "{run:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(running(&nap), 0, "something sleeps on");
}

/// Processes whose command line names `word`.
fn running(word: &str) -> usize {
    let names = |entry: std::io::Result<std::fs::DirEntry>| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).contains(word))
    };
    std::fs::read_dir("/proc").unwrap().filter_map(names).filter(|hit| *hit).count()
}

#[tokio::test]
async fn rate_limited_request_waits_for_retry_after() {
    let limited = Wire::OpenAi.failure_reply(&Failure::RateLimited(Some(RetryAfter::Seconds(1))));
    let world = World::new([limited, says("there")]);
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "there\n"), "{run:?}");
    assert!(run.err.contains("retrying in 1s (attempt 2, for up to 4m"), "{}", run.err);
}

#[tokio::test]
async fn stalled_stream_reaches_the_idle_timeout() {
    let stalled = says("x").with_end(End::Stall(0));
    let world = World::new([stalled, Reply::json(401, r#"{"error":{"message":"no"}}"#)]);
    world.configure("[network]\nidle_timeout = 1\n");
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.err.contains("timed out") && run.err.contains("No key for `test`"), "{}", run.err);
}

#[tokio::test]
async fn interrupt_ends_the_program_while_its_output_is_unread() {
    let words = Script::text(vec!["many words that nobody reads "; 100_000]);
    let world = World::new([Wire::OpenAi.stream_reply(&words)]);
    let mut child = world.command(&["talk"]).spawn().unwrap();
    let unread = child.stdout.take();
    tokio::time::sleep(Duration::from_millis(700)).await;
    interrupt(&child);
    tokio::time::sleep(Duration::from_millis(100)).await;
    interrupt(&child);
    let run = finish(child).await;
    assert_eq!(run.code, Some(130), "{run:?}");
    drop(unread);
}

/// What the program writes, read only once `requests` were made and answered to the end.
async fn read_late(world: &World, args: &[&str], requests: usize, bytes: u64) -> String {
    let mut child = world.command(args).spawn().unwrap();
    let mut unread = child.stdout.take().unwrap();
    let sent = async {
        while world.server.requests().len() < requests || world.server.bytes_sent() < bytes {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(40), sent).await.expect("the session waits");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut out = String::new();
    unread.read_to_string(&mut out).await.unwrap();
    let run = finish(child).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    out
}

#[tokio::test]
async fn late_reader_gets_the_whole_answer_without_stalling_the_stream() {
    let pieces: Vec<String> =
        (0..100_000).map(|number| format!("the word no. {number}, ")).collect();
    let reply =
        Wire::OpenAi.stream_reply(&Script::text(pieces.clone()).with_stop(StopReason::EndTurn));
    let ReplyBody::Bytes(body) = &reply.body else { panic!() };
    let bytes = body.len() as u64;
    let world = World::new([reply]);
    let out = read_late(&world, &["talk"], 1, bytes).await;
    assert!(out == pieces.concat() + "\n", "{} bytes of {}", out.len(), pieces.concat().len());
}

#[tokio::test]
async fn a_program_that_reads_late_gets_every_message_once() {
    let answer = |number: usize| {
        let pieces = (0..6_000).map(|piece| format!("piece {piece} of answer {number} - "));
        let script = Script::text(pieces.collect::<Vec<_>>());
        let call = script.with_call(format!("call_{number}"), "fs_ls", r#"{"path":"."}"#);
        Wire::OpenAi.stream_reply(&call.with_stop(StopReason::ToolUse))
    };
    let world = World::new((0..3).map(answer).chain([says("the end")]));
    let args = ["--output-format", "stream-json", "list"];
    let out = read_late(&world, &args, 4, 0).await;
    let objects: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &'static str| objects.iter().filter(move |object| object["type"] == kind);
    let text = |object: &Value| object["message"]["content"][0]["text"].as_str().map(str::to_owned);
    let texts: Vec<String> = of("assistant").filter_map(text).collect();
    assert_eq!(texts.len(), 4);
    for (number, text) in texts[..3].iter().enumerate() {
        assert!(text.ends_with(&format!("piece 5999 of answer {number} - ")), "{number}");
    }
    assert_eq!(of("user").count(), 4, "the prompt and three results");
    assert_eq!(of("result").count(), 1);
    assert_eq!(objects.last().unwrap()["result"], "the end");
}
