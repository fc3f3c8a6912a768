//! Custom slash commands: Markdown files whose text replaces `/name`.

mod expand;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub use self::expand::{ExpansionValues, IncludeError, expand_body, inline_commands, split_words};
use crate::{
    claude::tool_list,
    definition_error::DefinitionFileError,
    front_matter::{FrontMatter, argument_names},
    places::{ExtendPlaces, ExtensionSource, read_text},
};

/// Most commands of all places together.
const MAX_COMMANDS: usize = 500;
/// The largest depth to which folders of commands may be nested.
const MAX_DEPTH: usize = 6;
/// Most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 2_000;

/// A command that a file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCommand {
    /// The name after the slash: `name`, or `folder:name`.
    pub name: String,
    /// The party that provides the command.
    pub by: ExtensionSource,
    /// The path of the file that defines the command.
    pub path: PathBuf,
    /// The description of what the command does, in a line.
    pub description: String,
    /// The hint at what to write after its name, such as `[issue]`.
    pub hint: String,
    /// The tools that its turn may use.
    pub tools: Option<Vec<String>>,
    /// The model that it wants.
    pub model: Option<String>,
    /// Names of its arguments, in their order.
    pub arguments: Vec<String>,
    /// The text that is sent.
    pub body: String,
    /// Fields before it that change nothing here.
    pub unsupported: Vec<String>,
}

/// The fields that are read.
const FIELDS: [&str; 5] = ["allowed-tools", "argument-hint", "arguments", "description", "model"];

/// All commands, the weightiest of each name, sorted by name; and what could not be read.
#[must_use]
pub fn load_commands(places: &ExtendPlaces) -> (Vec<CustomCommand>, Vec<String>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for folder in places.extension_folders("commands", false) {
        let mut files = Vec::new();
        if folder.path.is_file() {
            files.extend(single_command_file(&folder.path));
        } else {
            collect_command_files(&folder.path, "", 0, &mut files);
        }
        for (name, path) in files {
            if !places.may_read(&folder, &path) {
                faults.push(format!(
                    "{} leads outside the project or to secrets",
                    places.display_path(&path)
                ));
                continue;
            }
            let name = folder.qualified_name(name);
            let text = read_text(&path).map_err(DefinitionFileError::from);
            let mut lost = Vec::new();
            match text.and_then(|text| {
                parse_command(name, folder.by, &path, &folder.fill_variables(&text), &mut lost)
            }) {
                Ok(command) => found.push(command),
                Err(why) => faults.push(format!("{}: {why}", places.display_path(&path))),
            }
            faults.extend(
                lost.into_iter().map(|why| format!("{}: {why}", places.display_path(&path))),
            );
        }
    }
    places.retain_weightiest(&mut found, |it: &CustomCommand| &it.name, |it| it.by);
    if found.len() > MAX_COMMANDS {
        faults.push(format!("there are more than {MAX_COMMANDS} commands; the rest is left out"));
        found.truncate(MAX_COMMANDS);
    }
    (found, faults)
}

fn parse_command(
    name: String,
    by: ExtensionSource,
    path: &Path,
    text: &str,
    lost: &mut Vec<String>,
) -> Result<CustomCommand, DefinitionFileError> {
    let (fields, body) = FrontMatter::split(text).unwrap_or((FrontMatter::default(), text));
    lost.extend(fields.faults.iter().cloned());
    let first = || body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let description = fields.text_field("description");
    let description = description.unwrap_or_else(|| first().trim_start_matches('#').trim().into());
    Ok(CustomCommand {
        name,
        by,
        path: path.to_owned(),
        description: one_line(&description),
        hint: one_line(&fields.text_field("argument-hint").unwrap_or_default()),
        tools: fields.list_field("allowed-tools")?.map(|tools| tool_list(&tools)),
        model: fields.text_field("model"),
        arguments: argument_names(&fields),
        body: body.trim_start_matches(['\n', '\r']).to_owned(),
        unsupported: fields.unknown_fields(&FIELDS),
    })
}

/// Longest description that is shown.
const MAX_SHOWN: usize = 200;

fn one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_SHOWN).collect()
}

/// A file that is one command, with its name.
fn single_command_file(path: &Path) -> Option<(String, PathBuf)> {
    let name = path.file_stem()?.to_str().filter(|name| is_name(name))?;
    Some((name.to_owned(), path.to_owned()))
}

/// The Markdown files below a folder with their names, sorted.
fn collect_command_files(
    folder: &Path,
    prefix: &str,
    depth: usize,
    files: &mut Vec<(String, PathBuf)>,
) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> =
        entries.take(MAX_ENTRIES).filter_map(|entry| Some(entry.ok()?.path())).collect();
    gnoma_core::sort::sort_items(&mut paths);
    for path in paths {
        let is_folder = path.is_dir();
        let part = if is_folder { path.file_name() } else { path.file_stem() };
        let Some(part) = part.and_then(|part| part.to_str()).filter(|part| is_name(part)) else {
            continue;
        };
        let name = if prefix.is_empty() { part.to_owned() } else { format!("{prefix}:{part}") };
        if is_folder && depth < MAX_DEPTH {
            collect_command_files(&path, &name, depth + 1, files);
        } else if !is_folder && path.extension().is_some_and(|extension| extension == "md") {
            files.push((name, path));
        }
    }
}

/// Reports whether `part` can be written after a slash.
fn is_name(part: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !part.is_empty() && part.len() <= 64 && !part.starts_with('.') && part.chars().all(fits)
}

/// The command that a text names, and what follows the name.
#[must_use]
pub fn parse_invocation(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix('/')?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_command = !name.is_empty() && name.split(':').all(is_name);
    is_command.then(|| (name, arguments.trim()))
}

/// Returns whether a name behind a slash can mean something although no command has it: a prompt of an MCP server, which
/// is known once the server runs, or a folder of the system, which begins a sentence.
#[must_use]
pub fn may_be_prompt_or_folder(name: &str) -> bool {
    name.contains(':') || name.starts_with("mcp__") || Path::new("/").join(name).exists()
}
