//! What goes wrong between gnoma and a server: a clear message, never a panic or a hang.

use gnoma_testkit::{End, Reply, Script, Wire};

use crate::support::{World, calls, finish, says};

/// Runs a turn against `reply` and gives what a person reads.
async fn failing(reply: fn() -> Reply) -> String {
    // Faults that pass are tried again; every attempt meets the same one.
    let world = World::new(std::iter::repeat_with(reply).take(4));
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(!run.err.contains("panicked"), "{}", run.err);
    run.err
}

#[tokio::test]
async fn an_html_page_is_named() {
    let page = || Reply::new(200, "text/html", "<html><body>Sign in</body></html>");
    assert!(failing(page).await.contains("HTML page"));
}

#[tokio::test]
async fn garbage_is_named() {
    let garbage = || Reply::sse("data: {\"choices\": [{]}\n\n");
    assert!(failing(garbage).await.contains("unreadable answer"));
}

#[tokio::test]
async fn the_part_that_arrived_is_kept_and_said() {
    let script = Script::text(["half an ", "answer", " lost"]);
    let reply = Wire::OpenAi.stream(&script);
    let world = World::new([reply.ending(End::Abort(700))]);
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.starts_with("half an "), "{run:?}");
    assert!(run.err.contains("is shown above and kept"), "{}", run.err);
}

#[tokio::test]
async fn nobody_listening_names_the_address() {
    let world = World::new([]);
    let text = "[provider]\ndefault = \"test\"\nmodel = \"m\"\n[provider.endpoints]\ntest = \"http://127.0.0.1:9/v1\"\n";
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("cannot connect (http://127.0.0.1:9"), "{}", run.err);
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
async fn a_huge_tool_result_is_cut() {
    let flood = r#"{"command":"head -c 50000000 /dev/zero | tr '\\0' x"}"#;
    let world = World::new([calls("bash", flood), says("much")]);
    let run = world.run(&["--permission", "bypass", "flood"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(world.server.requests()[1].body.len() < 200_000);
}

#[tokio::test]
async fn the_same_call_for_ever_ends() {
    let again = || calls("fs_ls", r#"{"path":"."}"#);
    let world = World::new(std::iter::repeat_with(again).take(60));
    let run = world.run(&["loop"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("same result"), "{}", run.err);
    assert!(world.server.requests().len() < 12);
}
