//! Detects misnamed API key variables and configuration files that nothing reads.

use std::path::PathBuf;

use gnoma_config::env;
use gnoma_core::protocol::Environment;

use crate::{Folders as _, environment::own_folder};

/// Files that people write their configuration into, below the folder of the settings.
const BESIDE: &[&str] = &[
    "config.json",
    "config.yaml",
    "config.yml",
    "config.toml.txt",
    "gnoma.toml",
    "config",
    "settings.toml",
];
/// Names of files below the home that gnoma does not read.
const AT_HOME: &[&str] =
    &[".gnoma.toml", ".gnomarc", ".gnoma/config.toml", ".config/gnoma.toml", "gnoma.toml"];

/// Returns what was probably meant to set up a provider, if none is set up.
pub(super) fn find_misnamed(environment: &Environment) -> Option<String> {
    misnamed_key(environment)
        .or_else(|| misplaced_file(environment))
        .or_else(|| missing_file(environment))
}

/// A variable that holds a key and is named in another way than gnoma reads it, with what to do. No value is
/// shown.
fn misnamed_key(environment: &Environment) -> Option<String> {
    environment.variables().iter().filter(|(_, value)| !value.trim().is_empty()).find_map(
        |(name, _)| {
            // Services of Azure have an address of one's own, too.
            let plain = name.to_ascii_uppercase().replace(['_', '-'], "");
            if !plain.ends_with("KEY") || plain.contains("AZURE") || plain.contains("ADMIN") {
                return None;
            }
            let (_, provider) = env::VENDOR_WORDS.iter().find(|(word, _)| plain.contains(word))?;
            let read = env::key_variables(provider);
            if read.contains(name) {
                return None;
            }
            let read = read.into_iter().next()?;
            Some(format!("{name} is set, but gnoma reads {read}: export {read}=\"${name}\""))
        },
    )
}

/// A file that was probably meant as the configuration, if there is none, with where that goes.
fn misplaced_file(environment: &Environment) -> Option<String> {
    let folder = environment.config_dir();
    let read = folder.join("config.toml");
    if read.symlink_metadata().is_ok() {
        return None;
    }
    let at_home = environment
        .home()
        .into_iter()
        .flat_map(|home| AT_HOME.iter().map(move |name| home.join(name)));
    let mut all = BESIDE.iter().map(|name| folder.join(name)).chain(at_home);
    let found: PathBuf = all.find(|path| path.is_file())?;
    Some(format!(
        "{} is not read: write the configuration, in TOML, to {}",
        found.display(),
        read.display()
    ))
}

/// The place of the configuration, if nothing is there and variables say another place than people expect.
fn missing_file(environment: &Environment) -> Option<String> {
    let read = environment.config_dir().join("config.toml");
    if read.symlink_metadata().is_ok() {
        return None;
    }
    let why = if own_folder(environment, "XDG_CONFIG_HOME").is_some() {
        "XDG_CONFIG_HOME is set"
    } else if own_folder(environment, "HOME").is_none() {
        "HOME names no home folder"
    } else {
        return None;
    };
    Some(format!("{why}, so gnoma reads {}, which is not there", read.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misnamed_api_key_variable_is_detected() {
        let found = |name: &str| {
            misnamed_key(&Environment::new([(name.to_owned(), "k".to_owned())].into()))
        };
        for (name, read) in [
            ("OPENAI_KEY", "OPENAI_API_KEY"),
            ("OPEN_AI_API_KEY", "OPENAI_API_KEY"),
            ("openai_api_key", "OPENAI_API_KEY"),
            ("CLAUDE_API_KEY", "ANTHROPIC_API_KEY"),
            ("GROK_API_KEY", "XAI_API_KEY"),
        ] {
            let said = found(name).unwrap_or_default();
            assert!(said.contains(&format!("gnoma reads {read}:")), "{name}: {said}");
        }
        for name in
            ["OPENAI_API_KEY", "GOOGLE_API_KEY", "SSH_KEY", "OPENAI_MODEL", "AZURE_OPENAI_API_KEY"]
        {
            assert_eq!(found(name), None, "{name}");
        }
        assert_eq!(
            misnamed_key(&Environment::new([("OPENAI_KEY".to_owned(), " ".to_owned())].into())),
            None
        );
    }

    #[test]
    fn missing_config_file_under_xdg_config_home_is_reported() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().display().to_string();
        let said = |variables: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            missing_file(&Environment::new(variables.iter().map(owned).collect()))
        };
        assert_eq!(said(&[("HOME", &home)]), None, "it is where everybody looks");
        let moved = said(&[("HOME", &home), ("XDG_CONFIG_HOME", "/nosuch")]).unwrap();
        assert!(moved.contains("gnoma reads /nosuch/gnoma/config.toml"), "{moved}");
        assert_eq!(said(&[("HOME", &home), ("XDG_CONFIG_HOME", "rel")]), None);
    }

    #[test]
    fn misplaced_config_file_is_detected() {
        let home = tempfile::tempdir().unwrap();
        let said = || {
            misplaced_file(&Environment::new(
                [("HOME".to_owned(), home.path().display().to_string())].into(),
            ))
        };
        assert_eq!(said(), None);
        std::fs::write(home.path().join(".gnoma.toml"), "").unwrap();
        assert!(said().is_some_and(|said| said.contains(".gnoma.toml is not read")));
        let folder = home.path().join(".config/gnoma");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.json"), "{}").unwrap();
        assert!(said().is_some_and(|said| said.contains("config.json is not read")));
        std::fs::write(folder.join("config.toml"), "").unwrap();
        assert_eq!(said(), None);
    }
}
