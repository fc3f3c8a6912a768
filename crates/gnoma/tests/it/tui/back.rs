//! `/rewind`, `/redo` and `/diff`, as a person meets them.

use super::*;

fn writes(name: &str, text: &str) -> Reply {
    calls("fs_write", &serde_json::json!({"path": name, "content": text}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn rewind_list_shows_changed_file_counts_and_prompts() {
    let world = World::new([
        says("Nothing to do."),
        writes("new.txt", "one\n"),
        writes("empty.txt", ""),
        says("Written."),
        says("That was all."),
    ]);
    let person = Person::ready(&world, &["--permission", "accept_edits"]);
    for (said, answer) in [
        ("look around", "Nothing to do."),
        ("write two files", "Written."),
        ("is that all", "That was all."),
    ] {
        person.types(&format!("{said}\r"));
        person.waits_for(answer);
        person.waits_until("rest", Person::is_at_rest);
    }
    person.types("/diff\r");
    person.waits_for("empty.txt (new, empty)");
    person.waits_for("new.txt (new)");

    person.types("/rewind\r");
    person.waits_for("Go back to before");
    let seen = person.sees();
    let files = |prompt: &str| {
        let row = seen.lines().find(|line| line.contains(prompt) && line.contains(" · "));
        row.unwrap_or_else(|| panic!("no {prompt:?} on:\n{seen}")).to_owned()
    };
    assert!(files("is that all").contains("no files changed since"), "{seen}");
    assert!(files("write two files").contains("2 files changed since"), "{seen}");
    assert!(files("look around").contains("2 files changed since"), "{seen}");
    person.types("write two\r");
    person.waits_for("files and conversation");
    person.types("\r");
    person.waits_for("undo this with `/redo`");
    person.waits_for("› write two files");
    let seen = person.sees();
    assert!(seen.contains("rewound to before “write two files”"), "{seen}");
    for other in ["`gnoma redo`", "gnoma --continue", "session 2"] {
        assert!(!seen.contains(other), "{other}: {seen}");
    }
    assert!(!exists(world.project.path(), "new.txt"));

    person.types("\x15/redo\r");
    person.waits_for("rewind undone");
    assert!(exists(world.project.path(), "new.txt"));
    person.types("/rewind many\r");
    person.waits_for("Write how many turns to undo");
    person.types("\x15");
    person.leaves();
}
