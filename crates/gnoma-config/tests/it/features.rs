//! Switches of features, which are short names of settings.

use gnoma_config::Origin;

use crate::home::Home;

fn memory(home: &Home) -> (bool, Origin) {
    let set = home.load().explain_key("memory.enabled").unwrap().clone();
    (set.value == "true", set.origin)
}

#[test]
fn feature_switch_sets_its_setting_in_the_same_layer() {
    let home = Home::new().user("features.memory = true\nfeatures.task_suggestions = false\n");
    assert_eq!(memory(&home), (true, Origin::User));
    assert_eq!(home.load().explain_key("tasks.suggest").unwrap().value, "\"off\"");
    assert_eq!(home.load().findings, []);
    let home = home.profile("[memory]\nenabled = false\n");
    assert_eq!(memory(&home), (false, Origin::Profile));
    let home = home.user("[memory]\nenabled = false\n").profile("features.memory = true\n");
    assert_eq!(memory(&home), (true, Origin::Profile));
    assert!(home.flag("features.two_stage", true).load().settings.router.force_two_stage);
}

#[test]
fn untrusted_project_enables_only_harmless_features() {
    let home = Home::new().project("[features]\nmemory = true\ntwo_stage = true\n");
    let loaded = home.load();
    assert_eq!(loaded.explain_key("memory.enabled").unwrap().origin, Origin::Default);
    assert!(loaded.settings.router.force_two_stage);
    assert_eq!(loaded.findings.len(), 1, "{:?}", loaded.findings);
    assert_eq!(memory(&home.trusted()), (true, Origin::Project));
}

#[test]
fn unknown_removed_and_overridden_feature_switches_are_reported() {
    let home = Home::new().user(
        "[features]\nmemori = true\nentropy_threshold = true\nmemory = true\n[memory]\nenabled = false\n",
    );
    let told: Vec<_> = home.load().findings.iter().map(ToString::to_string).collect();
    let told = told.join("\n");
    for part in [
        "`features.memori` is ignored: there is no such key",
        "did you mean `features.memory`?",
        "`features.entropy_threshold` has no effect: this setting is no longer used",
        "`features.memory` has no effect: `memory.enabled` is set beside it and wins",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(memory(&home), (false, Origin::User));
    let error = Home::new().user("features.memory = \"yes\"\n").try_load().unwrap_err();
    assert!(error.to_string().contains("features.memory"), "{error}");
}
