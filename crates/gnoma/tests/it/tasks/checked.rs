//! Tasks that are looked at before they run: `check`, `--dry-run`, `show` and `delete`.

use super::*;

const NEEDS: &str = "---\narguments:\n  v: version\n---\n## A\n";

#[tokio::test]
async fn check_finds_what_no_run_could_do_behind_an_argument() {
    let world = World::new([]);
    for (name, step) in [
        ("one", "/task other $v"),
        ("other", "/task one $v"),
        ("lost", "/task nothing $v"),
        ("wrong", "/task fine latest"),
        ("help", "/help me"),
        ("fine", "/review $v"),
    ] {
        world.put_home(&format!(".config/gnoma/tasks/{name}.md"), &format!("{NEEDS}{step}\n"));
    }
    let checked = world.run(&["task", "check"]).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for part in [
        "other.md:5: the tasks run each other in a circle: one → other → one",
        "lost.md:5: there is no task `nothing`",
        "wrong.md:5: `latest` is not a version",
        "help.md:5: `/help` is no command that a step can be",
        "fine.md: valid",
    ] {
        assert!(checked.out.contains(part), "{part}: {}", checked.out);
    }
    let alone = world.run(&["task", "check", "lost"]).await;
    assert_eq!(alone.code, Some(1), "{alone:?}");
    world.put("fine/notes.txt", "a folder called as the task is");
    let named = world.run(&["task", "check", "fine", "fien"]).await;
    assert!(named.out.contains("fine: valid"), "{named:?}");
    assert!(named.out.contains("there is no task `fien`; did you mean `fine`?"), "{named:?}");
    let run = world.run(&["task", "run", "help", "v1"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("help.md:5: `/help`") && world.server.requests().is_empty());
}

#[tokio::test]
async fn dry_run_names_the_command_behind_its_values_and_models_that_are_missing() {
    let world = World::new([]);
    let look = "---\narguments:\n  n: number = 3\n---\n## Look\n```sh\nls \"$n\"\n```\n";
    world.put_home(".config/gnoma/tasks/look.md", look);
    let dry = world.run(&["task", "run", "look", "-1", "--dry-run"]).await;
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(dry.out.contains("→ allow: ") && dry.out.contains("`ls \"$n\"`"), "{dry:?}");
    world.put_home(".config/gnoma/tasks/m.md", "## A {model=nosuch}\nSay it.\n");
    let dry = world.run(&["task", "run", "m", "--dry-run"]).await;
    assert_eq!(dry.code, Some(2), "{dry:?}");
    assert!(dry.err.contains("the model `nosuch`, which is not in this session"), "{dry:?}");
}

#[tokio::test]
async fn task_with_a_wrong_file_is_shown_and_deleted() {
    let world = World::new([]);
    world.put_home(".config/gnoma/tasks/wrong.md", "## A {modle=x}\nSay it.\n");
    let shown = world.run(&["task", "show", "wrong"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("unknown option `modle=x`") && shown.out.contains("Say it."));
    let deleted = world.run(&["task", "delete", "wrong", "--yes"]).await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert!(!exists(world.home.path(), ".config/gnoma/tasks/wrong.md"));
    let json = world.run(&["task", "list", "--output-format", "json"]).await;
    assert_eq!(json.code, Some(2), "{json:?}");
    assert!(json.err.contains("`gnoma task list` takes no --output-format"), "{json:?}");
    let mode = world.run(&["task", "list", "--permission", "everything"]).await;
    assert_eq!(mode.code, Some(2), "{mode:?}");
    assert!(mode.err.contains("invalid value 'everything' for '--permission"), "{mode:?}");
    let reserved = world.run(&["task", "new", "run"]).await;
    assert!(reserved.err.contains("`gnoma task` has a command of that name"), "{reserved:?}");
}
