//! Finds the vendor of a model that is named without a provider. A model of one vendor that is sent to another costs a
//! refusal which says no more than that it is not there.

use gnoma_config::{env, settings::Provider};
use gnoma_core::{ModelRef, protocol::Overrides};
use gnoma_llm::{KNOWN, catalogue};

use crate::{HostError, Result, project_settings::RoutingSettings, provider_names};

/// Providers that pass calls on, and name each model by its vendor and a slash.
pub(super) const PASSING_ON: &[&str] = &["openrouter"];

/// Vendors that serve models of their own only.
const MAKERS: &[&str] = &["mistral", "anthropic", "openai", "google", "deepseek", "xai"];

/// The vendor with a key whose model that is, where the provider that is asked by default does not have it.
pub(super) fn owner_with_key(provider: &Provider, model: &str) -> Option<&'static str> {
    let default = provider.default.as_deref();
    if default.is_some_and(|default| may_have(provider, default, model)) {
        return None;
    }
    possible_makers(model).find(|maker| has_key(provider, maker))
}

/// Refuses a model for this run whose name is empty, or begins like the misspelled name of a provider: another provider
/// would be sent what was meant for that one. A model that is named beside its provider is that provider's affair.
pub(super) fn check_name(provider: &Provider, overrides: &Overrides) -> Result<()> {
    let Some(model) = overrides.model.as_deref() else { return Ok(()) };
    let id = model.rsplit('/').next().unwrap_or(model);
    if id.trim().is_empty() {
        let why = if model.trim().is_empty() {
            "--model is empty".to_owned()
        } else {
            format!("`{model}` names no model")
        };
        return Err(HostError::usage(format!("{why}; `gnoma models` lists those that there are")));
    }
    let is_alone = overrides.provider.is_none();
    match misspelled_provider(provider, model).filter(|_| is_alone) {
        None => Ok(()),
        Some((wrong, meant, id)) => Err(HostError::usage(format!(
            "`{wrong}` is not a provider; did you mean `{meant}/{id}`? A model of the name `{model}` has its provider \
             before it, as in `--model {meant}/{model}`"
        ))),
    }
}

/// Returns what the user should know about a model that was named for this run, or else in the settings, and goes to
/// another provider than its name seems to say. `arm`: where it goes.
pub(super) fn owner_notice(
    settings: &RoutingSettings,
    overrides: &Overrides,
    arm: &ModelRef,
) -> Option<String> {
    if overrides.model.is_none() && overrides.provider.is_none() {
        return setting_notice(settings, arm);
    }
    let (ModelRef { provider: name, model }, provider) = (arm, &settings.provider);
    let named = overrides.model.as_deref().filter(|named| named == model)?;
    let is_listed = provider.models.get(name).is_some_and(|models| models.contains(model));
    // Servers of many models have names of all makers, and names with slashes.
    let serves_any =
        KNOWN.iter().any(|known| known.name == *name) && !MAKERS.contains(&name.as_str());
    let is_expected = serves_any
        || overrides.provider.is_some()
        || is_listed
        || settings.arms.contains_key(&arm.to_string())
        || catalogue::lookup(name, model).is_some();
    if is_expected {
        return None;
    }
    if let Some(owner) = possible_makers(model).next().filter(|owner| owner != name) {
        return Some(format!(
            "`{model}` is a model of `{owner}`, and `{name}` is asked for it; --model {owner}/{model} asks `{owner}`"
        ));
    }
    if let Some((before, id)) = named.split_once(':')
        && provider_names::provider_names(provider).iter().any(|known| known == before)
    {
        return Some(format!(
            "`{name}` is asked for the model `{model}`; --model {before}/{id} asks `{before}` for `{id}`"
        ));
    }
    let (before, _) = named.split_once('/')?;
    if before.is_empty() {
        return Some(format!(
            "`{model}` names no provider before its `/`, so `{name}` is asked for the model `{model}`"
        ));
    }
    Some(format!("there is no provider `{before}`, so `{name}` is asked for the model `{model}`"))
}

/// Returns what the user should know if `provider.model` begins with the name of another provider than the one that
/// `provider.default` names and that is asked for it. `arm`: where it goes.
fn setting_notice(settings: &RoutingSettings, arm: &ModelRef) -> Option<String> {
    let (ModelRef { provider: name, model }, provider) = (arm, &settings.provider);
    let is_set = provider.default.as_ref() == Some(name) && provider.model.as_ref() == Some(model);
    let is_expected = provider.models.get(name).is_some_and(|models| models.contains(model))
        || settings.arms.contains_key(&arm.to_string())
        || catalogue::lookup(name, model).is_some();
    if !is_set || is_expected {
        return None;
    }
    let asked = format!("`{name}`, which `provider.default` names, is asked for it");
    if let Some((_, meant, id)) = misspelled_provider(provider, model) {
        let meant = format!("did you mean `{meant}/{id}`?");
        return Some(format!("`provider.model` is `{model}`; {asked}; {meant}"));
    }
    let (head, id) = model.split_once('/')?;
    let owner = possible_makers(id).find(|owner| *owner == head && *owner != name.as_str())?;
    Some(format!(
        "`provider.model` is `{model}`; {asked}; `provider.default = \"{owner}\"` asks `{owner}`, and a line in \
         `provider.models.{name}` says that the model is there"
    ))
}

/// Refuses the model of another vendor.
pub(super) fn check_owner(provider: &Provider, name: &str, model: &str) -> Result<()> {
    let owner = possible_makers(model)
        .next()
        .filter(|owner| *owner != name && !may_have(provider, name, model));
    let Some(owner) = owner else { return Ok(()) };
    let what_to_do = if has_key(provider, owner) {
        format!("use --provider {owner}")
    } else {
        let variable = env::key_variables(owner).into_iter().next().unwrap_or_default();
        format!("export {variable}=… to use it, or choose another (`gnoma models` lists them)")
    };
    Err(HostError::usage(format!(
        "`{name}` does not have the model `{model}`, which is one of `{owner}`; {what_to_do}"
    )))
}

/// The beginning of a model's name, the provider that it is near to, and the rest of the name. Publishers of models have
/// names that are like those of providers, so only one slip counts.
fn misspelled_provider<'m>(
    provider: &'m Provider,
    model: &'m str,
) -> Option<(&'m str, &'m str, &'m str)> {
    /// Shorter names are near to each other by chance.
    const MIN_LENGTH: usize = 5;
    /// A person's own provider is meant sooner than a publisher of models.
    const MIN_OWN_LENGTH: usize = 4;
    let (head, id) = model.split_once('/')?;
    let known = KNOWN.iter().map(|known| known.name);
    let mut names = known.chain(provider.endpoints.keys().map(String::as_str));
    let is_listed = |name: &str| catalogue::lookup(name, model).is_some();
    let is_default = provider.default.as_deref().is_some_and(is_listed);
    if is_default || names.clone().any(|known| known.eq_ignore_ascii_case(head)) {
        return None;
    }
    let is_long = |known: &str| match provider.endpoints.contains_key(known) {
        true => known.len() >= MIN_OWN_LENGTH,
        false => known.len() >= MIN_LENGTH && head.len() >= MIN_LENGTH,
    };
    let written = head.to_ascii_lowercase();
    let meant = names.find(|known| is_long(known) && is_one_slip(&written, known))?;
    Some((head, meant, id))
}

/// Reports whether two words differ by one letter that is wrong, missing, too much, or swapped with the next.
fn is_one_slip(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let same = short.iter().zip(&long).take_while(|(a, b)| a == b).count();
    let (short, long) =
        (short.get(same..).unwrap_or_default(), long.get(same..).unwrap_or_default());
    match (short, long) {
        ([a, b, short @ ..], [c, d, long @ ..]) if a == d && b == c && short == long => true,
        ([_, short @ ..], [_, long @ ..]) if short == long => true,
        (short, [_, long @ ..]) => short == long,
        _ => false,
    }
}

fn has_key(provider: &Provider, name: &str) -> bool {
    provider.api_keys.contains_key(name) || provider.key_commands.contains_key(name)
}

/// The prefixes of vendors' own models, also of those that are newer than the catalogue.
const FAMILIES: &[(&str, &[&str])] = &[
    ("mistral", &["mistral-", "magistral-", "codestral-", "devstral-", "ministral-", "pixtral-"]),
    ("anthropic", &["claude-"]),
    ("openai", &["gpt-3", "gpt-4", "gpt-5", "gpt-6", "chatgpt-", "codex-", "o1", "o3", "o4-"]),
    ("google", &["gemini-"]),
    ("deepseek", &["deepseek-chat", "deepseek-reasoner", "deepseek-v"]),
    ("xai", &["grok-"]),
];

/// Those that list the model, or whose models are named like it.
pub(super) fn possible_makers(model: &str) -> impl Iterator<Item = &'static str> {
    let is_named = |maker: &str| {
        let family = FAMILIES.iter().find(|(name, _)| *name == maker);
        family.is_some_and(|(_, begins)| begins.iter().any(|begin| model.starts_with(begin)))
    };
    MAKERS
        .iter()
        .copied()
        .filter(move |maker| catalogue::lookup(maker, model).is_some() || is_named(maker))
}

/// Reports whether a provider can have the model, as far as is known: an address of the user's own may lead
/// anywhere.
pub(super) fn may_have(provider: &Provider, name: &str, model: &str) -> bool {
    !MAKERS.contains(&name)
        || provider.endpoints.contains_key(name)
        || catalogue::lookup(name, model).is_some()
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;
    use gnoma_core::Secret;

    use super::*;
    use crate::project_settings::ProjectSettings;

    fn with_keys(names: &[&str]) -> Provider {
        let sources = Sources { config_dir: "/nonexistent".into(), ..Sources::default() };
        let provider = gnoma_config::load_settings(&sources).unwrap().settings.provider;
        let key = |name: &&str| ((*name).to_owned(), Secret::new("k".to_owned()));
        Provider { api_keys: names.iter().map(key).collect(), ..provider }
    }

    #[test]
    fn model_name_selects_its_vendor_if_an_api_key_is_set() {
        let both = with_keys(&["anthropic", "openai"]);
        assert_eq!(owner_with_key(&both, "gpt-4o"), Some("openai"));
        assert_eq!(owner_with_key(&both, "nobody-knows-it"), None);
        assert_eq!(owner_with_key(&with_keys(&["anthropic"]), "gpt-4o"), None);
        let default = |name: &str| Provider { default: Some(name.to_owned()), ..both.clone() };
        assert_eq!(owner_with_key(&default("anthropic"), "gpt-4o"), Some("openai"));
        assert_eq!(owner_with_key(&default("openrouter"), "gpt-4o"), None);
        let mut proxied = default("anthropic");
        proxied.endpoints.insert("anthropic".to_owned(), "http://proxy/v1".to_owned());
        assert_eq!(owner_with_key(&proxied, "gpt-4o"), None);
    }

    #[test]
    fn model_setting_with_another_provider_prefix_warns() {
        let mut own = with_keys(&[]);
        own.endpoints.insert("mock".to_owned(), "http://mock/v1".to_owned());
        let sources = Sources { config_dir: "/nonexistent".into(), ..Sources::default() };
        let loaded = gnoma_config::load_settings(&sources).unwrap();
        let settings = ProjectSettings::from(loaded).routing;
        let told = |model: &str, listed: &[&str]| {
            let mut provider = own.clone();
            (provider.default, provider.model) = (Some("mock".to_owned()), Some(model.to_owned()));
            let listed: Vec<String> = listed.iter().map(|&it| it.to_owned()).collect();
            provider.models.insert("mock".to_owned(), listed);
            let arm = ModelRef { provider: "mock".into(), model: model.into() };
            setting_notice(&RoutingSettings { provider, ..settings.clone() }, &arm)
        };
        for (model, part) in [
            ("anthropic/claude-opus-4-7", "`provider.default = \"anthropic\"` asks `anthropic`"),
            ("openai/gpt-5", "`provider.models.mock`"),
            ("mcok/m", "did you mean `mock/m`?"),
        ] {
            let said = told(model, &[]).unwrap_or_else(|| panic!("{model}"));
            assert!(said.contains(part) && said.contains("`mock`, which"), "{said}");
            assert_eq!(told(model, &[model]), None, "{model}");
        }
        for model in ["m", "gpt-5", "openai/gpt-oss-20b", "qwen/qwen3", "meta-llama/Llama-3"] {
            assert_eq!(told(model, &[]), None, "{model}");
        }
    }

    #[test]
    fn model_with_a_provider_before_a_colon_warns() {
        let mut provider = with_keys(&[]);
        provider.endpoints.insert("mock".to_owned(), "http://mock/v1".to_owned());
        let sources = Sources { config_dir: "/nonexistent".into(), ..Sources::default() };
        let loaded = gnoma_config::load_settings(&sources).unwrap();
        let settings = RoutingSettings { provider, ..ProjectSettings::from(loaded).routing };
        let told = |model: &str| {
            let overrides = Overrides { model: Some(model.to_owned()), ..Overrides::default() };
            let arm = ModelRef { provider: "mock".into(), model: model.into() };
            owner_notice(&settings, &overrides, &arm)
        };
        let said = told("openai:gpt-5").unwrap();
        assert!(said.contains("--model openai/gpt-5 asks `openai`"), "{said}");
        assert_eq!(told("qwen3:4b"), None);
    }

    #[test]
    fn a_misspelled_provider_and_an_empty_name_are_refused() {
        let mut own = with_keys(&["anthropic"]);
        own.endpoints.insert("work".to_owned(), "http://work/v1".to_owned());
        own.default = Some("work".to_owned());
        let named = |model: &str, provider: Option<&str>| {
            let provider = provider.map(str::to_owned);
            let model = Some(model.to_owned());
            check_name(&own, &Overrides { model, provider, ..Overrides::default() })
        };
        for model in [
            "antropic/claude-x",
            "anthropix/c",
            "nathropic/c",
            "opnai/gpt-x",
            "mistrall/m",
            "mistrl/large",
            "Mistrl/large",
            "wrok/m",
            "wrk/m",
        ] {
            let said = named(model, None).unwrap_err().to_string();
            assert!(said.contains("did you mean"), "{said}");
            assert!(named(model, Some("work")).is_ok(), "{model}");
        }
        for model in [
            "mistralai/Mistral-7B",
            "deepseek-ai/DeepSeek-V3",
            "x-ai/grok",
            "meta-llama/Llama-3",
            "moonshotai/kimi",
            "anthropic/claude",
            "openai/gpt-oss-20b",
            "qwen3",
            "qwen/qwen3",
            "nosuch/m",
            "grok/g",
        ] {
            assert!(named(model, None).is_ok(), "{model}");
        }
        for model in ["", " ", "work/", "openai/ "] {
            let said = named(model, None).unwrap_err().to_string();
            let why = if model.trim().is_empty() { "--model is empty" } else { "names no model" };
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn model_of_another_vendor_is_rejected_with_a_hint() {
        let one = with_keys(&["anthropic"]);
        let said = check_owner(&one, "anthropic", "gpt-4o").unwrap_err().to_string();
        assert!(said.contains("one of `openai`; export OPENAI_API_KEY"), "{said}");
        let both = with_keys(&["anthropic", "openai"]);
        let said = check_owner(&both, "anthropic", "gpt-4o").unwrap_err().to_string();
        assert!(said.contains("use --provider openai"), "{said}");
        for (name, model) in [("anthropic", "claude-new"), ("azure", "gpt-4o"), ("lite", "gpt-4o")]
        {
            assert!(check_owner(&one, name, model).is_ok(), "{name} {model}");
        }
        // Newer than the catalogue.
        for (model, owner) in
            [("claude-99", "anthropic"), ("gpt-5.9-mini", "openai"), ("gemini-9", "google")]
        {
            let said =
                check_owner(&with_keys(&["mistral"]), "mistral", model).unwrap_err().to_string();
            assert!(said.contains(&format!("one of `{owner}`")), "{said}");
        }
        assert!(check_owner(&one, "mistral", "my-own-finetune").is_ok());
    }
}
