//! Validates a skill folder by the specification (agentskills.io). What gnoma reads all the same is a problem here;
//! sessions only warn of it.

use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    front_matter::{FieldValue, FrontMatter},
    places::{TextFileError, read_text},
};

/// The fields that the specification knows.
const FIELDS: [&str; 6] =
    ["allowed-tools", "compatibility", "description", "license", "metadata", "name"];
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;
const MAX_COMPATIBILITY: usize = 500;

/// The result of checking a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillCheck {
    /// The reasons why the folder is not a valid skill, a sentence each; empty if it is valid.
    pub problems: Vec<String>,
}

/// The reason why a folder cannot be checked as a skill.
#[derive(thiserror::Error)]
enum SkillFolderError {
    #[error("there is no such folder")]
    Missing,
    #[error("it is not a folder")]
    NotAFolder,
    #[error("it has no `SKILL.md`")]
    NoSkillFile,
    #[error(transparent)]
    Text(#[from] TextFileError),
    #[error("its `SKILL.md` does not begin with fields between `---` lines")]
    NoFields,
}

/// The reason why a field that the specification requires has no text.
#[derive(thiserror::Error)]
enum RequiredFieldError {
    #[error("it has no `{0}`")]
    Missing(&'static str),
    #[error("its `{0}` is not a string")]
    NotText(&'static str),
}

gnoma_core::debug_as_display!(SkillFolderError, RequiredFieldError);

/// The file of a skill in a folder.
pub(crate) fn file_in(folder: &Path) -> Option<PathBuf> {
    ["SKILL.md", "skill.md"].iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Checks that a folder is a valid skill.
#[must_use]
pub fn check_folder(folder: &Path) -> SkillCheck {
    let problems = find_problems(folder);
    SkillCheck { problems: problems.unwrap_or_else(|error| vec![error.to_string()]) }
}

fn find_problems(folder: &Path) -> Result<Vec<String>, SkillFolderError> {
    if !folder.exists() {
        return Err(SkillFolderError::Missing);
    }
    if !folder.is_dir() {
        return Err(SkillFolderError::NotAFolder);
    }
    let file = file_in(folder).ok_or(SkillFolderError::NoSkillFile)?;
    let text = read_text(&file)?;
    let (fields, _) = FrontMatter::split(&text).ok_or(SkillFolderError::NoFields)?;
    let mut problems = fields.faults.clone();
    problems.extend(fields.lenient.iter().cloned());
    let unknown: Vec<&str> = fields
        .fields
        .iter()
        .map(|(name, _)| &**name)
        .filter(|name| !FIELDS.contains(name))
        .collect();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        problems.push(format!("fields that are not in the specification: {names}"));
    }
    check_name(&fields, folder, &mut problems);
    match required_field(&fields, "description") {
        Err(error) => problems.push(error.to_string()),
        Ok(text) => check_length("description", text, MAX_DESCRIPTION, &mut problems),
    }
    match fields.get("compatibility") {
        None => (),
        Some(FieldValue::Text(text)) => {
            check_length("compatibility", text, MAX_COMPATIBILITY, &mut problems);
        }
        Some(_) => problems.push("`compatibility` is not a string".to_owned()),
    }
    Ok(problems)
}

fn required_field<'f>(
    fields: &'f FrontMatter,
    name: &'static str,
) -> Result<&'f str, RequiredFieldError> {
    let value = fields.get(name).ok_or(RequiredFieldError::Missing(name))?;
    let text = match value {
        FieldValue::Text(text) => Some(text.as_str()).filter(|text| !text.trim().is_empty()),
        FieldValue::List(_) | FieldValue::Map(_) => None,
    };
    text.ok_or(RequiredFieldError::NotText(name))
}

fn check_length(name: &str, text: &str, most: usize, problems: &mut Vec<String>) {
    let length = text.chars().count();
    if length > most {
        problems.push(format!("its `{name}` has {length} characters; {most} are allowed"));
    }
}

fn check_name(fields: &FrontMatter, folder: &Path, problems: &mut Vec<String>) {
    let name: String = match required_field(fields, "name") {
        Ok(name) => name.trim().nfkc().collect(),
        Err(error) => return problems.push(error.to_string()),
    };
    check_length("name", &name, MAX_NAME, problems);
    if name != name.to_lowercase() {
        problems.push(format!("its name `{name}` has capital letters"));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        problems.push(format!("its name `{name}` has a hyphen at an end, or two in a row"));
    }
    if !name.chars().all(|c| c.is_alphanumeric() || c == '-') {
        problems.push(format!("its name `{name}` has more than letters, digits and hyphens"));
    }
    let resolved = folder.canonicalize();
    let folder = resolved.as_deref().unwrap_or(folder).file_name().unwrap_or_default();
    let called: String = folder.to_string_lossy().nfkc().collect();
    if called != name {
        problems.push(format!("its folder is called `{called}`, not `{name}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(folder: &str, text: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
        check_folder(&folder).problems
    }

    /// Folders, their files behind `---`, and whether the reference (skills-ref 0.1.1) takes them.
    const REFERENCE: [(&str, &str, bool); 31] = [
        ("ok", "name: ok\ndescription: Does it.\n---\nbody", true),
        (
            "full",
            "name: full\ndescription: d\nlicense: MIT\ncompatibility: Needs git\n\
             allowed-tools: Bash(git:*) Read\nmetadata:\n  author: me\n  version: \"1.0\"\n---\n",
            true,
        ),
        ("Upper", "name: Upper\ndescription: d\n---\n", false),
        ("a--b", "name: a--b\ndescription: d\n---\n", false),
        ("-a", "name: -a\ndescription: d\n---\n", false),
        ("a_b", "name: a_b\ndescription: d\n---\n", false),
        ("nodesc", "name: nodesc\n---\n", false),
        ("emptydesc", "name: emptydesc\ndescription:\n---\n", false),
        ("noname", "description: d\n---\n", false),
        ("mismatch", "name: other\ndescription: d\n---\n", false),
        ("extra", "name: extra\ndescription: d\nmodel: x\n---\n", false),
        ("colon", "name: colon\ndescription: one: two\n---\n", false),
        ("quoted", "name: quoted\ndescription: \"one: two\"\n---\n", true),
        ("flow", "name: flow\ndescription: [d]\n---\n", false),
        ("flowmap", "name: flowmap\ndescription: d\nmetadata:\n  requires: {}\n---\n", false),
        ("flowlist", "name: flowlist\ndescription: d\nmetadata:\n  a: [x]\n---\n", false),
        ("nested", "name: nested\ndescription: d\nmetadata:\n  a:\n    b: c\n---\n", true),
        ("dup", "name: dup\nname: dup\ndescription: d\n---\n", false),
        ("unclosed", "name: unclosed\ndescription: d\n", false),
        ("folded", "name: folded\ndescription: >\n  one\n  two\n---\n", true),
        ("literal", "name: literal\ndescription: |\n  one\n  two\n---\n", true),
        ("comment", "# c\nname: comment\ndescription: d # e\n---\n", true),
        ("größe", "name: größe\ndescription: d\n---\n", true),
        ("multiline", "name: multiline\ndescription: one\n  two\n---\n", true),
        ("list", "name: list\ndescription: d\nallowed-tools:\n  - Read\n---\n", true),
        ("num1", "name: num1\ndescription: 5\n---\n", true),
        ("brokenquote", "name: brokenquote\ndescription: \"abc\n---\n", false),
        ("tag", "name: tag\ndescription: !!str x\n---\n", false),
        ("desc0", "name: desc0\ndescription: {1024}\n---\n", true),
        ("desc1", "name: desc1\ndescription: {1025}\n---\n", false),
        ("compat", "name: compat\ndescription: d\ncompatibility: {501}\n---\n", false),
    ];

    #[test]
    fn skill_folders_are_validated_like_the_reference_validator() {
        for (folder, text, is_valid) in REFERENCE {
            let mut text = format!("---\n{text}");
            for length in [1024, 1025, 501] {
                text = text.replace(&format!("{{{length}}}"), &"x".repeat(length));
            }
            let problems = checked(folder, &text);
            assert_eq!(problems.is_empty(), is_valid, "{folder}: {problems:?}");
        }
        assert_eq!(checked("a", "# no fields").len(), 1);
        assert_eq!(check_folder(Path::new("/nowhere/at/all")).problems.len(), 1);
        let empty = tempfile::tempdir().unwrap();
        assert!(check_folder(empty.path()).problems[0].contains("SKILL.md"));
    }
}
