//! Imports what people have set up for other assistants: permissions, MCP servers, commands, instructions. It is
//! shown first and written only on request; nothing that already exists is changed, and what cannot be imported is
//! reported.

mod claude;
mod codex;
mod files;
mod opencode;
mod plan;
mod translate;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use gnoma_config::{paths, toml};

pub use self::plan::{ImportPlan, ImportStep};
use crate::{Folders as _, HostError, Project, Result, mcp_edit};

/// Whose settings are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assistant {
    /// The settings of Claude Code.
    Claude,
    /// The settings of Codex.
    Codex,
    /// The settings of opencode.
    OpenCode,
}

/// Plans what would be imported.
///
/// # Errors
/// The person's own settings cannot be read.
pub fn plan_import(project: &Project, from: Assistant) -> Result<ImportPlan> {
    let environment = project.environment();
    let Some(home) = environment.home() else {
        return Err(HostError::usage("HOME is not set, so there is nothing to import"));
    };
    let mut plan = ImportPlan::default();
    match from {
        Assistant::Claude => claude::add_to_plan(&home, &project.spec.folder, &mut plan),
        Assistant::Codex => codex::add_to_plan(&home, environment.get("CODEX_HOME"), &mut plan),
        Assistant::OpenCode => {
            opencode::add_to_plan(&home, environment.get("XDG_CONFIG_HOME"), &mut plan);
        }
    }
    without_known(&mut plan, &environment.config_dir())?;
    Ok(plan)
}

/// Leaves out what is there already.
fn without_known(plan: &mut ImportPlan, config_dir: &Path) -> Result<()> {
    let text = mcp_edit::read_settings(&paths::user_file(config_dir))?;
    let document: toml::Table = text.parse().unwrap_or_default();
    let rules =
        document.get("permission").and_then(|it| it.get("rules")).and_then(|it| it.as_array());
    let rules = rules.into_iter().flatten();
    let mut rules: BTreeSet<(String, String)> = rules
        .filter_map(|rule| {
            let text = |name: &str| rule.get(name).and_then(|value| value.as_str());
            Some((text("action")?.to_owned(), text("rule")?.to_owned()))
        })
        .collect();
    let servers = document.get("mcp_servers").and_then(|it| it.as_array()).into_iter().flatten();
    let names = servers.filter_map(|server| server.get("name")?.as_str().map(str::to_owned));
    let mut names: BTreeSet<String> = gnoma_core::sort::to_set(names);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let steps = std::mem::take(&mut plan.steps);
    for step in steps {
        let is_new = match &step {
            ImportStep::Rule { action, rule, .. } => {
                rules.insert(((*action).to_owned(), rule.clone()))
            }
            ImportStep::Server(server) => names.insert(server.name.clone()),
            ImportStep::File { to, .. } if config_dir.join(to).symlink_metadata().is_ok() => false,
            ImportStep::File { to, from, .. } => {
                if let Some(first) = files.get(to) {
                    plan.left.push(format!(
                        "{from}: `{to}` comes from {first} already; give one of them another name"
                    ));
                    continue;
                }
                files.insert(to.clone(), from.clone());
                true
            }
        };
        if is_new {
            plan.steps.push(step);
        } else {
            plan.known.push(step.to_line());
        }
    }
    Ok(())
}

/// Takes it over: all of it, or nothing. Gives the files that were written.
///
/// # Errors
/// Nothing was written, and why.
pub fn apply_plan(project: &Project, plan: &ImportPlan) -> Result<Vec<PathBuf>> {
    let config_dir = project.environment().config_dir();
    let settings = render_settings(&config_dir, plan)?;
    let mut written = NewFiles::default();
    for step in &plan.steps {
        let ImportStep::File { to, text, .. } = step else { continue };
        let path = config_dir.join(to);
        written.create_file(&path, text).map_err(|error| {
            let path = path.display();
            HostError::usage(format!("cannot write `{path}`: {error}; nothing was imported"))
        })?;
    }
    // What can be taken back goes first.
    if let Some((path, text)) = &settings {
        mcp_edit::write_settings(path, text)?;
    }
    Ok(settings.map(|(path, _)| path).into_iter().chain(written.commit_files()).collect())
}

/// The settings with what would be added, where anything is; checked.
fn render_settings(config_dir: &Path, plan: &ImportPlan) -> Result<Option<(PathBuf, String)>> {
    let blocks: String = plan.steps.iter().filter_map(ImportStep::to_settings).collect();
    if blocks.is_empty() {
        return Ok(None);
    }
    let path = paths::user_file(config_dir);
    let text = mcp_edit::read_settings(&path)?;
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let text = format!("{text}{gap}{blocks}");
    mcp_edit::check_settings(&text)?;
    Ok(Some((path, text)))
}

/// Files that were written. Dropped, they are removed again.
#[derive(Default)]
struct NewFiles(Vec<PathBuf>);

impl NewFiles {
    fn create_file(&mut self, path: &Path, text: &str) -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        self.0.push(path.to_owned());
        file.write_all(text.as_bytes())
    }

    fn commit_files(mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // Who cannot remove it cannot be helped, and why nothing was taken over is said.
            fs::remove_file(path).ok();
        }
    }
}
