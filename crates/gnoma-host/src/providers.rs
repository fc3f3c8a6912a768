//! Providers: which there are, whether they respond, and which models they have.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use gnoma_config::{
    edit::Change,
    env::{bare_key, variables_of},
    load::check_value,
    settings::Provider,
};
use gnoma_core::{ErrorKind, Secret};
use gnoma_llm::{KNOWN, Profile, catalogue};
use gnoma_net::Http;

pub use crate::new_provider::{KeySource, NewProvider};
use crate::{
    Folders as _, HostError, Project, Result, crate_options, key_command,
    project_settings::{ProjectSettings, RoutingSettings},
    provider_names::provider_names,
    routing::{self, find_provider},
    setting,
};

/// The time a provider may take to list its models for a user who chooses one.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The provider whose models are called by names that users give them, while it lists other names.
const DEPLOYMENTS: &str = "azure";
/// Shorter parts are in too many names.
const MIN_PART_CHARS: usize = 3;
/// Fewer digits behind a name are another model, not a version of one.
const MIN_VERSION_CHARS: usize = 3;
/// The time a provider may take when the user asks whether it answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// A provider, and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderState {
    /// The name of the provider.
    pub name: String,
    /// `true` if the provider is asked by default.
    pub is_default: bool,
    /// The provider's reply, which shows its state.
    pub state: Answer,
}

/// A provider's reply to the request for its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The models that it has.
    Models {
        /// The address of the provider.
        url: String,
        /// The ids of the models.
        models: Vec<String>,
    },
    /// The provider cannot be asked, or gave no answer: the reason, in a sentence.
    Unusable(String),
}

/// Asks every provider that is known or configured for its models, all at once.
pub async fn query_providers(project: &Project) -> Vec<ProviderState> {
    let provider = &project.routing.provider;
    let mut seen = BTreeSet::new();
    let mut names = provider_names(provider);
    // One that does not exist is reported as such. Others have the model in the same setting.
    names.extend(provider.default.clone().filter(|name| !name.contains('/')));
    names.retain(|name| seen.insert(name.clone()));
    let asked = names.into_iter().map(|name| async move {
        let is_default = provider.default.as_ref() == Some(&name);
        let state = match crate_options::provider_profile(provider, &name) {
            Err(unusable) => Answer::Unusable(unusable.to_string()),
            Ok(profile) => query_provider(project, profile).await,
        };
        ProviderState { name, is_default, state }
    });
    join_all(asked).await
}

async fn query_provider(project: &Project, profile: Profile) -> Answer {
    let (url, variable) = (profile.base_url.clone(), profile.key_variable.clone());
    let hosted = KNOWN
        .iter()
        .any(|known| known.name == profile.name && known.base_url == url && !known.local);
    if hosted && profile.key.is_none() {
        return Answer::Unusable(format!("no key: export {variable}=…"));
    }
    let provider =
        gnoma_llm::connect_provider(profile, project.shared.http(&project.routing.network));
    match tokio::time::timeout(PATIENCE, provider.list_models()).await {
        Err(_) => Answer::Unusable(format!("no answer from {url}")),
        Ok(Err(error)) => {
            let error = project.firewall.redact_error(error);
            let text = error.to_string();
            let text = text.strip_prefix(&format!("{}: ", error.provider)).unwrap_or(&text);
            let place = if text.contains(&url) { String::new() } else { format!("{url}: ") };
            let hint = error.hint.as_ref().filter(|_| error.kind == ErrorKind::Auth);
            let hint = hint.map_or_else(String::new, |hint| format!(". {hint}"));
            Answer::Unusable(format!("{place}{text}{hint}"))
        }
        Ok(Ok(models)) if models.is_empty() => {
            Answer::Unusable(format!("works at {url} but lists no models"))
        }
        Ok(Ok(models)) => {
            Answer::Models { url, models: models.into_iter().map(|model| model.id).collect() }
        }
    }
}

/// Providers that one could be set up with, where none can be asked; `None` where one can. Asks the
/// network only where neither the settings nor the environment name one.
pub async fn to_set_up(project: &Project) -> Option<Vec<String>> {
    let provider = &project.routing.provider;
    if provider.default.is_some() || has_key(provider) {
        return None;
    }
    let http = project.shared.http(&project.routing.network);
    if find_provider(provider, &http).await.is_some() {
        return None;
    }
    Some(hosted_providers())
}

/// The providers for which a key can be entered.
#[must_use]
pub fn hosted_providers() -> Vec<String> {
    let hosted = KNOWN.iter().filter(|known| !known.local);
    hosted.map(|known| known.name.to_owned()).collect()
}

fn has_key(provider: &Provider) -> bool {
    KNOWN.iter().any(|known| !known.local && provider.api_keys.contains_key(known.name))
}

/// All that could be asked: with a key, or at an address that the settings name.
#[must_use]
pub fn configured_providers(provider: &Provider) -> Vec<String> {
    let with_key = provider.api_keys.keys();
    let mut names: Vec<_> = with_key.chain(provider.endpoints.keys()).cloned().collect();
    names.extend(provider.default.clone());
    gnoma_core::sort::sort_items(&mut names);
    names.dedup();
    names
}

/// The models that all configured providers list, as `provider/model`. One that does not answer in
/// time has none.
pub async fn list_models(project: &Project) -> Vec<String> {
    let provider = &project.routing.provider;
    let asked = configured_providers(provider).into_iter().map(|name| async move {
        let http = project.shared.http(&project.routing.network);
        let Ok(listed) = fetch_models(http, provider, &name).await else { return Vec::new() };
        if let Some(address) = provider_address(provider, &name) {
            project.shared.remember_models(&name, &address, listed.clone());
        }
        listed.into_iter().map(|model| format!("{name}/{model}")).collect::<Vec<_>>()
    });
    join_all(asked).await.concat()
}

/// Returns the address of a provider: the same name may mean another server in another project.
fn provider_address(provider: &Provider, name: &str) -> Option<String> {
    crate_options::provider_profile(provider, name).ok().map(|profile| profile.base_url)
}

/// The models of a provider.
async fn fetch_models(http: Http, provider: &Provider, name: &str) -> Result<Vec<String>> {
    let provider =
        gnoma_llm::connect_provider(crate_options::provider_profile(provider, name)?, http);
    let models = tokio::time::timeout(TIMEOUT, provider.list_models()).await;
    let silent = |_| HostError::failure(format!("`{name}` does not respond"));
    Ok(models.map_err(silent)??.into_iter().map(|model| model.id).collect())
}

/// Checks that the provider of the model in the settings lists that model; a provider that was not asked for its
/// models yet is asked first.
///
/// # Errors
/// The provider lists other models; the error names the one that was probably meant.
pub(crate) async fn check_model(project: &Project) -> Result<()> {
    routing::check_model_name(project)?;
    let provider = &project.routing.provider;
    let Some(model) = &provider.model else { return Ok(()) };
    let name = match &provider.default {
        Some(name) => Some(name.as_str()),
        None => {
            let http = project.shared.http(&project.routing.network);
            find_provider(provider, &http).await.map(|known| known.name)
        }
    };
    let Some(name) = name else { return Ok(()) };
    if provider.models.get(name).is_some_and(|all| all.contains(model)) {
        return Ok(());
    }
    let Some(address) = provider_address(provider, name) else { return Ok(()) };
    if has_model(name, &project.shared.remembered_models(name, &address), model).is_ok() {
        return Ok(());
    }
    // The provider may have got it since, and one that does not answer may have it, too.
    let http = project.shared.http(&project.routing.network);
    let listed = fetch_models(http, provider, name).await.unwrap_or_default();
    match has_model(name, &listed, model) {
        Ok(()) => {
            project.shared.remember_models(name, &address, listed);
            Ok(())
        }
        Err(near) => {
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let remedy =
                format!("/model lists them; `/model {name}/{model}!` uses it all the same");
            let error = HostError::usage(format!("`{name}` has no model `{model}`{near}"));
            Err(HostError { remedy: Some(remedy), ..error })
        }
    }
}

/// Checks that the provider `name`, which lists these models, has one called `model`: one from the catalogue counts
/// as well, and any if users name the provider's models themselves.
///
/// # Errors
/// The provider has no such model; the error is the model that was probably meant, if one is near.
pub fn has_model(
    name: &str,
    listed: &[String],
    model: &str,
) -> std::result::Result<(), Option<String>> {
    if name == DEPLOYMENTS || catalogue::lookup(name, model).is_some() {
        return Ok(());
    }
    match_model(listed, model)
}

/// Checks that a name means one of the models; otherwise returns the one that is nearest to it.
fn match_model(listed: &[String], model: &str) -> std::result::Result<(), Option<String>> {
    let is_version = |rest: &str| {
        let rest = rest.trim_start_matches(['-', '@', ':']);
        let is_number =
            rest.len() >= MIN_VERSION_CHARS && rest.chars().all(|c| c.is_ascii_digit() || c == '-');
        rest == "latest" || is_number
    };
    let is_meant = |listed: &String| {
        listed == model
            || listed.strip_prefix(model).is_some_and(is_version)
            || model
                .strip_prefix(listed.as_str())
                .is_some_and(|rest| rest.starts_with(':') || is_version(rest))
    };
    if listed.is_empty() || listed.iter().any(is_meant) {
        return Ok(());
    }
    let all = || listed.iter().map(String::as_str);
    let near = gnoma_config::nearest_name(model, all()).map(str::to_owned);
    let is_part = |id: &str| {
        id.rsplit('/').next() == Some(model)
            || (model.len() >= MIN_PART_CHARS && id.contains(model))
    };
    let part = || all().find(|id| is_part(id));
    Err(near.or_else(|| part().map(str::to_owned)))
}

/// Checks that a provider which is not set up yet has an address and a protocol that can be written into the settings.
///
/// # Errors
/// The address or the protocol is none.
pub fn check_form(new: &NewProvider) -> Result<()> {
    if let Some(why) = new.address.as_deref().and_then(gnoma_config::wrong_address) {
        let why = match why.strip_prefix("must be an address ") {
            Some(rest) => format!("write the address {rest}"),
            None => format!("the address {why}"),
        };
        return Err(HostError::usage(why));
    }
    let Some(protocol) = &new.protocol else { return Ok(()) };
    let names = ["provider", "protocols", new.name.as_str()].map(str::to_owned);
    check_value(&names, &protocol.clone().into())
        .map_err(|error| HostError::usage(error.sentences()))
}

/// Asks a provider that is not set up yet for its models. `address_place` names what a person changes if the address is
/// wrong.
///
/// # Errors
/// The provider's key cannot be had, or the provider does not answer, or refuses. No secret is in the reason.
pub async fn try_new(
    project: &Project,
    new: &NewProvider,
    address_place: &str,
) -> Result<Vec<String>> {
    check_form(new)?;
    let key = match &new.key {
        KeySource::None => None,
        KeySource::Variable(variable) => match project.environment().get(variable) {
            Some(key) => Some(Secret::new(key.to_owned())),
            None => return Err(unset_variable(variable)),
        },
        KeySource::Command(command) => {
            let wait =
                || project.notices.info(key_command::describe_wait(command, "--key-command"));
            let key = key_command::run_key_command(command, project.environment(), &wait);
            let why = |why| HostError::failure(format!("`{command}` {why}"));
            Some(key.map_err(why)?)
        }
        KeySource::Entered(key) => Some(key.clone()),
    };
    let key = key.map(|key| Secret::new(bare_key(key.expose()).to_owned()));
    let shown = key.clone();
    let provider = new.apply(project.routing.provider.clone(), key, address_place);
    // As the next session will ask it.
    let network = saved_settings(project).map(|saved| saved.network);
    let http = project.shared.http(network.as_ref().unwrap_or(&project.routing.network));
    fetch_models(http, &provider, &new.name).await.map_err(|error| {
        let cause = project.firewall.redact_text(&error.cause).into_owned();
        let cause = match shown.as_ref().map(Secret::expose) {
            Some(key) if !key.is_empty() => cause.replace(key.as_str(), "[key]"),
            Some(_) | None => cause,
        };
        HostError { cause, ..error }
    })
}

/// Returns the settings of the files as they are now, which the next session has; `None` if they cannot be used.
pub(crate) fn saved_settings(project: &Project) -> Option<RoutingSettings> {
    let loaded = gnoma_config::load_settings(&crate_options::setting_sources(&project.spec));
    loaded.ok().map(|loaded| ProjectSettings::from(loaded).routing)
}

/// Reports whether a variable of the environment can have this name.
fn is_variable_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// The error of a variable that is not set. It is named only if it looks like a variable: a key may have been given in
/// its place.
fn unset_variable(name: &str) -> HostError {
    /// No longer word without `_` is usual for a variable.
    const MAX_WORD_BYTES: usize = 15;
    let is_upper = !name.contains(|c: char| c.is_ascii_lowercase());
    let is_word = name.contains('_') || name.len() <= MAX_WORD_BYTES;
    if is_variable_name(name) && is_upper && is_word {
        return HostError::usage(format!("the variable `{name}` is not set"));
    }
    HostError::usage(
        "--key-env takes the name of a variable that holds the key, such as MISTRAL_API_KEY, and no variable has the \
         given name; --key-stdin reads the key itself",
    )
}

/// Checks that a name can stand in front of a model, as in `work/gpt-5`, and on one line.
///
/// # Errors
/// The name is empty, or has blanks, slashes or control characters.
pub fn check_name(name: &str) -> Result<()> {
    let is_unfit = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    if !name.is_empty() && !name.contains(is_unfit) {
        return Ok(());
    }
    let name = name.escape_debug();
    Err(HostError::usage(format!(
        "`{name}` was not added: the name of a provider has no blanks, slashes or control characters"
    )))
}

/// Writes a provider into the person's own settings; returns a sentence that says where.
///
/// # Errors
/// The file cannot be changed; it is as it was then.
pub fn add_new(project: &Project, new: &NewProvider) -> Result<String> {
    if let KeySource::Variable(variable) = &new.key
        && !is_variable_name(variable)
    {
        return Err(unset_variable(variable));
    }
    let (name, provider) = (new.name.as_str(), &project.routing.provider);
    if !provider.endpoints.contains_key(name) {
        check_name(name)?;
    }
    let folder = project.environment().config_dir();
    let is_known = provider.endpoints.contains_key(name)
        || provider.api_keys.contains_key(name)
        || provider.default.as_deref() == Some(name);
    let verb = if is_known { "Changed" } else { "Added" };
    let changes = addition_changes(project, new);
    let mut told = setting::write_provider(&folder, name, verb, &changes)?;
    if let KeySource::Entered(_) = &new.key {
        told.push_str(", with its key as text that only you can read");
    }
    if let Some(before) = provider.default.as_deref().filter(|it| new.is_default && *it != name) {
        told.push_str(&format!(". New sessions start with it; before: `{before}`"));
    }
    Ok(told)
}

/// Returns the changes to the settings that add a provider.
fn addition_changes(project: &Project, new: &NewProvider) -> Vec<Change> {
    let name = new.name.as_str();
    let set = |table: &str, value: String| Change::set_path(&["provider", table, name], value);
    let mut changes = Vec::new();
    changes.extend(new.address.clone().map(|address| set("endpoints", address)));
    changes.extend(new.protocol.clone().map(|wire| set("protocols", wire)));
    changes.extend(match &new.key {
        KeySource::None => None,
        KeySource::Variable(variable) => Some(set("api_keys", format!("${{{variable}}}"))),
        KeySource::Command(command) => Some(set("key_commands", command.clone())),
        KeySource::Entered(key) => Some(set("api_keys", bare_key(key.expose()).to_owned())),
    });
    changes.extend(variables_change(project, new));
    changes.extend(new.model.clone().map(|model| {
        if new.is_default {
            Change::set_path(&["provider", "model"], model)
        } else {
            let known = project.routing.provider.models.get(name).into_iter().flatten();
            let others = known.filter(|known| **known != model).cloned();
            let all: Vec<_> = others.chain([model.clone()]).collect();
            Change::set_path(&["provider", "models", name], all)
        }
    }));
    if new.is_default {
        changes.push(Change::set_path(&["provider", "default"], name));
    }
    changes
}

/// Returns the change to the list of ignored variables: a key that was entered takes precedence over one in the
/// environment, and a variable that is named is read.
fn variables_change(project: &Project, new: &NewProvider) -> Option<Change> {
    let mut ignored = project.routing.provider.ignored_variables.clone();
    match &new.key {
        KeySource::None => return None,
        KeySource::Variable(variable) => ignored.retain(|name| name != variable),
        KeySource::Entered(_) | KeySource::Command(_) => {
            // An address of the environment stays, unless another one was given: the key was tried there.
            let tables =
                if new.address.is_some() { &SET_BY_VARIABLES[..] } else { &SET_BY_VARIABLES[..1] };
            ignored.extend(set_variables(project, &new.name, tables));
        }
    }
    let is_changed = ignored != project.routing.provider.ignored_variables;
    is_changed.then(|| Change::set_path(&["provider", "ignored_variables"], ignored))
}

/// The parts of a provider that variables of the environment set: its key and its address.
const SET_BY_VARIABLES: [&str; 2] = ["api_keys", "endpoints"];

/// The variables of the environment that set these parts of a provider, without those that are ignored.
fn set_variables(project: &Project, name: &str, tables: &[&str]) -> Vec<String> {
    let ignored = &project.routing.provider.ignored_variables;
    let is_set = |variable: &String| {
        project.environment().get(variable).is_some_and(|key| !key.trim().is_empty())
            && !ignored.contains(variable)
    };
    let all = tables.iter().flat_map(|table| variables_of(&["provider", table, name]));
    all.filter(is_set).collect()
}

/// Removes a provider from the person's own settings: its key, address, protocol and models. A key in the
/// environment is ignored from then on. Returns a sentence that says what was done.
///
/// # Errors
/// There is no such provider, or the file cannot be changed.
pub fn remove_provider(project: &Project, name: &str) -> Result<String> {
    let provider = &project.routing.provider;
    let variables = set_variables(project, name, &SET_BY_VARIABLES);
    let known = configured_providers(provider);
    if !known.iter().any(|known| known == name) && variables.is_empty() {
        let near = gnoma_config::nearest_name(name, known.iter().map(String::as_str));
        let near = near.map_or_else(
            || {
                format!(
                    "set up are: {}",
                    if known.is_empty() { "none".into() } else { known.join(", ") }
                )
            },
            |near| format!("did you mean `{near}`?"),
        );
        return Err(HostError::usage(format!("no provider `{name}` is set up; {near}")));
    }
    let tables = ["api_keys", "key_commands", "endpoints", "protocols", "context", "models"];
    let mut changes: Vec<Change> =
        tables.iter().map(|table| Change::remove(&["provider", table, name])).collect();
    if provider.default.as_deref() == Some(name) {
        changes.push(Change::remove(&["provider", "default"]));
        changes.push(Change::remove(&["provider", "model"]));
    }
    if !variables.is_empty() {
        let mut ignored = provider.ignored_variables.clone();
        ignored.extend(variables.iter().cloned());
        changes.push(Change::set_path(&["provider", "ignored_variables"], ignored));
    }
    let folder = project.environment().config_dir();
    let file = setting::write_all(&folder, &changes)
        .map_err(|error| HostError::usage(format!("`{name}` was not removed: {error}")))?;
    let ignored = match variables.as_slice() {
        [] => String::new(),
        names => format!("; gnoma no longer reads {}", names.join(" and ")),
    };
    Ok(format!("Removed `{name}` from {file}{ignored}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_key_written_in_place_of_a_variable_name_is_not_shown() {
        for key in ["sk-abc123", "gsk_abcDEF", "AIzaSyA", "AKIAIOSFODNN7EXAMPLE", "a b"] {
            let said = unset_variable(key).to_string();
            assert!(said.contains("name of a variable") && !said.contains(key), "{said}");
        }
        for name in ["MISTRAL_API_KEY", "TOKEN"] {
            assert!(unset_variable(name).to_string().contains(name), "{name}");
        }
    }

    #[test]
    fn model_name_matches_a_listed_id_with_or_without_version() {
        let listed = ["gpt-5", "claude-opus-4-20250514", "qwen3:latest", "meta/llama-3", "m:free"];
        let listed = listed.map(str::to_owned);
        for name in
            ["gpt-5", "claude-opus-4", "qwen3", "meta/llama-3", "gpt-5:online", "gpt-5-2026-01-01"]
        {
            assert_eq!(match_model(&listed, name), Ok(()), "{name}");
        }
        for (name, near) in [
            ("gtp-5", Some("gpt-5")),
            ("llama-3", Some("meta/llama-3")),
            ("opus", Some("claude-opus-4-20250514")),
            ("nosuch", None),
            ("gpt", Some("gpt-5")),
            ("gpt-5-mini", None),
        ] {
            assert_eq!(match_model(&listed, name), Err(near.map(str::to_owned)), "{name}");
        }
        assert_eq!(match_model(&[], "nosuch"), Ok(()), "nobody says what there is");
    }
}
