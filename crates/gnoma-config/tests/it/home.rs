//! A user's folders in a temporary place.

use std::{fs, path::PathBuf};

use gnoma_config::{
    ConfigError, Finding, LoadedConfig, Sources, load_settings, toml::Value, trust::Store,
};
use tempfile::TempDir;

/// A user with a project.
pub(crate) struct Home {
    folder: TempDir,
    pub(crate) sources: Sources,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources {
            config_dir: folder.path().join("config"),
            state_dir: folder.path().join("state"),
            project_root: Some(folder.path().join("project")),
            ..Sources::default()
        };
        let home = Self { folder, sources };
        fs::create_dir_all(home.root()).unwrap();
        home
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn write(self, path: &str, text: &str) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn user(self, text: &str) -> Self {
        self.write("config/config.toml", text)
    }

    /// Writes a profile and asks for it.
    pub(crate) fn profile(mut self, text: &str) -> Self {
        self.sources.profile = Some("work".to_owned());
        self.write("config/profiles/work.toml", text)
    }

    pub(crate) fn project(self, text: &str) -> Self {
        self.write("project/.gnoma/config.toml", text)
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.sources.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn flag(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.sources.flags.push((key.to_owned(), value.into()));
        self
    }

    /// Trusts the project as it is now.
    pub(crate) fn trusted(self) -> Self {
        let content = fs::read(self.root().join(".gnoma/config.toml")).unwrap();
        self.store().trust(&self.root(), &content).unwrap();
        self
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.sources.state_dir).unwrap()
    }

    pub(crate) fn load(&self) -> LoadedConfig {
        self.try_load().unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_load(&self) -> Result<LoadedConfig, ConfigError> {
        load_settings(&self.sources)
    }

    /// What is said when loading, with the folder's name taken out.
    pub(crate) fn words(&self) -> String {
        let words = match self.try_load() {
            Ok(loaded) => {
                loaded.findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n\n")
            }
            Err(error) => error.to_string(),
        };
        words.replace(&self.folder.path().display().to_string(), "~")
    }

    /// All values with their origins, with the folder's name taken out.
    pub(crate) fn origins(&self) -> String {
        self.load().render_values(true).replace(&self.folder.path().display().to_string(), "~")
    }
}
