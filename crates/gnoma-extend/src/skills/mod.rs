//! Skills: folders with a `SKILL.md` that says when they are for something, and how it is done.
//!
//! A model knows their names and descriptions, reads the text when it uses one, and their files when the
//! text names them. Also read: single Markdown files, as earlier versions of gnoma had them.

mod bundled;
mod fork;
mod resumed_skills;
mod skill;
pub(crate) mod tool;
mod used_skills;
mod validate;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) use self::{
    fork::{AgentTools, skill_call, spawn_arguments},
    resumed_skills::restore_skills,
    used_skills::UsedSkills,
};
pub use self::{
    skill::{Skill, SkillFork},
    tool::SkillTool,
    validate::{SkillCheck, check_folder},
};
use crate::{
    claude::tool_list,
    definition_error::DefinitionFileError,
    front_matter::{FrontMatter, argument_names},
    places::{ExtendFolder, ExtendPlaces, ExtensionSource, read_text},
};

/// Most skills of all places together.
const MAX_SKILLS: usize = 500;
/// Most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 2_000;
/// The largest depth to which folders with skills may be nested.
const MAX_DEPTH: usize = 4;
/// Most bytes of the list in the system prompt.
const MAX_LIST_BYTES: usize = 6_000;
/// Longest name and description in that list, in characters.
const MAX_LISTED_NAME: usize = 64;
const MAX_LISTED_CHARS: usize = 400;
/// The fields that are read, and those that only say something about the skill.
const FIELDS: [&str; 18] = [
    "agent",
    "allowed-tools",
    "allowedTools",
    "argument-hint",
    "arguments",
    "author",
    "compatibility",
    "description",
    "disable-model-invocation",
    "homepage",
    "license",
    "metadata",
    "model",
    "name",
    "tags",
    "version",
    "whenToUse",
    "when_to_use",
];

/// All skills, the weightiest of each name, sorted by name; and what could not be read.
#[must_use]
pub fn load_skills(places: &ExtendPlaces) -> (Vec<Skill>, Vec<String>) {
    let (mut found, mut faults) = (bundled::bundled_skills(), Vec::new());
    for folder in places.extension_folders("skills", true) {
        for path in files_in(&folder) {
            if !places.may_read(&folder, &path) {
                faults.push(format!(
                    "{} leads outside the project or to secrets",
                    places.display_path(&path)
                ));
                continue;
            }
            let mut lost = Vec::new();
            match read_text(&path).map_err(DefinitionFileError::from).and_then(|text| {
                parse_skill(folder.by, &path, &folder.fill_variables(&text), &mut lost)
            }) {
                Ok(skill) => found.push(Skill { name: folder.qualified_name(skill.name), ..skill }),
                Err(why) => faults.push(format!("{}: {why}", places.display_path(&path))),
            }
            faults.extend(
                lost.into_iter().map(|why| format!("{}: {why}", places.display_path(&path))),
            );
        }
    }
    places.retain_weightiest(&mut found, |it: &Skill| &it.name, |it| it.by);
    if found.len() > MAX_SKILLS {
        faults.push(format!("there are more than {MAX_SKILLS} skills; the rest is left out"));
        found.truncate(MAX_SKILLS);
    }
    (found, faults)
}

/// The folders of all skills that people have added, readable or not, sorted.
#[must_use]
pub fn skill_folders(places: &ExtendPlaces) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in places.extension_folders("skills", true) {
        let files = files_in(&folder);
        let files = files.iter().filter(|path| places.may_read(&folder, path));
        found.extend(files.filter_map(|path| Some(path.parent()?.to_owned())));
    }
    gnoma_core::sort::sort_by(&mut found, |one: &PathBuf, other| one.cmp(other));
    found.dedup();
    found
}

/// The files of the skills in one place.
fn files_in(folder: &ExtendFolder) -> Vec<PathBuf> {
    // A plugin may name the folder of one skill.
    if let Some(file) = folder.plugin.as_ref().and(validate::file_in(&folder.path)) {
        return vec![file];
    }
    let mut files = Vec::new();
    collect_skill_files(&folder.path, 0, &mut files);
    files
}

/// The files of skills below a folder, sorted.
fn collect_skill_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> =
        entries.take(MAX_ENTRIES).filter_map(|entry| Some(entry.ok()?.path())).collect();
    gnoma_core::sort::sort_items(&mut paths);
    for path in paths {
        if path.is_dir() {
            match validate::file_in(&path) {
                Some(file) => files.push(file),
                None if depth < MAX_DEPTH => collect_skill_files(&path, depth + 1, files),
                None => (),
            }
        } else if depth == 0 && path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// Reads a skill as well as it can be read.
fn parse_skill(
    by: ExtensionSource,
    path: &Path,
    text: &str,
    lost: &mut Vec<String>,
) -> Result<Skill, DefinitionFileError> {
    let has_folder = path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("skill"));
    let (fields, body) = FrontMatter::split(text).ok_or(DefinitionFileError::NoFieldsOfSkill)?;
    lost.extend(fields.faults.iter().cloned());
    let mut warnings = fields.faults.clone();
    warnings.extend(fields.lenient.iter().cloned());
    let name = skill_name(&fields, path, has_folder, &mut warnings);
    let description = skill_description(&fields)?;
    let tools = match fields.list_field("allowed-tools")? {
        Some(tools) => Some(tools),
        None => fields.list_field("allowedTools")?,
    };
    let is_fork = fields.text_field("context").as_deref() == Some("fork");
    let mut unsupported = fields.unknown_fields(&FIELDS);
    unsupported.retain(|field| !(is_fork && field == "context"));
    Ok(Skill {
        name,
        by,
        path: path.to_owned(),
        has_folder,
        description,
        hint: fields.text_field("argument-hint").unwrap_or_default(),
        tools: tools.map(|tools| tool_list(&tools)),
        model: fields.text_field("model"),
        is_for_people: fields.is_true("disable-model-invocation"),
        arguments: argument_names(&fields),
        body: body.trim_start_matches(['\n', '\r']).to_owned(),
        fork: is_fork.then(|| SkillFork { agent: fields.text_field("agent") }),
        unsupported,
        warnings,
    })
}

/// Returns the name of a skill. A skill with a folder is called like the folder; a warning says so if its field
/// differs.
fn skill_name(
    fields: &FrontMatter,
    path: &Path,
    has_folder: bool,
    warnings: &mut Vec<String>,
) -> String {
    let called =
        if has_folder { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    let called = called.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = fields.text_field("name").unwrap_or_else(|| called.clone());
    if !has_folder {
        return name;
    }
    if name != called {
        warnings.push(format!(
            "its name is `{name}`, but its folder is `{called}`; the folder's name counts"
        ));
    }
    called
}

/// Returns the description of a skill in one line, with the field that says when to use it.
fn skill_description(fields: &FrontMatter) -> Result<String, DefinitionFileError> {
    let mut description =
        fields.text_field("description").ok_or(DefinitionFileError::NoDescription)?;
    if let Some(when) = fields.text_field("whenToUse").or_else(|| fields.text_field("when_to_use"))
    {
        description = format!("{description} {when}");
    }
    Ok(description.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the system prompt's text about the skills that a model may use; empty if there are none.
#[must_use]
pub fn render_skill_list<'s>(skills: impl IntoIterator<Item = &'s Skill>) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for skill in skills {
        let description: String = skill.description.chars().take(MAX_LISTED_CHARS).collect();
        let name: String = skill.name.chars().take(MAX_LISTED_NAME).collect();
        let by = if skill.fork.is_some() { fork::TOLD } else { "" };
        let line = format!("- {name}: {description}{by}\n");
        if text.len() + line.len() > MAX_LIST_BYTES {
            left_out += 1;
        } else {
            text.push_str(&line);
        }
    }
    if left_out > 0 {
        text.push_str(&format!("- and {left_out} more, which the tool `skill` lists\n"));
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "Skills, which say how things are done here. When a task fits one, load it with the tool `skill` \
         before you begin:\n{}",
        text.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, description: &str) -> Skill {
        let text = format!("---\nname: x\ndescription: {description}\n---\nbody");
        let read =
            parse_skill(ExtensionSource::User, Path::new("x/SKILL.md"), &text, &mut Vec::new())
                .unwrap();
        Skill { name: name.to_owned(), ..read }
    }

    #[test]
    fn skill_list_truncates_a_large_description_and_lists_all_skills() {
        let (large, name) = ("x".repeat(100_000), "n".repeat(100_000));
        let all = [named("a", &large), named(&name, &large), named("z", "small one")];
        let text = render_skill_list(&all);
        assert!(text.contains("- a: x") && text.contains("- z: small one"), "{text}");
        assert!(text.len() < MAX_LIST_BYTES + 500, "{}", text.len());
    }

    #[test]
    fn skill_with_malformed_allowed_tools_is_rejected() {
        let read = |more: &str| {
            let text = format!("---\ndescription: d\n{more}---\nbody");
            parse_skill(ExtensionSource::User, Path::new("x/SKILL.md"), &text, &mut Vec::new())
        };
        let refused = read("allowed-tools:\n  Bash: true\n").unwrap_err().to_string();
        assert!(refused.contains("allowed-tools"), "{refused}");
        let skill = read("context: other\nhooks:\n  Stop: x\narguments: [a, b]\n").unwrap();
        assert_eq!(skill.unsupported, ["context", "hooks"]);
        assert_eq!((skill.arguments, skill.fork), (vec!["a".to_owned(), "b".to_owned()], None));
        let skill = read("context: fork\nagent: Explore\n").unwrap();
        assert_eq!(skill.fork, Some(SkillFork { agent: Some("Explore".to_owned()) }));
        assert!(skill.unsupported.is_empty(), "{:?}", skill.unsupported);
        assert!(render_skill_list([&skill]).contains("an elf does it"));
    }
}
