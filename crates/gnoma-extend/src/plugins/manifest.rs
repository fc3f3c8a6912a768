//! A plugin's description of itself, and where its parts are.

use std::path::{Path, PathBuf};

use gnoma_core::json::from_hand;
use serde_json::Value;

use super::{
    error::{ManifestError, ManifestPathError, PluginJsonError, PluginNameError},
    tree::check_path,
};
use crate::{
    places::{ExtensionSource, read_text},
    plugin::PluginPlace,
};

/// The possible paths of the manifest; the first that exists counts.
pub(super) const FILES: [&str; 3] =
    [".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "plugin.json"];
/// Fields that are facts for people, or are read.
const KNOWN: [&str; 17] = [
    "$schema",
    "agents",
    "author",
    "capabilities",
    "category",
    "commands",
    "description",
    "gnoma_version",
    "homepage",
    "hooks",
    "keywords",
    "license",
    "mcpServers",
    "name",
    "repository",
    "skills",
    "version",
];
/// Files and folders of plugins that gnoma does not act on, and what they are.
const UNSUPPORTED: [(&str, &str); 5] = [
    (".lsp.json", "language servers"),
    ("output-styles", "output styles"),
    ("monitors", "monitors"),
    ("settings.json", "settings"),
    ("bin", "programs for the `PATH` of commands"),
];
/// Longest name, in bytes.
const MAX_NAME: usize = 64;

/// A plugin's description of itself.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The name of the plugin.
    pub name: String,
    /// The version of the plugin; may be empty.
    pub version: String,
    /// The description of the plugin's purpose; may be empty.
    pub description: String,
    /// The parts that the plugin contributes.
    pub place: PluginPlace,
    /// The parts of the plugin that cannot be used, a sentence each.
    pub faults: Vec<String>,
}

/// Checks that a name can precede those of a plugin's parts.
pub(super) fn check_name(name: &str) -> Result<(), PluginNameError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= MAX_NAME && name.chars().all(fits) && !name.ends_with('.') {
        return Ok(());
    }
    Err(PluginNameError { name: name.to_owned(), limit: MAX_NAME })
}

/// Returns the path of the manifest in the folder `root`, if it has one.
pub(super) fn file_of(root: &Path) -> Option<PathBuf> {
    FILES.iter().map(|name| root.join(name)).find(|path| path.is_file())
}

impl Manifest {
    /// Reads the plugin in a folder. Without a manifest it is called like its folder, or `otherwise`.
    ///
    /// # Errors
    /// The folder cannot be used as a plugin at all.
    pub fn read(
        root: &Path,
        by: ExtensionSource,
        otherwise: Option<&str>,
    ) -> Result<Self, ManifestError> {
        let of_folder = |source| ManifestError::Folder { folder: root.to_owned(), source };
        let root = root.canonicalize().map_err(of_folder)?;
        let document = read_document(&root)?;
        let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
        let called = root.file_name().unwrap_or_default().to_string_lossy();
        let name = match text("name") {
            "" => otherwise.unwrap_or(&called).to_owned(),
            name => name.to_owned(),
        };
        check_name(&name)?;
        let place = PluginPlace {
            name: name.clone(),
            by,
            root: root.clone(),
            commands: Vec::new(),
            skills: Vec::new(),
            agents: Vec::new(),
            hooks: Vec::new(),
            own_hooks: Vec::new(),
            servers: Vec::new(),
        };
        let mut reading = ManifestReader { document: &document, place, faults: Vec::new() };
        reading.read_all();
        let ManifestReader { place, faults, .. } = reading;
        if place.is_empty() && file_of(&root).is_none() {
            return Err(ManifestError::NoPlugin);
        }
        let shown = |name: &str| text(name).split_whitespace().collect::<Vec<_>>().join(" ");
        let (version, description) = (shown("version"), shown("description"));
        Ok(Self { name, version, description, place, faults })
    }
}

impl PluginPlace {
    /// Reports whether the plugin contributes nothing.
    fn is_empty(&self) -> bool {
        let paths = [&self.commands, &self.skills, &self.agents];
        paths.iter().all(|paths| paths.is_empty())
            && self.hooks.is_empty()
            && self.own_hooks.is_empty()
            && self.servers.is_empty()
    }
}

/// A manifest that is being read.
struct ManifestReader<'a> {
    document: &'a Value,
    place: PluginPlace,
    faults: Vec<String>,
}

impl ManifestReader<'_> {
    fn read_all(&mut self) {
        self.place.commands = self.content_paths("commands");
        self.place.skills = self.content_paths("skills");
        self.place.agents = self.content_paths("agents");
        self.place.hooks = self.read_documents("hooks", "hooks/hooks.json");
        self.place.servers = self.read_documents("mcpServers", ".mcp.json");
        self.read_capabilities();
        let fields = self.document.as_object().into_iter().flatten();
        let unknown: Vec<&str> =
            fields.map(|(name, _)| &**name).filter(|name| !KNOWN.contains(name)).collect();
        if !unknown.is_empty() {
            self.faults
                .push(format!("gnoma does not support `{}` in its manifest", unknown.join("`, `")));
        }
        for (name, what) in UNSUPPORTED {
            if self.place.root.join(name).exists() {
                self.faults.push(format!("gnoma does not support its `{name}` ({what})"));
            }
        }
    }

    /// The usual folder of a kind, and the paths that the manifest names besides.
    fn content_paths(&mut self, kind: &str) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let usual = self.place.root.join(kind);
        paths.extend(usual.is_dir().then_some(usual));
        let document = self.document;
        for text in text_values(document.get(kind)) {
            match self.resolve_inside(text) {
                Ok(path) if paths.contains(&path) => (),
                Ok(path) => paths.push(path),
                Err(why) => self.faults.push(format!("`{kind}` of its manifest: {why}")),
            }
        }
        paths
    }

    /// Returns the documents for a field: those in the manifest itself, in files that it names, and in the usual
    /// file.
    fn read_documents(&mut self, field: &str, usual: &str) -> Vec<(PathBuf, Value)> {
        let mut files = Vec::new();
        let usual = self.place.root.join(usual);
        files.extend(usual.is_file().then_some(usual));
        let mut all = Vec::new();
        let document = self.document;
        match document.get(field) {
            Some(Value::Object(inline)) => {
                let is_wrapped = inline.contains_key(field);
                let inline = Value::Object(inline.clone());
                let whole = if is_wrapped { inline } else { serde_json::json!({ field: inline }) };
                all.push((self.place.root.clone(), whole));
            }
            value => {
                for text in text_values(value) {
                    match self.resolve_inside(text) {
                        Ok(path) if files.contains(&path) => (),
                        Ok(path) => files.push(path),
                        Err(why) => self.faults.push(format!("`{field}` of its manifest: {why}")),
                    }
                }
            }
        }
        for path in files {
            match read_json_file(&path) {
                Ok(value) => all.push((path, value)),
                Err(why) => self.faults.push(format!("its {field} are not read: {why}")),
            }
        }
        all
    }

    /// Reads the capabilities that manifests of gnoma declare.
    fn read_capabilities(&mut self) {
        let document = self.document;
        let Some(all) = document.get("capabilities") else { return };
        for glob in text_values(all.get("skills")) {
            // The folder above what varies.
            let fixed = glob.split('/').take_while(|part| !part.contains(['*', '?', '[']));
            let folder = fixed.filter(|part| !part.ends_with(".md")).collect::<Vec<_>>().join("/");
            match self.resolve_inside(if folder.is_empty() { "." } else { &folder }) {
                Ok(path) if self.place.skills.contains(&path) => (),
                Ok(path) => self.place.skills.push(path),
                Err(why) => self.faults.push(format!("`capabilities.skills`: {why}")),
            }
        }
        let list = |name: &str| all.get(name).and_then(Value::as_array).into_iter().flatten();
        self.place.own_hooks = list("hooks").cloned().collect();
        let server = |entry: &Value| {
            let name = entry.get("name").and_then(Value::as_str)?;
            Some((name.to_owned(), entry.clone()))
        };
        let servers: serde_json::Map<String, Value> =
            list("mcp_servers").filter_map(server).collect();
        if !servers.is_empty() {
            let path = self.place.root.clone();
            self.place.servers.push((path, serde_json::json!({ "mcpServers": servers })));
        }
    }

    /// Returns a path of the manifest if it exists and is inside the plugin.
    fn resolve_inside(&self, text: &str) -> Result<PathBuf, ManifestPathError> {
        let path = self.place.root.join(check_path(text.trim_end_matches('/'))?);
        if !path.exists() {
            return Err(ManifestPathError::Missing(text.to_owned()));
        }
        let is_inside = self.place.contains_path(&path);
        if is_inside { Ok(path) } else { Err(ManifestPathError::Outside(text.to_owned())) }
    }
}

/// Reads the manifest in a folder; an empty object if there is none.
fn read_document(root: &Path) -> Result<Value, ManifestError> {
    let Some(path) = file_of(root) else { return Ok(Value::Object(serde_json::Map::new())) };
    let document: Value = from_hand(&read_text(&path)?).map_err(ManifestError::Json)?;
    if document.is_object() { Ok(document) } else { Err(ManifestError::NotAnObject) }
}

/// A text, or several.
fn text_values(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Reads a JSON file that a person has written.
pub(super) fn read_json_file(path: &Path) -> Result<Value, PluginJsonError> {
    let file = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = read_text(path);
    let text = text.map_err(|source| PluginJsonError::Text { file: file(), source })?;
    from_hand(&text).map_err(|source| PluginJsonError::Json { file: file(), source })
}
