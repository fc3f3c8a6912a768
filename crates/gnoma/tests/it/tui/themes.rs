//! Themes of the person's own, at the terminal.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn own_theme_is_listed_checked_and_chosen_and_a_broken_one_is_named() {
    let world = World::new([]);
    let folder = world.home.path().join(".config/gnoma/themes");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("mine.toml"), "[dark]\naccent = \"#303030\"\n").unwrap();
    std::fs::write(folder.join("broken.toml"), "[dark]\naccent = \"mauve\"\n").unwrap();
    let set = world.run(&["config", "set", "tui.theme", "mine"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let person = Person::ready(&world, &[]);
    person.waits_for("`dark.accent` has a contrast of 1.");
    person.types("/theme\r");
    person.waits_for("yours");
    person.waits_for("cannot be used");
    person.types("\x1b");
    person.waits_until("no list of themes", |person| !person.sees().contains("yours"));
    person.leaves();
    world.configure("[tui]\ntheme = \"broken\"\n");
    let person = Person::ready(&world, &[]);
    person.waits_for("`mauve` is not a colour");
    person.leaves();
    world.configure("[tui]\ntheme = \"gone\"\n");
    let person = Person::ready(&world, &[]);
    person.waits_for("there is no theme `gone`");
    person.leaves();
    let set = world.run(&["config", "set", "tui.theme", "none"]).await;
    assert!(set.err.contains("there is no theme `none`"), "{set:?}");
}
