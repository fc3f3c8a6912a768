//! What goes wrong between gnoma and a server: a clear message, never a panic or a hang.

use gnoma_testkit::{End, Pace, Reply, ReplyBody, Script, Server, Wire};

use crate::support::{World, calls, finish, refused_midway, says};

/// Runs a turn against `reply` and gives what a person reads.
async fn failing(reply: fn() -> Reply) -> String {
    // Faults that pass are tried again; every attempt meets the same one.
    let world = World::new(std::iter::repeat_with(reply).take(4));
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(7), "{run:?}");
    assert!(!run.err.contains("panicked"), "{}", run.err);
    run.err
}

#[tokio::test]
async fn html_page_instead_of_an_api_answer_is_reported() {
    let page = || Reply::new(200, "text/html", "<html><body>Sign in</body></html>");
    assert!(failing(page).await.contains("HTML page"));
}

#[tokio::test]
async fn malformed_stream_is_reported_as_an_unreadable_answer() {
    let garbage = || Reply::sse("data: {\"choices\": [{]}\n\n");
    assert!(failing(garbage).await.contains("unreadable answer"));
}

/// An answer in which the model says this and calls nothing.
fn answers(delta: &str) -> Reply {
    Reply::sse(format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    ))
}

#[tokio::test]
async fn tokens_that_no_server_reports_are_counted_in_json() {
    let world = World::new([answers(r#"{"content":"hello"}"#)]);
    let run = world.run(&["--output-format", "json", "hi"]).await;
    let result: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    for count in ["input_tokens", "output_tokens"] {
        assert!(result["usage"][count].as_u64() > Some(0), "{count}: {run:?}");
    }
}

#[tokio::test]
async fn empty_answer_is_an_error_for_scripts() {
    for (delta, said) in [
        (r#"{"reasoning_content":"hm"}"#, "thought, but gave no answer"),
        (r#"{"content":" \n\n"}"#, "only white space"),
        (r#"{"content":"\u200b\ufeff"}"#, "only white space"),
        ("{}", "returned an empty answer"),
    ] {
        let world = World::new(std::iter::repeat_with(|| answers(delta)).take(3));
        let run = world.run(&["hi"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{delta}: {run:?}");
        assert!(run.err.contains(said), "{delta}: {}", run.err);
    }
}

/// The last word of a model may be its last call.
#[tokio::test]
async fn empty_answer_after_a_call_that_succeeded_is_done() {
    let write = calls("fs_write", r#"{"path":"new.txt","content":"made"}"#);
    let world = World::new([write, answers(r#"{"content":"\n"}"#)]);
    let run = world.run(&["--permission", "bypass", "write it"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""), "{run:?}");
    assert!(world.project.path().join("new.txt").exists());
}

#[tokio::test]
async fn blank_text_before_and_behind_an_answer_is_not_printed() {
    for (delta, printed) in [
        (r#"{"content":"\n\n  done"}"#, "  done\n"),
        (r#"{"content":"done\n\n\n"}"#, "done\n"),
        (r#"{"content":"one\n\n\ntwo\r\n\r\n"}"#, "one\n\n\ntwo\n"),
    ] {
        let world = World::new([answers(delta)]);
        let run = world.run(&["hi"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(0), printed), "{delta}: {run:?}");
    }
}

#[tokio::test]
async fn finished_answer_is_not_asked_for_again_when_the_connection_stays_open() {
    let reply = answers(r#"{"content":"here"}"#);
    let ReplyBody::Bytes(body) = &reply.body else { panic!("an endless script") };
    let end = body.len() - "data: [DONE]\n\n".len();
    let world = World::new([reply.with_end(End::Stall(end))]);
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "here\n"), "{run:?}");
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn named_model_goes_to_its_provider_or_nowhere() {
    for model in ["anthropic/claude-opus-4-7", "openai/gpt-5"] {
        let world = World::new([says("from elsewhere")]);
        let run = world.run(&["-m", model, "hi"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{model}: {run:?}");
        assert!(run.err.contains("_API_KEY"), "{model}: {}", run.err);
        assert_eq!(world.server.requests().len(), 0, "{model}");
    }
}

#[tokio::test]
async fn other_programs_names_of_tools_are_understood() {
    for name in ["Bash", "functions.bash", "run_shell_command"] {
        let world = World::new([calls(name, r#"{"command":"echo A1"}"#), says("done")]);
        let run = world.run(&["--permission", "bypass", "go"]).await;
        assert_eq!(run.code, Some(0), "{name}: {run:?}");
        let sent = String::from_utf8(world.server.requests()[1].body.to_vec()).unwrap();
        assert!(sent.contains("A1") && !sent.contains("unknown tool"), "{name}: {sent}");
    }
}

#[tokio::test]
async fn partial_answer_is_saved_and_reported_after_an_error() {
    let world = World::new([refused_midway("half an answer")]);
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.starts_with("half an "), "{run:?}");
    assert!(run.err.contains("stays in the session"), "{}", run.err);
    assert!(run.err.contains("gnoma --continue"), "{}", run.err);
}

#[tokio::test]
async fn tool_results_survive_a_broken_stream_and_the_tool_runs_once() {
    let write = calls("fs_write", r#"{"path":"new.txt","content":"made"}"#);
    let broken = || Wire::OpenAi.stream_reply(&Script::text(["half"])).with_end(End::Abort(150));
    let world = World::new([write, broken(), broken(), says("done")]);
    let run = world.run(&["--permission", "bypass", "write it"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.ends_with("done\n"), "{run:?}");
    assert_eq!(world.server.requests().len(), 4, "the tool ran once");
    assert_eq!(std::fs::read_to_string(world.project.path().join("new.txt")).unwrap(), "made");
}

#[tokio::test]
async fn http_429_waits_for_retry_after() {
    let busy =
        || Reply::text(429, r#"{"error":{"message":"slow down"}}"#).with_header("retry-after", "1");
    let world = World::new([busy(), busy(), says("here")]);
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "here\n"), "{run:?}");
    assert!(run.err.contains("retrying in 1s (attempt 3, for up to 4m"), "{}", run.err);
}

/// A server that keeps the connection open with comments says nothing.
#[tokio::test]
async fn sse_comments_alone_reach_the_idle_timeout() {
    const COMMENT: &str = ": still here\n\n";
    let mut slow = Reply::sse("");
    slow.body = ReplyBody::Endless { head: COMMENT.into(), unit: COMMENT.into() };
    slow.pace = Pace::Each(std::time::Duration::from_millis(100));
    let world = World::new([slow, says("here")]);
    world.configure("[network]\nidle_timeout = 1\n");
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "here\n"), "{run:?}");
    assert!(run.err.contains("no answer for 1s"), "{}", run.err);
}

#[tokio::test]
async fn a_failure_inside_the_server_is_not_called_overload() {
    let fails = || Reply::text(500, r#"{"error":{"message":"no such luck"}}"#);
    let world = World::new([fails(), says("here")]);
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("server error (HTTP 500)"), "{}", run.err);
    assert!(!run.err.contains("overloaded"), "{}", run.err);
}

#[tokio::test]
async fn refused_connection_names_the_address() {
    let world = World::new([]);
    let text = "[provider]\ndefault = \"test\"\nmodel = \"m\"\n[provider.endpoints]\ntest = \"http://127.0.0.1:9/v1\"\n";
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(7));
    assert!(run.err.contains("cannot connect (http://127.0.0.1:9"), "{}", run.err);
    // What happened, what to do about it, how to go on.
    let lines: Vec<&str> = run.err.lines().collect();
    let [.., error, hint, next] = lines.as_slice() else { panic!("{}", run.err) };
    assert!(error.starts_with("gnoma: test: cannot connect"), "{}", run.err);
    assert!(
        hint.starts_with("Check that the server of `test` runs at http://127.0.0.1:9/v1"),
        "{}",
        run.err
    );
    assert_eq!(*next, "To continue: gnoma --continue \"go on\"", "{}", run.err);
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_past_any_proxy() {
    let world = World::new([says("here")]);
    let mut command = world.command(&["hi"]);
    for variable in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        command.env(variable, "http://127.0.0.1:9");
    }
    let run = finish(command.spawn().unwrap()).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "here\n"), "{run:?}");
}

#[tokio::test]
async fn huge_tool_result_is_truncated_for_the_model() {
    let flood = r#"{"command":"head -c 50000000 /dev/zero | tr '\\0' x"}"#;
    let world = World::new([calls("bash", flood), says("much")]);
    let run = world.run(&["--permission", "bypass", "flood"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(world.server.requests()[1].body.len() < 200_000);
}

#[tokio::test]
async fn repeated_identical_tool_call_ends_the_turn() {
    let again = || calls("fs_ls", r#"{"path":"."}"#);
    let world = World::new(std::iter::repeat_with(again).take(60));
    let run = world.run(&["loop"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("same result"), "{}", run.err);
    assert!(world.server.requests().len() < 12);
}

#[tokio::test]
async fn gzip_compressed_stream_is_decoded() {
    let piece =
        r#"{"choices":[{"index":0,"delta":{"content":"unpacked"},"finish_reason":"stop"}]}"#;
    let stream = format!("data: {piece}\n\ndata: [DONE]\n\n");
    let packed = miniz_oxide::deflate::compress_to_vec(stream.as_bytes(), 6);
    let bytes = u32::try_from(stream.len()).unwrap();
    let trailer = [crc32fast::hash(stream.as_bytes()), bytes].map(u32::to_le_bytes).concat();
    let body = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &packed, &trailer].concat();
    let reply = Reply::sse(body).with_header("content-encoding", "gzip").with_piece_size(5);
    let run = World::new([reply]).run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "unpacked\n"), "{run:?}");
}

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_named_without_its_password() {
    let world = World::new([]);
    let nobody = Server::unused_address().unwrap();
    let place = nobody.trim_start_matches("http://");
    let run = world
        .command(&["--provider", "mistral", "--model", "m1", "hi"])
        .env("MISTRAL_API_KEY", "k")
        .env("HTTPS_PROXY", format!("http://me:hidden@{place}"))
        .spawn()
        .unwrap();
    let run = finish(run).await;
    assert_eq!(run.code, Some(7), "{run:?}");
    let named = format!("through the proxy {nobody} (https://api.mistral.ai");
    for told in [named.as_str(), "refused", "NO_PROXY"] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    assert!(!run.err.contains("hidden"), "{}", run.err);
}
