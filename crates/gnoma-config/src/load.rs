//! Reads the files and puts the layers together. The only IO of this crate besides the trust store.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{bounded_file, home};

use crate::{
    consistency_checks,
    env::{self, Environment},
    explain::{self, ExplainedValue},
    finding::{ConfigError, Finding, Origin, Place, Report, Severity, system_words},
    guard::{self, FileTrust},
    key::KeyPath,
    layer::{Layer, MergedLayers},
    paths, profile,
    reader::{self, ReadFrom, Reader},
    schema::{self, Feature, KnownKey},
    settings::Settings,
    text::SourceText,
    tree, trust,
};

/// The key that chooses a profile; it means something in the user's own file only.
const DEFAULT_PROFILE: &str = "default_profile";

/// The key that names certificate authorities.
const CA_FILE: &str = "network.ca_file";
/// The line with which a certificate begins in its file.
const PEM: &[u8] = b"-----BEGIN CERTIFICATE-----";
/// The number of bytes of a file that are searched for a certificate.
const MAX_CA_BYTES: u64 = 16 << 20;

/// The sources of all settings. They can hold keys, so they cannot be printed.
#[derive(Clone, Default)]
pub struct Sources {
    /// The user's configuration folder, such as `~/.config/gnoma`.
    pub config_dir: PathBuf,
    /// The user's state folder, which holds the trust store.
    pub state_dir: PathBuf,
    /// The project's folder, if there is a project; see [`paths::project_root`].
    pub project_root: Option<PathBuf>,
    /// The profile the user asked for.
    pub profile: Option<String>,
    /// The variables of the environment.
    pub env: BTreeMap<String, String>,
    /// Dotted keys and values from the command line; the last one wins.
    pub flags: Vec<(String, toml::Value)>,
}

impl Sources {
    /// Resolves the path of a file that a setting names: `~/` is the home, and other relative paths begin in the
    /// configuration folder, not where other people may have placed files.
    fn resolve_path(&self, path: &Path) -> PathBuf {
        let home = self.env.get("HOME").map(Path::new).filter(|home| home.is_absolute());
        home::expand(path, home, &self.config_dir)
    }
}

/// The result of loading the configuration.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The resolved settings of all layers.
    pub settings: Settings,
    /// Warnings, in the order of the layers.
    pub findings: Vec<Finding>,
    /// Every value with its origin, sorted by key.
    pub values: Vec<ExplainedValue>,
    /// The profile in use.
    pub profile: Option<String>,
    /// The trust in the project's file; `None` when there is no such file.
    pub project: Option<FileTrust>,
}

impl LoadedConfig {
    /// All values as lines `key = value`; with `origin`, each says in a comment who set it.
    #[must_use]
    pub fn render_values(&self, origin: bool) -> String {
        explain::render_values(&self.values, origin)
    }

    /// Reports whether a feature is on.
    #[must_use]
    pub fn has_feature(&self, feature: &Feature) -> bool {
        self.settings.personal.has_feature(feature)
    }

    /// Returns the value of one key and its origin.
    #[must_use]
    pub fn explain_key(&self, key: &str) -> Option<&ExplainedValue> {
        self.values.iter().find(|value| value.key == key)
    }
}

/// Loads the settings from all sources and resolves them.
///
/// # Errors
/// When a file cannot be read, is not TOML, or sets a key to what it cannot be; and when no profile
/// can be chosen. Everything that was found is told at once.
pub fn load_settings(sources: &Sources) -> Result<LoadedConfig, ConfigError> {
    let mut loader = Loader { sources, report: Report::default(), merged: MergedLayers::default() };
    let profile = loader.add_user_files();
    let project = loader.add_project_file();
    let environment = env::environment_layer(&sources.env, &loader.merged, &mut loader.report);
    let environment = loader.without_absent_ca_file(environment);
    loader.merged.add_layer(environment);
    loader.add_flags();
    loader.warn_of_what_has_no_effect();
    consistency_checks::warn_ineffective_settings(&loader.merged, &mut loader.report);
    let Loader { report, merged, .. } = loader;
    let unset_keys = report.unset_in("provider.api_keys");
    let findings = report.into_findings()?;
    let mut settings = Settings::from_layers(&merged);
    settings.provider.unset_keys = unset_keys;
    let ca_file = settings.network.ca_file.take();
    settings.network.ca_file = ca_file.map(|path| sources.resolve_path(&path));
    Ok(LoadedConfig { findings, settings, values: explain::explain_all(&merged), profile, project })
}

/// Checks that `text` could be a user's configuration file, whatever else is set.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check_user_file(text: &str) -> Result<(), ConfigError> {
    let (mut report, mut merged) = (Report::default(), MergedLayers::default());
    let source = SourceText::new(Arc::from(paths::user_file(Path::new(""))), text.to_owned());
    let env = Environment::new();
    merged.add_layer(reader::read_file(
        Origin::User,
        &source,
        &env,
        FileTrust::Trusted,
        &mut report,
    ));
    consistency_checks::warn_ineffective_settings(&merged, &mut report);
    report.into_findings().map(drop)
}

/// Checks that there is a key under these names that can have this value, whatever else is set.
///
/// # Errors
/// What is wrong with it.
pub fn check_value(names: &[String], value: &toml::Value) -> Result<(), ConfigError> {
    let path = names.iter().fold(KeyPath::default(), |path, name| path.with_name(name));
    let (mut report, key) = (Report::default(), path.to_string());
    let mut reader = Reader::new(Origin::Flag, ReadFrom::Flag(&key), &mut report);
    reader.visit_path(&path, &tree::of_value(value));
    report.into_findings().map(drop)
}

struct Loader<'a> {
    sources: &'a Sources,
    report: Report,
    merged: MergedLayers,
}

impl Loader<'_> {
    /// Adds the user's own file and the profile, and gives the profile's name.
    fn add_user_files(&mut self) -> Option<String> {
        if let Some(file) = paths::file_in_place_of(&self.sources.config_dir) {
            let why = "stands where a folder is needed; rename it";
            return self.refuse_file(file.to_path_buf(), why);
        }
        let path = paths::user_file(&self.sources.config_dir);
        if let Some((layer, _)) = self.read_layer(Origin::User, path, |_| FileTrust::Trusted) {
            self.merged.add_layer(layer);
        }
        // A broken file may have named a default: its own errors are enough.
        let is_broken = self.report.error_count() > 0;
        if is_broken && self.sources.profile.is_none() {
            return None;
        }
        let name = self.choose_profile()?;
        let path = paths::profile_file(&self.sources.config_dir, &name);
        if let Some((layer, _)) = self.read_layer(Origin::Profile, path, |_| FileTrust::Trusted) {
            let layer = self.without_default_profile(layer);
            self.merged.add_layer(layer);
        }
        Some(name)
    }

    fn choose_profile(&mut self) -> Option<String> {
        let asked = self.sources.profile.as_deref();
        let default = self.merged.text_at(DEFAULT_PROFILE);
        let available = profile::list_profiles(&self.sources.config_dir);
        match profile::choose_profile(asked, default.as_deref(), &available) {
            Ok(name) => name,
            Err(refusal) => {
                let finding =
                    Finding::new(Severity::Error, self.place_of_choice(), refusal.message);
                self.report.add(finding.with_hint(refusal.hint));
                None
            }
        }
    }

    fn place_of_choice(&self) -> Place {
        let default = self.merged.entries().get(&KeyPath::from_dotted(DEFAULT_PROFILE));
        match default {
            _ if self.sources.profile.is_some() => Place::Flag("--profile".to_owned()),
            Some(entry) => entry.place.clone(),
            None => Place::File {
                path: paths::profiles_dir(&self.sources.config_dir).into(),
                position: None,
            },
        }
    }

    /// Adds the project's file, less what it may not set, and says how it stands.
    fn add_project_file(&mut self) -> Option<FileTrust> {
        let root = self.sources.project_root.as_ref()?;
        let store = trust::Store::open(&self.sources.state_dir);
        let standing = |content: &[u8]| match &store {
            Ok(store) => store.file_trust(root, content),
            Err(_) => FileTrust::Unknown,
        };
        let (layer, standing) =
            self.read_layer(Origin::Project, paths::project_file(root), standing)?;
        if let Err(error) = &store {
            let place = file_place(self.sources.state_dir.clone());
            let message = format!("no folder is trusted: {error}");
            self.report.add(Finding::new(Severity::Warning, place, message));
        }
        let layer = self.without_default_profile(layer);
        let layer = guard::filter_project_layer(layer, &self.merged, standing, &mut self.report);
        self.merged.add_layer(layer);
        Some(standing)
    }

    fn without_default_profile(&mut self, mut layer: Layer) -> Layer {
        let key = KeyPath::from_dotted(DEFAULT_PROFILE);
        if let Some(entry) = layer.remove(&key) {
            let message = "is ignored: the profile is chosen before this file is read";
            let finding = Finding::new(Severity::Warning, entry.place, message).with_key(&key);
            self.report
                .add(finding.with_hint("set it in your own config.toml, or give --profile NAME"));
        }
        layer
    }

    /// Other programs leave a variable behind that names a file which is gone or of another kind: that must not
    /// stop everything.
    fn without_absent_ca_file(&mut self, mut layer: Layer) -> Layer {
        let key = KeyPath::from_dotted(CA_FILE);
        let named = layer.get(&key).and_then(|entry| entry.value.clone().into_text());
        let wrong =
            named.and_then(|path| unusable_ca(&self.sources.resolve_path(Path::new(&path))));
        let Some(why) = wrong else { return layer };
        if let Some(entry) = layer.remove(&key) {
            let finding =
                Finding::new(Severity::Warning, entry.place, format!("is ignored: {why}"));
            let hint = "the built-in certificate authorities are used";
            self.report.add(finding.with_key(&key).with_hint(hint));
        }
        layer
    }

    fn add_flags(&mut self) {
        for (key, value) in &self.sources.flags {
            let mut reader = Reader::new(Origin::Flag, ReadFrom::Flag(key), &mut self.report);
            reader.visit_path(&KeyPath::from_dotted(key), &tree::of_value(value));
            let layer = reader.into_layer();
            self.merged.add_layer(layer);
        }
    }

    /// A wish that is not heard must not look as if it were. The defaults of older files wish nothing.
    fn warn_of_what_has_no_effect(&mut self) {
        for (key, entry) in self.merged.entries() {
            let KnownKey::Key(row) = schema::lookup_key(key) else { continue };
            let Some(instead) = row.instead else { continue };
            if row.default_value().as_ref() != Some(&entry.value) {
                let message = "has no effect: this setting is no longer used";
                let finding = Finding::new(Severity::Warning, entry.place.clone(), message);
                self.report.add(finding.with_key(key).with_hint(instead));
            }
        }
    }

    /// Reads and checks one file; `None` when there is none or it cannot be read.
    fn read_layer(
        &mut self,
        origin: Origin,
        path: PathBuf,
        standing: impl Fn(&[u8]) -> FileTrust,
    ) -> Option<(Layer, FileTrust)> {
        let content = match paths::read_config_file(&path) {
            // A link of a project is a stranger's, and without what it leads to there are no settings.
            Ok(None) if origin != Origin::Project && path.is_symlink() => {
                let why = "is a link that leads nowhere; restore what it leads to, or remove it";
                return self.refuse_file(path, why);
            }
            Ok(content) => content?,
            Err(error) => {
                return self
                    .refuse_file(path, &format!("cannot be read: {}", system_words(&error)));
            }
        };
        let standing = standing(&content);
        let text = match String::from_utf8(content) {
            Ok(text) => text,
            Err(error) if error.as_bytes().starts_with(&[0xff, 0xfe]) => {
                let why = "is UTF-16 text, as Windows PowerShell writes it; save it as UTF-8";
                return self.refuse_file(path, why);
            }
            Err(_) => return self.refuse_file(path, "is not UTF-8 text; save it as UTF-8"),
        };
        let source = SourceText::new(Arc::from(path), text);
        let env: &Environment = &self.sources.env;
        let layer = reader::read_file(origin, &source, env, standing, &mut self.report);
        Some((layer, standing))
    }

    fn refuse_file<T>(&mut self, path: PathBuf, why: &str) -> Option<T> {
        let message = format!("this file {why}");
        self.report.add(Finding::new(Severity::Error, file_place(path), message));
        None
    }
}

/// Returns the reason why a file cannot be one with certificate authorities; `None` where it can.
fn unusable_ca(path: &Path) -> Option<String> {
    let shown = path.display();
    match bounded_file::read_start(path, MAX_CA_BYTES) {
        Err(error) => Some(format!("`{shown}` cannot be read: {}", system_words(&error))),
        Ok(text) if text.windows(PEM.len()).any(|window| window == PEM) => None,
        Ok(_) => Some(format!("`{shown}` has no certificate in PEM")),
    }
}

fn file_place(path: PathBuf) -> Place {
    Place::File { path: path.into(), position: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ca_file_is_resolved_below_the_settings_and_a_stale_variable_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let config_dir = folder.path().join("config");
        std::fs::create_dir(&config_dir).unwrap();
        std::fs::write(config_dir.join("own.pem"), PEM).unwrap();
        std::fs::write(config_dir.join("other.txt"), "no certificate").unwrap();
        let loaded = |variable: &str, flag: Option<&str>| {
            let env = [("HOME", "/home/me"), ("SSL_CERT_FILE", variable)];
            let flag = flag.map(|path| (CA_FILE.to_owned(), toml::Value::from(path)));
            let sources = Sources {
                config_dir: config_dir.clone(),
                state_dir: folder.path().to_owned(),
                env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
                flags: flag.into_iter().collect(),
                ..Sources::default()
            };
            let loaded = load_settings(&sources).unwrap();
            let findings = loaded.findings.iter();
            let why: Vec<_> = findings.map(|finding| finding.message.clone()).collect();
            (loaded.settings.network.ca_file, why)
        };
        let ignored = |why: &str| vec![format!("is ignored: {why}")];
        let own = Some(config_dir.join("own.pem"));
        assert_eq!(loaded("own.pem", None), (own, Vec::new()));
        let why = "`/nonexistent/ca.pem` cannot be read: No such file or directory";
        assert_eq!(loaded("/nonexistent/ca.pem", None), (None, ignored(why)));
        let why = format!("`{}` has no certificate in PEM", config_dir.join("other.txt").display());
        assert_eq!(loaded("other.txt", None), (None, ignored(&why)));
        let at_home = Some(PathBuf::from("/home/me/ca.pem"));
        assert_eq!(loaded("", Some("~/ca.pem")), (at_home, Vec::new()));
        let missing = Some(PathBuf::from("/nonexistent"));
        assert_eq!(loaded("", Some("/nonexistent")), (missing, Vec::new()));
    }
}
