//! What is written where.

use std::process::Stdio;

use gnoma_core::StopReason;
use gnoma_testkit::{End, Script, Wire};
use serde_json::Value;

use crate::support::{World, calls, finish, refused_midway, says};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn json_is_one_object_at_the_end() {
    let world = World::new([says("forty-two")]);
    let run = world.run(&["--output-format", "json", "answer"]).await;
    let objects = lines(&run.out);
    assert_eq!(objects.len(), 1, "{run:?}");
    assert_eq!(objects[0]["type"], "result");
    assert_eq!(objects[0]["subtype"], "success");
    assert_eq!(objects[0]["result"], "forty-two");
    assert_eq!(objects[0]["stop_reason"], "end_turn");
    assert_eq!(objects[0]["num_turns"], 1);
    assert_eq!(objects[0]["model"], "test/m1");
}

#[tokio::test]
async fn stream_json_has_one_line_per_event() {
    let world = World::new([calls("fs_ls", r#"{"path":"."}"#), says("empty")]);
    let run = world.run(&["--output-format", "stream-json", "list"]).await;
    let objects = lines(&run.out);
    let kinds: Vec<_> = objects.iter().map(|object| object["type"].as_str().unwrap()).collect();
    let round = ["user", "context", "routing", "cost", "context", "assistant"];
    assert_eq!(kinds, [&["system"], &round[..], &round[..], &["result"]].concat());
    assert_eq!(objects[6]["message"]["content"][0]["type"], "tool_use");
    assert_eq!(objects[6]["message"]["content"][0]["name"], "fs.ls");
    assert_eq!(objects[7]["message"]["content"][0]["tool_use_id"], "call_a");
}

#[tokio::test]
async fn failed_turn_is_a_json_result() {
    let world = World::new([gnoma_testkit::Reply::json(400, r#"{"error":{"message":"bad"}}"#)]);
    let run = world.run(&["--output-format", "json", "x"]).await;
    assert_eq!(run.code, Some(1));
    assert_eq!(lines(&run.out)[0]["subtype"], "error_during_execution");
}

#[tokio::test]
async fn an_answer_that_a_filter_stopped_is_a_failure() {
    let stopped = Script::text(["I would "]).with_stop(StopReason::ContentFilter);
    let world = World::new([Wire::OpenAi.stream_reply(&stopped)]);
    let run = world.run(&["--output-format", "json", "x"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    let result = &lines(&run.out)[0];
    assert_eq!(result["stop_reason"], "content_filter");
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["is_error"], true);
}

#[tokio::test]
async fn partial_answer_is_marked_in_json() {
    let world = World::new([refused_midway("half an answer")]);
    let run = world.run(&["--output-format", "json", "x"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(lines(&run.out)[0]["kept_partial"], true);
    assert_eq!(lines(&run.out)[0]["stop_reason"], Value::Null);
    assert!(!run.err.contains("shown above"), "{}", run.err);
}

/// An answer that the output limit cuts is one answer, however many calls it takes.
#[tokio::test]
async fn answer_cut_at_the_output_limit_is_continued_and_joined() {
    let cut = || {
        Wire::OpenAi.stream_reply(&Script::text(["one two th"]).with_stop(StopReason::MaxTokens))
    };
    let world = World::new([cut(), says("ree four")]);
    let run = world.run(&["count"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "one two three four\n"), "{run:?}");
    assert!(run.err.contains("the output limit cut the answer off"), "{}", run.err);

    let world = World::new([cut(), says("ree four")]);
    let run = world.run(&["--output-format", "stream-json", "count"]).await;
    let lines = lines(&run.out);
    let told = lines.iter().find(|line| line["type"] == "continuing").unwrap();
    assert_eq!((&told["time"], &told["joins"]), (&1.into(), &true.into()));
    assert_eq!(lines.last().unwrap()["result"], "one two three four");

    let calls_next = || [cut(), calls("fs_ls", r#"{"path":"."}"#), says("done")];
    let run = World::new(calls_next()).run(&["count"]).await;
    assert_eq!(run.out, "one two th\ndone\n", "{run:?}");

    // What a tool's result leads to is another answer.
    let run = World::new(calls_next()).run(&["--output-format", "json", "count"]).await;
    assert_eq!(self::lines(&run.out)[0]["result"], "done");
}

#[tokio::test]
async fn no_colour_and_no_progress_without_a_terminal() {
    let world = World::new([calls("fs_ls", r#"{"path":"."}"#), says("done")]);
    let run = world.run(&["list"]).await;
    assert!(!run.err.contains('\x1b') && !run.out.contains('\x1b'), "{run:?}");
}

#[tokio::test]
async fn text_steers_no_terminal_behind_a_pipe_either() {
    let evil =
        "a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{202e}d\u{9b}31me\u{1b}]8;;http://x\u{1b}\\f\u{200b}g";
    let run = World::new([says(evil)]).run(&["talk"]).await;
    assert_eq!(run.out, "abcdefg\n", "{run:?}");
    // The strings of JSON go through the firewall, which takes the same out.
    let run = World::new([says(evil)]).run(&["--output-format", "json", "talk"]).await;
    assert_eq!(lines(&run.out)[0]["result"], "abcdefg");
}

#[tokio::test]
async fn settings_without_effect_are_reported_at_every_start() {
    let world = World::new([says("hello")]);
    world.configure("[[hooks]]\nevent = \"session_end\"\ntype = \"agent\"\nexec = \"block it\"\n");
    let project = world.project.path();
    std::fs::create_dir_all(project.join(".claude")).unwrap();
    std::fs::write(project.join(".claude/settings.json"), r#"{"hooks":{"Stop":[{"hooks":[{"command":"x"}]}],"Made":[]},"permissions":{"deny":["x"],"allow":["y"]}}"#)
        .unwrap();
    let said = ["settings.json` has `permissions.allow`"];
    for (args, on_out) in [(&["talk"][..], false), (&["doctor"], true), (&["config", "show"], true)]
    {
        let run = world.run(args).await;
        for said in said {
            assert!(run.err.contains(said), "{args:?}, {said}: {run:?}");
            assert!(!on_out || run.out.contains(said), "{args:?}, {said}: {run:?}");
        }
    }
    for (args, on_out) in [(&["talk"][..], false), (&["doctor"], true), (&["config", "show"], true)]
    {
        let run = world.run(args).await;
        let text = if on_out { run.out } else { run.err };
        let rule = "cannot apply the deny rule `x`";
        for said in ["no model answers once", "no event `Made`", "has hooks (1)", rule] {
            assert!(text.contains(said), "{args:?}, {said}: {text}");
        }
    }
}

#[tokio::test]
async fn a_closed_pipe_ends_quietly() {
    let long = "word ".repeat(200_000);
    let world = World::new([says(&long)]);
    let mut child = world.command(&["talk"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let run = finish(child).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
}

#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure() {
    for format in ["text", "json"] {
        let world = World::new([says("lost")]);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = world.command(&["--output-format", format, "talk"]);
        let run = finish(command.stdout(full).spawn().unwrap()).await;
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.err.contains("cannot write to standard output"), "{run:?}");
    }
}

#[tokio::test]
async fn turn_that_cannot_start_is_a_json_result() {
    let world = World::new([]);
    let run = world.run(&["--output-format", "json", "--provider", "nobody", "x"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(lines(&run.out)[0]["is_error"], true);
    assert!(lines(&run.out)[0]["error"].as_str().unwrap().contains("unknown provider `nobody`"));
}

#[tokio::test]
async fn commands_may_stand_behind_options() {
    let world = World::new([]);
    let run = world.run(&["--provider", "other", "config", "show"]).await;
    assert!(run.out.contains("provider.default = \"other\""), "{run:?}");
    let run = world.run(&["fix", "--provider", "other", "demo"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn repeated_progress_lines_are_collapsed_into_a_count() {
    let many = (0..200).fold(Script::text([""; 0]), |script, n| {
        script.with_call(format!("c{n}"), "fs_ls", r#"{"path":"."}"#)
    });
    let world =
        World::new([Wire::OpenAi.stream_reply(&many.with_stop(StopReason::ToolUse)), says("done")]);
    let run = world.run(&["list"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.lines().count() < 12, "{}", run.err);
    assert!(run.err.contains("and 69 more like it"), "{}", run.err);
}

#[tokio::test]
async fn help_version_and_completions() {
    let world = World::new([]);
    let version = world.run(&["--version"]).await;
    assert_eq!((version.code, version.out.starts_with("gnoma ")), (Some(0), true));
    let help = world.run(&["--help"]).await;
    assert!(help.out.contains("Exit codes"), "{}", help.out);
    let script = world.run(&["completions", "bash"]).await;
    assert!(script.out.contains("completions bash -- "), "{}", script.out);
    let words = ["completions", "zsh", "--", "exec", "--permission", "acc"];
    assert_eq!(world.run(&words).await.out.split(':').next(), Some("accept_edits"));
    assert_eq!(world.run(&["--no-such-flag"]).await.code, Some(2));
    assert_eq!(world.run(&[]).await.code, Some(2));
}

/// The program, started by a shell with this line.
async fn in_shell(world: &World, line: &str) -> crate::support::Run {
    let mut command = tokio::process::Command::new("/bin/sh");
    command
        .args(["-c", line, env!("CARGO_BIN_EXE_gnoma")])
        .current_dir(world.project.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.home.path())
        .env("XDG_RUNTIME_DIR", world.home.path().join("run"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    finish(command.spawn().unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_stdout_is_an_error_before_any_request() {
    let world = World::new([says("An answer.")]);
    for line in ["exec \"$0\" hello >&-", "exec \"$0\" config path >&-"] {
        let run = in_shell(&world, line).await;
        assert_eq!(run.code, Some(1), "{line}: {run:?}");
        assert!(run.err.contains("standard output is closed"), "{run:?}");
    }
    assert!(world.server.requests().is_empty(), "nothing was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_ends_when_the_reader_of_a_pipe_leaves() {
    let half = || Wire::OpenAi.stream_reply(&Script::text(["half of "])).with_end(End::Stall(20));
    let world = World::new([half(), half()]);
    // Without that it would end when the model has been silent for minutes.
    let run = in_shell(&world, "\"$0\" hello | true").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = in_shell(&world, "{ \"$0\" --output-format json hello; echo $? >&2; } | true").await;
    assert_eq!(run.err.trim(), "0", "a reader that has left is none of its faults: {run:?}");
}
