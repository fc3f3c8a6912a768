//! Temporary files: one view of them for commands and file tools, which is the session's own.

use std::{fs, path::Path};

use gnoma_sandbox::{Strength, Support};
use gnoma_testkit::Reply;

use crate::support::{World, calls, says};

fn is_walled() -> bool {
    let is_walled = Support::detect().strength == Strength::Full;
    if !is_walled {
        gnoma_testkit::skip_test("no sandbox: temporary files are the machine's here");
    }
    is_walled
}

/// What a model is told of these calls of tools, in a session that nobody can be asked in.
async fn told(mode: &str, steps: &[(&str, &str)]) -> Vec<String> {
    let replies = steps.iter().map(|(tool, arguments)| calls(tool, arguments));
    let replies: Vec<Reply> = replies.chain([says("ok")]).collect();
    let world = World::new(replies);
    let run = world.run(&["--permission", mode, "go"]).await;
    let requests = world.server.requests();
    assert_eq!(requests.len(), steps.len() + 1, "{run:?}");
    let messages = requests.last().unwrap().json()["messages"].clone();
    let is_result = |message: &&serde_json::Value| message["role"] == "tool";
    let results = messages.as_array().unwrap().iter().filter(is_result);
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn file_tools_and_commands_see_the_same_temporary_files() {
    if !is_walled() {
        return;
    }
    let name = format!("/tmp/gnoma-own-{}", std::process::id());
    let bash = |command: &str| format!(r#"{{"command":"{}"}}"#, command.replace("NAME", &name));
    let path = |more: &str| format!(r#"{{"path":"{name}/{more}"}}"#);
    for mode in ["auto", "accept_edits", "bypass"] {
        let results = told(
            mode,
            &[
                ("bash", &bash("mkdir NAME && echo from a command > NAME/one")),
                ("fs.read", &path("one")),
                ("fs.write", &format!(r#"{{"path":"{name}/two","content":"from a tool\n"}}"#)),
                ("bash", &bash("cat NAME/two; echo new > NAME/two")),
                ("fs.grep", &format!(r#"{{"pattern":"from","path":"{name}"}}"#)),
                ("fs.glob", &format!(r#"{{"pattern":"*","path":"{name}"}}"#)),
                ("fs.ls", &path("")),
                ("bash", &bash("rm -r NAME; ls -d NAME")),
            ],
        )
        .await;
        assert!(results[1].contains("from a command"), "{mode}: {results:?}");
        assert!(results[3].contains("from a tool"), "{mode}: {results:?}");
        assert!(results[4].contains(&format!("{name}/one")), "{mode}: {results:?}");
        assert!(results[5].contains(&format!("{name}/two")), "{mode}: {results:?}");
        assert!(results[6].contains("one") && results[6].contains("two"), "{mode}: {results:?}");
        assert!(results[7].contains("No such file"), "{mode}: {results:?}");
        assert!(!Path::new(&name).exists(), "{mode}: nothing is in the machine's");
    }
}

#[tokio::test]
async fn temporary_files_of_the_machine_need_approval_and_are_named() {
    if !is_walled() {
        return;
    }
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let file = folder.path().join("notes");
        fs::write(&file, "of the machine\n").unwrap();
        let shown = file.display();
        let read = format!(r#"{{"path":"{shown}"}}"#);
        let cat = format!(r#"{{"command":"cat {shown}"}}"#);
        for step in [("fs.read", read.as_str()), ("bash", cat.as_str())] {
            let results = told("auto", &[step]).await;
            assert!(!results[0].contains("of the machine\n"), "{results:?}");
            assert!(results[0].contains("temporary files of the machine"), "{results:?}");
            let results = told("bypass", &[step]).await;
            assert!(place == "/dev/shm" || results[0].contains("of the machine"), "{results:?}");
        }
    }
}

#[tokio::test]
async fn symlink_in_temporary_files_does_not_expose_outside_files() {
    if !is_walled() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(folder.path().join("secret"), "the moon is made of cheese\n").unwrap();
    let name = format!("/tmp/gnoma-link-{}", std::process::id());
    let link = format!(r#"{{"command":"ln -s {} {name}"}}"#, folder.path().display());
    let read = format!(r#"{{"path":"{name}/secret"}}"#);
    let results = told("accept_edits", &[("bash", &link), ("fs.read", &read)]).await;
    assert!(!results[1].contains("cheese"), "{results:?}");
}

#[tokio::test]
async fn mktemp_files_are_used_and_removed_without_approval_in_every_mode() {
    if !is_walled() {
        return;
    }
    let command = r#"{"command":"d=$(mktemp -d); echo made > $d/x; cat $d/x; rm -rf $d; ls $d"}"#;
    let log = r#"{"command":"echo logged > /tmp/out 2>&1; tail /tmp/out; f=$(mktemp); rm $f"}"#;
    for mode in ["auto", "accept_edits", "plan", "bypass"] {
        let results = told(mode, &[("bash", command), ("bash", log)]).await;
        assert!(results[0].contains("made") && results[0].contains("No such file"), "{results:?}");
        assert!(results[1].contains("logged"), "{mode}: {results:?}");
    }
}

#[tokio::test]
async fn project_inside_tmp_can_write_a_new_file_beside_it() {
    if !is_walled() {
        return;
    }
    let around = tempfile::tempdir_in("/tmp").unwrap();
    let project = around.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(around.path().join("other"), "other\n").unwrap();
    let command =
        r#"{"command":"echo made > ../beside; sh -c 'echo x > ../other'; echo y > here"}"#;
    let world = World::new([calls("bash", command), says("ok")]);
    let mut gnoma = world.command(&["--permission", "bypass", "go"]);
    gnoma.current_dir(&project);
    let run = crate::support::finish(gnoma.spawn().unwrap()).await;
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    assert_eq!(read(&around.path().join("beside")), "made\n", "{run:?}");
    assert_eq!(read(&project.join("here")), "y\n");
    assert_eq!(read(&around.path().join("other")), "other\n", "what was not named stays");
}

#[tokio::test]
async fn workspace_containing_the_state_folder_can_be_read_after_a_trial() {
    if !is_walled() {
        return;
    }
    let trial = r#"{"command":"python3 -c 'open(\"made\",\"w\").write(\"on trial\")'"}"#;
    let world = World::new([
        calls("bash", trial),
        calls("bash", r#"{"command":"cat made; ls -a .local/state | wc -l"}"#),
        calls("bash", r#"{"command":"cat made"}"#),
        says("ok"),
    ]);
    let mut gnoma = world.command(&["--permission", "plan", "go"]);
    gnoma.current_dir(world.home.path());
    let run = crate::support::finish(gnoma.spawn().unwrap()).await;
    let body = world.server.requests().last().unwrap().json();
    let told = body["messages"].to_string();
    assert!(told.matches("on trial").count() >= 2, "{run:?} {told}");
    assert!(!told.contains("125"), "{told}");
    assert!(!world.home.path().join("made").exists());
}

/// Work in the folder of temporary files itself is kept there.
#[tokio::test]
async fn workspace_that_is_the_temporary_folder_is_used_in_place() {
    if !is_walled() {
        return;
    }
    let name = format!("gnoma-here-{}", std::process::id());
    for (mode, command) in [
        ("bypass", format!("echo x > {name} && cat {name}")),
        ("accept_edits", format!("echo x >> {name} && cat /tmp/{name}")),
        ("auto", format!("ls {name}")),
    ] {
        let call = serde_json::json!({ "command": command }).to_string();
        let world = World::new([calls("bash", &call), says("ok")]);
        let run = world.run(&["--cwd", "/tmp", "--permission", mode, "go"]).await;
        let request = world.server.requests().pop().unwrap().json();
        let told = request["messages"].to_string();
        assert!(!told.contains("No such file"), "{mode}: {told} {run:?}");
        assert!(Path::new("/tmp").join(&name).exists(), "{mode}: {told}");
    }
    fs::remove_file(Path::new("/tmp").join(&name)).unwrap();
}
