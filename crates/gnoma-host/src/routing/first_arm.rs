//! Finds the first arm: the one that flags, environment and settings name, else the first that answers.

use std::{collections::BTreeSet, time::Duration};

use gnoma_config::settings::{Provider, arm_named};
use gnoma_core::{
    ModelInfo, ModelRef,
    protocol::{Overrides, SessionSpec},
};
use gnoma_guard::firewall::{Connection, Firewall};
use gnoma_llm::{KNOWN, KnownProvider, catalogue};
use gnoma_net::Http;
use tokio::time::timeout;

use super::{
    arms::ArmFactory,
    owner::{self, PASSING_ON},
    roster::UnusableModel,
    slm,
};
use crate::{HostError, Result, agents, crate_options, project_settings::RoutingSettings};

/// The time that a server on this machine may take to say what it is.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Most reasons that are shown if no arm is left.
const MOST_REASONS: usize = 5;

/// The prefix of an agent's full name.
const AGENT_PREFIX: &str = "agent/";

/// The text for a user who has set up nothing.
const HOW_TO_START: &str = "no model is set up yet. Do one of these:
  gnoma                          at a terminal: finds or asks for a provider, tests it and saves it
  gnoma providers add NAME       the same in a script
  export MISTRAL_API_KEY=…       or ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …
  ollama pull qwen3:8b           for Ollama on this machine; llama.cpp works too
  gnoma demo                     shows a whole turn without any of these
`gnoma providers` lists what gnoma can talk to.";

/// Returns the overrides of a run with the provider and model that its environment names, where no option does. A
/// model that an option names is looked for by its own name, whatever provider the environment has.
pub(crate) fn run_overrides(SessionSpec { overrides, environment, .. }: &SessionSpec) -> Overrides {
    let variable = |name| environment.get(name).map(str::to_owned);
    let mut overrides = overrides.clone();
    if overrides.model.is_none() {
        overrides.provider = overrides.provider.or_else(|| variable("GNOMA_PROVIDER"));
        overrides.model = variable("GNOMA_MODEL");
    }
    overrides
}

/// Reports whether the user has asked for an arm by name, for this run.
pub(super) fn is_pinned(overrides: &Overrides) -> bool {
    overrides.provider.is_some() || overrides.model.is_some()
}

/// The settings with what the [overrides of the run](run_overrides) mean by `provider/model`, and with the server of
/// the small model.
pub(crate) fn settings_with_overrides(
    settings: &RoutingSettings,
    overrides: &Overrides,
) -> RoutingSettings {
    let mut settings = settings.clone();
    let overrides = &with_known_provider(&settings.provider, overrides);
    if let Some((name, url)) = slm::endpoint(&settings) {
        let url = url.to_owned();
        settings.provider.endpoints.entry(name.to_owned()).or_insert(url);
    }
    if let Some((provider, model)) = provider_and_model(&settings.provider, overrides) {
        settings.provider.default = Some(provider);
        settings.provider.model = Some(model);
    }
    let named = overrides.model.as_deref().filter(|_| overrides.provider.is_none());
    if let Some(agent) = named.and_then(|named| agent_name(&settings, named)) {
        settings.provider.default = Some(agents::PROVIDER.to_owned());
        settings.provider.model = Some(agent.to_owned());
    } else if let Some((provider, model)) =
        named.and_then(|named| split_name(&settings.provider, named))
    {
        settings.provider.default = Some(provider);
        settings.provider.model = Some(model);
    } else if let Some(model) = model_without_provider(&settings.provider, overrides)
        && let Some(owner) = owner::owner_with_key(&settings.provider, &model)
    {
        settings.provider.default = Some(owner.to_owned());
        settings.provider.model = Some(model);
    }
    settings
}

/// The agent that a name means. Before `agent/` it is always one, unless a provider of that name is set up.
fn agent_name<'n>(settings: &RoutingSettings, named: &'n str) -> Option<&'n str> {
    let is_there = |name: &&str| settings.agents.find_by_name(name).is_some();
    match named.strip_prefix(AGENT_PREFIX) {
        Some(name) if !settings.provider.endpoints.contains_key(agents::PROVIDER) => Some(name),
        Some(name) => Some(name).filter(is_there),
        None => Some(named).filter(is_there),
    }
}

/// Spells the provider of `--model provider/model` as the settings do, if only one has that name without regard to case.
fn with_known_provider(provider: &Provider, overrides: &Overrides) -> Overrides {
    let mut overrides = overrides.clone();
    let Some((before, model)) = overrides
        .model
        .as_deref()
        .filter(|_| overrides.provider.is_none())
        .and_then(|model| model.split_once('/'))
    else {
        return overrides;
    };
    let known = KNOWN.iter().map(|known| known.name);
    let set_up = provider.endpoints.keys().chain(provider.api_keys.keys());
    let mut names: Vec<&str> = known.chain(set_up.map(String::as_str)).collect();
    names.retain(|name| name.eq_ignore_ascii_case(before));
    names.dedup();
    let is_exact = names.contains(&before);
    match names.as_slice() {
        [first, others @ ..] if !is_exact && others.iter().all(|name| name == first) => {
            overrides.model = Some(format!("{first}/{model}"));
        }
        _ => (),
    }
    overrides
}

/// Provider and model, where the settings have both in one: as the provider, or as a model that cannot be one of
/// the provider that is set.
fn provider_and_model(provider: &Provider, overrides: &Overrides) -> Option<(String, String)> {
    let default = provider.default.as_deref();
    if let Some((before, model)) = default.and_then(|default| default.split_once('/')) {
        let is_known = KNOWN.iter().any(|known| known.name == before);
        let model = provider.model.as_deref().unwrap_or(model);
        return is_known.then(|| (before.to_owned(), model.to_owned()));
    }
    let named = provider.model.as_deref().filter(|_| overrides.provider.is_none())?;
    if let Some(model) = default.and_then(|default| own_model(provider, default, named)) {
        return Some((default?.to_owned(), model.to_owned()));
    }
    let is_open = default.is_none_or(|default| !owner::may_have(provider, default, named));
    if is_open { split_name(provider, named) } else { None }
}

/// The model behind the name of the provider that is asked by default, unless the whole is the name of a model there.
fn own_model<'n>(provider: &Provider, default: &str, named: &'n str) -> Option<&'n str> {
    let model = named.strip_prefix(default)?.strip_prefix('/')?;
    let listed = provider.models.get(default);
    let is_own = listed.is_some_and(|models| models.iter().any(|it| it == named))
        || PASSING_ON.contains(&default)
        || catalogue::lookup(default, named).is_some();
    (!is_own).then_some(model)
}

/// The model that is named without a provider, for this run or where none is set.
fn model_without_provider(provider: &Provider, overrides: &Overrides) -> Option<String> {
    let named = if overrides.provider.is_some() { None } else { overrides.model.as_ref() };
    named.or(provider.model.as_ref().filter(|_| provider.default.is_none())).cloned()
}

/// Provider and model of a name that has both: the call goes there, or nowhere. Ids of models may have slashes of
/// their own, so a model that the default provider has or may have is its own.
fn split_name(provider: &Provider, named: &str) -> Option<(String, String)> {
    let (before, model) = named.split_once('/')?;
    let is_known = |known: &KnownProvider| known.name == before;
    let is_set_up = provider.endpoints.contains_key(before)
        || provider.api_keys.contains_key(before)
        || provider.key_commands.contains_key(before)
        || KNOWN.iter().any(|known| is_known(known) && known.local);
    let is_own = match provider.default.as_deref() {
        Some(default) if default == before => false,
        Some(default) => {
            PASSING_ON.contains(&default) || catalogue::lookup(default, named).is_some()
        }
        // Without a key of the vendor, the one who passes calls on is meant.
        None => !is_set_up && PASSING_ON.iter().any(|name| provider.api_keys.contains_key(*name)),
    };
    let is_provider = is_set_up || KNOWN.iter().any(is_known);
    (is_provider && !is_own).then(|| (before.to_owned(), model.to_owned()))
}

/// The models of a provider that `[[arms]]` turns off.
pub(super) fn turned_off(settings: &RoutingSettings, provider: &str) -> BTreeSet<String> {
    let off = settings.arms.iter().filter(|(_, arm)| !arm.enabled);
    let off = off.filter_map(|(name, _)| arm_named(name));
    gnoma_core::sort::to_set(off.filter(|arm| arm.provider == provider).map(|arm| arm.model))
}

/// Finds the arm that is asked first, with what its server tells of it. Only servers on this machine are asked, unless nothing else tells a model.
/// A model that is turned off is not chosen, unless it `is_pinned`: named for this run.
pub(super) async fn find_first_arm(
    maker: &mut ArmFactory,
    http: &Http,
    firewall: &Firewall,
    is_pinned: bool,
) -> Result<(ModelRef, ModelInfo)> {
    let default = maker.settings().provider.default.clone();
    let name = match default {
        Some(name) => name,
        None => match find_provider(&maker.settings().provider, http).await {
            Some(known) => known.name.to_owned(),
            // What is wrong with the one that is set up says more than how to begin.
            None => match only_provider(&maker.settings().provider) {
                Some(name) => name,
                None => return Err(no_provider_error(&maker.settings().provider)),
            },
        },
    };
    if name == agents::PROVIDER {
        let model = maker.settings().provider.model.clone().unwrap_or_default();
        let arm = ModelRef { provider: name, model };
        return maker.make_arm(&arm, &ModelInfo::default()).map(|_| (arm, ModelInfo::default()));
    }
    if let Some(model) = &maker.settings().provider.model {
        owner::check_owner(&maker.settings().provider, &name, model)?;
    }
    let connection = maker.connection(&name)?;
    let settings = maker.settings();
    let off = if is_pinned { BTreeSet::new() } else { turned_off(settings, &name) };
    let told = choose_model(&settings.provider, &name, &off, &connection, firewall).await?;
    Ok((ModelRef { provider: name, model: told.id.clone() }, told))
}

/// The provider that is asked when none is named: the first with a key, else a server on this machine.
pub async fn find_provider(provider: &Provider, http: &Http) -> Option<&'static KnownProvider> {
    let has_key = |known: &&KnownProvider| provider.api_keys.contains_key(known.name);
    if let Some(known) = KNOWN.iter().find(|known| !known.local && has_key(known)) {
        return Some(known);
    }
    for known in KNOWN.iter().filter(|known| matches!(known.name, "ollama" | "llamacpp")) {
        let Ok(profile) = crate_options::provider_profile(provider, known.name) else {
            continue;
        };
        let server = gnoma_llm::connect_provider(profile, http.clone());
        let models = timeout(PROBE_TIMEOUT, server.list_models()).await;
        if matches!(models, Ok(Ok(models)) if !models.is_empty()) {
            return Some(known);
        }
    }
    None
}

/// The models of a provider that are chosen without asking it, the best first: the one that is set, those that are listed
/// for it, and its usual one.
pub(super) fn model_candidates<'p>(
    provider: &'p Provider,
    name: &'p str,
) -> impl Iterator<Item = &'p str> {
    let known = KNOWN.iter().find(|known| known.name == name);
    let usual = known.map(|known| known.default_model).filter(|model| !model.is_empty());
    let listed = provider.models.get(name).into_iter().flatten().map(String::as_str);
    provider.model.as_deref().into_iter().chain(listed).chain(usual)
}

/// The model, with what its server tells of it. Only servers of people's own are asked.
async fn choose_model(
    provider: &Provider,
    name: &str,
    off: &BTreeSet<String>,
    connection: &Connection,
    firewall: &Firewall,
) -> Result<ModelInfo> {
    let known = KNOWN.iter().find(|known| known.name == name);
    let named = model_candidates(provider, name).find(|model| !off.contains(*model));
    let is_listed = provider.models.get(name).is_some_and(|models| !models.is_empty());
    if named.is_none() && is_listed {
        return Err(all_turned_off(name));
    }
    let unasked = |named: &str| ModelInfo { id: named.to_owned(), ..ModelInfo::default() };
    let is_own = known.is_some_and(|known| known.local);
    if !is_own && let Some(named) = named {
        return Ok(unasked(named));
    }
    let models = match (timeout(PROBE_TIMEOUT, connection.list_models()).await, named) {
        (Ok(Ok(models)), _) => models,
        (_, Some(named)) => return Ok(unasked(named)),
        (Ok(Err(error)), None) => return Err(firewall.redact_error(error).into()),
        (Err(_), None) => {
            let text = format!("`{name}` does not list its models; choose one with --model");
            return Err(HostError::usage(text));
        }
    };
    let chosen = match named {
        Some(named) => models.iter().find(|model| model.id == named),
        None => models.iter().find(|model| !off.contains(&model.id)),
    };
    match (chosen, named) {
        (None, None) if !models.is_empty() => Err(all_turned_off(name)),
        (Some(model), _) => Ok(model.clone()),
        (None, Some(named)) => Ok(unasked(named)),
        (None, None) => {
            let text = format!("`{name}` has no model; load one, or name one with --model");
            Err(HostError::usage(text))
        }
    }
}

fn all_turned_off(name: &str) -> HostError {
    HostError::usage(format!(
        "every model of `{name}` is turned off (`enabled = false` under `[[arms]]`); turn one on, or name \
         one with --model"
    ))
}

/// The one provider whose address was set, where no model is named.
fn only_provider(provider: &Provider) -> Option<String> {
    let mut set_up = provider.endpoints.keys().filter(|_| provider.model.is_none());
    set_up.next().filter(|_| provider.endpoints.len() == 1).cloned()
}

/// Returns the error for when there is no model to ask by default: it says what to do, for users who have named a
/// model and for the others.
fn no_provider_error(provider: &Provider) -> HostError {
    let set_up: Vec<&str> = provider.endpoints.keys().map(String::as_str).collect();
    let maker = provider.model.as_deref().and_then(|model| owner::possible_makers(model).next());
    let profile = maker.and_then(|maker| crate_options::provider_profile(provider, maker).ok());
    if let Some(profile) = profile.filter(|_| set_up.is_empty()) {
        return crate_options::missing_key(&profile);
    }
    match &provider.model {
        Some(model) if !set_up.is_empty() => HostError::usage(format!(
            "which provider has the model `{model}`? Name both, as in --model PROVIDER/MODEL; \
             these providers are set up: {}",
            set_up.join(", ")
        )),
        None if !set_up.is_empty() => HostError {
            remedy: Some("choose one with --provider, or set `provider.default`".to_owned()),
            ..HostError::usage(format!(
                "none of the providers that are set up is the default: {}",
                set_up.join(", ")
            ))
        },
        Some(_) | None => HostError::usage(HOW_TO_START),
    }
}

/// No arm is left: why.
pub(super) fn no_arm_error(left: &[UnusableModel]) -> HostError {
    if left.is_empty() {
        return HostError::usage(HOW_TO_START);
    }
    let reasons = left
        .iter()
        .take(MOST_REASONS)
        .map(|UnusableModel { name, why }| format!("\n  {name} {why}"));
    HostError::usage(format!("no model is available:{}", reasons.collect::<String>()))
}
