//! Profiles: named sets of settings, chosen by `--profile`. Profiles are off until the user's folder `profiles` holds
//! one.

use std::{fs, path::Path};

use crate::paths::profiles_dir;

/// The names of the user's profiles, sorted.
#[must_use]
pub fn list_profiles(config_dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(profiles_dir(config_dir)) else {
        return Vec::new();
    };
    let files = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = files
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
        .filter(|name| is_name(name))
        .collect();
    gnoma_core::sort::sort_items(&mut names);
    names
}

/// Reports whether `name` can be the name of a profile; it becomes part of file names.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The reason why no profile could be chosen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoProfile {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// The profile to use: the one asked for, else the default one, else none if there are none. One that is named
/// must exist.
pub(crate) fn choose_profile(
    asked: Option<&str>,
    default: Option<&str>,
    available: &[String],
) -> Result<Option<String>, NoProfile> {
    let named = asked.or(default);
    if named.is_none() && available.is_empty() {
        return Ok(None);
    }
    let known = if available.is_empty() {
        "put a file NAME.toml into the folder `profiles` next to config.toml".to_owned()
    } else {
        format!("there are {}", available.join(", "))
    };
    let hint = if asked.is_none() && default.is_some() {
        format!("{known}, or remove `default_profile`")
    } else {
        known.clone()
    };
    let refuse = |message: String| Err(NoProfile { message, hint: hint.clone() });
    match named {
        None => refuse("no profile is chosen".to_owned()).map_err(|no| NoProfile {
            hint: format!("give --profile NAME or set default_profile; {known}"),
            ..no
        }),
        Some(name) if !is_name(name) => refuse(format!(
            "`{}` cannot be a profile: names have letters, digits, `-` and `_`",
            name.escape_debug()
        )),
        Some(name) if !available.iter().any(|known| known == name) => {
            refuse(format!("there is no profile `{name}`"))
        }
        Some(name) => Ok(Some(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_profile_overrides_the_default_and_one_must_be_chosen() {
        let there = ["home".to_owned(), "work".to_owned()];
        let chosen = |asked, default, there: &[String]| choose_profile(asked, default, there).ok();
        assert_eq!(chosen(Some("work"), Some("home"), &there), Some(Some("work".to_owned())));
        assert_eq!(chosen(None, Some("home"), &there), Some(Some("home".to_owned())));
        assert_eq!(chosen(None, None, &there), None);
        assert_eq!(chosen(Some("../evil"), None, &there), None);
        assert_eq!(chosen(Some("play"), None, &there), None);
        assert_eq!(chosen(None, None, &[]), Some(None), "off without profiles");
        assert_eq!(chosen(None, Some("home"), &[]), None);
        assert_eq!(chosen(Some("work"), None, &[]), None);
        let refusal = choose_profile(None, None, &there).unwrap_err();
        assert_eq!(
            refusal.hint,
            "give --profile NAME or set default_profile; there are home, work"
        );
    }
}
