//! What a setting does, where its value comes from, and what would go over it.

use std::fmt::Write as _;

use gnoma_config::{
    LoadedConfig, Sources,
    describe::KeyDescription,
    env,
    finding::Origin,
    paths,
    schema::{Guard, ROWS, Row},
};

/// Flags that set a single setting.
const FLAGS: [(&str, &str); 7] = [
    ("default_profile", "--profile"),
    ("provider.default", "--provider"),
    ("provider.model", "--model"),
    ("permission.mode", "--permission"),
    ("permission.confirm_bypass", "--confirm-bypass"),
    ("privacy.incognito", "--incognito"),
    ("tools.max_rounds", "--max-turns"),
];

/// The explanation of `key`.
pub(super) fn explain_key(
    key: &str,
    described: &KeyDescription,
    loaded: &LoadedConfig,
    sources: &Sources,
) -> String {
    match described {
        KeyDescription::Section(keys) => {
            let rows = ROWS.iter().filter(|row| keys.contains(&row.path));
            rows.map(|row| format!("{}: {}\n", row.path, row.doc)).collect()
        }
        KeyDescription::Setting { names, row } => explain_setting(key, names, row, loaded, sources),
    }
}

fn explain_setting(
    key: &str,
    names: &[String],
    row: &Row,
    loaded: &LoadedConfig,
    sources: &Sources,
) -> String {
    let mut text = format!("{key}: {}\n", row.doc);
    let mut line = |head: &str, said: &str| {
        let _infallible = writeln!(text, "{head:<14}{said}");
    };
    line("takes", &row.kind.describe_expected());
    let built_in = row.built_in();
    line("built in", built_in.as_deref().unwrap_or("nothing"));
    let set = loaded.explain_key(key);
    match set {
        Some(set) if set.origin == Origin::Default => {
            line("value", &format!("{}, as built in", set.value));
        }
        Some(set) => {
            line("value", &set.value);
            line("set by", &format!("{}, {}", set.origin, set.place));
        }
        None => line("value", "not set"),
    }
    if let Some(instead) = row.replaced_by() {
        line("no effect", instead);
    }
    let origin = set.map_or(Origin::Default, |set| set.origin);
    for (number, over) in overriding_sources(names, row, origin, sources).iter().enumerate() {
        line(if number == 0 { "overridden by" } else { "" }, over);
    }
    text
}

/// Lists the sources that would override a value that `origin` has set, the weakest first.
fn overriding_sources(
    names: &[String],
    row: &Row,
    origin: Origin,
    sources: &Sources,
) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let key = names.join(".");
    let mut all = Vec::new();
    let is_chosen_first = key == "default_profile";
    if origin < Origin::User {
        all.push(paths::user_file(&sources.config_dir).display().to_string());
    }
    if origin < Origin::Profile && !is_chosen_first {
        let name = sources.profile.as_deref().unwrap_or("NAME");
        all.push(format!(
            "{} (a profile)",
            paths::profile_file(&sources.config_dir, name).display()
        ));
    }
    if origin < Origin::Project && !is_chosen_first && row.guard != Guard::Personal {
        let file = sources.project_root.as_deref().map(paths::project_file);
        let file = file.map_or_else(
            || ".gnoma/config.toml of a project".to_owned(),
            |file| file.display().to_string(),
        );
        let how = match row.guard {
            Guard::Open | Guard::Personal => "",
            Guard::Trusted => " (after `gnoma trust`)",
            Guard::NotLooser | Guard::NeverMore => {
                " (can lower it; to raise it, run `gnoma trust`)"
            }
            Guard::OnlyDeny => " (can deny; to allow, run `gnoma trust`)",
        };
        let how = if matches!(row.guard, Guard::NeverMore) { " (can only lower it)" } else { how };
        all.push(format!("{file}{how}"));
    }
    if origin < Origin::Environment {
        all.extend(env::variables_of(&names));
    }
    if origin < Origin::Flag {
        all.extend(FLAGS.iter().filter(|(of, _)| *of == key).map(|(_, flag)| (*flag).to_owned()));
    }
    all
}
