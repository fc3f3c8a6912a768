//! Commands on trial, as a model meets them.

use std::fs;

use gnoma_sandbox::{Strength, Support};

use crate::support::{World, calls, exists, says};

/// Whether commands can be tried here.
fn can_try(world: &World) -> bool {
    let whole = Support::detect().strength == Strength::Full;
    let why = gnoma_tools::Trials::new(
        env!("CARGO_BIN_EXE_gnoma").into(),
        vec![world.project.path().canonicalize().unwrap()],
        vec![world.home.path().canonicalize().unwrap().join("attempt")],
    );
    let hindrance = why.hindrance();
    if let Some(why) = hindrance {
        println!("skipped, since nothing can be tried here: {why}");
    }
    whole && hindrance.is_none()
}

/// A world whose model runs `script` from a file, which nobody has read.
fn running(script: &str) -> World {
    let world = World::new([calls("bash", r#"{"command":"sh ./script.sh"}"#), says("ok")]);
    world.write("script.sh", script);
    world
}

/// What the command said.
async fn said(world: &World, mode: &str) -> String {
    let run = world.run(&["--permission", mode, "go"]).await;
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let body = world.server.requests()[1].json();
    body["messages"][3]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_changes_nothing_runs_without_a_question() {
    for mode in ["plan", "auto", "accept_edits"] {
        let world = running("cat script.sh | wc -l; echo $((6 * 7))\n");
        if !can_try(&world) {
            return;
        }
        let text = said(&world, mode).await;
        assert!(text.contains("42") && !text.contains("trial"), "{mode}: {text}");
    }
}

#[tokio::test]
async fn what_nobody_kept_was_never_there() {
    for mode in ["plan", "auto"] {
        let world = running("echo new > made; rm kept; cat made\n");
        world.write("kept", "kept\n");
        if !can_try(&world) {
            return;
        }
        let text = said(&world, mode).await;
        assert!(text.contains("new") && text.contains("ran on trial; 2 changed files"), "{text}");
        assert!(text.contains("kept, made"), "{mode}: {text}");
        assert!(!exists(world.project.path(), "made"), "{mode}");
        assert_eq!(fs::read_to_string(world.project.path().join("kept")).unwrap(), "kept\n");
    }
}

#[tokio::test]
async fn edits_are_kept_where_edits_run_and_nothing_else() {
    for (script, is_kept) in [
        ("mkdir -p src; echo new > src/made; echo more >> kept\n", true),
        ("echo new > made; rm kept\n", false),
        ("echo new > made; chmod +x made\n", false),
        ("echo new > made; mkdir -p .vscode; echo x > .vscode/tasks.json\n", false),
        ("echo new > made; ln -s /etc/passwd link\n", false),
    ] {
        let world = running(script);
        world.write("kept", "kept\n");
        if !can_try(&world) {
            return;
        }
        let text = said(&world, "accept_edits").await;
        let made = if is_kept { "src/made" } else { "made" };
        assert_eq!(exists(world.project.path(), made), is_kept, "{script}: {text}");
        assert!(exists(world.project.path(), "kept"), "{script}: {text}");
        let word = if is_kept { "were kept" } else { "discarded" };
        assert!(text.contains(word), "{script}: {text}");
    }
}

#[tokio::test]
async fn secrets_of_the_workspace_cannot_be_opened_and_temporary_files_are_its_own() {
    // Words of a language, which no rule for secrets finds.
    const SECRET: &str = "the moon is made of cheese\n";
    let mark = format!("/tmp/gnoma-trial-{}", std::process::id());
    let script = format!(
        "tr a-z b-za < .env; cp .env copy; cp copy .env; mv .env gone; rm -f .env; echo x > {mark}; cat {mark}\n"
    );
    for (mode, is_temporary) in [("auto", true), ("auto", false), ("plan", false)] {
        let mut world = running(&script);
        if !is_temporary {
            world = world.among_files();
            world.write("script.sh", &script);
        }
        world.write(".env", SECRET);
        if !can_try(&world) {
            return;
        }
        let text = said(&world, mode).await;
        assert!(!text.contains("difftf") && !text.contains("uif npp"), "{mode}: {text}");
        assert!(!text.contains("copy") || !text.contains("changed file"), "{mode}: {text}");
        assert!(!std::path::Path::new(&mark).exists());
        assert_eq!(world.read(".env"), SECRET);
    }
}

#[tokio::test]
async fn what_a_layer_does_otherwise_is_asked_for_by_name() {
    for (script, reason) in [
        ("mkdir a; python3 -c 'import os; os.rename(\"lower\", \"moved\")'\n", "renames a folder"),
        ("echo more >> one\n", "hard links"),
        ("mkdir -p .git; echo x > .git/HEAD\n", ".git"),
    ] {
        let world = running(script);
        fs::create_dir(world.project.path().join("lower")).unwrap();
        world.write("lower/file", "x\n");
        world.write("one", "x\n");
        fs::hard_link(world.project.path().join("one"), world.project.path().join("two")).unwrap();
        if !can_try(&world) {
            return;
        }
        let text = said(&world, "auto").await;
        assert!(text.contains("nobody is there to approve it"), "{reason}: {text}");
        assert_eq!(fs::read_to_string(world.project.path().join("two")).unwrap(), "x\n");
        assert!(exists(world.project.path(), "lower"), "{text}");
    }
}
