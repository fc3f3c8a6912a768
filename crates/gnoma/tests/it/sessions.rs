//! What a person does with sessions: list, read, search, continue, fork, move, forget.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{World, calls, says};

/// A world with one session of one turn, and its id.
async fn spoken(first: &str, answers: &[&str]) -> (World, String) {
    let world = World::new(answers.iter().map(|text| says(text)));
    let run = world.run(&[first]).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let id = world.sessions().await.remove(0);
    (world, id)
}

#[tokio::test]
async fn a_session_is_listed_shown_and_found() {
    let (world, id) = spoken("where is the quux handled?", &["In quux.rs."]).await;
    let list = world.run(&["sessions", "list"]).await;
    assert!(list.out.lines().all(|line| line.chars().count() <= 80), "{list:?}");
    let line = list.out.lines().nth(1).unwrap();
    assert!(line.starts_with(&id) && line.contains("just now"), "{list:?}");
    assert!(line.ends_with("where is the quux handled?"), "{list:?}");
    let show = world.run(&["sessions", "show", &id[..17]]).await;
    assert!(show.out.contains("you\nwhere is the quux handled?\n"), "{show:?}");
    assert!(show.out.contains("test/m1\nIn quux.rs.\n"), "{show:?}");
    let search = world.run(&["sessions", "search", "quux", "handled"]).await;
    assert_eq!(search.code, Some(0), "{search:?}");
    assert!(search.out.contains(&id), "{search:?}");
    let none = world.run(&["sessions", "search", "zebra"]).await;
    assert_eq!((none.code, none.out.as_str()), (Some(1), ""), "{none:?}");
    let found = world.json(&["sessions", "search", "--json", "quux"]).await;
    assert_eq!(found[0]["session"], *id);
    let stats = world.json(&["sessions", "stats", "--json"]).await;
    assert_eq!((&stats["sessions"], &stats["messages"]), (&1.into(), &2.into()));
}

#[tokio::test]
async fn continue_resumes_the_latest_session() {
    let (world, id) = spoken("first", &["one", "two", "three", "four"]).await;
    let run = world.run(&["-p", "--continue", "second"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "two\n"), "{run:?}");
    let pair = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    let both = [pair("user", "first"), pair("assistant", "one"), pair("user", "second")];
    assert_eq!(world.last_request(), both);
    let run = world.run(&["--resume", &id, "third"]).await;
    assert_eq!(run.out, "three\n", "{run:?}");
    assert_eq!(world.last_request().len(), 5);
    assert_eq!(world.sessions().await, std::slice::from_ref(&id), "it is still one session");
    let run = world.run(&["--resume", "and a fourth"]).await;
    assert_eq!(run.out, "four\n", "{run:?}");
    assert_eq!(world.last_request().len(), 7);
}

#[tokio::test]
async fn a_title_is_looked_up_before_it_is_taken_for_a_prompt() {
    let (world, id) = spoken("about apples", &["one", "two", "three"]).await;
    world.run(&["about bananas"]).await;
    let run = world.run(&["--resume", "about apples", "go on"]).await;
    assert_eq!(run.out, "three\n", "{run:?}");
    let texts: Vec<_> = world.last_request().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["about apples", "one", "go on"], "{id}");
    let run = world.run(&["sessions", "show", "about apples"]).await;
    assert!(run.code == Some(0) && run.out.contains("go on"), "{run:?}");
    let run = world.run(&["--resume", "about cherries", "go on"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("no session with the title `about cherries`"), "{run:?}");
    let run = world.run(&["--resume", "hi", "there"]).await;
    assert!(run.code == Some(2) && run.err.contains("gnoma --continue \"hi there\""), "{run:?}");
}

#[tokio::test]
async fn resume_by_an_ambiguous_title_is_refused() {
    let (world, id) = spoken("same words", &["one", "two", "three"]).await;
    world.run(&["same words"]).await;
    let run = world.run(&["--resume", "same words", "go on"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.err.contains("2 sessions have the title `same words`"), "{run:?}");
    assert!(run.err.contains(&id) && run.err.contains("just now"), "{run:?}");
}

#[tokio::test]
async fn session_forks_from_any_message_independently() {
    let (world, id) = spoken("first", &["one", "two", "three"]).await;
    world.run(&["-c", "second"]).await;
    let shown = world.json(&["sessions", "show", "--json"]).await;
    let entries = shown["entries"].as_array().unwrap();
    let answer = entries.iter().find(|entry| {
        entry["record"]["message"]["role"] == "assistant"
            || entry["record"]["message"].to_string().contains("\"one\"")
    });
    let at = answer.unwrap()["id"].to_string();
    let forked = world.json(&["sessions", "fork", &id, "--at", &at, "--json"]).await;
    let fork = forked["session"].as_str().unwrap();
    let run = world.run(&["--resume", fork, "other"]).await;
    assert_eq!(run.out, "three\n", "{run:?}");
    let texts: Vec<_> = world.last_request().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["first", "one", "other"]);
    let source = world.run(&["sessions", "show", &id]).await;
    assert!(source.out.contains("second") && !source.out.contains("other"), "{source:?}");
}

#[tokio::test]
async fn exported_session_imports_with_the_same_messages() {
    let world = World::new([calls("fs_read", r#"{"path":"a.txt"}"#), says("It says hi.")]);
    world.write("a.txt", "hi\n");
    world.run(&["read a.txt"]).await;
    let file = world.home.path().join("session.jsonl");
    let file = file.to_str().unwrap();
    let run = world.run(&["sessions", "export", "--format", "jsonl", "-o", file]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let again = world.run(&["sessions", "export", "-o", file]).await;
    assert_eq!(again.code, Some(2), "nothing is overwritten: {again:?}");
    let markdown = world.run(&["sessions", "export"]).await;
    assert!(markdown.out.starts_with("# read a.txt\n"), "{markdown:?}");
    let html = world.run(&["sessions", "export", "--format", "html"]).await;
    assert!(html.out.contains("It says hi.") && !html.out.contains("<script"), "{html:?}");
    let run = world.run(&["sessions", "import", file]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("4 messages of a gnoma export"), "{run:?}");
    let ids = world.sessions().await;
    assert_eq!(ids.len(), 2);
    let records = async |id: &str| -> Vec<Value> {
        let shown = world.json(&["sessions", "show", "--json", id]).await;
        let entries = shown["entries"].as_array().unwrap().clone();
        entries.into_iter().map(|entry| entry["record"].clone()).collect()
    };
    let messages = |records: Vec<Value>| -> Vec<Value> {
        records.into_iter().filter(|record| record.get("message").is_some()).collect()
    };
    assert_eq!(messages(records(&ids[0]).await), messages(records(&ids[1]).await));
}

#[tokio::test]
async fn session_export_includes_large_tool_results() {
    let loud = calls("bash", r#"{"command":"seq 1000 4999"}"#);
    let look = calls("read_result", r#"{"id":"r1","pattern":"^3000$"}"#);
    let world = World::new([loud, says("put away"), look, says("found")]);
    world.run(&["--permission", "bypass", "be loud"]).await;
    let file = world.home.path().join("session.jsonl");
    let file = file.to_str().unwrap();
    let run = world.run(&["sessions", "export", "--format", "jsonl", "-o", file]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let printed = world.run(&["sessions", "export", "--format", "jsonl"]).await;
    assert_eq!(printed.out, fs::read_to_string(file).unwrap(), "the same, wherever it goes");
    let page = world.run(&["sessions", "export", "--format", "html"]).await;
    assert!(page.out.contains("be loud") && !page.out.contains("\n3000\n"), "{page:?}");
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = elsewhere.path().to_str().unwrap();
    let run = world.run(&["--cwd", elsewhere, "sessions", "import", file]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = world.run(&["--cwd", elsewhere, "--continue", "where is 3000?"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "found\n"), "{run:?}");
    let found = world.last_request().pop().unwrap().1;
    assert!(found.contains("3000"), "{found}");
}

/// A transcript of Claude Code about `folder`.
fn transcript(id: &str, folder: &Path, words: &str) -> String {
    let line = json!({
        "type": "user", "sessionId": id, "cwd": folder,
        "message": {"role": "user", "content": words},
    });
    format!("{line}\n")
}

#[tokio::test]
async fn folder_import_takes_each_session_of_this_project_once() {
    let world = World::new([]);
    let folder = world.home.path().join("transcripts");
    fs::create_dir(&folder).unwrap();
    let project = world.project.path().canonicalize().unwrap();
    let put = |name: &str, about: &Path| {
        let text = transcript(name, about, &format!("words of {name}"));
        fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
    };
    put("here", &project);
    put("below", &project.join("crates/one"));
    put("other", Path::new("/srv/other"));
    put("sneaky", &project.join("../other"));
    let folder = folder.to_str().unwrap();
    let run = world.run(&["sessions", "import", folder]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.ends_with("skipped 2 sessions of other folders; --all imports them too\n"));
    assert!(!run.out.contains("other.jsonl"), "{run:?}");
    assert_eq!(world.sessions().await.len(), 2);
    let again = world.json(&["sessions", "import", "--json", folder]).await;
    let known = again.as_array().unwrap().iter().filter(|file| file["known"] == true).count();
    let elsewhere = again.as_array().unwrap().iter().filter(|file| file["elsewhere"].is_string());
    assert_eq!((known, elsewhere.count()), (2, 2), "{again}");
    let run = world.run(&["sessions", "import", "--all", folder]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.out.matches("already imported as ").count(), 2, "{run:?}");
    assert_eq!(world.sessions().await.len(), 4);
    let ids = world.sessions().await;
    world.run(&["sessions", "delete", "--yes", &ids[0], &ids[1], &ids[2], &ids[3]]).await;
    let named = format!("{folder}/other.jsonl");
    let run = world.run(&["sessions", "import", &named]).await;
    assert!(
        run.out.contains("1 messages of Claude Code"),
        "a file that is named is meant: {run:?}"
    );
}

#[tokio::test]
async fn sessions_from_before_git_init_are_still_found() {
    let world = World::new([says("one"), says("two"), says("three")]);
    let inside = world.project.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let inside = inside.to_str().unwrap();
    world.run(&["--cwd", inside, "first"]).await;
    fs::create_dir(world.project.path().join(".git")).unwrap();
    let list = world.run(&["--cwd", inside, "sessions", "list"]).await;
    assert!(list.out.contains("first"), "{list:?}");
    assert!(list.err.contains("inside`, which is older than the project `"), "{list:?}");
    let run = world.run(&["--cwd", inside, "--continue", "second"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "two\n"), "{run:?}");
    let list = world.run(&["sessions", "list"]).await;
    assert_eq!(list.out, "", "the project around it has its own: {list:?}");
    world.run(&["in the repository"]).await;
    let list = world.run(&["--cwd", inside, "sessions", "list"]).await;
    assert!(list.out.contains("first") && !list.out.contains("in the repo"), "{list:?}");
}

#[tokio::test]
async fn transcripts_of_other_programs_are_found_out_and_counted() {
    let world = World::new([says("ok")]);
    let lines = [
        r#"{"type":"user","message":{"role":"user","content":"fix the door"}}"#,
        r#"{"type":"file-history-snapshot"}"#,
        r#"{"type":"assistant","message":{"id":"m","model":"x","content":[{"type":"text","text":"done"}]}}"#,
    ];
    let folder = world.project.path().join("transcripts/project");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("one.jsonl"), lines.join("\n")).unwrap();
    fs::write(folder.join("notes.txt"), "not a session").unwrap();
    let run = world.run(&["sessions", "import", "transcripts"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("2 messages of Claude Code"), "{run:?}");
    assert!(run.out.contains("file-history-snapshot: 1"), "{run:?}");
    world.run(&["-c", "and the window"]).await;
    assert_eq!(world.last_request()[0].1, "fix the door");
    let nothing = world.run(&["sessions", "import", "transcripts/project/notes.txt"]).await;
    assert!(nothing.code == Some(2) && nothing.err.contains("--format jsonl"), "{nothing:?}");
    let foreign = world.run(&["sessions", "import", "--from", "go", "transcripts"]).await;
    assert_eq!(foreign.code, Some(2), "{foreign:?}");
    assert_eq!(world.sessions().await.len(), 1);
}

#[tokio::test]
async fn import_of_a_folder_of_older_sessions_imports_all() {
    let world = World::new([]);
    for name in ["20250101-000000-aaaaaa", "20250102-000000-bbbbbb"] {
        let folder = world.project.path().join(".gnoma/sessions").join(name);
        fs::create_dir_all(&folder).unwrap();
        let said = format!("a\\u001b[2Jbout {name}");
        let text = format!(r#"[{{"role":"user","content":[{{"type":"text","text":"{said}"}}]}}]"#);
        fs::write(folder.join("messages.json"), text).unwrap();
    }
    let broken = world.project.path().join(".gnoma/sessions/broken");
    fs::create_dir_all(&broken).unwrap();
    fs::write(broken.join("messages.json"), "[[[").unwrap();
    let run = world.run(&["sessions", "import", ".gnoma/sessions"]).await;
    assert_eq!(run.code, Some(1), "one could not be read: {run:?}");
    assert_eq!(run.out.matches("1 messages of the Go gnoma").count(), 2, "{run:?}");
    assert!(run.out.contains("not imported: ") && !run.out.contains('\u{1b}'), "{run:?}");
    assert_eq!(world.sessions().await.len(), 2);
    let show = world.run(&["sessions", "show"]).await;
    assert!(show.out.contains("bout 2025") && !show.out.contains('\u{1b}'), "{show:?}");
}

#[tokio::test]
async fn sessions_are_renamed_and_deleted() {
    let (world, id) = spoken("a zebra crossing", &["one", "two"]).await;
    let run = world.run(&["sessions", "rename", &id, "my", "own\u{1b}[31m title"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let list = world.run(&["sessions", "list"]).await;
    assert!(list.out.contains("my own") && !list.out.contains('\u{1b}'), "{list:?}");
    let asked = world.run(&["sessions", "delete", &id]).await;
    assert_eq!(asked.code, Some(2), "nobody can be asked: {asked:?}");
    let run = world.run(&["sessions", "delete", "--yes", &id]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.sessions().await, Vec::<String>::new());
    let run = world.run(&["--continue", "go on"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("no saved sessions in"), "{run:?}");
}

#[tokio::test]
async fn unknown_or_ambiguous_session_id_is_refused_with_a_hint() {
    let (world, id) = spoken("hi", &["one", "two"]).await;
    let commands: [&[&str]; 7] = [
        &["sessions", "show", "1999"],
        &["sessions", "export", "1999"],
        &["sessions", "fork", "1999"],
        &["sessions", "rename", "1999", "title"],
        &["sessions", "delete", "-y", "1999"],
        &["rewind", "--session", "1999"],
        &["--resume", "1999", "go on"],
    ];
    for command in commands {
        let run = world.run(command).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{command:?}: {run:?}");
        assert!(run.err.contains("no session `1999`"), "{command:?}: {run:?}");
        assert!(run.err.contains("gnoma sessions list"), "{command:?}: {run:?}");
    }
    let run = world.run(&["sessions", "fork", &id, "--at", "99"]).await;
    assert!(run.code == Some(2) && run.err.contains("has no entry 99"), "{run:?}");
    world.run(&["another session"]).await;
    let run = world.run(&["sessions", "show", &id[..4]]).await;
    assert!(run.code == Some(2) && run.err.contains("matches 2 sessions"), "{run:?}");
    assert_eq!(world.sessions().await.len(), 2);
}

#[tokio::test]
async fn sessions_are_separate_for_each_project_and_profile() {
    let world = World::new([says("one"), says("two")]);
    world.run(&["in the project"]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let list = world.run(&["--cwd", elsewhere.path().to_str().unwrap(), "sessions", "list"]).await;
    assert_eq!((list.code, list.out.as_str()), (Some(0), ""), "{list:?}");
    let profiles = world.home.path().join(".config/gnoma/profiles");
    fs::create_dir_all(&profiles).unwrap();
    for name in ["work", "play"] {
        fs::write(profiles.join(format!("{name}.toml")), "").unwrap();
    }
    world.run(&["--profile", "work", "at work"]).await;
    let list = world.run(&["--profile", "work", "sessions", "list"]).await;
    assert!(list.out.contains("at work") && !list.out.contains("in the project"), "{list:?}");
    let list = world.run(&["--profile", "play", "sessions", "list"]).await;
    assert_eq!(list.out, "", "{list:?}");
    let inside = fs::read_dir(world.project.path()).unwrap().count();
    assert_eq!(inside, 0, "nothing is kept in the project");
}

#[tokio::test]
async fn json_names_the_session_that_can_be_resumed() {
    let world = World::new([says("one"), says("two")]);
    let result = world.json(&["--output-format", "json", "first"]).await;
    let id = world.sessions().await.remove(0);
    assert_eq!(result["session_id"], *id);
    let run = world.run(&["--output-format", "stream-json", "--resume", &id, "second"]).await;
    for line in run.out.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["session_id"], *id, "{line}");
    }
}

#[tokio::test]
async fn damaged_session_database_is_set_aside_and_readable_sessions_are_recovered() {
    let (world, _) = spoken("first words", &["one", "two"]).await;
    let sound = world.run(&["sessions", "repair"]).await;
    assert!(sound.out.starts_with("the database is intact\nchecked 1 sessions"), "{sound:?}");
    let database = only_file(&world.kept().join("sessions"), "db");
    let mut bytes = fs::read(&database).unwrap();
    let middle = bytes.len() / 2;
    let end = (middle + 3000).min(bytes.len());
    bytes[middle..end].fill(0x5a);
    fs::write(&database, bytes).unwrap();
    let repaired = world.run(&["sessions", "repair"]).await;
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let again = world.run(&["sessions", "repair"]).await;
    assert!(again.out.starts_with("the database is intact"), "{again:?}");
    let run = world.run(&["go on"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "two\n"), "{run:?}");
}

fn only_file(folder: &Path, ending: &str) -> std::path::PathBuf {
    let files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    files.into_iter().find(|file| file.extension().is_some_and(|own| own == ending)).unwrap()
}
