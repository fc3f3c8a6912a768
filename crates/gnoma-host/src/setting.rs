//! Writes settings into the person's configuration file, which otherwise stays as the person wrote it.

use std::path::{Path, PathBuf};

use gnoma_config::{
    ConfigError, Origin,
    edit::{Change, EditError},
    load::check_value,
    paths, profile,
    save::{SaveError, save_changes},
    schema::{FEATURES, Feature, FeatureStage, Kind, ROWS, THEMES},
    toml,
};
use gnoma_core::protocol::Setting;
use toml::{Table, Value};

use crate::{Folders as _, HostError, Project, Result, crate_options, rule};

/// The folder in the configuration folder for the person's own themes.
pub const THEMES_FOLDER: &str = "themes";

/// The reason why a setting was not set. The file is as it was.
#[derive(thiserror::Error)]
pub enum SettingError {
    /// The key is written like no key.
    #[error("`{key}` was not set: {source}")]
    Key {
        /// The key as it was given.
        key: String,
        /// The fault of the key.
        source: EditError,
    },
    /// The value is an empty text, which would set nothing.
    #[error("`{key}` was not set: its value is empty; to remove a setting, delete its line from {}", .file.display())]
    Empty {
        /// The key of the setting.
        key: String,
        /// The file of the settings.
        file: PathBuf,
    },
    /// There is no such setting, or it cannot have the value.
    #[error("{}", .0.sentences())]
    Value(ConfigError),
    /// The file cannot be changed.
    #[error("`{key}` was not set: {source}")]
    Unsaved {
        /// The key of the setting.
        key: String,
        /// The reason why the file is unchanged.
        source: SettingsFileError,
    },
}

impl From<SettingError> for HostError {
    fn from(error: SettingError) -> Self {
        Self::usage(error.to_string())
    }
}

/// The reason why a file of settings was not changed. It is as it was.
#[derive(thiserror::Error)]
pub enum SettingsFileError {
    /// The changed settings cannot be used; the text names the setting that is wrong.
    #[error(transparent)]
    Invalid(SaveError),
    /// The file cannot be read, changed or written.
    #[error("{}: {source}", .file.display())]
    File {
        /// The path of the file.
        file: PathBuf,
        /// The cause.
        source: SaveError,
    },
}

gnoma_core::debug_as_display!(SettingError, SettingsFileError);

/// Sets `key`, as TOML writes it, in the person's own settings; returns a sentence that says where.
///
/// # Errors
/// There is no such setting, it cannot have the value, or the file cannot be changed.
pub fn set_setting(project: &Project, key: &str, value: &str) -> Result<String> {
    refuse_unknown(project, key, value)?;
    Ok(set_in_file(&project.environment().config_dir(), key, value)?)
}

/// Refuses the name of a provider or profile that does not exist.
fn refuse_unknown(project: &Project, key: &str, value: &str) -> Result<()> {
    let value = parse_value(value);
    // What stands for a variable is known only when it is read.
    let Some(name) = value.as_str().filter(|name| !name.contains("${")) else { return Ok(()) };
    match key {
        "provider.default" => {
            crate_options::provider_profile(&project.routing.provider, name).map(drop)
        }
        "tui.theme" if !is_theme(project, name) => Err(HostError::usage(format!(
            "`tui.theme` was not set: there is no theme `{name}`; choose one of: {}",
            THEMES.join(", ")
        ))),
        "default_profile" => {
            let known = profile::list_profiles(&project.environment().config_dir());
            if known.iter().any(|known| known == name) {
                return Ok(());
            }
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(HostError::usage(format!(
                "`default_profile` was not set: there is no profile `{name}`; choose one of: \
                 {known}"
            )))
        }
        _ => Ok(()),
    }
}

/// Reports whether a theme of this name is built in or among the person's.
fn is_theme(project: &Project, name: &str) -> bool {
    let folder = project.environment().config_dir().join(THEMES_FOLDER);
    let is_plain = !name.contains(['/', '\0']);
    THEMES.contains(&name) || is_plain && folder.join(format!("{name}.toml")).is_file()
}

/// Describes who chose the model of a session, in brackets after its name. A session whose model was changed continues
/// as if it had been begun with that one.
pub(crate) fn describe_choice(origin: Origin) -> String {
    match origin {
        Origin::Flag => " (you chose it for this session)".to_owned(),
        Origin::User => " (set in your configuration)".to_owned(),
        origin => format!(" (set by {origin})"),
    }
}

/// Says that the theme which is set does not exist; `None` where it does.
pub(crate) fn unknown_theme(project: &Project) -> Option<String> {
    let set = project.explain_setting("tui.theme").filter(|set| set.origin != Origin::Default)?;
    let name = set.value.trim_matches('"');
    if is_theme(project, name) {
        return None;
    }
    let near = gnoma_config::nearest_name(name, THEMES.iter().copied());
    let near = near.map_or_else(
        || format!("choose one of: {}", THEMES.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Some(format!("`tui.theme` ({}): there is no theme `{name}`; {near}", set.place))
}

/// Sets `key`, as TOML writes it, in the file of that folder; returns a sentence that says where.
///
/// # Errors
/// See [`SettingError`].
pub fn set_in_file(config_dir: &Path, key: &str, value: &str) -> Result<String, SettingError> {
    let change = Change::set_key(key, parse_value(value))
        .map_err(|source| SettingError::Key { key: key.to_owned(), source })?;
    // An empty text sets nothing, so it would undo a setting without a word.
    if parse_value(value).as_str().is_some_and(|text| text.trim().is_empty()) {
        let file = paths::user_file(config_dir);
        return Err(SettingError::Empty { key: key.to_owned(), file });
    }
    if let Change::Set { path, value } = &change {
        check_value(path, value).map_err(SettingError::Value)?;
    }
    let shown = write_all(config_dir, &[change])
        .map_err(|source| SettingError::Unsaved { key: key.to_owned(), source })?;
    Ok(format!("Saved `{key}` in {shown}"))
}

/// Turns a feature on or off in the settings of the project, of the profile that was named, or of the person; returns a
/// sentence that says where. A line there with the setting that the switch stands for goes, as it would win.
///
/// # Errors
/// There is no such feature any more, or the file cannot be changed.
pub fn switch_feature(
    project: &Project,
    name: &str,
    is_on: bool,
    in_project: bool,
) -> Result<String> {
    let feature = find_feature(name)?;
    let way: Vec<&str> = feature.setting.split('.').collect();
    let change =
        Change::set_key(feature.key, is_on).map_err(|error| HostError::usage(error.to_string()));
    let changes = [Change::remove(&way), change?];
    let config_dir = project.environment().config_dir();
    let refused = |error: &dyn std::fmt::Display| {
        HostError::usage(format!("`{name}` was not changed: {error}"))
    };
    let shown = match &project.spec.profile {
        _ if in_project => {
            rule::save_in_project(project, &changes).map_err(|error| refused(&error))?
        }
        Some(profile) => write_file(&paths::profile_file(&config_dir, profile), &changes)
            .map_err(|error| refused(&error))?,
        None => write_all(&config_dir, &changes).map_err(|error| refused(&error))?,
    };
    let state = if is_on { "on" } else { "off" };
    Ok(format!("`{name}` is {state}: saved `{}` in {shown}", feature.key))
}

fn find_feature(name: &str) -> Result<&'static Feature> {
    let name = name.strip_prefix("features.").unwrap_or(name);
    let Some(feature) = FEATURES.iter().find(|feature| feature.name() == name) else {
        let near = gnoma_config::nearest_name(name, FEATURES.iter().map(Feature::name));
        let hint = near.map_or_else(
            || "`gnoma features` lists them".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let name = name.escape_debug();
        return Err(HostError::usage(format!("there is no feature `{name}`; {hint}")));
    };
    match feature.stage {
        FeatureStage::Removed => Err(HostError::usage(format!(
            "`{name}` was removed in {}: {}",
            feature.since, feature.about
        ))),
        FeatureStage::Experimental | FeatureStage::Preview | FeatureStage::Stable => Ok(feature),
    }
}

/// Makes the changes that add or change a provider, all or none; `verb` is "Added" or "Changed".
///
/// # Errors
/// The file cannot be changed, or not so; it is as it was then.
pub(crate) fn write_provider(
    config_dir: &Path,
    name: &str,
    verb: &str,
    changes: &[Change],
) -> Result<String> {
    let shown = write_all(config_dir, changes).map_err(|error| {
        HostError::usage(format!("the provider `{name}` was not added: {error}"))
    })?;
    let preposition = if verb == "Added" { "to" } else { "in" };
    Ok(format!("{verb} `{name}` {preposition} {shown}"))
}

/// Makes the changes in the person's own settings, all or none; returns the file.
///
/// # Errors
/// See [`SettingsFileError`].
pub(crate) fn write_all(
    config_dir: &Path,
    changes: &[Change],
) -> Result<String, SettingsFileError> {
    write_file(&paths::user_file(config_dir), changes)
}

fn write_file(file: &Path, changes: &[Change]) -> Result<String, SettingsFileError> {
    save_changes(file, changes).map_err(|error| match error {
        SaveError::Invalid(_) => SettingsFileError::Invalid(error),
        source => SettingsFileError::File { file: file.to_owned(), source },
    })?;
    Ok(file.display().to_string())
}

/// A value as TOML, else as a text.
fn parse_value(value: &str) -> Value {
    let read = toml::from_str::<Table>(&format!("value = {value}"));
    let read =
        read.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| Value::String(value.to_owned()))
}

/// Returns all settings as they are in the files now, with where each comes from, and with what the session began with
/// where that is another value.
pub(crate) fn list_settings(project: &Project) -> Vec<Setting> {
    let loaded = gnoma_config::load_settings(&crate_options::setting_sources(&project.spec));
    let saved = loaded.map_or_else(|_| project.values.to_vec(), |loaded| loaded.values);
    let setting = |value: &gnoma_config::ExplainedValue| {
        let origin = match value.origin {
            // Whether by an option or by a command of the window.
            Origin::Flag => "set for this session".to_owned(),
            origin => format!("{origin}: {}", value.place),
        };
        let first = project.explain_setting(&value.key);
        let first = first.map_or("no value", |first| first.value.as_str());
        let change = (first != value.value).then(|| format!("the session began with {first}; "));
        Setting {
            key: value.key.clone(),
            value: value.value.trim_matches('"').to_owned(),
            origin: change.unwrap_or_default() + &origin,
            choices: values_of(&value.key),
        }
    };
    saved.iter().map(setting).collect()
}

/// The values that a setting can have, where there are few.
fn values_of(key: &str) -> Vec<String> {
    let row = ROWS.iter().find(|row| row.path == key);
    match row.map(|row| row.kind) {
        Some(Kind::Bool) => ["true", "false"].map(str::to_owned).to_vec(),
        Some(Kind::Word(words)) => words.iter().map(|word| (*word).to_owned()).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn config_set_rejects_unknown_keys_and_invalid_values() {
        let folder = tempfile::tempdir().unwrap();
        let unknown = set_in_file(folder.path(), "tui.vm", "true").unwrap_err().to_string();
        assert!(unknown.contains("there is no such key") && unknown.contains("tui.vim"));
        let unknown = set_in_file(folder.path(), "nosuch.key", "1").unwrap_err().to_string();
        assert!(unknown.contains("`gnoma config show` lists those"), "{unknown}");
        let bad = set_in_file(folder.path(), "provider.max_tokens", "many").unwrap_err();
        let bad = bad.to_string();
        assert!(bad.contains("`provider.max_tokens`") && !bad.contains("-->"), "{bad}");
        let no_key = set_in_file(folder.path(), "tui vim", "true").unwrap_err().to_string();
        assert!(no_key.contains("not a key"), "{no_key}");
        assert!(!paths::user_file(folder.path()).exists());
    }

    #[test]
    fn config_set_rejects_an_empty_value_and_says_how_to_remove() {
        let folder = tempfile::tempdir().unwrap();
        let file = paths::user_file(folder.path());
        fs::write(&file, "[router.caps]\nday = 5\n").unwrap();
        for (key, value) in [("router.caps.day", ""), ("tui.vim", "\"\""), ("tui.theme", " ")] {
            let refused = set_in_file(folder.path(), key, value).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("`{key}` was not set: ")), "{refused}");
            assert!(refused.contains("delete its line from"), "{refused}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "[router.caps]\nday = 5\n");
    }

    #[test]
    fn config_set_thinking_budget_is_a_plain_number() {
        let folder = tempfile::tempdir().unwrap();
        set_in_file(folder.path(), "provider.thinking", "8000").unwrap();
        let file = fs::read_to_string(paths::user_file(folder.path())).unwrap();
        assert_eq!(file, "[provider]\nthinking = 8000\n");
        let refused = set_in_file(folder.path(), "provider.thinking", "0").unwrap_err().to_string();
        assert!(refused.contains("a number of tokens"), "{refused}");
    }

    #[test]
    fn config_set_edits_the_setting_in_its_existing_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = paths::user_file(folder.path());
        set_in_file(folder.path(), "provider.max_tokens", "9000").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "[provider]\nmax_tokens = 9000\n");
        fs::write(&file, "tui = { theme = \"mono\" } # mine\n").unwrap();
        set_in_file(folder.path(), "tui.vim", "true").unwrap();
        let text = "tui = { theme = \"mono\", vim = true } # mine\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        fs::write(&file, "tui = \n").unwrap();
        let refused = set_in_file(folder.path(), "tui.vim", "true").unwrap_err().to_string();
        assert!(refused.contains("config.toml: line 1 is not valid TOML"), "{refused}");
    }

    #[test]
    fn provider_is_added_to_the_config_completely_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let add = |name: &str, address: &str| {
            let changes = [
                Change::set_path(&["provider", "endpoints", name], address),
                Change::set_path(&["provider", "default"], name),
            ];
            write_provider(folder.path(), name, "Added", &changes)
        };
        add("my.server", "http://gpu/v1").unwrap();
        let text = fs::read_to_string(paths::user_file(folder.path())).unwrap();
        let table: Table = toml::from_str(&text).unwrap();
        assert_eq!(table["provider"]["default"].as_str(), Some("my.server"));
        assert_eq!(table["provider"]["endpoints"]["my.server"].as_str(), Some("http://gpu/v1"));
        add("gpu", "nowhere").unwrap_err();
        assert_eq!(fs::read_to_string(paths::user_file(folder.path())).unwrap(), text);
    }
}
