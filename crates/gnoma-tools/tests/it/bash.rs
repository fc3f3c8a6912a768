//! Commands in the foreground.

use std::{path::PathBuf, time::Duration};

use gnoma_core::ToolOutcome;
use gnoma_tools::ToolOptions;
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::support::{Bench, gone, is_alive, is_done, is_failed, output, report, text};

/// A shell and its grandchild that do not end by themselves, and note who they are.
const FAMILY: &str =
    "echo before; echo $$ > child; (sleep 60 & echo $! > grandchild; wait); echo after";

fn impatient() -> ToolOptions {
    ToolOptions { bash_timeout: Duration::from_millis(300), ..ToolOptions::default() }
}

#[tokio::test]
async fn bash_returns_output_and_exit_code() {
    let bench = Bench::new();
    let done = bench.command("pwd").await;
    let folder = bench.folder.path().canonicalize().unwrap();
    assert_eq!(text(&done), folder.to_str().unwrap());
    assert_eq!(output(&done).report, report("pwd", Some(0)));

    let failed = bench.command("echo broken; exit 3").await;
    assert!(is_failed(&failed));
    assert_eq!(text(&failed), "Exit code 3\nbroken");
    assert_eq!(output(&failed).report, report("echo broken; exit 3", Some(3)));

    assert_eq!(text(&bench.command("true").await), "(no output)");
    assert_eq!(text(&bench.command("false").await), "Exit code 1");
}

#[tokio::test]
async fn bash_names_the_signal_that_killed_a_command() {
    let killed = Bench::new().command("kill -SEGV $$").await;
    assert!(is_failed(&killed));
    assert_eq!(text(&killed), "Killed by SIGSEGV");
    assert_eq!(output(&killed).report, report("kill -SEGV $$", None));
}

#[tokio::test]
async fn bash_interleaves_stdout_and_stderr_in_written_order() {
    let done = Bench::new().command("for i in 1 2 3; do echo out $i; echo err $i >&2; done").await;
    assert_eq!(text(&done), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3");
}

#[tokio::test]
async fn bash_script_with_stop_at_error_ends_at_its_first_error() {
    let bench = Bench::new();
    let arguments = json!({ "command": "echo a\nfalse\necho b", "stop_at_error": true });
    let failed = bench.call("bash", &arguments).await;
    assert!(is_failed(&failed));
    assert_eq!(text(&failed), "Exit code 1\na");
    assert_eq!(text(&bench.command("echo a\nfalse\necho b").await), "a\nb");
}

#[tokio::test]
async fn bash_command_has_an_empty_stdin() {
    let bench = Bench::new();
    let done = timeout(Duration::from_secs(5), bench.command("cat; echo end")).await;
    assert_eq!(text(&done.unwrap()), "end");
}

#[tokio::test]
async fn bash_collapses_progress_bars_to_their_last_frame() {
    let bench = Bench::new();
    let frames =
        "for i in $(seq 1 3000); do printf '\\rprogress %d%% ####' $i; done; echo; echo end";
    assert_eq!(text(&bench.command(frames).await), "progress 3000% ####\nend");
    let spinner =
        "printf 'a |'; for i in 1 2 3; do printf '\\b/\\b-'; done; printf '\\b \\n'; echo end";
    assert_eq!(text(&bench.command(spinner).await), "a  \nend");
    let rows = "for i in 1 2 3; do printf 'one %d\\ntwo %d\\n' $i $i; [ $i = 3 ] || printf '\\033[2A\\033[J'; done";
    assert_eq!(text(&bench.command(rows).await), "one 3\ntwo 3");
    bench.start(&format!("{frames}; echo $$ > over"), 1).await;
    bench.pid("over").await;
    let polled = bench.poll_until(1, "end").await;
    // Each look shows one frame, however many came since the last.
    let most = polled.split("job 1:").map(|look| look.matches("progress").count()).max();
    assert_eq!(most, Some(1), "{polled}");
}

#[tokio::test]
async fn editors_and_terminal_prompts_end_at_once_with_a_hint() {
    let bench = Bench::new();
    let slow = "#!/bin/sh\nsleep 60\n";
    std::fs::write(bench.folder.path().join("ed.sh"), slow).unwrap();
    let setup = "chmod +x ed.sh; git init -q . && git config user.email a@example.com && git config user.name A \
        && git config core.editor \"$PWD/ed.sh\" && git add . && git commit -qm one && git commit -q --allow-empty -m two";
    if !is_done(&bench.command(setup).await) {
        gnoma_testkit::skip_test("git is not there");
        return;
    }
    for command in [
        "git commit --allow-empty",
        "git tag -a v1",
        "git rebase -i HEAD~1",
        "git -c user.name=B commit --allow-empty",
        "$EDITOR file",
        "sh -c \"$VISUAL file\"",
    ] {
        let ended = timeout(Duration::from_secs(10), bench.command(command)).await.unwrap();
        assert!(is_failed(&ended), "{command}: {}", text(&ended));
        assert!(text(&ended).contains("It wanted an editor"), "{command}: {}", text(&ended));
    }
    // Who chooses an editor has it.
    for command in [
        "git -c core.editor=true commit -q --amend --allow-empty",
        "GIT_EDITOR=true git commit -q --amend --allow-empty",
        "EDITOR=true; export EDITOR; $EDITOR x",
        "git -c sequence.editor=true rebase -q -i HEAD~1",
    ] {
        let ended = timeout(Duration::from_secs(10), bench.command(command)).await.unwrap();
        assert!(is_done(&ended), "{command}: {}", text(&ended));
    }
    // Nobody is asked at a terminal, and nothing waits for a pager.
    let tty = "(exec 3</dev/tty) 2>/dev/null && echo terminal || echo none";
    assert_eq!(text(&bench.command(tty).await), "none");
    let pages =
        "git -c core.pager=./ed.sh log --oneline | wc -l; man ls 2>/dev/null | head -1; echo end";
    let ended = timeout(Duration::from_secs(10), bench.command(pages)).await.unwrap();
    assert!(text(&ended).ends_with("end"), "{}", text(&ended));
    let asked = bench.command("printf 'name? '; read name").await;
    assert!(text(&asked).contains("Give the answers as arguments"), "{}", text(&asked));
    for line in ["echo 'name? '", "printf 'key: \\n'"] {
        assert!(!text(&bench.command(line).await).contains("asks for input"), "{line}");
    }
}

#[tokio::test]
async fn full_screen_program_is_stopped_with_advice() {
    let editor = r#"echo 'Output is not to a terminal'; printf '\033[24;1H"f" 1L\033[1;1Hhello\r\n~   '; exec sleep 60"#;
    let watch = "TERM=xterm; printf '\\033[?1049hEvery 2.0s'; sleep 60; printf '\\033[?1049l'";
    for command in [editor, watch] {
        let bench = Bench::new();
        let ended = timeout(Duration::from_secs(10), bench.command(command)).await.unwrap();
        let text = text(&ended);
        assert!(is_failed(&ended) && text.contains("waits for a person at a terminal"), "{text}");
        assert!(text.contains("`fs.edit`") && !text.contains("longer `timeout`"), "{text}");
    }
    let bench = Bench::new();
    let menu = json!({ "command": "printf '\\033[?1049hmenu'; sleep 60", "background": true });
    bench.call("bash", &menu).await;
    let polled = bench.poll_until(1, "`kill` it: it draws on a full screen").await;
    assert!(polled.contains("menu"), "{polled}");
    // One that ends by itself does so.
    let ends = "printf '\\033[24;1Hsaved'; sleep 0.3; printf '\\r\\n'; sleep 2; echo end";
    let done = Bench::new().command(ends).await;
    assert!(is_done(&done) && text(&done).ends_with("end"), "{}", text(&done));
}

#[tokio::test]
async fn background_child_of_an_ended_shell_becomes_a_job() {
    let mut bench = Bench::new();
    let start = Instant::now();
    let done = bench.command("sleep 60 & echo $! > child; echo hi").await;
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(text(&done), "hi\n[what it left in the background continues as job 1]");
    assert!(is_done(&done));
    let child = bench.pid("child").await;
    assert!(is_alive(child));
    bench.close();
    gone(child).await;
}

#[tokio::test]
async fn bash_returns_while_a_background_child_continues_to_write() {
    let bench = Bench::new();
    let start = Instant::now();
    let done = bench.command("yes & echo $! > child").await;
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(text(&done).ends_with("as job 1]"));
    bench.job(json!({ "action": "kill", "id": 1 })).await;
    gone(bench.pid("child").await).await;
}

#[tokio::test]
async fn bash_timeout_kills_all_child_processes_and_returns_the_output() {
    let bench = Bench::with(&impatient());
    let start = Instant::now();
    let failed = bench.command(FAMILY).await;
    assert!(start.elapsed() < Duration::from_millis(1300));
    assert!(is_failed(&failed));
    assert_eq!(
        text(&failed),
        "Stopped after 300ms, before it ended; give a longer `timeout`, or set `background`.\nbefore"
    );
    assert_eq!(output(&failed).report, report(FAMILY, None));
    gone(bench.pid("child").await).await;
    gone(bench.pid("grandchild").await).await;
}

#[tokio::test]
async fn bash_timeout_of_a_task_step_suggests_a_longer_step_time_limit() {
    let bench = Bench::with(&impatient());
    let written = bench.command("set -e\nsleep 5").await;
    assert!(text(&written).ends_with("; give a longer `timeout`, or set `background`."));
    let step = json!({ "command": "sleep 5", "stop_at_error": true });
    let failed = bench.call("bash", &step).await;
    assert!(text(&failed).contains("; give its step a longer time limit"), "{}", text(&failed));
}

#[tokio::test]
async fn bash_timeout_sends_sigkill_to_a_command_that_ignores_sigterm() {
    let bench = Bench::with(&impatient());
    let start = Instant::now();
    let failed = bench.command("trap '' TERM; echo $$ > child; while :; do sleep 0.05; done").await;
    assert!(is_failed(&failed) && start.elapsed() < Duration::from_millis(1300));
    gone(bench.pid("child").await).await;
}

#[tokio::test]
async fn bash_timeout_returns_output_written_after_sigterm() {
    let bench = Bench::with(&impatient());
    let failed =
        bench.command("trap 'echo cleaned; exit' TERM; while :; do sleep 0.05; done").await;
    assert!(text(&failed).ends_with("\ncleaned"));
}

#[tokio::test]
async fn bash_timeout_argument_overrides_the_default() {
    let bench = Bench::with(&impatient());
    let arguments = json!({ "command": "sleep 0.5; echo late", "timeout": 20.0 });
    assert_eq!(text(&bench.call("bash", &arguments).await), "late");
}

#[tokio::test]
async fn bash_cancel_kills_all_child_processes_and_returns_the_output() {
    let bench = Bench::new();
    let cancel = async {
        let grandchild = bench.pid("grandchild").await;
        bench.stop.cancel();
        grandchild
    };
    let (outcome, grandchild) = tokio::join!(bench.command(FAMILY), cancel);
    assert_eq!(outcome, ToolOutcome::Interrupted("before".to_owned()));
    gone(grandchild).await;
    gone(bench.pid("child").await).await;

    let after = bench.command("touch too-late").await;
    assert_eq!(after, ToolOutcome::Interrupted(String::new()));
    assert!(!bench.path("too-late").exists());
}

#[tokio::test]
async fn dropped_bash_call_kills_all_child_processes() {
    let bench = Bench::new();
    let grandchild = tokio::select! {
        outcome = bench.command(FAMILY) => panic!("ended: {outcome:?}"),
        grandchild = bench.pid("grandchild") => grandchild,
    };
    gone(grandchild).await;
    gone(bench.pid("child").await).await;
}

#[tokio::test]
async fn bash_long_output_retains_both_ends() {
    let done = Bench::new()
        .command("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last")
        .await;
    let text = text(&done);
    assert!(text.starts_with("first\nxxx") && text.ends_with("xxx\nlast"));
    assert!(text.len() < 30_100);
    let left_out = 20_000_000 + "first\n\nlast\n".len() - 30_000;
    assert!(text.contains(&format!("\n[... {left_out} bytes left out ...]\n")));
}

#[tokio::test]
async fn bash_returns_large_output_whole_if_results_are_stored_and_it_succeeded() {
    let bench = Bench::new().storing_large_results();
    let done = bench.command("head -c 900000 /dev/zero | tr '\\0' x").await;
    assert_eq!(text(&done).len(), 900_000);
    let failed = bench.command("head -c 900000 /dev/zero | tr '\\0' x; exit 3").await;
    assert!(is_failed(&failed) && text(&failed).len() < 30_100);
}

#[tokio::test]
async fn bash_endless_output_is_stopped_by_the_timeout() {
    let start = Instant::now();
    let failed = Bench::with(&impatient()).command("yes").await;
    assert!(is_failed(&failed) && start.elapsed() < Duration::from_millis(1300));
    assert!(text(&failed).contains("bytes left out"));
}

#[tokio::test]
async fn bash_output_replaces_invalid_utf8_and_joins_split_characters() {
    let command = r"printf 'a\377b\0c'; printf '\342\202'; sleep 0.1; printf '\254\n'";
    assert_eq!(text(&Bench::new().command(command).await), "a\u{fffd}b\0c€");
}

#[tokio::test]
async fn bash_output_is_streamed_while_the_command_runs() {
    let mut bench = Bench::new();
    let command = bench.command("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two");
    let go = bench.path("go");
    let watch = async {
        let first = bench.watched.recv().await.unwrap();
        std::fs::write(go, "").unwrap();
        (first, bench.watched.recv().await.unwrap())
    };
    let (done, (first, second)) = tokio::join!(command, watch);
    assert_eq!((first.text.as_str(), second.text.as_str()), ("one\n", "two\n"));
    assert_eq!(first.call.as_str(), "call");
    assert_eq!(text(&done), "one\ntwo");
}

#[tokio::test]
async fn bash_environment_has_the_agent_variables_and_no_hidden_ones() {
    // Cargo sets this one for every test.
    let ask = "echo $GNOMA $AGENT $AI_AGENT $GIT_TERMINAL_PROMPT $PAGER $GIT_PAGER $TERM; \
               echo \"[$CARGO_PKG_NAME]\"; test -t 1 || echo no terminal";
    let open = Bench::new().command(ask).await;
    let known = "1 gnoma gnoma 0 cat cat dumb";
    assert_eq!(text(&open), format!("{known}\n[gnoma-tools]\nno terminal"));
    let hiding = Bench::with(&ToolOptions {
        hidden_variables: vec!["CARGO_PKG_NAME".to_owned()],
        ..ToolOptions::default()
    });
    assert_eq!(text(&hiding.command(ask).await), format!("{known}\n[]\nno terminal"));
}

#[tokio::test]
async fn bash_environment_is_that_of_the_client_instead_of_the_process() {
    let variables = [("PATH", "/usr/bin:/bin"), ("MINE", "yes"), ("HIDDEN", "no")];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let bench = Bench::with(&ToolOptions {
        environment: Some(variables.map(own).into_iter().collect()),
        hidden_variables: vec!["HIDDEN".to_owned()],
        ..ToolOptions::default()
    });
    let said = bench.command("echo \"[$CARGO_PKG_NAME] $MINE [$HIDDEN] $AGENT\"").await;
    assert_eq!(text(&said), "[] yes [] gnoma");
}

#[tokio::test]
async fn variables_of_the_shell_of_a_person_change_no_folder_and_no_name_of_a_command() {
    let folders = [("CDPATH", "/usr"), ("OLDPWD", "/usr"), ("PWD", "/usr")];
    let names = [("PATH", "/usr/bin:/bin"), ("GLOBIGNORE", "b*")];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let bench = Bench::with(&ToolOptions {
        environment: Some(folders.into_iter().chain(names).map(own).collect()),
        ..ToolOptions::default()
    });
    let said = "cd bin 2> /dev/null || echo none; touch b; echo b* \"[$OLDPWD]\"";
    assert_eq!(text(&bench.command(said).await), "none\nb []");
}

#[tokio::test]
async fn bash_falls_back_to_sh_if_the_configured_shell_is_missing() {
    let bench = Bench::with(&ToolOptions {
        shell: PathBuf::from("/no/such/shell"),
        ..ToolOptions::default()
    });
    assert_eq!(text(&bench.command("echo hi").await), "hi");
}

#[tokio::test]
async fn bash_explains_why_a_command_cannot_be_started() {
    let bench = Bench::new();
    let long = bench.command(&format!("true {}", "x".repeat(3_000_000))).await;
    assert!(is_failed(&long) && text(&long).contains("write it to a file"));
    let nul = bench.command("echo \0").await;
    assert!(is_failed(&nul) && text(&nul).contains("could not be started"));
    let shapeless = bench.call("bash", &json!({ "cmd": "ls" })).await;
    assert!(is_failed(&shapeless) && text(&shapeless).contains("`command`"));

    std::fs::remove_dir_all(bench.folder.path()).unwrap();
    let lost = bench.command("echo hi").await;
    assert!(is_failed(&lost) && text(&lost).contains("is gone"));
    assert_eq!(output(&lost).report, None);
}
