//! Makes arms: settings override what the server reports, which overrides the catalogue. Nothing connects before
//! the first request.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gnoma_config::settings::ArmSettings;
use gnoma_core::{ModelInfo, ModelRef, Price};
use gnoma_engine::connect_arm;
use gnoma_guard::firewall::{Connection, ProviderFacts};
use gnoma_llm::{
    KNOWN, Protocol,
    catalogue::{ListedModel, Overlay},
};
use gnoma_router::{Arm, Published, Wire, arm::LEAN_WINDOW_TOKENS, classify, priors};

use crate::{
    HostError, ProcessResources, Result, agents, crate_options, guard_setup, model_list::ModelList,
    project_settings::RoutingSettings,
};

/// Window that Ollama is asked for when none is configured. Its own default of 2,048 to 4,096 cuts
/// prompts without a word. Large enough for all tools.
const OLLAMA_WINDOW_TOKENS: u32 = 20_480;
const MICRO: f64 = 1e6;
const UNITS_A_BILLION: f64 = 1e9;
/// Dollars per million tokens that hosted models cost for each billion of their parameters. A model on
/// one's own machine costs nothing, which tells nothing of its skill; its size does.
const DOLLARS_PER_BILLION: f64 = 0.012;
/// Size assumed of a model on this machine that does not tell, in billions of parameters.
const ASSUMED_BILLIONS: f64 = 8.0;
/// Models of one's own with fewer billions of parameters get the lean tools: they take all fields of a
/// tool for fields to be filled in, and imitate what is in their window.
const SMALL_BILLIONS: f64 = 4.0;
/// Larger numbers in a model's name are no sizes.
const MOST_BILLIONS: f64 = 2_000.0;

/// The connection to a provider and what holds for all its models.
#[derive(Clone)]
struct Line {
    connection: Connection,
    /// `true` if the provider is one of the servers that users run themselves.
    is_own: bool,
    /// An arm of the provider, without a model.
    arm: Arm,
}

/// Makes arms out of names. One connection a provider.
pub(crate) struct ArmFactory {
    settings: RoutingSettings,
    shared: ProcessResources,
    catalogue: Overlay,
    lines: HashMap<String, Line>,
}

impl ArmFactory {
    pub(crate) fn new(
        settings: RoutingSettings,
        shared: ProcessResources,
        catalogue: Overlay,
    ) -> Self {
        Self { settings, shared, catalogue, lines: HashMap::new() }
    }

    pub(crate) fn settings(&self) -> &RoutingSettings {
        &self.settings
    }

    /// The models of a provider.
    ///
    /// # Errors
    /// The provider may not or cannot be asked.
    pub(crate) fn model_list(
        &mut self,
        name: &str,
        interval: Option<Duration>,
    ) -> Result<Arc<ModelList>> {
        let server = self.connection(name)?;
        Ok(self.shared.model_list(&server, interval))
    }

    /// The connection to a provider.
    ///
    /// # Errors
    /// The provider may not or cannot be asked.
    pub(crate) fn connection(&mut self, name: &str) -> Result<Connection> {
        self.provider_line(name).map(|line| line.connection.clone())
    }

    /// Makes an arm, and gives the connection to call it. `told`: what its server told of it.
    ///
    /// # Errors
    /// Its provider may not or cannot be asked.
    pub(crate) fn make_arm(
        &mut self,
        name: &ModelRef,
        told: &ModelInfo,
    ) -> Result<(Arm, Connection)> {
        if name.provider == agents::PROVIDER {
            return self.make_agent_arm(name);
        }
        let line = self.provider_line(&name.provider)?.clone();
        let listed = self.catalogue.lookup(&name.provider, &name.model);
        let said = self.settings.arms.get(&name.to_string());
        let arm = self.build_arm(name, &line, listed.as_ref(), said, told);
        Ok((arm, line.connection))
    }

    /// Makes the arm of another program's agent. Starts nothing.
    fn make_agent_arm(&self, name: &ModelRef) -> Result<(Arm, Connection)> {
        let Some(agent) = self.settings.agents.find_by_name(&name.model) else {
            let all = self.settings.agents.iter().map(|agent| agent.settings.name.as_str());
            let all = all.collect::<Vec<_>>().join(", ");
            let there = if all.is_empty() { String::new() } else { format!("; there are: {all}") };
            return Err(HostError::usage(format!(
                "there is no agent `{}` under `[[cli_agents]]`{there}",
                name.model
            )));
        };
        let connection = Connection::new(agents::agent_provider(agent), false);
        guard_setup::to_privacy(self.settings.privacy)
            .check_provider(connection.provider_facts())
            .map_err(|error| HostError::usage(error.to_string()))?;
        let said = self.settings.arms.get(&name.to_string());
        let price = resolve_model_price(said, None, false);
        let (arm, connection) = connect_arm(connection, name.model.as_str());
        let arm = Arm {
            context_window: said.and_then(|said| said.context),
            vision: false,
            structured_output: false,
            price,
            cost_weight: said.and_then(|said| said.cost_weight).unwrap_or(1.0),
            pools: said.map(|said| said.pools.clone()).unwrap_or_default().into(),
            host: name.to_string().into(),
            account: format!("{}'s own login", name.model).into(),
            wire: Wire::Agent,
            only_chosen: !agent.settings.automatic,
            published: Arc::new(published_facts(&name.model, None, price, false)),
            ..arm
        };
        Ok((arm, connection))
    }

    /// Limits an answer to what the user allows every model and what the settings or else the provider's list allow
    /// this one, in tokens.
    fn limit_output(&self, listed: Option<&ListedModel>, said: Option<&ArmSettings>) -> u32 {
        let listed = listed.and_then(|model| u32::try_from(model.max_output?).ok());
        let most = said.and_then(|said| said.max_output).or(listed);
        let limit = self.settings.provider.max_tokens;
        most.map_or(limit, |most| most.min(limit))
    }

    fn build_arm(
        &self,
        name: &ModelRef,
        line: &Line,
        listed: Option<&ListedModel>,
        said: Option<&ArmSettings>,
        told: &ModelInfo,
    ) -> Arm {
        let provider = &self.settings.provider;
        let can = |said: Option<bool>, listed: Option<bool>| said.or(listed).unwrap_or(true);
        let abilities = listed.map(|model| model.capabilities);
        let configured = provider.context.get(&name.provider).copied();
        let window = listed.and_then(|model| u32::try_from(model.context_window).ok());
        let here = if line.arm.wire == Wire::Ollama {
            Some(OLLAMA_WINDOW_TOKENS)
        } else {
            told.context_window
        };
        let window = said.and_then(|said| said.context).or(configured).or(here).or(window);
        let is_small = is_small(&name.model, told, window);
        let price = resolve_model_price(said, listed, line.arm.local);
        Arm {
            // Wherever it stands: a full tool set would fill a small window, and confuse a small model.
            lean: Some(
                said.and_then(|said| said.small)
                    .unwrap_or(self.settings.router.force_two_stage || (line.is_own && is_small)),
            ),
            context_window: window,
            max_output_tokens: Some(self.limit_output(listed, said)),
            temperature: provider.temperature,
            effort: provider.effort,
            tools: can(said.and_then(|said| said.tools), abilities.map(|can| can.tools)),
            vision: can(said.and_then(|said| said.vision), abilities.map(|can| can.vision)),
            always_thinks: crate_options::provider_profile(provider, &name.provider)
                .is_ok_and(|profile| gnoma_llm::always_thinks(&profile, &name.model)),
            thinking: can(said.and_then(|said| said.thinking), abilities.map(|can| can.thinking)),
            structured_output: can(None, abilities.map(|can| can.structured_output)),
            price,
            cost_weight: said.and_then(|said| said.cost_weight).unwrap_or(1.0),
            pools: said.map(|said| said.pools.clone()).unwrap_or_default().into(),
            published: Arc::new(published_facts(&name.model, listed, price, line.is_own)),
            id: ModelRef { model: name.model.clone(), ..line.arm.id.clone() },
            ..line.arm.clone()
        }
    }

    fn provider_line(&mut self, name: &str) -> Result<&Line> {
        if !self.lines.contains_key(name) {
            let line = self.connect_provider(name)?;
            self.lines.insert(name.to_owned(), line);
        }
        let lost = || HostError::usage(format!("there is no provider `{name}`"));
        self.lines.get(name).ok_or_else(lost)
    }

    fn connect_provider(&self, name: &str) -> Result<Line> {
        let mut profile = crate_options::provider_profile(&self.settings.provider, name)?;
        let blind = self.settings.arms.iter().filter(|(_, said)| said.vision == Some(false));
        profile.blind_models = blind
            .filter_map(|(arm, _)| Some(arm.strip_prefix(name)?.strip_prefix('/')?.to_owned()))
            .collect();
        if crate_options::needs_key(&self.settings.provider, &profile) {
            return Err(crate_options::missing_key(&profile));
        }
        let stays_here = crate_options::stays_here(&profile);
        // More is asked of whom secrets may be sent: a proxy of one's own may stand anywhere.
        let is_here = crate_options::is_own_here(&profile);
        let (is_own, wire) = (profile.local, wire_of(profile.protocol));
        let host = host_and_port(&profile.base_url).into();
        let account = crate_options::account_name(&self.settings.provider, &profile).into();
        let connection = self.shared.connection(&self.settings.network, profile);
        let facts = ProviderFacts { local: stays_here, ..connection.provider_facts().clone() };
        guard_setup::to_privacy(self.settings.privacy)
            .check_provider(&facts)
            .map_err(|error| HostError::usage(error.to_string()))?;
        let (arm, connection) = connect_arm(connection, "");
        let arm = Arm { local: is_here, stays_here, wire, host, account, ..arm };
        Ok(Line { connection, is_own, arm })
    }
}

/// Reports whether a model has a small window, or few parameters according to its server or its name.
fn is_small(model: &str, told: &ModelInfo, window: Option<u32>) -> bool {
    let told = told.parameters.map(|count| count as f64 / UNITS_A_BILLION);
    let billions = told.or_else(|| named_billions(model));
    window.is_some_and(|window| window <= LEAN_WINDOW_TOKENS)
        || billions.is_some_and(|size| size < SMALL_BILLIONS)
}

/// Returns the way in which tokens are counted behind a protocol.
fn wire_of(protocol: Protocol) -> Wire {
    match protocol {
        Protocol::Mistral => Wire::Mistral,
        Protocol::Anthropic => Wire::Anthropic,
        Protocol::OpenAi => Wire::Chat,
        Protocol::Responses => Wire::Responses,
        Protocol::Google => Wire::Google,
        Protocol::Ollama => Wire::Ollama,
    }
}

/// An arm with its price and what was published of it, and nothing else, whether it can be asked or not.
pub(crate) fn known_arm(settings: &RoutingSettings, catalogue: &Overlay, name: &ModelRef) -> Arm {
    let is_own = KNOWN.iter().any(|known| known.name == name.provider && known.local);
    let listed = catalogue.lookup(&name.provider, &name.model);
    let profile = crate_options::provider_profile(&settings.provider, &name.provider);
    let is_here =
        is_own && profile.is_ok_and(|profile| crate_options::is_this_machine(&profile.base_url));
    let price = resolve_model_price(settings.arms.get(&name.to_string()), listed.as_ref(), is_here);
    let published = Arc::new(published_facts(&name.model, listed.as_ref(), price, is_own));
    Arm { price, published, ..Arm::new(name.clone()) }
}

/// The host of an address, with its port: servers of one machine are not ill together.
fn host_and_port(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or_default()
}

/// Returns the price that is paid: the settings take precedence over the catalogue; a server of the user's own on
/// this machine costs nothing. The price of one elsewhere is known only to its operators. Half a price, if the
/// other half is not known, is no price.
fn resolve_model_price(
    said: Option<&ArmSettings>,
    listed: Option<&ListedModel>,
    is_here: bool,
) -> Option<Price> {
    let known = listed.map(|model| model.price).or(is_here.then(Price::default));
    let Some(said) = said else { return known };
    let any = [said.input_price, said.output_price, said.cache_read_price, said.cache_write_price];
    if any.iter().all(Option::is_none) {
        return known;
    }
    let is_whole = said.input_price.is_some() && said.output_price.is_some();
    let below = known.or(is_whole.then(Price::default))?;
    // Who states a price of input and none of the cache pays the former for both.
    let cache =
        |said_cache: Option<u64>, below: u64| said_cache.or(said.input_price).unwrap_or(below);
    Some(Price {
        input: said.input_price.unwrap_or(below.input),
        output: said.output_price.unwrap_or(below.output),
        cache_read: cache(said.cache_read_price, below.cache_read),
        cache_write: cache(said.cache_write_price, below.cache_write),
    })
}

/// Returns the published facts about a model that the router starts from.
fn published_facts(
    model: &str,
    listed: Option<&ListedModel>,
    price: Option<Price>,
    is_own: bool,
) -> Published {
    let is_free = price.is_some_and(|price| price.is_free());
    let paid = price.filter(|price| !price.is_free());
    let by_size = || is_own.then(|| parameter_billions(model) * DOLLARS_PER_BILLION);
    let mut measured = priors::find_measured(model).unwrap_or_default();
    if is_free {
        // What others paid for it is not paid here.
        measured.overall.iter_mut().chain(measured.by_kind.values_mut()).for_each(|prior| {
            prior.cost = 0.0;
        });
    }
    Published {
        output_price: paid.map(|price| price.output as f64 / MICRO).or_else(by_size),
        released: listed.and_then(|model| model.released),
        open_weights: listed.and_then(|model| model.open_weights).or(is_own.then_some(true)),
        by_kind: classify::by_type(&measured.by_kind),
        overall: measured.overall,
    }
}

/// Billions of parameters by a model's name.
fn parameter_billions(model: &str) -> f64 {
    named_billions(model).unwrap_or(ASSUMED_BILLIONS)
}

/// Billions of parameters that a model's name tells, such as `qwen3:4b` or `llama-3.1-70b-instruct`.
fn named_billions(model: &str) -> Option<f64> {
    let sizes = model.split([':', '-', '_', '/']).filter_map(|piece| {
        let number = piece.to_ascii_lowercase();
        let number = number.strip_suffix('b')?.parse::<f64>().ok()?;
        (number > 0.0 && number <= MOST_BILLIONS).then_some(number)
    });
    sizes.fold(None, |largest: Option<f64>, size| Some(largest.map_or(size, |most| most.max(size))))
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;
    use gnoma_core::tool::Tier;

    use super::*;
    use crate::project_settings::ProjectSettings;

    fn said(input: Option<u64>, cache_read: Option<u64>) -> ArmSettings {
        ArmSettings {
            enabled: true,
            strengths: Vec::new(),
            cost_weight: None,
            input_price: input,
            output_price: None,
            cache_read_price: cache_read,
            cache_write_price: None,
            context: None,
            max_output: None,
            small: None,
            tools: None,
            vision: None,
            thinking: None,
            pools: Vec::new(),
        }
    }

    #[test]
    fn configured_model_price_overrides_the_listed_price_per_field() {
        assert_eq!(resolve_model_price(Some(&said(None, None)), None, false), None, "nobody knows");
        assert_eq!(resolve_model_price(None, None, true), Some(Price::default()), "nobody is paid");
        let own = resolve_model_price(Some(&said(Some(7), None)), None, true);
        assert_eq!(own, Some(Price { input: 7, output: 0, cache_read: 7, cache_write: 7 }));
        let both = ArmSettings { output_price: Some(9), ..said(Some(7), Some(1)) };
        let cache = resolve_model_price(Some(&both), None, false);
        assert_eq!(cache.map(|price| (price.output, price.cache_read)), Some((9, 1)));
    }

    #[test]
    fn incomplete_model_price_is_unknown() {
        let output = ArmSettings { output_price: Some(9), ..said(None, None) };
        for half in [said(Some(7), None), said(None, Some(1)), output] {
            assert_eq!(resolve_model_price(Some(&half), None, false), None);
        }
    }

    /// The arm of an Ollama at this address.
    fn ollama_at(url: &str) -> Arm {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[provider.endpoints]\nollama = \"{url}\"\n");
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.path().to_owned(), ..Sources::default() };
        let settings =
            ProjectSettings::from(gnoma_config::load_settings(&sources).unwrap()).routing;
        let name = ModelRef { provider: "ollama".into(), model: "qwen3:4b".into() };
        let known = known_arm(&settings, &Overlay::default(), &name).price;
        let made = ArmFactory::new(settings, ProcessResources::default(), Overlay::default())
            .make_arm(&name, &ModelInfo::default());
        let (arm, connection) = made.unwrap();
        assert_eq!(connection.provider_facts().local, arm.local);
        assert_eq!(known, arm.price, "what is listed is what is asked");
        arm
    }

    #[test]
    fn remote_ollama_server_is_not_local_and_has_no_known_price() {
        let here = ollama_at("http://127.0.0.1:11434");
        assert!(here.local);
        assert_eq!(here.price, Some(Price::default()));
        let elsewhere = ollama_at("http://203.0.113.7:11434");
        assert!(!elsewhere.local);
        assert_eq!(elsewhere.price, None);
    }

    #[test]
    fn small_local_models_get_the_lean_tool_set() {
        let made = |provider: &str, model: &str, told: ModelInfo| {
            let folder = tempfile::tempdir().unwrap();
            let text = "[provider.api_keys]\ngroq = \"k\"\n[[arms]]\nid = \"llamacpp/odd-1b\"\nsmall = false\n\
                        [[arms]]\nid = \"groq/odd\"\nsmall = true\n";
            std::fs::write(folder.path().join("config.toml"), text).unwrap();
            let sources = Sources { config_dir: folder.path().to_owned(), ..Sources::default() };
            let settings =
                ProjectSettings::from(gnoma_config::load_settings(&sources).unwrap()).routing;
            let name = ModelRef { provider: provider.into(), model: model.into() };
            let mut maker =
                ArmFactory::new(settings, ProcessResources::default(), Overlay::default());
            maker.make_arm(&name, &told).unwrap().0.tier() == Tier::Lean
        };
        let told = |parameters| ModelInfo {
            context_window: Some(65_536),
            parameters,
            ..ModelInfo::default()
        };
        assert!(made("llamacpp", "mine", told(Some(1_777_088_000))));
        assert!(made("llamacpp", "qwen2.5-coder-1.5b", told(None)));
        assert!(!made("llamacpp", "mine", told(Some(7_000_000_000))));
        assert!(!made("llamacpp", "mine", told(None)), "nothing is known of it");
        assert!(!made("groq", "gemma-2b", told(None)), "elsewhere others run it");
        assert!(
            !made("llamacpp", "odd-1b", told(None)) && made("groq", "odd", told(None)),
            "as you say"
        );
    }

    #[test]
    fn model_size_is_parsed_from_its_name() {
        for (model, size) in [
            ("qwen3:4b", 4.0),
            ("llama-3.1-70b-instruct", 70.0),
            ("qwen3-coder-30b-a3b", 30.0),
            ("smollm:1.7b", 1.7),
            ("mystery", ASSUMED_BILLIONS),
            ("0b", ASSUMED_BILLIONS),
        ] {
            assert!((parameter_billions(model) - size).abs() < 1e-9, "{model}");
        }
    }

    #[test]
    fn small_local_model_is_priced_below_a_large_one() {
        let price = |model: &str| {
            published_facts(model, None, Some(Price::default()), true).output_price.unwrap()
        };
        assert!(price("a:4b") < price("a:70b") && price("a:70b") < 1.0);
    }
}
