//! Definitions of sub-agents: Markdown files with a prompt. They are read and listed; who starts them
//! decides what they may do.

use std::path::PathBuf;

use crate::{
    claude::tool_list,
    front_matter::FrontMatter,
    places::{BroughtBy, ExtendPlaces, read_text},
};

/// Most definitions of one folder.
const MAX_AGENTS: usize = 500;

/// A sub-agent that somebody has defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// What it is called.
    pub name: String,
    /// Who brought it along.
    pub by: BroughtBy,
    /// Its file.
    pub path: PathBuf,
    /// What it is for.
    pub description: String,
    /// The tools that it may use.
    pub tools: Option<Vec<String>>,
    /// The model that it wants.
    pub model: Option<String>,
    /// What it is told before its task.
    pub prompt: String,
}

/// All definitions, the weightiest of each name, sorted by name; and what could not be read.
#[must_use]
pub fn agents(places: &ExtendPlaces) -> (Vec<AgentFile>, Vec<String>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for folder in places.folders("agents", true) {
        let entries = std::fs::read_dir(&folder.path).into_iter().flatten();
        let entries = entries.take(MAX_AGENTS).flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.extend(folder.path.is_file().then(|| folder.path.clone()));
        files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        gnoma_core::sort::sort(&mut files);
        for path in files {
            if !places.holds(&folder, &path) {
                faults.push(format!("{} leads out of the project", places.shown(&path)));
                continue;
            }
            match read_text(&path).and_then(|text| agent(folder.by, path.clone(), &text)) {
                Ok(agent) => found.push(AgentFile { name: folder.named(agent.name), ..agent }),
                Err(why) => faults.push(format!("{}: {why}", places.shown(&path))),
            }
        }
    }
    found.reverse();
    gnoma_core::sort::by(&mut found, |one: &AgentFile, other| one.name.cmp(&other.name));
    found.dedup_by(|later, earlier| later.name == earlier.name);
    (found, faults)
}

fn agent(by: BroughtBy, path: PathBuf, text: &str) -> Result<AgentFile, String> {
    let (fields, prompt) = FrontMatter::split(text).ok_or("it has no fields (`---`)")?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = fields.text("name").or(stem).unwrap_or_default();
    let description = fields.text("description").ok_or("it has no description")?;
    Ok(AgentFile {
        name,
        by,
        description: description.split_whitespace().collect::<Vec<_>>().join(" "),
        tools: fields.text("tools").map(|tools| tool_list(&tools)),
        // `inherit` leaves the choice to whoever starts it.
        model: fields.text("model").filter(|model| model != "inherit"),
        prompt: prompt.trim().to_owned(),
        path,
    })
}
