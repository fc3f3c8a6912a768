//! Describes a setting by its key, for `config explain` and messages.

use gnoma_core::suggest::nearest_name;
use toml_edit::Key;

use crate::{
    key::KeyPath,
    mistakes,
    schema::{self, KnownKey, ROWS, Row},
};

/// The description of a configuration key.
#[derive(Clone, Debug)]
pub enum KeyDescription {
    /// The key takes a value.
    Setting {
        /// The names that lead to it.
        names: Vec<String>,
        /// The schema's entry for this key.
        row: &'static Row,
    },
    /// The key is a table or list that holds these keys, as the schema writes them.
    Section(Vec<&'static str>),
}

/// A text that names no setting.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingKeyError {
    /// The text is not a key of TOML.
    #[error("`{}` is not a key; keys look like `tui.theme`", key.escape_debug())]
    Syntax {
        /// The text that was to be a key.
        key: String,
    },
    /// There is no setting of that name.
    #[error("there is no setting `{}`; {}", key.escape_debug(), describe_nearest(*nearest))]
    Unknown {
        /// The key that is unknown.
        key: String,
        /// The known key that was probably meant.
        nearest: Option<&'static str>,
    },
}

gnoma_core::debug_as_display!(SettingKeyError);

/// Looks up a key as TOML writes it, such as `tui.theme` or `provider.models."my.server"`.
///
/// # Errors
/// There is no such key.
pub fn describe_key(key: &str) -> Result<KeyDescription, SettingKeyError> {
    let parsed = Key::parse(key).map_err(|_| SettingKeyError::Syntax { key: key.to_owned() })?;
    let names: Vec<String> = parsed.iter().map(|name| name.get().to_owned()).collect();
    let path = names.iter().fold(KeyPath::default(), |path, name| path.with_name(name));
    match schema::lookup_key(&path) {
        KnownKey::Key(row) => Ok(KeyDescription::Setting { names, row }),
        KnownKey::Section | KnownKey::List(_) => Ok(KeyDescription::Section(
            schema::rows_below(&path).map(|(_, row)| row.path).collect(),
        )),
        KnownKey::Nothing => {
            Err(SettingKeyError::Unknown { key: key.to_owned(), nearest: nearest_key(key) })
        }
    }
}

/// Returns the key that was probably meant by one that is unknown.
fn nearest_key(key: &str) -> Option<&'static str> {
    let paths = ROWS.iter().filter(|row| row.is_single()).map(|row| row.path);
    // People leave the section out.
    let by_name = ROWS.iter().find(|row| row.path.rsplit('.').next() == Some(key));
    by_name.map(|row| row.path).or_else(|| nearest_name(key, paths))
}

fn describe_nearest(nearest: Option<&str>) -> String {
    nearest
        .map_or_else(|| mistakes::LISTS_KEYS.to_owned(), |near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_is_found_by_key_and_an_unknown_key_gets_a_suggestion() {
        let found = |key: &str| match describe_key(key) {
            Ok(KeyDescription::Setting { row, .. }) => row.path.to_owned(),
            Ok(KeyDescription::Section(keys)) => keys.join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(found("tui.theme"), "tui.theme");
        assert_eq!(found("provider.models.\"my.server\""), "provider.models.*");
        assert!(found("tui").contains("tui.theme tui.vim"));
        assert!(found("tui.theem").contains("did you mean `tui.theme`?"));
        assert!(found("theme").contains("did you mean `tui.theme`?"));
        assert!(found("a b").contains("not a key"));
        assert!(found("quite.something.else").contains("gnoma config show"));
    }
}
