//! Texts in settings that are shell commands.

use std::{collections::BTreeSet, path::Path};

use gnoma_core::json::from_hand;

use super::ruled_commands::RuledCommands;

/// Settings whose texts are commands or arguments of one.
const COMMANDS: [&str; 8] =
    ["exec", "command", "args", "run", "cmd", "key_command", "key_commands", "bash"];
/// The end of the names of settings of other programs that are commands, such as `apiKeyHelper`.
const HELPER: &str = "Helper";
/// The program of a command whose arguments stand apart.
const PROGRAM: &str = "command";
const ARGUMENTS: &str = "args";

/// The variables by which what a plugin runs names the plugin's folder.
const PLUGIN_ROOT: [&str; 4] =
    ["${CLAUDE_PLUGIN_ROOT}", "$CLAUDE_PLUGIN_ROOT", "${GNOMA_PLUGIN_ROOT}", "$GNOMA_PLUGIN_ROOT"];

/// The texts found in settings, and the commands among them.
#[derive(Debug, Default)]
pub(super) struct SettingsTexts {
    /// Every text in the settings.
    pub(super) texts: Vec<String>,
    /// Those that are run.
    pub(super) commands: Vec<String>,
    /// The lines of rules that each of those commands names.
    pub(super) ruled: Vec<RuledCommands>,
    /// Names of what has a text as its value: they may be variables whose value is known.
    pub(super) variables: BTreeSet<String>,
}

impl SettingsTexts {
    /// The commands, and the lines of the rules that they name.
    pub(super) fn command_lines(&self) -> impl Iterator<Item = &String> {
        self.commands.iter().chain(self.ruled.iter().flat_map(|ruled| &ruled.lines))
    }

    /// Reads TOML or JSON; what is neither is one text.
    pub(super) fn read_content(&mut self, content: &[u8]) {
        let text = String::from_utf8_lossy(content);
        if let Ok(json) = from_hand(&text) {
            return self.collect_value(&json, false);
        }
        match text.parse::<toml::Table>().ok().and_then(|table| serde_json::to_value(table).ok()) {
            Some(value) => self.collect_value(&value, false),
            None => self.texts.push(text.into_owned()),
        }
    }

    /// Reads the commands of a plugin's file, in whatever file its manifest keeps them; `root` is the plugin's
    /// folder, seen from the project.
    pub(super) fn read_plugin(&mut self, content: &[u8], root: &Path) {
        let Ok(json) = from_hand(&String::from_utf8_lossy(content)) else { return };
        let mut own = Self::default();
        own.collect_value(&json, false);
        if own.commands.is_empty() {
            return;
        }
        let root = root.to_string_lossy();
        for command in own.commands {
            let there = PLUGIN_ROOT.iter().fold(command, |text, name| text.replace(name, &root));
            self.texts.push(there.clone());
            self.commands.push(there);
        }
        self.variables.extend(own.variables);
    }

    fn collect_value(&mut self, value: &serde_json::Value, is_run: bool) {
        match value {
            serde_json::Value::String(text) => {
                self.texts.push(text.clone());
                if is_run {
                    self.commands.push(text.clone());
                }
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| self.collect_value(item, is_run));
            }
            serde_json::Value::Object(fields) => {
                let whole = full_command(fields);
                for (name, item) in fields {
                    if item.is_string() {
                        self.variables.insert(name.clone());
                    }
                    let is_part = whole.is_some() && [PROGRAM, ARGUMENTS].contains(&name.as_str());
                    let names_command = COMMANDS.contains(&name.as_str()) || name.ends_with(HELPER);
                    self.collect_value(item, !is_part && (is_run || names_command));
                }
                self.commands.extend(whole);
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
            }
        }
    }
}

/// A program with its arguments, where these stand apart.
fn full_command(fields: &serde_json::Map<String, serde_json::Value>) -> Option<String> {
    let program = fields.get(PROGRAM)?.as_str()?;
    let arguments = fields.get(ARGUMENTS)?.as_array()?;
    let arguments: Vec<&str> = arguments.iter().filter_map(serde_json::Value::as_str).collect();
    Some(format!("{program} {}", arguments.join(" ")))
}
