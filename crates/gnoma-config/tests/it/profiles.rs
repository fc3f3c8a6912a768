//! Choosing a profile.

use crate::home::Home;

#[test]
fn requested_profile_overrides_the_default_profile() {
    let mut home = Home::new()
        .user("default_profile = \"home\"\n")
        .write("config/profiles/home.toml", "provider.model = \"h\"\n")
        .profile("provider.model = \"w\"\n");
    assert_eq!(home.load().profile.as_deref(), Some("work"));
    assert_eq!(home.load().settings.provider.model.as_deref(), Some("w"));
    home.sources.profile = None;
    assert_eq!(home.load().profile.as_deref(), Some("home"));
    assert_eq!(home.load().settings.provider.model.as_deref(), Some("h"));
}

#[test]
fn profiles_are_off_without_any() {
    let loaded = Home::new().user("provider.model = \"m\"\n").load();
    assert_eq!(loaded.profile, None);
    assert_eq!(loaded.findings, []);
}

#[test]
fn a_default_profile_that_does_not_exist_is_an_error() {
    let home = Home::new().user("default_profile = \"nosuch\"\n");
    insta::assert_snapshot!(home.words(), @r#"
    error: there is no profile `nosuch`
      --> ~/config/config.toml:1:19
    hint: put a file NAME.toml into the folder `profiles` next to config.toml, or remove `default_profile`
    "#);
}

#[test]
fn missing_or_unknown_profile_lists_the_available_ones() {
    let mut home =
        Home::new().write("config/profiles/home.toml", "").write("config/profiles/work.toml", "");
    insta::assert_snapshot!(home.words(), @r#"
    error: no profile is chosen
      --> ~/config/profiles
    hint: give --profile NAME or set default_profile; there are home, work
    "#);
    home.sources.profile = Some("play".to_owned());
    insta::assert_snapshot!(home.words(), @r#"
    error: there is no profile `play`
      --> command line, --profile
    hint: there are home, work
    "#);
    home.sources.profile = Some("../../etc".to_owned());
    insta::assert_snapshot!(home.words(), @r#"
    error: `../../etc` cannot be a profile: names have letters, digits, `-` and `_`
      --> command line, --profile
    hint: there are home, work
    "#);
    home.sources.profile = None;
    let home = home.user("\ndefault_profile = \"play\"\n");
    insta::assert_snapshot!(home.words(), @r#"
    error: there is no profile `play`
      --> ~/config/config.toml:2:19
    hint: there are home, work, or remove `default_profile`
    "#);
}

#[test]
fn only_the_users_own_file_chooses_a_profile() {
    let home = Home::new().profile("").project("default_profile = \"evil\"\n");
    insta::assert_snapshot!(home.words(), @r#"
    warning: `default_profile` is ignored: the profile is chosen before this file is read
      --> ~/project/.gnoma/config.toml:1:19
    hint: set it in your own config.toml, or give --profile NAME
    "#);
}
