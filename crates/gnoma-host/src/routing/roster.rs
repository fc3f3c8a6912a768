//! The models that are arms by the settings and the catalogue alone. Pure: servers that must be asked are listed, and
//! nothing is connected.

use std::collections::BTreeSet;

use gnoma_config::settings::arm_named;
use gnoma_core::ModelRef;
use gnoma_llm::{KNOWN, KnownProvider, catalogue::Overlay};

use super::slm;
use crate::{agents, crate_options, project_settings::RoutingSettings};

/// Most arms that a person can choose from; more do not help.
pub const MOST_ARMS: usize = 128;
/// Servers of models that are looked for on this machine without being configured.
const LOOKED_FOR: [&str; 2] = ["ollama", "llamacpp"];
/// The provider whose models have the names of a user's deployments.
const OWN_NAMES: &str = "azure";

/// A model that is no arm, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableModel {
    /// The arm's name, or the provider's.
    pub name: String,
    /// The reason, in words that follow the name.
    pub why: String,
}

/// The models that are arms, by the settings and the catalogue alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The arms, those of the default provider first.
    pub arms: Vec<ModelRef>,
    /// The models that are no arms.
    pub left: Vec<UnusableModel>,
    /// Servers on this machine that may have more.
    pub to_ask: Vec<String>,
}

/// The arms that can be used without contacting a server.
pub fn build_roster(settings: &RoutingSettings, catalogue: &Overlay, today: i32) -> Roster {
    let mut roster = Roster::default();
    for name in all_providers(settings) {
        match provider_reach(settings, &name) {
            Reach::Here if !is_listed(settings, &name) => {
                roster.arms.extend(model_ref(&name, default_model(settings, &name)));
                roster.to_ask.push(name);
            }
            Reach::Here | Reach::Elsewhere => {
                let models = provider_models(settings, &name, catalogue, today);
                if models.is_empty() {
                    let why = format!("names no model; set `provider.models.{name}`");
                    roster.left.push(UnusableModel { name: name.clone(), why });
                }
                roster
                    .arms
                    .extend(models.into_iter().flat_map(|model| model_ref(&name, Some(model))));
            }
            Reach::Not(why) => roster.left.push(UnusableModel { name, why }),
        }
    }
    roster.arms.extend(named_alone(settings, &mut roster.left));
    let agents = settings.agents.iter().map(|agent| agent.settings.name.clone());
    roster.arms.extend(agents.flat_map(|name| model_ref(agents::PROVIDER, Some(name))));
    roster.set_unusable_arms_aside(settings);
    roster
}

impl Roster {
    /// Each once, without those that are switched off, and no more than are of use.
    fn set_unusable_arms_aside(&mut self, settings: &RoutingSettings) {
        let mut seen = BTreeSet::new();
        let left = &mut self.left;
        self.arms.retain(|arm| {
            let name = arm.to_string();
            if !seen.insert(name.clone()) {
                return false;
            }
            let is_on = settings.arms.get(&name).is_none_or(|arm| arm.enabled);
            if !is_on {
                left.push(UnusableModel {
                    name,
                    why: "is turned off (`enabled = false`)".to_owned(),
                });
            }
            is_on
        });
        for arm in self.arms.iter().skip(MOST_ARMS) {
            let why = format!("is one too many: at most {MOST_ARMS} models are used");
            self.left.push(UnusableModel { name: arm.to_string(), why });
        }
        self.arms.truncate(MOST_ARMS);
    }
}

fn model_ref(provider: &str, model: Option<String>) -> Option<ModelRef> {
    Some(ModelRef { provider: provider.to_owned(), model: model? })
}

/// Every provider that is spoken of, the default one first, and those that are looked for.
fn all_providers(settings: &RoutingSettings) -> Vec<String> {
    let provider = &settings.provider;
    let known = |name: &&String| crate_options::provider_profile(provider, name).is_ok();
    let mut names: Vec<String> = provider.default.iter().cloned().collect();
    let has_key = |known: &&KnownProvider| provider.api_keys.contains_key(known.name);
    names.extend(KNOWN.iter().filter(has_key).map(|known| known.name.to_owned()));
    names.extend(provider.endpoints.keys().cloned());
    names.extend(provider.models.keys().filter(known).cloned());
    names.extend(LOOKED_FOR.map(str::to_owned));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The place where a provider is reached.
enum Reach {
    Here,
    Elsewhere,
    Not(String),
}

fn provider_reach(settings: &RoutingSettings, name: &str) -> Reach {
    let profile = match crate_options::provider_profile(&settings.provider, name) {
        Ok(profile) => profile,
        Err(error) => return Reach::Not(error.to_string()),
    };
    if crate_options::needs_key(&settings.provider, &profile) {
        return Reach::Not(format!("has no key: {}", profile.describe_key_setting()));
    }
    if crate_options::is_this_machine(&profile.base_url) { Reach::Here } else { Reach::Elsewhere }
}

/// Reports whether the settings say which models of the provider are meant, so that the server need not be asked.
fn is_listed(settings: &RoutingSettings, name: &str) -> bool {
    let provider = &settings.provider;
    provider.models.get(name).is_some_and(|models| !models.is_empty())
        || (default_model(settings, name).is_some() && !is_local_by_name(name))
}

fn is_local_by_name(name: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name && known.local)
}

/// The model that is set for the default provider.
fn default_model(settings: &RoutingSettings, name: &str) -> Option<String> {
    let provider = &settings.provider;
    provider.model.clone().filter(|_| provider.default.as_deref() == Some(name))
}

/// The models of a provider that are arms: those named for it; else the one that is set, its usual one,
/// and, where it is the vendor itself, those that the catalogue holds worth having.
fn provider_models(
    settings: &RoutingSettings,
    name: &str,
    catalogue: &Overlay,
    today: i32,
) -> Vec<String> {
    let provider = &settings.provider;
    let mut models: Vec<String> = default_model(settings, name).into_iter().collect();
    if let Some(named) = provider.models.get(name).filter(|named| !named.is_empty()) {
        models.extend(named.iter().cloned());
        return models;
    }
    let known = KNOWN.iter().find(|known| known.name == name);
    models.extend(
        known.map(|known| known.default_model.to_owned()).filter(|model| !model.is_empty()),
    );
    let is_vendor = known.is_some() && !provider.endpoints.contains_key(name) && name != OWN_NAMES;
    if is_vendor {
        let mut leads: BTreeSet<String> = gnoma_core::sort::to_set(
            models.iter().map(|model| canonical_name(catalogue, name, model)),
        );
        let usual = catalogue.usual_models(name, today).into_iter().map(|model| model.id);
        models.extend(usual.filter(|model| leads.insert(canonical_name(catalogue, name, model))));
    }
    models
}

/// The name under which the catalogue lists a model first: two names of one model are one arm.
fn canonical_name(catalogue: &Overlay, provider: &str, model: &str) -> String {
    match catalogue.lookup(provider, model) {
        Some(listed) => listed.alias_of.unwrap_or(listed.id),
        None => model.to_owned(),
    }
}

/// Arms that are spoken of one by one: under `[[arms]]`, in roles, and the one that sorts requests.
fn named_alone(settings: &RoutingSettings, left: &mut Vec<UnusableModel>) -> Vec<ModelRef> {
    let roles = settings.router.roles.named_arms().map(|(_, arm)| arm.clone());
    let about = settings.arms.keys().filter_map(|name| arm_named(name));
    let named = about.chain(roles).chain(slm::classifier_arm(settings));
    let mut arms = Vec::new();
    for arm in named {
        if arm.provider == agents::PROVIDER {
            // Those that are configured are arms anyway.
            if settings.agents.find_by_name(&arm.model).is_none() {
                let why = "is not configured under `[[cli_agents]]`".to_owned();
                left.push(UnusableModel { name: arm.to_string(), why });
            }
            continue;
        }
        match provider_reach(settings, &arm.provider) {
            Reach::Here | Reach::Elsewhere => arms.push(arm),
            Reach::Not(why) => {
                let name = arm.to_string();
                if !left.iter().any(|left| left.name == name) {
                    left.push(UnusableModel { name, why });
                }
            }
        }
    }
    arms
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;
    use gnoma_llm::catalogue;

    use super::*;
    use crate::project_settings::ProjectSettings;

    fn settings(text: &str) -> RoutingSettings {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.path().to_owned(), ..Sources::default() };
        ProjectSettings::from(gnoma_config::load_settings(&sources).unwrap()).routing
    }

    fn roster(text: &str) -> Roster {
        let catalogue = catalogue::parse_overlay("").unwrap();
        build_roster(&settings(text), &catalogue, catalogue::made_on() + 1)
    }

    fn names(roster: &Roster) -> Vec<String> {
        roster.arms.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn api_key_adds_the_usual_models_of_its_vendor_once() {
        let roster = roster("[provider.api_keys]\nmistral = \"k\"\n");
        let names = names(&roster);
        assert_eq!(names[0], "mistral/mistral-large-latest");
        assert!((2..=5).contains(&names.len()), "{names:?}");
        let leads: BTreeSet<_> = names
            .iter()
            .map(|name| {
                let catalogue = catalogue::parse_overlay("").unwrap();
                canonical_name(&catalogue, "mistral", name.strip_prefix("mistral/").unwrap())
            })
            .collect();
        assert_eq!(leads.len(), names.len(), "{names:?}");
        assert_eq!(roster.to_ask, LOOKED_FOR);
    }

    #[test]
    fn configured_provider_models_replace_discovery() {
        let roster = roster(
            "[provider]\ndefault = \"one\"\nmodel = \"m\"\n\
             [provider.endpoints]\none = \"http://127.0.0.1:1\"\ntwo = \"https://x.example\"\n\
             three = \"https://y.example\"\nhere = \"http://localhost:2\"\n\
             [provider.models]\ntwo = [\"a\", \"b\"]\n",
        );
        assert_eq!(names(&roster), ["one/m", "two/a", "two/b"]);
        assert_eq!(roster.to_ask, ["here", "ollama", "llamacpp"]);
        assert_eq!(roster.left.len(), 1);
        assert!(roster.left[0].name == "three" && roster.left[0].why.contains("provider.models"));
    }

    #[test]
    fn disabled_model_or_model_without_api_key_is_listed_with_the_reason() {
        let roster = roster(
            "[provider.api_keys]\ngroq = \"k\"\n[provider.models]\ngroq = [\"a\", \"b\"]\n\
             [[arms]]\nid = \"groq/a\"\nenabled = false\n\
             [[arms]]\nid = \"groq/c\"\n[[arms]]\nid = \"openai/x\"\n",
        );
        assert_eq!(names(&roster), ["groq/b", "groq/c"]);
        let why = |name: &str| {
            roster.left.iter().find(|left| left.name == name).map(|left| left.why.clone()).unwrap()
        };
        assert!(why("openai/x").contains("OPENAI_API_KEY"));
        assert!(why("groq/a").contains("enabled = false"));
    }
}
