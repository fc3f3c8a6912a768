//! Commands in the background.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use crate::support::{Bench, gone, is_alive, is_done, is_failed, output, report, text};

#[tokio::test]
async fn a_job_is_started_polled_and_reported() {
    let bench = Bench::new();
    let command = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 3";
    bench.start(command, 1).await;
    assert_eq!(bench.poll_until(1, "one").await.lines().last(), Some("one"));
    let nothing = bench.job(json!({ "action": "poll", "id": 1 })).await;
    let said = text(&nothing);
    assert!(
        said.starts_with("job 1: Running for ") && said.ends_with("\n(no new output)"),
        "{said}"
    );
    assert_eq!(output(&nothing).report, None);

    std::fs::write(bench.path("go"), "").unwrap();
    let rest = bench.poll_until(1, "Exit code 3").await;
    assert!(rest.contains("two") && !rest.contains("one"));
    let ended = bench.job(json!({ "action": "poll", "id": 1 })).await;
    assert!(is_done(&ended));
    assert_eq!(output(&ended).report, report(command, Some(3)));
}

#[tokio::test]
async fn command_on_trial_does_not_run_in_the_background() {
    let bench = Bench::new().on_trial();
    let arguments = json!({ "command": "echo x > made", "background": true });
    let refused = bench.call("bash", &arguments).await;
    assert!(is_failed(&refused) && text(&refused).contains("not run"), "{}", text(&refused));
    assert!(!bench.path("made").exists());
    let jobs = bench.job(json!({ "action": "list" })).await;
    assert_eq!(text(&jobs), "no jobs");
}

#[tokio::test]
async fn background_job_receives_sent_input() {
    let bench = Bench::new();
    bench.start("cat", 1).await;
    for line in ["hello", "wörld"] {
        let sent = bench.job(json!({ "action": "send", "id": 1, "input": line })).await;
        assert_eq!(text(&sent), "sent to job 1");
        bench.poll_until(1, line).await;
    }
}

#[tokio::test]
async fn sending_to_a_background_job_that_does_not_read_times_out() {
    let bench = Bench::new();
    bench.start("sleep 60", 1).await;
    let send = bench.job(json!({ "action": "send", "id": 1, "input": "x".repeat(1 << 20) }));
    let sent = timeout(Duration::from_secs(5), send).await.unwrap();
    assert!(is_failed(&sent) && text(&sent).contains("did not read"));
}

#[tokio::test]
async fn killing_a_background_job_kills_its_child_processes() {
    let bench = Bench::new();
    bench.start("echo up; sleep 60 & echo $! > child; wait", 1).await;
    let child = bench.pid("child").await;
    let killed = bench.job(json!({ "action": "kill", "id": 1 })).await;
    assert_eq!(text(&killed), "job 1: Killed\nup");
    gone(child).await;
    let late = bench.job(json!({ "action": "send", "id": 1, "input": "hello" })).await;
    assert!(is_failed(&late) && text(&late).contains("no longer runs"));
}

#[tokio::test]
async fn background_job_runs_until_its_last_child_process_ends() {
    let bench = Bench::new();
    bench.start("sleep 60 & echo $! > child", 1).await;
    let child = bench.pid("child").await;
    assert_eq!(
        text(&bench.job(json!({ "action": "list" })).await),
        "job 1: Running: sleep 60 & echo $! > child"
    );
    bench.job(json!({ "action": "kill", "id": 1 })).await;
    gone(child).await;
}

#[tokio::test]
async fn background_jobs_survive_a_cancelled_turn_and_end_with_the_session() {
    let mut bench = Bench::new();
    bench.start("sleep 60 & echo $! > child; wait", 1).await;
    let child = bench.pid("child").await;
    bench.stop.cancel();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(is_alive(child));
    bench.close();
    gone(child).await;
}

#[tokio::test]
async fn background_job_limit_does_not_count_ended_jobs() {
    let bench = Bench::new();
    bench.start("echo short", 1).await;
    bench.poll_until(1, "Exit code 0").await;
    for id in 2..=9 {
        bench.start("sleep 60", id).await;
    }
    let listed = text(&bench.job(json!({ "action": "list" })).await);
    assert_eq!(listed.lines().count(), 8);
    assert!(!listed.contains("short"));

    let refused =
        bench.call("bash", &json!({ "command": "touch ninth", "background": true })).await;
    assert!(is_failed(&refused) && text(&refused).contains("kill one first"));
    assert!(!bench.path("ninth").exists());
    let orphaning = bench.command("sleep 60 & echo $! > child").await;
    assert!(text(&orphaning).contains("was killed: 8 jobs are running"));
    gone(bench.pid("child").await).await;
}

#[tokio::test]
async fn background_job_with_endless_output_is_truncated() {
    let bench = Bench::new();
    bench.start("yes", 1).await;
    bench.poll_until(1, "bytes left out").await;
    let killed = bench.job(json!({ "action": "kill", "id": 1 })).await;
    assert!(text(&killed).len() < 30_200);
}

#[tokio::test]
async fn invalid_job_tool_calls_are_explained() {
    let bench = Bench::new();
    assert_eq!(text(&bench.job(json!({ "action": "list" })).await), "no jobs");
    for (arguments, complaint) in [
        (json!({ "action": "poll", "id": 7 }), "there is no job 7"),
        (json!({ "action": "kill" }), "`id` is missing"),
        (json!({ "action": "send", "id": 1 }), "`input` is missing"),
        (json!({ "action": "restart", "id": 1 }), "unknown variant `restart`"),
    ] {
        let refused = bench.job(arguments).await;
        assert!(is_failed(&refused) && text(&refused).contains(complaint));
    }
}
