//! A loaded plugin: its parts and where they are.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::extension_source::ExtensionSource;

/// The variables for a plugin's folder in its texts.
const ROOTS: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "GNOMA_PLUGIN_ROOT"];

/// A plugin that is in force.
#[derive(Clone, Debug)]
pub struct PluginPlace {
    /// The name of the plugin, which precedes the names of everything in it.
    pub name: String,
    /// The party that provides the plugin.
    pub by: ExtensionSource,
    /// The folder of the plugin, links resolved.
    pub root: PathBuf,
    /// Folders and files of commands.
    pub commands: Vec<PathBuf>,
    /// The folders that hold skills.
    pub skills: Vec<PathBuf>,
    /// Folders and files of definitions of sub-agents.
    pub agents: Vec<PathBuf>,
    /// Hooks in the format of other programs, and the path of each document.
    pub hooks: Vec<(PathBuf, Value)>,
    /// Hooks in gnoma's own form.
    pub own_hooks: Vec<Value>,
    /// MCP servers by name, and the path of each document.
    pub servers: Vec<(PathBuf, Value)>,
}

impl PluginPlace {
    /// Replaces the variable for the plugin's folder in a text.
    #[must_use]
    pub fn fill_variables(&self, text: &str) -> String {
        let root = self.root.to_string_lossy();
        let put = |text: String, name: &&str| text.replace(&format!("${{{name}}}"), &root);
        ROOTS.iter().fold(text.to_owned(), put)
    }

    /// The value of a variable that names the plugin's folder.
    #[must_use]
    pub fn root_variable(&self, name: &str) -> Option<String> {
        ROOTS.contains(&name).then(|| self.root.to_string_lossy().into_owned())
    }

    /// Returns the name by which something in this plugin is known outside of it.
    #[must_use]
    pub fn qualified_name(&self, name: &str) -> String {
        format!("{}:{name}", self.name)
    }

    /// The folders and files of one kind.
    pub(crate) fn of_kind(&self, kind: &str) -> &[PathBuf] {
        match kind {
            "commands" => &self.commands,
            "skills" => &self.skills,
            "agents" => &self.agents,
            _ => &[],
        }
    }

    /// Reports whether a path leads to something in this plugin.
    pub(crate) fn contains_path(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| real.starts_with(&self.root))
    }
}

/// A shell line that runs with the folder of a plugin in its variables.
#[must_use]
pub(crate) fn with_root(line: &str, root: &Path) -> String {
    let quoted = root.to_string_lossy().replace('\'', r"'\''");
    let sets: String = ROOTS.iter().map(|name| format!("{name}='{quoted}' ")).collect();
    format!("{sets}\nexport {}\n{line}", ROOTS.join(" "))
}
