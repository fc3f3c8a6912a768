//! Turns settings into the crates' own options. The only place that sees both.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use gnoma_config::{Loaded, Protocol as Wire, Settings, Sources, env, toml};
use gnoma_core::{Provider, tool::Tier};
use gnoma_engine::{Arm, Keeping, Limits, Routes, prompt, session};
use gnoma_guard::firewall::{Firewall, Guarded};
use gnoma_llm::{KNOWN, Known, Profile, Protocol};
use gnoma_net::{Http, HttpOptions};

use crate::{
    args::TurnArgs,
    clock, guarding, instructions,
    report::{self, Misuse},
    surroundings::Surroundings,
};

/// How long a server on this machine may take to say what it is.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Window that Ollama is asked for when none is configured. Its own default of 2,048 to 4,096 cuts
/// prompts without a word. Large enough for all tools.
const OLLAMA_WINDOW_TOKENS: u32 = 20_480;

/// Loads the configuration for a working folder and tells the user its warnings.
pub(crate) fn configuration(args: &TurnArgs, around: &Surroundings, cwd: &Path) -> Result<Loaded> {
    let loaded = gnoma_config::load(&sources(args, around, cwd))
        .map_err(|error| Misuse(format!("the configuration cannot be used\n{error}")))?;
    for finding in &loaded.findings {
        report::say(finding);
    }
    Ok(loaded)
}

/// Where the configuration comes from.
pub(crate) fn sources(args: &TurnArgs, around: &Surroundings, cwd: &Path) -> Sources {
    let text = |value: &String| toml::Value::String(value.clone());
    let flags = [
        ("provider.default", args.provider.as_ref().map(text)),
        ("provider.model", args.model.as_ref().map(text)),
        ("permission.mode", args.permission.map(|mode| text(&mode.name().to_owned()))),
        ("permission.confirm_bypass", args.confirm_bypass.then_some(toml::Value::Boolean(true))),
        ("privacy.incognito", args.incognito.then_some(toml::Value::Boolean(true))),
        ("tools.max_rounds", args.max_turns.map(|rounds| toml::Value::Integer(rounds.into()))),
    ];
    let config_dir = around.config_dir();
    Sources {
        project_root: gnoma_config::project_root(cwd, &config_dir),
        config_dir,
        state_dir: around.state_dir(),
        profile: args.profile.clone(),
        env: around.env.clone(),
        flags: flags
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect(),
    }
}

/// The connection pool.
pub(crate) fn http(settings: &Settings) -> Http {
    Http::new(HttpOptions {
        connect_timeout: settings.network.connect_timeout,
        idle_timeout: settings.network.idle_timeout,
    })
}

/// How to reach the provider `name`: built in, configured, or both.
pub(crate) fn profile(settings: &Settings, name: &str) -> Result<Profile> {
    let known = KNOWN.iter().find(|known| known.name == name);
    let endpoint = settings.provider.endpoints.get(name);
    let wire = settings.provider.protocols.get(name).map(|wire| protocol(*wire));
    let (wire, url) = match (known, endpoint) {
        (None, None) => return Err(unknown_provider(settings, name).into()),
        (Some(known), None) if known.base_url.is_empty() => {
            return Err(Misuse(format!(
                "`{name}` needs its address: set `provider.endpoints.{name}`"
            ))
            .into());
        }
        (Some(known), None) => (wire.unwrap_or(known.protocol), known.base_url.to_owned()),
        (known, Some(url)) => {
            let wire =
                wire.unwrap_or_else(|| known.map_or(Protocol::OpenAi, |known| known.protocol));
            (wire, address(wire, url))
        }
    };
    let mut profile = Profile::new(name, wire, url);
    profile.key = settings.provider.api_keys.get(name).cloned();
    if let Some(variable) = env::key_variables(name).into_iter().next() {
        profile.key_variable = variable;
    }
    Ok(profile)
}

/// An endpoint as the dialect needs it. People copy addresses with and without the version.
fn address(wire: Protocol, url: &str) -> String {
    let url = url.trim_end_matches('/');
    let host_only = url.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    match wire {
        Protocol::Ollama => url.strip_suffix("/v1").unwrap_or(url).to_owned(),
        Protocol::Google if host_only => format!("{url}/v1beta"),
        Protocol::Mistral | Protocol::Anthropic | Protocol::OpenAi | Protocol::Responses
            if host_only =>
        {
            format!("{url}/v1")
        }
        Protocol::Mistral
        | Protocol::Anthropic
        | Protocol::OpenAi
        | Protocol::Responses
        | Protocol::Google => url.to_owned(),
    }
}

/// Whether an address leads nowhere but to this machine.
fn is_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    let host = match host_and_port.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, _)) => address,
        None => host_and_port.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn protocol(wire: Wire) -> Protocol {
    match wire {
        Wire::Mistral => Protocol::Mistral,
        Wire::Anthropic => Protocol::Anthropic,
        Wire::OpenAi | Wire::Compatible => Protocol::OpenAi,
        Wire::Responses => Protocol::Responses,
        Wire::Google => Protocol::Google,
        Wire::Ollama => Protocol::Ollama,
    }
}

fn unknown_provider(settings: &Settings, name: &str) -> Misuse {
    let known = KNOWN.iter().map(|known| known.name);
    let configured = settings.provider.endpoints.keys().map(String::as_str);
    let mut names: Vec<_> = known.chain(configured).collect();
    names.dedup();
    Misuse(format!(
        "there is no provider `{name}`; known are {}. For another server set \
         `provider.endpoints.{name}` to its address",
        names.join(", ")
    ))
}

/// The provider that is asked when none is named: the first with a key, else a server on this machine.
pub(crate) async fn find_provider(settings: &Settings, http: &Http) -> Option<&'static Known> {
    let has_key = |known: &&Known| settings.provider.api_keys.contains_key(known.name);
    if let Some(known) = KNOWN.iter().find(|known| !known.local && has_key(known)) {
        return Some(known);
    }
    for known in KNOWN.iter().filter(|known| matches!(known.name, "ollama" | "llamacpp")) {
        let Ok(profile) = profile(settings, known.name) else {
            continue;
        };
        let provider = gnoma_llm::connect(profile, http.clone());
        let models = tokio::time::timeout(PROBE_TIMEOUT, provider.models()).await;
        if matches!(models, Ok(Ok(models)) if !models.is_empty()) {
            return Some(known);
        }
    }
    None
}

/// The arm the settings ask for.
pub(crate) async fn arm(settings: &Settings, http: &Http, firewall: &Arc<Firewall>) -> Result<Arm> {
    let name = match &settings.provider.default {
        Some(name) => name.clone(),
        None => match find_provider(settings, http).await {
            Some(known) => known.name.to_owned(),
            None => return Err(Misuse(HOW_TO_START.to_owned()).into()),
        },
    };
    let profile = profile(settings, &name)?;
    let known = KNOWN.iter().find(|known| known.name == name);
    let overridden = settings.provider.endpoints.contains_key(&name);
    if known.is_some_and(|known| !known.local) && !overridden && profile.key.is_none() {
        return Err(missing_key(&profile).into());
    }
    let local = profile.local;
    // Its name says how it is spoken to; where what is sent ends up, only its address says.
    let stays_here = local && is_this_machine(&profile.base_url);
    let configured = settings.provider.context.get(&name).copied();
    let is_ollama = profile.protocol == Protocol::Ollama;
    let provider = gnoma_llm::connect(profile, http.clone());
    let provider = Guarded::new(provider, Arc::clone(firewall), stays_here);
    guarding::privacy(settings).admits(provider.facts()).map_err(Misuse)?;
    let (model, window) = model(settings, known, local, &provider).await?;
    Ok(Arm {
        local,
        lean: settings.router.force_two_stage,
        context_window: configured.or(if is_ollama { Some(OLLAMA_WINDOW_TOKENS) } else { window }),
        max_output_tokens: Some(settings.provider.max_tokens),
        temperature: settings.provider.temperature,
        effort: settings.provider.effort,
        ..Arm::new(provider, model)
    })
}

/// The model and, where the server tells, its window. Only servers on this machine are asked.
async fn model(
    settings: &Settings,
    known: Option<&Known>,
    local: bool,
    provider: &dyn Provider,
) -> Result<(String, Option<u32>)> {
    let default = known.map(|known| known.default_model).filter(|model| !model.is_empty());
    let named = settings.provider.model.as_deref().or(default);
    if !local && let Some(named) = named {
        return Ok((named.to_owned(), None));
    }
    let name = provider.name();
    let listed = tokio::time::timeout(PROBE_TIMEOUT, provider.models()).await;
    let models = match (listed, named) {
        (Ok(Ok(models)), _) => models,
        (_, Some(named)) => return Ok((named.to_owned(), None)),
        (Ok(Err(error)), None) => return Err(anyhow::Error::new(error)),
        (Err(_), None) => {
            let text = format!("`{name}` does not say which models it has; name one with --model");
            return Err(Misuse(text).into());
        }
    };
    let chosen = match named {
        Some(named) => models.iter().find(|model| model.id == named),
        None => models.first(),
    };
    match (chosen, named) {
        (Some(model), _) => Ok((model.id.clone(), model.context_window)),
        (None, Some(named)) => Ok((named.to_owned(), None)),
        (None, None) => {
            Err(Misuse(format!("`{name}` has no model; load one, or name one with --model")).into())
        }
    }
}

fn missing_key(profile: &Profile) -> Misuse {
    let (name, variable) = (&profile.name, &profile.key_variable);
    Misuse(format!(
        "no key for `{name}`. Any of these helps:
  export {variable}=…
  [provider.api_keys] {name} = \"${{{variable}}}\" in the configuration (`gnoma config path`)
  --provider with one that is set up (`gnoma providers` lists them)"
    ))
}

/// What somebody reads who has set up nothing.
const HOW_TO_START: &str = "no model to ask yet. One of these gets you going:
  export MISTRAL_API_KEY=…       or ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …
  ollama pull qwen3:8b           and Ollama running on this machine; llama.cpp works too
  gnoma demo                     shows a whole turn without any of it
`gnoma providers` lists what gnoma can talk to.";

/// What a session is started with besides the settings.
pub(crate) struct Start<'a> {
    pub cwd: &'a Path,
    /// Folders to work in besides `cwd`.
    pub folders: Vec<PathBuf>,
    pub arm: Arm,
    pub firewall: Arc<Firewall>,
    /// System prompt in place of the built-in one.
    pub system: Option<String>,
}

/// The session's options, without a way to answer questions.
pub(crate) fn session(
    loaded: &Loaded,
    around: &Surroundings,
    start: Start<'_>,
) -> Result<session::Options> {
    let settings = &loaded.settings;
    let limits = Limits {
        rounds: settings.tools.max_rounds,
        seed: clock::random() | 1,
        ..Limits::default()
    };
    Ok(session::Options {
        id: clock::session_id(),
        place: guarding::place(loaded, around, start.cwd, start.folders),
        tools: gnoma_tools::builtin(&tools(loaded, around, start.cwd)),
        routes: Arc::new(Routes::single(start.arm)),
        system: system_prompt(settings, around, start.cwd, start.system),
        mode: settings.permission.mode,
        permissions: guarding::permissions(settings)?,
        firewall: start.firewall,
        interactive: false,
        limits,
        history: Vec::new(),
        keeping: Keeping::default(),
    })
}

fn tools(loaded: &Loaded, around: &Surroundings, cwd: &Path) -> gnoma_tools::Options {
    let settings = &loaded.settings;
    // By name, and by value for a variable that the configuration takes a key from.
    let is_key = |(name, value): &(&String, &String)| {
        let mut keys = settings.provider.api_keys.values();
        name.ends_with("_API_KEY")
            || name.ends_with("_AUTH_TOKEN")
            || keys.any(|key| key.expose() == *value)
    };
    gnoma_tools::Options {
        bash_timeout: settings.tools.bash_timeout,
        max_file_bytes: settings.tools.max_file_size,
        shell: shell(settings).into(),
        hidden_variables: around.env.iter().filter(is_key).map(|(name, _)| name.clone()).collect(),
        sandbox: guarding::sandbox(loaded, around, cwd),
    }
}

fn shell(settings: &Settings) -> &str {
    settings.tools.shell.as_deref().unwrap_or("bash")
}

type SystemPrompt = Box<dyn Fn(Tier) -> String + Send + Sync>;

fn system_prompt(
    settings: &Settings,
    around: &Surroundings,
    cwd: &Path,
    system: Option<String>,
) -> SystemPrompt {
    if let Some(system) = system {
        return Box::new(move |_| system.clone());
    }
    let instructions = instructions::find(cwd, &around.config_dir());
    if instructions.cut {
        report::say("warning: the project's AGENTS.md files are too long; their end was left out");
    }
    let cwd = cwd.display().to_string();
    let shell = Path::new(shell(settings))
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Box::new(move |tier| {
        let place = prompt::Place {
            cwd: &cwd,
            os: std::env::consts::OS,
            shell: &shell,
            instructions: instructions.text.trim_end(),
        };
        prompt::system(tier, place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        let cases = [
            (Protocol::Anthropic, "https://x.y/", "https://x.y/v1"),
            (Protocol::OpenAi, "http://localhost:8080", "http://localhost:8080/v1"),
            (Protocol::OpenAi, "http://localhost:8080/v1/", "http://localhost:8080/v1"),
            (
                Protocol::OpenAi,
                "https://x/openai/deployments/d?v=1",
                "https://x/openai/deployments/d?v=1",
            ),
            (Protocol::Google, "https://g", "https://g/v1beta"),
            (Protocol::Ollama, "http://localhost:11434/v1", "http://localhost:11434"),
        ];
        for (wire, written, meant) in cases {
            assert_eq!(address(wire, written), meant);
        }
    }
    #[test]
    fn only_loopback_is_this_machine() {
        for here in [
            "http://localhost:11434",
            "http://127.0.0.1:8080/v1",
            "http://[::1]:1/",
            "http://127.9.9.9",
        ] {
            assert!(is_this_machine(here), "{here}");
        }
        for elsewhere in [
            "https://api.example.com/v1",
            "http://192.168.0.7:11434",
            "http://localhost.example.com",
            "http://localhost:1@example.com/v1",
            "http://example.com\\@localhost/",
            "http://[2001:db8::1]:8080",
            "http://example.com/#@localhost",
            "",
        ] {
            assert!(!is_this_machine(elsewhere), "{elsewhere}");
        }
    }
}
