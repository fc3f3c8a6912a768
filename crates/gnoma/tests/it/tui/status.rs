//! The line at the bottom that a script of the person's writes.

use super::*;

/// Sets the person's script.
fn script(world: &World, line: &str) {
    world.configure(&format!("[status]\ncommand = '''{line}'''\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_script_gets_facts_and_its_line_is_shown_without_what_steers_the_terminal() {
    let world = World::new([says("Hello.")]);
    let read = r#"sed -E 's/.*"display_name":"([^"]*)".*"project_dir":"([^"]*)".*/mine \1/'; printf '\033[31mred\033[2J\n'"#;
    script(&world, &format!("{{ {read}; }} | tr -d '\\n'"));
    let person = Person::ready(&world, &[]);
    person.waits_for("mine m1red");
    person.types("hi\r");
    person.waits_for("Hello.");
    person.waits_for("auto mode · mine m1red");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_status_script_falls_back_to_the_usual_line_and_is_reported() {
    for (line, why) in [
        ("sleep 100", "took longer than 300 ms"),
        ("cat; exit 3", "exit code 3"),
        ("yes", "failed ("),
    ] {
        let world = World::new([]);
        script(&world, line);
        let person = Person::ready(&world, &[]);
        person.waits_for("`status.command` failed");
        let seen = person.sees().replace('\n', "");
        assert!(seen.contains(why), "{line}: {seen}");
        assert!(seen.contains("test/m1"), "{line}: {seen}");
        person.leaves();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_script_of_a_project_is_never_run() {
    let world = World::new([]);
    std::fs::create_dir(world.project.path().join(".gnoma")).unwrap();
    world.write(".gnoma/config.toml", "[status]\ncommand = \"touch ran\"\n");
    assert_eq!(world.run(&["trust", "--yes"]).await.code, Some(0));
    let told = world.run(&["config", "show"]).await.err;
    assert!(told.contains("`status.command` is ignored because it is yours to decide"), "{told}");
    let person = Person::ready(&world, &[]);
    person.leaves();
    assert!(!exists(world.project.path(), "ran"));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_line_shows_the_spending_of_the_ledger() {
    let usage = gnoma_core::Usage { input: 1_000_000, ..Default::default() };
    let answer = Script::text(["Hello."]).with_stop(StopReason::EndTurn).with_usage(usage);
    let world = World::new([Wire::OpenAi.stream_reply(&answer)]);
    world.configure(
        "[router.caps]\nday = 4.0\n[[arms]]\nid = \"test/m1\"\ninput_price = 1.25\noutput_price = 1.0\n\
         context = 200_000\n[status]\nshow = [\"today\", \"cap\"]\n",
    );
    assert_eq!(world.run(&["greet me"]).await.code, Some(0));
    let person = Person::ready(&world, &[]);
    person.waits_for("today $1.25");
    person.waits_for("cap 31%");
    assert!(!person.sees().contains("week $"), "{}", person.sees());
    person.leaves();
}
