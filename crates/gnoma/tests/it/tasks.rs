//! Tasks: files with steps, run in order, recorded, resumed; judged by what the model was sent.

mod checked;
mod detached;
mod elsewhere;
mod failure;
mod import;
mod killed;
mod limits;
mod repair;
mod resume;
mod schedules;
mod side_steps;
mod suggestions;

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use gnoma_testkit::Reply;

use crate::support::{World, exists, says};

const RELEASE: &str = "---\ndescription: Tag a version\narguments:\n  version: version\n  remote: text = origin\n---\n\n\
    ## Write the entry\nWrite the entry for $version on $remote.\n\n\
    ## Show it\n```sh\necho \"tag $version\"\n```\n\n## Sum up\nSum up what was done.\n";

fn world(replies: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(replies);
    world.put_home(".config/gnoma/tasks/release.md", RELEASE);
    world
}

impl World {
    /// The texts that people said in the last request.
    fn said_by_people(&self) -> String {
        let said = self.last_request().into_iter().filter(|(role, _)| role == "user");
        said.map(|(_, text)| text).collect::<Vec<_>>().join("\n---\n")
    }

    /// The records of runs.
    fn records(&self) -> Vec<String> {
        let folder = self.home.path().join(".local/state/gnoma/tasks");
        let projects = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files =
            projects.flat_map(|project| std::fs::read_dir(project.path()).unwrap().flatten());
        let records = files.filter(|file| file.path().extension().is_some_and(|it| it == "json"));
        records.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect()
    }
}

#[tokio::test]
async fn task_runs_its_steps_in_order_in_one_session() {
    let world = world([says("the entry"), says("the sum")]);
    let run = world.run(&["task", "run", "release", "v1.2.0"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("the entry") && run.out.contains("the sum"), "{run:?}");
    for part in ["step 1 of 3: Write the entry", "step 2 of 3: Show it", "is done: 3 steps in"] {
        assert!(run.err.contains(part), "{part}: {run:?}");
    }
    assert_eq!(world.server.requests().len(), 2);
    let said = world.said_by_people();
    let parts = ["Write the entry for v1.2.0 on origin.", "tag v1.2.0\n", "Sum up what was done."];
    let places = parts.map(|part| said.find(part).unwrap_or_else(|| panic!("{part}: {said}")));
    assert!(places.is_sorted(), "{said}");
    assert_eq!(world.sessions().await.len(), 1);
    let history = world.run(&["task", "history", "release"]).await;
    assert!(
        history.out.contains("version=v1.2.0") && history.out.contains("3 of 3"),
        "{history:?}"
    );
}

#[tokio::test]
async fn task_reports_json_for_scripts() {
    let world = world([says("the entry"), says("the sum")]);
    let run = world.run(&["task", "run", "release", "v1", "--output-format", "json"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["type"], "task_result");
    assert_eq!((&report["state"], &report["is_error"]), (&"done".into(), &false.into()));
    let kinds: Vec<_> =
        report["steps"].as_array().unwrap().iter().map(|step| &step["kind"]).collect();
    assert_eq!(kinds, ["prompt", "command", "prompt"]);
    let wrong = world.run(&["task", "run", "release", "latest", "--output-format", "json"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.out.contains("not a version"), "{wrong:?}");
}

#[tokio::test]
async fn task_stops_at_a_failed_step_and_resumes_behind_the_last_whole_one() {
    let world = World::new([says("one"), says("three")]);
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## One\nSay one.\n## Two\n```sh\ncat needed.txt\n```\n## Three\nSay three.\n",
    );
    let run = world.run(&["task", "run", "t"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("stopped at step 2 of 3 (Two), which failed"), "{run:?}");
    let refused = world.run(&["task", "run", "--resume"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("step 2 of 3 (`Two`) failed") && refused.err.contains("--again"));
    world.write("needed.txt", "f0und");
    let run = world.run(&["task", "run", "--resume", "t", "--again"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.server.requests().len(), 2, "no step runs twice");
    let said = world.said_by_people();
    assert_eq!((said.matches("Say one.").count(), said.matches("f0und").count()), (1, 1), "{said}");
    let done = world.run(&["task", "run", "--resume"]).await;
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[tokio::test]
async fn killed_task_does_not_repeat_a_step_that_had_begun() {
    let world = World::new([says("one"), says("three")]);
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## One\nSay one.\n## Two\n```sh\nsleep 50\n```\n## Three\nSay three.\n",
    );
    let mut child = world.command(&["task", "run", "t"]).spawn().unwrap();
    for _ in 0..600 {
        if world.records().iter().any(|record| {
            record.contains(r#""title":"Two","kind":"command""#)
                && record.contains(r#""state":"begun""#)
                && record.contains(r#""state":"done""#)
        }) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    child.kill().await.unwrap();
    let refused = world.run(&["task", "run", "--resume"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("has begun and its end is not known"), "{refused:?}");
    let run = world.run(&["task", "run", "--resume", "--skip"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let said = world.said_by_people();
    assert!(said.contains("Say one.") && said.contains("Say three."), "{said}");
    assert_eq!(world.server.requests().len(), 2);
}

#[tokio::test]
async fn task_of_an_untrusted_project_does_not_run() {
    let world = World::new([says("done"), says("done")]);
    world.put(".gnoma/tasks/x.md", "## One\n```sh\necho run > ran.txt\n```\n## Two\nSay it.\n");
    for line in [&["task", "run", "x"][..], &["task", "run", "x", "--dry-run"]] {
        let run = world.run(&[&["--permission", "bypass"], line].concat()).await;
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains("not trusted") && run.err.contains("gnoma trust"), "{run:?}");
    }
    let list = world.run(&["task", "list"]).await;
    assert!(list.out.contains("needs `gnoma trust`"), "{list:?}");
    assert!(world.server.requests().is_empty() && !exists(world.project.path(), "ran.txt"));
    // Until then, it does not replace the person's own task of that name.
    world.put_home(".config/gnoma/tasks/x.md", "Mine.");
    let own = world.run(&["task", "run", "x"]).await;
    assert!(own.err.contains("its task `x` does not replace yours"), "{own:?}");
    assert_eq!(world.said(), "Mine.");
    let trusted = world.run(&["trust", "--yes"]).await;
    assert!(trusted.out.contains("echo run > ran.txt"), "{trusted:?}");
    let run = world.run(&["--permission", "bypass", "task", "run", "x"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(exists(world.project.path(), "ran.txt"));
    // One changed byte takes the trust back.
    world.put(".gnoma/tasks/x.md", "## One\n```sh\necho run > ran2.txt\n```\n");
    std::fs::remove_file(world.home.path().join(".config/gnoma/tasks/x.md")).unwrap();
    let run = world.run(&["--permission", "bypass", "task", "run", "x"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[tokio::test]
async fn fifty_tasks_add_no_byte_to_a_prompt() {
    let world = World::new([says("a"), says("b")]);
    world.run(&["hello"]).await;
    for number in 0..50 {
        world.put_home(&format!(".config/gnoma/tasks/t{number}.md"), RELEASE);
    }
    world.run(&["hello"]).await;
    let bodies: Vec<String> =
        world.server.requests().iter().map(|request| request.json().to_string()).collect();
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn commands_of_a_task_are_judged_like_a_models() {
    let world = World::new([]);
    world.put_home(
        ".config/gnoma/tasks/w.md",
        "---\npermission: plan\narguments: text\n---\n## One\n```sh\necho \"$text\" > out.txt\n```\n",
    );
    // The task allows less than the session: on trial, its changes are discarded.
    let run = world.run(&["--permission", "bypass", "task", "run", "w", "x; touch y"]).await;
    assert!(!exists(world.project.path(), "out.txt"), "{run:?}");
    assert!(run.err.contains("changes of 1 step discarded"), "{run:?}");
    world.put_home(
        ".config/gnoma/tasks/w.md",
        "---\npermission: deny\narguments: text\n---\n## One\n```sh\necho \"$text\" > out.txt\n```\n",
    );
    let run = world.run(&["--permission", "bypass", "task", "run", "w", "x"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("denied") && !exists(world.project.path(), "out.txt"), "{run:?}");
    // A value never becomes a command.
    world.put_home(
        ".config/gnoma/tasks/w.md",
        "---\narguments: text\n---\n## One\n```sh\necho \"$text\" > out.txt\n```\n",
    );
    let run =
        world.run(&["--permission", "bypass", "task", "run", "w", "x'; touch y; $(touch z)"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("out.txt"), "x'; touch y; $(touch z)\n");
    assert!(!exists(world.project.path(), "y") && !exists(world.project.path(), "z"));
}

#[tokio::test]
async fn dry_run_shows_steps_and_verdicts_and_runs_nothing() {
    let world = world([]);
    world.put_home(
        ".config/gnoma/tasks/push.md",
        "---\narguments:\n  version: version\n---\n## Tag\n```sh\ngit tag \"$version\"\n```\n## Then\n/task release $version\n",
    );
    let run = world.run(&["task", "run", "push", "v2", "--dry-run"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    for part in
        ["1. Tag (command)", "→ ask:", "2. Then › Write the entry (prompt)", "for v2 on origin"]
    {
        assert!(run.out.contains(part), "{part}: {run:?}");
    }
    assert!(world.server.requests().is_empty() && world.records().is_empty());
}

#[tokio::test]
async fn incognito_leaves_no_record_of_a_run() {
    let world = world([says("a"), says("b")]);
    let run = world.run(&["--incognito", "task", "run", "release", "v1"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(world.records().is_empty() && world.sessions().await.is_empty());
    assert!(!world.home.path().join(".local/state/gnoma/tasks").exists());
}

#[tokio::test]
async fn tasks_are_made_shown_checked_and_deleted() {
    let world = World::new([says("it was asked")]);
    let new = world.run(&["task", "new", "fresh"]).await;
    assert_eq!(new.code, Some(0), "{new:?}");
    assert_eq!(world.run(&["task", "new", "fresh"]).await.code, Some(2));
    assert!(world.run(&["task", "show", "fresh"]).await.out.contains("## Summarize"));
    assert!(world.run(&["task"]).await.out.contains("fresh [SINCE]"));
    assert_eq!(world.run(&["task", "check"]).await.code, Some(0));
    world.put_home(".config/gnoma/tasks/bad.md", "---\nchekcs: x\n---\ny");
    let named = world.run(&["task", "check", "fresh"]).await;
    assert_eq!((named.code, named.out.as_str()), (Some(0), "fresh: valid\n"), "{named:?}");
    let named = world.run(&["task", "check", "bad"]).await;
    assert!(named.code == Some(1) && named.out.contains("`chekcs`"), "{named:?}");
    let check = world.run(&["task", "check"]).await;
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(
        check.out.contains("bad.md:2: unknown field `chekcs`; did you mean `checks`?"),
        "{check:?}"
    );
    assert!(world.run(&["task", "check", "--schema"]).await.out.contains("\"arguments\""));
    assert_eq!(world.run(&["task", "delete", "fresh"]).await.code, Some(2));
    assert_eq!(world.run(&["task", "delete", "fresh", "--yes"]).await.code, Some(0));
    let missing = world.run(&["task", "run", "fresh"]).await;
    assert!(
        missing.code == Some(2) && missing.err.contains("there is no task `fresh`"),
        "{missing:?}"
    );
    world.run(&["task", "force", "lost", "contact", "with", "the", "base"]).await;
    assert_eq!(world.said(), "task force lost contact with the base");
}

#[tokio::test]
async fn unknown_model_of_a_step_is_refused_before_the_first_step() {
    let world = World::new([]);
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## One\n```sh\necho one > ran.txt\n```\n## Two {model=m2}\nSay two.\n",
    );
    let run = world.run(&["--permission", "bypass", "task", "run", "t"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(
        run.err.contains("a step wants the model `m2`, which is not in this session"),
        "{run:?}"
    );
    assert!(run.err.contains("did you mean `m1`?"), "{run:?}");
    assert!(!exists(world.project.path(), "ran.txt") && world.records().is_empty());
}

#[tokio::test]
async fn command_of_several_lines_stops_at_its_first_error() {
    let world = World::new([]);
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## One\n```sh\nfalse\necho later > ran.txt\n```\n## Two\n```sh\necho two > two.txt\n```\n",
    );
    let run = world.run(&["--permission", "bypass", "task", "run", "t"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("stopped at step 1 of 2 (One), which failed"), "{run:?}");
    let folder = world.project.path();
    assert!(!exists(folder, "ran.txt") && !exists(folder, "two.txt"));
}

#[tokio::test]
async fn command_of_a_step_has_a_time_limit_of_its_own() {
    let world = World::new([]);
    world.configure("[tools]\nbash_timeout = \"1s\"\n");
    world.put_home(
        ".config/gnoma/tasks/t.md",
        "## Slow\n```sh\nsleep 2\necho slept > ran.txt\n```\n## Limited {timeout=1s}\n```sh\nsleep 20\n```\n",
    );
    let run = world.run(&["--permission", "bypass", "task", "run", "t"]).await;
    assert_eq!(world.read("ran.txt"), "slept\n", "{run:?}");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("step 2 of 2 (Limited)") && run.err.contains("after 1s"), "{run:?}");
}

#[tokio::test]
async fn task_is_not_written_into_a_folder_that_is_no_project() {
    let world = World::new([]);
    let new = |folder: &std::path::Path| {
        let mut command = world.command(&["task", "new", "x", "--project"]);
        command.current_dir(folder);
        crate::support::finish(command.spawn().unwrap())
    };
    let refused = new(world.home.path()).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("it is your home folder"), "{refused:?}");
    let shared = tempfile::tempdir().unwrap();
    std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = new(shared.path()).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("everybody may write there"), "{refused:?}");
    assert!(!exists(shared.path(), ".gnoma") && !exists(world.home.path(), ".gnoma"));
    assert_eq!(new(world.project.path()).await.code, Some(0));
}

#[tokio::test]
async fn task_that_cannot_run_is_refused_with_a_reason_and_runs_nothing() {
    let world = World::new([]);
    let first = "## One\n```sh\necho one > ran.txt\n```\n";
    for (name, text) in [
        ("circle", format!("{first}## Two\n/task other\n")),
        ("other", "## One\n/task circle\n".to_owned()),
        ("lost", format!("{first}## Two\n/task nothing\n")),
        ("count", format!("---\narguments:\n  n: number\n---\n{first}")),
        ("odd", format!("---\npermision: plan\n---\n{first}")),
    ] {
        world.put_home(&format!(".config/gnoma/tasks/{name}.md"), &text);
    }
    for (line, part) in [
        (&["circle"][..], "the tasks run each other in a circle: circle → other → circle"),
        (&["lost"], "lost.md:5: there is no task `nothing`"),
        (&["count"], "the argument `n` is missing; usage: count N"),
        (&["count", "many"], "`many` is not a number, which `n` must be"),
        (&["count", "1", "2"], "`2` is one argument too many"),
        (&["odd"], "odd.md:2: unknown field `permision`; did you mean `permission`?"),
        (&["missing"], "there is no task `missing`"),
    ] {
        let run = world.run(&[&["--permission", "bypass", "task", "run"], line].concat()).await;
        assert_eq!(run.code, Some(2), "{line:?}: {run:?}");
        assert!(run.err.contains(part), "{line:?}: {run:?}");
    }
    assert!(!exists(world.project.path(), "ran.txt") && world.records().is_empty());
}

#[tokio::test]
async fn one_step_is_written_in_the_singular() {
    let world = World::new([]);
    world.put_home(".config/gnoma/tasks/one.md", "## One\n```sh\necho one\n```\n");
    for line in [
        &["task", "show", "one"][..],
        &["task", "run", "one", "--dry-run"],
        &["--permission", "bypass", "task", "run", "one"],
        &["task", "history"],
    ] {
        let run = world.run(line).await;
        let text = format!("{}{}", run.out, run.err);
        assert!(text.contains("1 step") && !text.contains("1 steps"), "{line:?}: {text}");
    }
}

#[tokio::test]
async fn task_step_messages_are_recorded_and_never_suggested_as_tasks() {
    let world = world([says("the entry"), says("the sum")]);
    world.run(&["--permission", "bypass", "task", "run", "release", "v1"]).await;
    let record: serde_json::Value = serde_json::from_str(&world.records()[0]).unwrap();
    let digests: Vec<_> = record["messages"].as_array().unwrap().iter().collect();
    assert_eq!(digests.len(), 3, "{record}");
    let digest = gnoma_extend::tasks::digest_message("Write the entry for v1 on origin.");
    assert_eq!(digests[0][1], digest.as_str());
}

#[tokio::test]
async fn no_command_for_a_key_runs_for_a_completion() {
    let world = world([]);
    let mark = world.project.path().join("ran");
    let command = format!("touch '{}'; echo k", mark.display());
    world.configure(&format!("[provider.key_commands]\ntest = \"{command}\"\n"));
    let found = world.run(&["completions", "bash", "--", "task", "run", "re"]).await;
    assert_eq!(found.out, "release\n", "{found:?}");
    assert!(!mark.exists());
}

#[tokio::test]
async fn bash_completes_names_of_tasks_and_values_of_choices() {
    let world = world([]);
    let hostile = "---\narguments:\n  how: choice(fast, $(touch bad), slow)\n---\nGo $how.\n";
    world.put_home(".config/gnoma/tasks/build.md", hostile);
    let script = world.run(&["completions", "bash"]).await.out;
    world.write("completions.bash", &script);
    let complete = async |words: &str| {
        let line = format!(
            "source completions.bash; COMP_WORDS=({0} {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _gnoma {0} \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[*]}}\"",
            env!("CARGO_BIN_EXE_gnoma")
        );
        let mut command = tokio::process::Command::new("bash");
        command.args(["-c", &line]).current_dir(world.project.path());
        command.env("HOME", world.home.path()).stdout(std::process::Stdio::piped());
        crate::support::finish(command.spawn().unwrap()).await.out.trim().to_owned()
    };
    assert_eq!(complete("task run ''").await, "build release");
    assert_eq!(complete("task show re").await, "release");
    assert_eq!(complete("task run build ''").await, r"fast \$\(touch\ bad\) slow");
    assert_eq!(complete("task run build f").await, "fast");
    assert_eq!(complete("task run release v1 ''").await, "origin");
    assert!(complete("task run --dr").await.contains("--dry-run"));
    assert!(!exists(world.project.path(), "bad"));
}
