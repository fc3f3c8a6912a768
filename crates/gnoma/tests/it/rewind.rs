//! Files and conversation that are taken back and brought again.

use serde_json::json;

use crate::{
    support::{World, calls, exists, says},
    terminal::Terminal,
};

fn writes(path: &str, content: &str) -> gnoma_testkit::Reply {
    calls("fs_write", &json!({"path": path, "content": content}).to_string())
}

const FREE: [&str; 2] = ["--permission", "accept_edits"];

/// A world in which a turn has written `made.txt` and changed `a.txt`.
async fn written() -> World {
    let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
    let world = World::new([
        calls("fs_read", r#"{"path":"a.txt"}"#),
        calls("fs_edit", &edit.to_string()),
        writes("made.txt", "made\n"),
        says("done"),
        says("again"),
        says("and again"),
    ]);
    world.write("a.txt", "one\n");
    let run = world.run(&[&FREE[..], &["change it"]].concat()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        (world.read("a.txt").as_str(), world.read("made.txt").as_str()),
        ("two\n", "made\n")
    );
    world
}

#[tokio::test]
async fn rewind_restores_files_and_conversation_of_a_turn() {
    let world = written().await;
    let changes = world.run(&["changes"]).await;
    assert_eq!(
        (changes.code, changes.out.as_str()),
        (Some(0), "M a.txt\nA made.txt\n"),
        "{changes:?}"
    );
    let diff = world.run(&["changes", "--diff"]).await;
    assert!(diff.out.contains("-one\n+two\n") && diff.out.contains("+made\n"), "{diff:?}");
    let list = world.run(&["changes", "--list"]).await;
    assert!(list.out.starts_with("checkpoint"), "{list:?}");

    let dry = world.run(&["rewind", "--dry-run"]).await;
    assert!(dry.out.contains("replace a.txt") && dry.out.contains("remove  made.txt"), "{dry:?}");
    assert_eq!(world.read("a.txt"), "two\n");

    let run = world.run(&["rewind"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("rewound to before “change it”"), "{run:?}");
    assert!(!run.out.contains("another program had changed"), "nothing was the person's: {run:?}");
    assert_eq!(world.read("a.txt"), "one\n");
    assert!(!exists(world.project.path(), "made.txt"));
    world.run(&["-c", "something else"]).await;
    let said: Vec<_> = world.last_request().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["something else"], "the conversation went back, too");
}

#[tokio::test]
async fn redo_restores_files_and_conversation() {
    let world = written().await;
    world.run(&["rewind", "1"]).await;
    let run = world.run(&["redo"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        (world.read("a.txt").as_str(), world.read("made.txt").as_str()),
        ("two\n", "made\n")
    );
    world.run(&["-c", "go on"]).await;
    assert_eq!(world.last_request()[0].1, "change it");
    let run = world.run(&["redo"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("nothing to redo"), "{run:?}");
}

#[tokio::test]
async fn rewind_restores_only_files_or_only_the_conversation_when_asked() {
    let world = written().await;
    let run = world.run(&["rewind", "--conversation"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("a.txt"), "two\n");
    world.run(&["-c", "anew"]).await;
    assert_eq!(world.last_request().len(), 1);

    let world = written().await;
    world.run(&["rewind", "--files"]).await;
    assert_eq!(world.read("a.txt"), "one\n");
    world.run(&["redo"]).await;
    assert_eq!(world.read("a.txt"), "two\n");
    world.run(&["rewind", "--files"]).await;
    world.run(&["-c", "go on"]).await;
    assert_eq!(world.last_request()[0].1, "change it");
}

#[tokio::test]
async fn rewind_reports_files_changed_by_the_person_and_redo_restores_them() {
    let world = written().await;
    world.write("a.txt", "mine\n");
    world.write("own.txt", "own\n");
    let dry = world.run(&["rewind", "--dry-run"]).await;
    assert!(dry.out.contains("replace a.txt  (changed by you or another program)"), "{dry:?}");
    let run = world.run(&["rewind"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("a.txt"), "one\n");
    assert!(
        run.out.contains("you or another program had changed") && run.out.contains("  a.txt\n"),
        "{run:?}"
    );
    world.run(&["redo"]).await;
    assert_eq!(world.read("a.txt"), "mine\n");
    assert_eq!(world.read("own.txt"), "own\n");
}

#[tokio::test]
async fn rewind_goes_back_to_any_of_several_turns() {
    let turn = |name: &str, text: &str| [writes(name, text), says("done")];
    let replies = [turn("a", "1"), turn("b", "2"), turn("c", "3")].into_iter().flatten();
    let world = World::new(replies);
    for (flag, words) in [("-p", "first"), ("-c", "second"), ("-c", "third")] {
        let run = world.run(&[&FREE[..], &[flag, words]].concat()).await;
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let there = || ["a", "b", "c"].map(|name| exists(world.project.path(), name));
    let too_far = world.run(&["rewind", "4"]).await;
    assert!(too_far.code == Some(2) && too_far.err.contains("the session has 3"), "{too_far:?}");
    world.run(&["rewind", "2"]).await;
    assert_eq!(there(), [true, false, false]);
    world.run(&["rewind"]).await;
    assert_eq!(there(), [false, false, false]);
    world.run(&["redo"]).await;
    assert_eq!(there(), [true, false, false]);
    world.run(&["redo"]).await;
    assert_eq!(there(), [true, true, true]);
    assert_eq!(world.sessions().await.len(), 1);
}

#[tokio::test]
async fn rewind_reverts_changes_of_a_shell_command() {
    let remove = json!({"command": "rm -r folder; echo new > a.txt; ln -s a.txt link"});
    let world = World::new([calls("bash", &remove.to_string()), says("done")]);
    world.write("a.txt", "old\n");
    std::fs::create_dir(world.project.path().join("folder")).unwrap();
    world.write("folder/inside", "deep\n");
    let run = world.run(&["--permission", "bypass", "tidy up"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!exists(world.project.path(), "folder"), "{run:?}");
    let run = world.run(&["rewind"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        (world.read("a.txt").as_str(), world.read("folder/inside").as_str()),
        ("old\n", "deep\n")
    );
    assert!(!exists(world.project.path(), "link"));
}

#[tokio::test]
async fn rewind_without_checkpoints_restores_only_the_conversation() {
    let world = World::new([writes("a", "1"), says("done")]);
    world.configure("[checkpoints]\nenabled = false\n");
    world.run(&[&FREE[..], &["write"]].concat()).await;
    let changes = world.run(&["changes"]).await;
    assert!(changes.code == Some(0) && changes.err.contains("changed no files"), "{changes:?}");
    let refused = world.run(&["rewind", "--files"]).await;
    assert!(
        refused.code == Some(2) && refused.err.contains("`checkpoints.enabled`"),
        "{refused:?}"
    );
    let why = "files: not restored: no checkpoints are made (`checkpoints.enabled` is off)\n";
    let dry = world.run(&["rewind", "--dry-run"]).await;
    assert!(dry.out.contains(why), "{dry:?}");
    let run = world.run(&["rewind"]).await;
    assert!(run.code == Some(0) && run.out.contains(why), "{run:?}");
    assert_eq!(world.read("a"), "1");
}

#[tokio::test]
async fn rewind_in_a_home_folder_says_that_files_are_not_restored() {
    let world = World::new([writes("new.txt", "1"), says("done")]);
    let at_home = |args: &[&str]| {
        let mut command = world.command(args);
        command.current_dir(world.home.path());
        crate::support::finish(command.spawn().unwrap())
    };
    let wrote = at_home(&[&FREE[..], &["write"]].concat()).await;
    let told = "no checkpoints are kept in a home folder; changes made now cannot be undone";
    assert!(wrote.code == Some(0) && wrote.err.matches(told).count() == 1, "{wrote:?}");
    let why = "files: not restored: no checkpoints are kept in a home folder\n";
    let dry = at_home(&["rewind", "--dry-run"]).await;
    assert!(dry.out.contains(why) && !dry.out.contains("no changes"), "{dry:?}");
    let refused = at_home(&["rewind", "--files"]).await;
    assert!(refused.code == Some(2) && refused.err.contains("in a home folder"), "{refused:?}");
    let run = at_home(&["rewind"]).await;
    assert!(run.code == Some(0) && run.out.contains(why), "{run:?}");
    assert!(exists(world.home.path(), "new.txt"));
}

#[tokio::test]
async fn rewind_goes_to_a_checkpoint_inside_a_turn() {
    let world = World::new([writes("a", "1"), writes("b", "2"), says("done"), says("later")]);
    world.run(&[&FREE[..], &["write both"]].concat()).await;
    let list = world.run(&["changes", "--list"]).await;
    let line = list.out.lines().find(|line| line.contains("fs.write b")).unwrap();
    let id = line.split(' ').next().unwrap();
    let run = world.run(&["rewind", &id[..15]]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let there = ["a", "b"].map(|name| exists(world.project.path(), name));
    assert_eq!(there, [true, false]);
    world.run(&["-c", "now what?"]).await;
    let roles: Vec<_> = world.last_request().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    let unknown = world.run(&["rewind", "ffffffffff"]).await;
    assert!(unknown.err.contains("no checkpoint `ffffffffff`"), "{unknown:?}");
}

#[tokio::test]
async fn rewind_restores_files_when_sessions_are_not_saved() {
    let world = World::new([writes("a", "1"), says("done")]);
    world.configure("[session]\nkeep = false\n");
    world.run(&[&FREE[..], &["write"]].concat()).await;
    assert_eq!(world.run(&["changes"]).await.out, "A a\n");
    let run = world.run(&["rewind"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!exists(world.project.path(), "a"));
    let run = world.run(&["redo"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("a"), "1");
}

fn runs(command: &str) -> gnoma_testkit::Reply {
    calls("bash", &json!({ "command": command }).to_string())
}

/// A world with two turns, between which the person has changed `a.txt`.
async fn two_turns() -> World {
    let replies = [runs("echo 1 > first"), says("done"), runs("echo 2 > second"), says("done")];
    let world = World::new(replies);
    for (text, flag, words) in [("one\n", "-p", "first"), ("mine\n", "-c", "second")] {
        world.write("a.txt", text);
        let run = world.run(&["--permission", "bypass", flag, words]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    world
}

const WAS_CHANGED: &str = "a.txt  (changed by you or another program)";

#[tokio::test]
async fn rewind_reports_files_that_the_person_changed_between_turns() {
    let world = two_turns().await;
    let dry = world.run(&["rewind", "1", "--dry-run"]).await;
    assert!(!dry.out.contains("a.txt"), "one turn back the edit stays: {dry:?}");
    let dry = world.run(&["rewind", "2", "--dry-run"]).await;
    assert!(dry.out.contains(WAS_CHANGED) && dry.out.contains("  remove  first\n"), "{dry:?}");
    let run = world.run(&["rewind", "2"]).await;
    assert!(
        run.out.contains("you or another program had changed") && run.out.contains("  a.txt\n"),
        "{run:?}"
    );
    assert!(!run.out.contains("  first\n"), "{run:?}");
    assert_eq!(world.read("a.txt"), "one\n");
    world.run(&["redo"]).await;
    assert_eq!(world.read("a.txt"), "mine\n");
}

#[tokio::test]
async fn rewind_asks_at_a_terminal_before_overwriting_changes_of_the_person() {
    let world = two_turns().await;
    for (answer, code, is) in [("n\n", Some(0), "mine\n"), ("y\n", Some(0), "one\n")] {
        let mut terminal = Terminal::open(&world, "rewind 2");
        terminal.wait_for("[y]es, [n]o", 1).await;
        assert!(terminal.seen.contains("a.txt"), "{}", terminal.seen);
        terminal.press(answer).await;
        let (ended, seen) = terminal.end().await;
        assert_eq!((ended, world.read("a.txt").as_str()), (code, is), "{seen}");
    }
    assert!(!exists(world.project.path(), "first"));
}

#[tokio::test]
async fn rewind_names_deleted_files_without_a_checkpoint() {
    let ignored = [(".gitignore", "*.bin\ntarget/\n"), ("big.bin", &*"x".repeat(2 << 20))];
    let remove = "rm -rf big.bin target";
    let world = World::new([runs(remove), says("done")]);
    for (name, text) in ignored {
        world.write(name, text);
    }
    std::fs::create_dir(world.project.path().join("target")).unwrap();
    world.write("target/made", "made");
    let run = world.run(&["--permission", "bypass", "tidy up"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let list = world.run(&["changes", "--list"]).await;
    assert!(!list.out.contains("not kept"), "nothing is left out any more: {list:?}");
    let changes = world.run(&["changes"]).await;
    for name in ["big.bin", "target"] {
        assert!(changes.out.contains(&format!("D {name}  (no checkpoint")), "{changes:?}");
    }
    let dry = world.run(&["rewind", "--dry-run"]).await;
    assert!(dry.out.contains("leave   big.bin  (it was not saved)"), "{dry:?}");
    let run = world.run(&["rewind"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    for name in ["big.bin", "target"] {
        assert!(run.out.contains(&format!("unchanged: {name}: it has no checkpoint")), "{run:?}");
    }
}

#[tokio::test]
async fn changes_list_names_files_left_out_of_checkpoints() {
    let world = World::new([writes("a", "1"), says("done")]);
    world.write(".gitignore", "*.bin\n");
    world.write("big.bin", &"x".repeat(2 << 20));
    world.run(&[&FREE[..], &["write"]].concat()).await;
    let list = world.run(&["changes", "--list"]).await;
    assert!(list.out.contains("  big.bin is large and ignored by version control\n"), "{list:?}");
}

#[tokio::test]
async fn rewind_separates_hard_linked_files() {
    let world = World::new([runs("ln -f x y"), says("done")]);
    world.write("x", "same\n");
    world.write("y", "same\n");
    world.run(&["--permission", "bypass", "link"]).await;
    let run = world.run(&["rewind"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    world.write("x", "other\n");
    assert_eq!(world.read("y"), "same\n", "{run:?}");
}

#[tokio::test]
async fn rewind_with_a_missing_checkpoint_restores_only_the_conversation() {
    let world = written().await;
    for workspace in std::fs::read_dir(world.kept().join("workspaces")).unwrap() {
        let records = workspace.unwrap().path().join("snapshots");
        for record in std::fs::read_dir(records).unwrap() {
            std::fs::remove_file(record.unwrap().path()).unwrap();
        }
    }
    let run = world.run(&["rewind"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    let said = ["are gone", "--conversation"].map(|words| run.err.contains(words));
    assert_eq!(said, [true; 2], "{run:?}");
    let run = world.run(&["rewind", "--conversation"]).await;
    assert_eq!((run.code, world.read("a.txt").as_str()), (Some(0), "two\n"), "{run:?}");
}

/// To a clock that is ahead all checkpoints are too old.
#[tokio::test]
async fn checkpoints_of_a_continued_session_do_not_expire() {
    let files = ["a", "b", "c"];
    let world = World::new(files.into_iter().flat_map(|file| [writes(file, "1"), says("done")]));
    world.configure("[checkpoints]\nmax_age = \"1s\"\n");
    let there = || files.map(|file| exists(world.project.path(), file));
    for (number, file) in files.into_iter().enumerate() {
        let goes_on: &[&str] = if number == 0 { &[] } else { &["--continue"] };
        let run = world.run(&[&FREE[..], goes_on, &[file]].concat()).await;
        assert!(run.code == Some(0) && exists(world.project.path(), file), "{run:?}");
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        // Checkpoints are looked through once a day.
        std::fs::remove_file(world.kept().join("tidied")).unwrap();
    }
    let run = world.run(&["rewind", "2"]).await;
    assert_eq!((run.code, there()), (Some(0), [true, false, false]), "{run:?}");
}
