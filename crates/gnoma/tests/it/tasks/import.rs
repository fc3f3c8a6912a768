//! Commands of other programs that become tasks.

use super::*;

#[tokio::test]
async fn commands_of_other_programs_become_tasks_and_what_is_lost_is_told() {
    let world = world([]);
    let fix = "---\ndescription: Fix an issue\nallowed-tools: Bash\n---\nFix $ARGUMENTS.\n";
    world.put_home(".claude/commands/team/fix.md", fix);
    world.put_home(".codex/prompts/look.md", "Look at $FILE for $1.");
    world.put_home(".config/opencode/command/release.md", "Release it.");
    world.put_home(".config/opencode/command/look.md", "Look.");
    std::fs::create_dir_all(world.project.path().join(".claude/commands")).unwrap();
    world.write(".claude/commands/theirs.md", "Do it.");
    let shown = world.run(&["task", "import"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in [
        "would import fix (from ~/.claude/commands/team/fix.md); lost: the field `allowed-tools`",
        "would import look (from ~/.codex/prompts/look.md)\n",
        "left out: release (~/.config/opencode/command/release.md): a task of that name is there",
        "left out: look (~/.config/opencode/command/look.md): ~/.codex/prompts/look.md has that name, too",
        "Nothing was written. Add --write",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let waits = "theirs.md): it counts once you trust the project: `gnoma trust`";
    assert!(shown.out.contains(waits), "{}", shown.out);
    let tasks = world.home.path().join(".config/gnoma/tasks");
    assert!(!exists(&tasks, "fix.md"));
    let written = world.run(&["task", "import", "--from", "claude", "--write"]).await;
    assert!(written.out.contains("wrote ~/.config/gnoma/tasks/fix.md"), "{written:?}");
    assert!(exists(&tasks, "fix.md") && !exists(&tasks, "look.md"));
    let plan = world.run(&["task", "run", "fix", "the", "lexer", "--dry-run"]).await;
    assert!(plan.out.contains("Fix the lexer."), "{plan:?}");
    let missing = world.run(&["task", "import", "nothing"]).await;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.err.contains("there is no command `nothing` to import"), "{missing:?}");
}

#[tokio::test]
async fn dry_run_says_what_a_run_is_likely_to_cost() {
    let world = world([says("the entry"), says("the sum")]);
    let line = ["task", "run", "release", "v1.2.0", "--dry-run"];
    let unknown = world.run(&line).await;
    assert!(!unknown.out.contains("expected:"), "{unknown:?}");
    world.run(&["task", "run", "release", "v1.1.0"]).await;
    let known = world.run(&line).await;
    assert!(known.out.contains("from 1 recorded run\n"), "{known:?}");
}

#[tokio::test]
async fn task_that_fails_three_times_at_the_same_step_says_so() {
    let world = World::new([]);
    world.put_home(".config/gnoma/tasks/t.md", "## Look\n```sh\ncat needed.txt\n```\n");
    for _ in 0..3 {
        world.run(&["task", "run", "t"]).await;
    }
    let history = world.run(&["task", "history", "t"]).await;
    let told = "The last 3 runs of t failed at step 1 (Look). `gnoma task edit t` opens it.";
    assert!(history.out.contains(told), "{history:?}");
    assert!(history.out.contains("`gnoma task repair t` proposes in its place"), "{history:?}");
}
