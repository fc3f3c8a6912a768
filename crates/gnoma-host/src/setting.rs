//! Writes one setting into the person's configuration file, or refuses. The file stays as the person
//! wrote it but for the one line; where that cannot be told for sure, nothing is written.

use std::{fs, io::Write as _, path::Path};

use gnoma_config::{ConfigError, Sources, finding::Severity, paths, toml};
use toml::{Table, Value};

use crate::{Folders as _, HostError, Project, Result, files::read};

/// Most bytes of the file.
const MAX_BYTES: u64 = 4 << 20;

/// Sets `key` (dotted) to a value in the person's own settings; returns a sentence that says where.
///
/// # Errors
/// There is no such setting, it cannot have the value, or the file cannot be changed.
pub fn set_setting(project: &Project, key: &str, value: &str) -> Result<String> {
    fits(key, value).map_err(HostError::usage)?;
    set(&project.environment().config_dir(), key, value).map_err(HostError::usage)
}

/// Sets `key` (dotted) in the file of that folder; returns a sentence that says where.
///
/// # Errors
/// A sentence for people that says what to do instead.
pub fn set(config_dir: &Path, key: &str, value: &str) -> Result<String, String> {
    let file = paths::user_file(config_dir);
    let shown = file.display();
    let cannot = |why: &str| format!("`{key}` was not set: {why}");
    let text = read(&file, MAX_BYTES).map_err(|error| cannot(&format!("{shown}: {error}")))?;
    let text = text.unwrap_or_default();
    let value = meant(value);
    let by_hand = || cannot(&format!("set it in {shown} by hand: `{key} = {value}`"));
    let changed = changed(&text, key, &value).ok_or_else(by_hand)?;
    check(&changed).map_err(|error| cannot(&error))?;
    replace(&file, &changed).map_err(|error| cannot(&format!("{shown}: {error}")))?;
    Ok(format!("`{key}` is set in {shown}"))
}

/// Whether there is such a key and it can have this value, whatever else is set.
///
/// # Errors
/// A sentence for people that says why not and what was perhaps meant.
pub fn fits(key: &str, value: &str) -> Result<(), String> {
    let flags = vec![(key.to_owned(), meant(value))];
    let loaded = gnoma_config::load(&Sources { flags, ..Sources::default() });
    loaded.map(drop).map_err(|error| errors(&error))
}

/// What is wrong, without where: the file that was looked at is not the person's.
fn errors(error: &ConfigError) -> String {
    let errors = error.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let sentence = |finding: &gnoma_config::finding::Finding| {
        let key = finding.key.as_ref().map_or_else(String::new, |key| format!("`{key}` "));
        let hint = finding.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        format!("{key}{}{hint}", finding.message)
    };
    errors.map(sentence).collect::<Vec<_>>().join("\n")
}

/// A value as TOML, else as a text.
fn meant(value: &str) -> Value {
    let read = toml::from_str::<Table>(&format!("value = {value}"));
    let read =
        read.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| Value::String(value.to_owned()))
}

/// The text with the setting in it; `None` where it could not be put there without doubt.
fn changed(text: &str, key: &str, value: &Value) -> Option<String> {
    let steps: Vec<&str> = key.split('.').collect();
    let (name, sections) = steps.split_last()?;
    let line = format!("{name} = {value}");
    let section = sections.join(".");
    let mut lines: Vec<&str> = text.lines().collect();
    let start = match section.as_str() {
        "" => Some(0),
        _ => lines.iter().position(|line| *line.trim() == format!("[{section}]")).map(|at| at + 1),
    };
    let header = format!("[{section}]");
    match start {
        None => lines.extend(["", &header, &line]),
        Some(start) => {
            let body = lines.get(start..)?;
            let length = body.iter().position(|line| line.trim_start().starts_with('['));
            let length = length.unwrap_or(body.len());
            let is_it =
                |line: &&str| line.split_once('=').is_some_and(|(left, _)| left.trim() == *name);
            match body.get(..length)?.iter().position(is_it) {
                Some(at) => *lines.get_mut(start + at)? = &line,
                None => lines.insert(start, &line),
            }
        }
    }
    let new = format!("{}\n", lines.join("\n").trim_start_matches('\n'));
    let mut wanted: Table = toml::from_str(text).ok()?;
    put(&mut wanted, sections, name, value)?;
    (toml::from_str::<Table>(&new).ok()? == wanted).then_some(new)
}

fn put(table: &mut Table, sections: &[&str], name: &str, value: &Value) -> Option<()> {
    let mut table = table;
    for section in sections {
        let inner = table.entry(*section).or_insert_with(|| Value::Table(Table::new()));
        table = inner.as_table_mut()?;
    }
    table.insert(name.to_owned(), value.clone());
    Some(())
}

/// Whether it could be used as a configuration.
pub fn check(text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    fs::write(paths::user_file(folder.path()), text).map_err(|error| error.to_string())?;
    let sources = Sources {
        config_dir: folder.path().to_owned(),
        state_dir: folder.path().to_owned(),
        ..Sources::default()
    };
    gnoma_config::load(&sources).map(drop).map_err(|error| errors(&error))
}

/// Puts a new file in its place, readable by nobody else: keys may be in it. A link stays a link.
pub fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_in(text: &str, key: &str, value: &str) -> Option<String> {
        changed(text, key, &meant(value))
    }

    #[test]
    fn a_setting_takes_its_line_and_leaves_the_others() {
        let text = "# mine\n[tui]\ntheme = \"mono\" # dark\nvim = true\n";
        let new = set_in(text, "tui.theme", "ember").unwrap();
        assert_eq!(new, "# mine\n[tui]\ntheme = \"ember\"\nvim = true\n");
        assert_eq!(set_in("", "tui.vim", "true").unwrap(), "[tui]\nvim = true\n");
        let new = set_in(text, "provider.default", "test").unwrap();
        assert_eq!(new, format!("{text}\n[provider]\ndefault = \"test\"\n"));
    }

    #[test]
    fn what_is_written_in_another_way_is_left_to_its_author() {
        assert_eq!(set_in("tui.theme = \"mono\"\n", "tui.theme", "ember"), None);
        assert_eq!(set_in("tui = { vim = true }\n", "tui.theme", "ember"), None);
        assert_eq!(set_in("[a]\nx = \"\"\"\n[tui]\n\"\"\"\n", "tui.vim", "true"), None);
        assert_eq!(set_in("not toml", "tui.vim", "true"), None);
    }

    #[test]
    fn a_key_or_a_value_that_means_nothing_is_refused_by_itself() {
        assert_eq!(fits("tui.vim", "true"), Ok(()));
        let unknown = fits("tui.vm", "true").unwrap_err();
        assert!(unknown.contains("there is no such key") && unknown.contains("tui.vim"));
        let bad = fits("provider.max_tokens", "many").unwrap_err();
        assert!(bad.contains("`provider.max_tokens`") && !bad.contains("-->"), "{bad}");
    }

    #[test]
    fn nothing_is_written_that_could_not_be_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let refused = set(folder.path(), "provider.max_tokens", "many").unwrap_err();
        assert!(refused.contains("max_tokens"), "{refused}");
        assert!(!paths::user_file(folder.path()).exists());
        set(folder.path(), "provider.max_tokens", "9000").unwrap();
        let text = fs::read_to_string(paths::user_file(folder.path())).unwrap();
        assert_eq!(text, "[provider]\nmax_tokens = 9000\n");
    }
}
