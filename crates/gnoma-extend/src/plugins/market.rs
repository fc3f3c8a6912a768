//! Marketplaces: files that name plugins and their locations.

use std::path::Path;

use serde_json::Value;

use super::{
    error::{MarketSourceError, PluginJsonError},
    manifest::{check_name, read_json_file},
    tree::check_path,
};

/// The path of the file in a marketplace.
pub(super) const FILE: &str = ".claude-plugin/marketplace.json";
/// Most plugins of a marketplace.
const MAX_ENTRIES: usize = 2_000;
/// Fields of an entry that are facts for people, or are read.
const KNOWN: [&str; 12] = [
    "author",
    "category",
    "description",
    "homepage",
    "keywords",
    "license",
    "name",
    "repository",
    "source",
    "strict",
    "tags",
    "version",
];

/// The source of a plugin in a marketplace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarketSource {
    /// In a folder of the marketplace.
    Inside(String),
    /// In a repository, perhaps at a branch, tag or commit, perhaps in a folder of it.
    Git {
        /// The address of the repository.
        url: String,
        /// A branch, tag or commit.
        revision: Option<String>,
        /// The folder of the plugin in the repository.
        folder: Option<String>,
    },
}

/// A plugin of a marketplace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarketEntry {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) source: Result<MarketSource, MarketSourceError>,
    /// Fields there that have no effect.
    pub(super) unused: Vec<String>,
}

/// A marketplace of plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Market {
    pub(super) name: String,
    pub(super) entries: Vec<MarketEntry>,
    /// The faults of the marketplace, a sentence each.
    pub(super) faults: Vec<String>,
}

impl Market {
    /// Reads the marketplace in a folder; `None` if it is none.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub(super) fn read(root: &Path) -> Result<Option<Self>, PluginJsonError> {
        let path = root.join(FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let document = read_json_file(&path)?;
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let mut market = Self { name: text(&document, "name"), ..Self::default() };
        if market.name.is_empty() {
            market.faults.push("the marketplace has no `name`".to_owned());
        }
        if document.pointer("/owner/name").and_then(Value::as_str).is_none() {
            market.faults.push("the marketplace has no `owner` with a `name`".to_owned());
        }
        let base = document.pointer("/metadata/pluginRoot").and_then(Value::as_str);
        let Some(plugins) = document.get("plugins").and_then(Value::as_array) else {
            market.faults.push("the marketplace has no `plugins` list".to_owned());
            return Ok(Some(market));
        };
        for entry in plugins.iter().take(MAX_ENTRIES) {
            let name = text(entry, "name");
            if let Err(error) = check_name(&name) {
                market.faults.push(error.to_string());
                continue;
            }
            let fields = entry.as_object().into_iter().flatten();
            let unused = fields.map(|(name, _)| name.clone());
            market.entries.push(MarketEntry {
                description: text(entry, "description"),
                source: parse_source(entry.get("source"), base),
                unused: unused.filter(|name| !KNOWN.contains(&&**name)).collect(),
                name,
            });
        }
        Ok(Some(market))
    }
}

fn parse_source(
    value: Option<&Value>,
    base: Option<&str>,
) -> Result<MarketSource, MarketSourceError> {
    let value = match value {
        Some(Value::String(path)) => {
            let path = match base {
                Some(base) if !path.starts_with("./") => {
                    format!("{}/{path}", base.trim_end_matches('/'))
                }
                _ => path.clone(),
            };
            check_path(path.trim_end_matches('/'))?;
            return Ok(MarketSource::Inside(path));
        }
        Some(value) => value,
        None => return Err(MarketSourceError::NoSource),
    };
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let required = |name| text(name).ok_or(MarketSourceError::NoField(name));
    let url = match &*required("source")? {
        "github" => format!("https://github.com/{}.git", required("repo")?),
        "url" | "git" | "git-subdir" => required("url")?,
        other => return Err(MarketSourceError::UnknownKind(other.to_owned())),
    };
    let folder = text("path");
    if let Some(folder) = &folder {
        check_path(folder)?;
    }
    // A commit says more than the branch that it is on.
    Ok(MarketSource::Git { url, revision: text("sha").or_else(|| text("ref")), folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_marketplace_is_parsed_and_unsupported_plugins_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".claude-plugin")).unwrap();
        assert_eq!(Market::read(folder.path()).unwrap(), None);
        let text = r#"{"name": "m", "owner": {"name": "o"}, "plugins": [
            {"name": "a", "source": "./a", "description": "d", "hooks": {}},
            {"name": "b", "source": {"source": "github", "repo": "o/r", "ref": "v1"}},
            {"name": "c", "source": {"source": "npm", "package": "p"}},
            {"name": "d", "source": "../outside"},
            {"name": "../e", "source": "./e"}]}"#;
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let market = Market::read(folder.path()).unwrap().unwrap();
        let [a, b, c, d] = &market.entries[..] else { panic!("{market:?}") };
        assert_eq!(a.source, Ok(MarketSource::Inside("./a".to_owned())));
        assert_eq!(a.unused, ["hooks"]);
        let MarketSource::Git { url, revision, .. } = b.source.clone().unwrap() else { panic!() };
        assert_eq!((&*url, revision.as_deref()), ("https://github.com/o/r.git", Some("v1")));
        assert!(c.source.as_ref().unwrap_err().to_string().contains("npm"));
        assert!(d.source.as_ref().unwrap_err().to_string().contains(".."));
        assert_eq!(market.faults.len(), 1);
    }
}
