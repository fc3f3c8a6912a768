//! `gnoma features`: named switches of features, with their stages.

use anyhow::Result;
use gnoma_config::{
    LoadedConfig, Origin,
    schema::{FEATURES, Feature},
};
use gnoma_core::json_value::json;
use gnoma_host::setting;
use serde_json::Value;

use super::common::{load_settings, open_project, print_json, print_safe_text};
use crate::{
    args::{FeatureArgs, FeaturesSub, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
};

pub(super) fn run(
    what: Option<&FeaturesSub>,
    is_json: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    match what {
        None => list(is_json, &load_settings(args, around)?.1),
        Some(FeaturesSub::List { json }) => list(*json, &load_settings(args, around)?.1),
        Some(FeaturesSub::Enable(which)) => switch(which, true, args, around),
        Some(FeaturesSub::Disable(which)) => switch(which, false, args, around),
    }
}

fn switch(
    which: &FeatureArgs,
    is_on: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let said =
        setting::switch_feature(&open_project(args, around)?, &which.name, is_on, which.project)?;
    let loaded = load_settings(args, around)?.1;
    let name = which.name.trim_start_matches("features.");
    let feature = FEATURES.iter().find(|feature| feature.name() == name);
    if let Some(feature) = feature.filter(|feature| state(feature, &loaded).0 != is_on)
        && let Some(set) = loaded.explain_key(feature.setting)
    {
        let (value, layer, place) = (&set.value, set.origin, &set.place);
        report::print_line(format_args!(
            "note: here `{}` is {value}: {layer} ({place}) overrides it",
            feature.setting
        ));
    }
    print_safe_text(&format!("{said}\n"))
}

fn list(json: bool, loaded: &LoadedConfig) -> Result<Exit> {
    if json {
        let features = FEATURES.iter().map(|feature| describe(feature, loaded));
        return print_json(&Value::Array(features.collect()));
    }
    let mut text = line("feature", "stage", "now", "default", "since");
    for feature in &FEATURES {
        let (is_on, _) = state(feature, loaded);
        let name = feature.name();
        let stage = feature.stage.name();
        text += &line(name, stage, word(is_on), word(feature.default), feature.since);
        text += &format!("  {}\n", feature.about);
    }
    print_safe_text(&text)
}

fn line(name: &str, stage: &str, now: &str, default: &str, since: &str) -> String {
    format!("{name:<19}{stage:<14}{now:<5}{default:<9}{since}\n")
}

fn word(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn describe(feature: &Feature, loaded: &LoadedConfig) -> Value {
    let (is_on, origin) = state(feature, loaded);
    let setting = Some(feature.setting).filter(|setting| !setting.is_empty());
    json!({
        "name": feature.name(), "stage": feature.stage.name(), "enabled": is_on,
        "default": feature.default, "about": feature.about, "since": feature.since,
        "setting": setting, "set_by": origin.to_string(),
    })
}

/// Returns whether a feature is on, and the layer that says so.
fn state(feature: &Feature, loaded: &LoadedConfig) -> (bool, Origin) {
    match loaded.explain_key(feature.setting) {
        Some(set) => (loaded.has_feature(feature), set.origin),
        None => (false, Origin::Default),
    }
}
