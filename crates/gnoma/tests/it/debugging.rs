//! `--log` and `GNOMA_LOG`: lines for the borders of a session, and nothing that was said.

use std::os::unix::fs::PermissionsExt as _;

use gnoma_testkit::Reply;

use crate::{
    mcp::Served,
    support::{World, calls, exists, finish, says},
};

fn world() -> World {
    let world = World::new([
        Reply::text(503, "busy"),
        calls("fs_read", r#"{"path":"a.txt"}"#),
        says("the answer of the model"),
    ]);
    world.write("a.txt", "words of a file\n");
    world
}

#[tokio::test]
async fn a_log_has_the_steps_of_a_session_and_none_of_its_words() {
    let world = world();
    let run = world.run(&["--log", "gnoma.log", "words of a person"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let log = world.read("gnoma.log");
    for step in [
        " turn begin\n",
        " model call round=1 arm=test/m1 ",
        " model call failed provider=test kind=Overloaded status=503 ",
        " model answer attempt=2 ",
        " approval decided call=call_a allowed=true reason=\"mode auto: reads run\"\n",
        " tool begin call=call_a tool=fs.read ",
        " tool end call=call_a tool=fs.read error=false ",
        " turn end outcome=complete rounds=2 ",
    ] {
        assert!(log.contains(step), "no {step:?} in:\n{log}");
    }
    for words in ["words of a person", "words of a file", "the answer of the model", "a.txt"] {
        assert!(!log.contains(words), "{words} in:\n{log}");
    }
    let facts = world.project.path().join("gnoma.log").metadata().unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn log_has_checkpoints_and_writes_into_the_session_store() {
    let write = calls("fs_write", r#"{"path":"b.txt","content":"x"}"#);
    let world = World::new([write, says("done")]);
    let run = world.run(&["--log", "gnoma.log", "--permission", "bypass", "write it"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let log = world.read("gnoma.log");
    for step in [" checkpoint id=", " store write entries=1 ms="] {
        let line = log.lines().find(|line| line.contains(step));
        assert!(line.is_some_and(|line| !line.contains(" error=")), "no {step:?} in:\n{log}");
    }
}

#[tokio::test]
async fn log_has_messages_of_mcp_servers_without_their_content() {
    let call = calls("mcp__fake__echo", r#"{"text":"words of a model"}"#);
    let Served { world, folder: _folder } = Served::with([call, says("ok")]);
    let run = world.run(&["--log", "gnoma.log", "--permission", "bypass", "go on with fake"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let log = world.read("gnoma.log");
    assert!(log.contains(" mcp request server=fake method=tools/call ms="), "{log}");
    assert!(!log.contains("words of a model") && !log.contains("said: hi"), "{log}");
}

#[tokio::test]
async fn the_environment_asks_for_a_log_in_the_state_folder() {
    let world = world();
    let run = finish(world.command(&["hello"]).env("GNOMA_LOG", "info").spawn().unwrap()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let path = named_log(&run.err).unwrap();
    assert!(path.contains("/.local/state/gnoma/logs/"), "{path}");
    let log = std::fs::read_to_string(path).unwrap();
    assert!(log.contains("turn end outcome=complete") && !log.contains("tool begin"), "{log}");
}

/// The path of the log that a line of standard error names.
fn named_log(err: &str) -> Option<&str> {
    let named = err.lines().find_map(|line| line.split_once("debug log: `"));
    named.and_then(|(_, path)| path.strip_suffix('`'))
}

#[tokio::test]
async fn log_has_the_steps_that_directives_ask_for_and_others_only_warn() {
    let world = world();
    let asked = world.command(&["hello"]).env("GNOMA_LOG", "loud,tool=debug").spawn().unwrap();
    let run = finish(asked).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("`loud` is left out"), "{run:?}");
    let log = std::fs::read_to_string(named_log(&run.err).unwrap()).unwrap();
    assert!(log.contains(" tool end ") && !log.contains(" turn end "), "{log}");
}

#[tokio::test]
async fn named_log_exists_also_if_there_is_nothing_to_write() {
    let world = World::new([says("one"), says("two")]);
    let asked = |args: &[&str]| world.command(args).env("GNOMA_LOG", "warn").spawn().unwrap();
    let run = finish(asked(&["hello"])).await;
    let log = std::fs::read_to_string(named_log(&run.err).unwrap()).unwrap();
    assert_eq!(log, "# debug log of gnoma\n");
    let incognito = finish(asked(&["--incognito", "hello"])).await;
    assert!(incognito.code == Some(0) && named_log(&incognito.err).is_none(), "{incognito:?}");
}

#[tokio::test]
async fn incognito_is_not_logged_and_says_so() {
    let world = world();
    let run = world.run(&["--incognito", "--log", "gnoma.log", "words"]).await;
    assert!(run.code == Some(0) && run.err.contains("not in the debug log"), "{run:?}");
    assert!(!exists(world.project.path(), "gnoma.log"));
}

#[tokio::test]
async fn debug_log_is_appended_to_and_overwrites_no_other_file() {
    let world = World::new([says("one"), says("two")]);
    for _ in 0..2 {
        assert_eq!(world.run(&["--log", "gnoma.log", "hello"]).await.code, Some(0));
    }
    let log = world.read("gnoma.log");
    assert!(log.starts_with("# debug log of gnoma\n"), "{log}");
    assert_eq!(log.matches(" turn begin\n").count(), 2, "{log}");

    world.write("notes.txt", "my notes of the week, in two lines\n");
    let link = world.project.path().join("link.log");
    std::os::unix::fs::symlink("gnoma.log", link).unwrap();
    for file in ["notes.txt", "link.log", "."] {
        let run = world.run(&["--log", file, "hello"]).await;
        let sentence = "is not a debug log of gnoma and is left as it is; name a file that does";
        assert!(run.code == Some(2) && run.err.contains(sentence), "{file}: {run:?}");
    }
    assert_eq!(world.read("notes.txt"), "my notes of the week, in two lines\n");
    assert_eq!(world.read("gnoma.log"), log);
    assert_eq!(world.server.requests().len(), 2);
}
