//! `gnoma providers add`: what the terminal's first start does, as a command. What is not said is asked
//! for at a terminal, and is an error where there is none.

use std::{fs::File, io::Read as _};

use anyhow::{Context as _, Result};
use gnoma_config::{env, nearest_name};
use gnoma_core::{Secret, quantity::describe_count};
use gnoma_host::{
    HostError, Project,
    providers::{self, KeySource, NewProvider},
};
use gnoma_llm::{KNOWN, KnownProvider};
use gnoma_tui::setup::read_address;

use super::common::{open_project, print_safe_text};
use crate::{
    args::{NewProviderArgs, TurnArgs},
    environment::ProcessEnvironment,
    report::Exit,
    screen, terminal,
};

/// Most bytes of a key.
const MAX_KEY_BYTES: u64 = 16 << 10;
/// The name of the provider whose address contains the name of the customer's resource.
const AZURE: &str = "azure";
/// Models that are named.
const MAX_NAMED: usize = 4;

pub(crate) async fn run(
    args: &NewProviderArgs,
    turn: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let terminal = terminal::open_terminal(around).filter(|_| around.stdin_is_terminal);
    let project = open_project(turn, around)?;
    // Both can stand before the command, too: the rest of the program takes them there.
    let model = args.model.as_ref().or(turn.model.as_ref());
    let name = args.name.as_ref().or(turn.provider.as_ref());
    let args = &NewProviderArgs { name: name.cloned(), ..args.clone() };
    let new = provider_from_args(args, model.map(String::as_str), &project, terminal.as_ref())?;
    let not_added = |error: HostError| HostError {
        cause: format!("`{}` was not added: {}", new.name, error.cause),
        ..error
    };
    providers::check_form(&new).map_err(not_added)?;
    let mut said = String::new();
    if !args.untested {
        let models = providers::try_new(&project, &new, "`--address`").await;
        let models = models.map_err(|error| {
            let remedy = Some(unreachable_remedy(&new, error.remedy.clone()));
            not_added(HostError { remedy, ..error })
        })?;
        let named = models.get(..MAX_NAMED).unwrap_or(&models).join(", ");
        let more = if models.len() > MAX_NAMED { ", …" } else { "" };
        known_model(&new, &models)?;
        let count = describe_count(models.len(), "model");
        let colon = if models.is_empty() { "" } else { ": " };
        said = format!("`{}` answers and has {count}{colon}{named}{more}\n", new.name);
    }
    said.push_str(&format!("{}\n", providers::add_new(&project, &new)?));
    print_safe_text(&screen::mark_unsafe_chars(&said))
}

/// The model that is to be used is one that the provider lists, if it lists any.
fn known_model(new: &NewProvider, models: &[String]) -> Result<()> {
    let Some(model) = &new.model else { return Ok(()) };
    let Err(near) = providers::has_model(&new.name, models, model) else { return Ok(()) };
    let Some(first) = near.or_else(|| models.first().cloned()) else { return Ok(()) };
    let name = &new.name;
    let error =
        HostError::usage(format!("`{name}` was not added: it does not list the model `{model}`"));
    let remedy = format!("use `--model {first}`, or add `--untested` to skip the check");
    Err(HostError { remedy: Some(remedy), ..error }.into())
}

fn unreachable_remedy(new: &NewProvider, known: Option<String>) -> String {
    let start = match new.name.as_str() {
        "ollama" => "`ollama serve` starts it. ",
        "llamacpp" => "`llama-server -m MODEL.gguf --jinja` starts it. ",
        _ => "",
    };
    // The provider that is added is the one that is meant.
    let known = known.unwrap_or_default().replace(", or use another provider with --provider", "");
    let gap = if known.is_empty() { "" } else { " " };
    format!("{start}{known}{gap}--untested adds it anyway.")
}

/// Returns the provider that the arguments name. At a terminal, asks for what they leave out.
fn provider_from_args(
    args: &NewProviderArgs,
    model: Option<&str>,
    project: &Project,
    terminal: Option<&File>,
) -> Result<NewProvider> {
    let name = choose_name(args, terminal)?;
    let provider = &project.routing.provider;
    // One that is configured can be repaired, whatever it is called.
    if !provider.endpoints.contains_key(&name) {
        providers::check_name(&name)?;
    }
    let known = KNOWN.iter().find(|known| known.name == name);
    let has_address = args.address.is_some()
        || provider.endpoints.contains_key(&name)
        || known.is_some_and(|known| !known.base_url.is_empty());
    let address =
        if has_address { args.address.clone() } else { Some(ask_address(&name, terminal)?) };
    // What cannot be read as an address is refused before it is tested, with what to do.
    let address = address.map(|written| read_address(&written).unwrap_or(written));
    let key = choose_key_source(args, &name, known, project, terminal)?;
    let is_default = args.default || provider.default.as_ref().is_none_or(|it| *it == name);
    // `--model provider/model`, as other commands take it, means the same.
    let own = |model: &str| model.strip_prefix(&format!("{name}/")).unwrap_or(model).to_owned();
    let (model, protocol) = (model.map(own), args.protocol.clone());
    Ok(NewProvider { name, address, protocol, key, model, is_default })
}

fn choose_name(args: &NewProviderArgs, terminal: Option<&File>) -> Result<String> {
    let known = known_provider_names();
    match (&args.name, terminal) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(terminal)) => {
            ask_value(terminal, &format!("Provider ({known}, or a name of your choice): "))
        }
        (None, None) => Err(HostError::usage(format!(
            "no provider given; name one, as in `gnoma providers add mistral`. Known providers: {known}"
        ))
        .into()),
    }
}

/// Asks for the address of a provider that gnoma does not know.
fn ask_address(name: &str, terminal: Option<&File>) -> Result<String> {
    let example = example_url(name);
    if let Some(terminal) = terminal {
        return ask_value(terminal, &format!("Address of `{name}`, such as {example}: "));
    }
    let known = KNOWN.iter().map(|known| known.name);
    let text = match nearest_name(name, known).filter(|_| name != AZURE) {
        Some(near) => format!(
            "there is no provider `{name}`; did you mean `{near}`? For a server of your own: --address {example}"
        ),
        None => format!("`{name}` needs an address: --address {example}"),
    };
    Err(HostError::usage(text).into())
}

fn known_provider_names() -> String {
    KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

fn example_url(name: &str) -> &'static str {
    if name == AZURE {
        "https://NAME.openai.azure.com/openai/v1"
    } else {
        "http://localhost:8080/v1"
    }
}

fn choose_key_source(
    args: &NewProviderArgs,
    name: &str,
    known: Option<&KnownProvider>,
    project: &Project,
    terminal: Option<&File>,
) -> Result<KeySource> {
    if let Some(variable) = &args.key_env {
        return Ok(KeySource::Variable(variable.clone()));
    }
    if let Some(command) = &args.key_command {
        return Ok(KeySource::Command(command.clone()));
    }
    if args.key_stdin {
        let mut key = String::new();
        let read = std::io::stdin().lock().take(MAX_KEY_BYTES).read_to_string(&mut key);
        read.context("cannot read the key from standard input")?;
        return parse_key(name, &key, "the key on standard input");
    }
    let variables = env::key_variables(name);
    if let Some(set) = variables.iter().find(|name| project.environment().get(name).is_some()) {
        return Ok(KeySource::Variable(set.clone()));
    }
    let is_free = known.is_none_or(|known| known.local);
    match terminal {
        Some(terminal) => {
            let none = if is_free { " (Enter for none)" } else { "" };
            let said = terminal::ask_hidden(terminal, &format!("Key of `{name}`{none}: "));
            match said.as_deref() {
                Some("") if is_free => Ok(KeySource::None),
                said => parse_key(name, said.unwrap_or_default(), "the key"),
            }
        }
        None if is_free => Ok(KeySource::None),
        None => {
            let variable = variables.first().map_or("", String::as_str);
            let text = format!(
                "`{name}` needs a key: export {variable}=…, or give --key-command COMMAND, \
                 --key-env VARIABLE or --key-stdin"
            );
            Err(HostError::usage(text).into())
        }
    }
}

/// The key that was given; `what` names it where it is none.
fn parse_key(name: &str, key: &str, what: &str) -> Result<KeySource> {
    let key = key.trim();
    let wrong = match key {
        "" => Some("is empty"),
        key if key.contains(char::is_whitespace) => Some("contains a space"),
        _ => None,
    };
    if let Some(wrong) = wrong {
        return Err(HostError::usage(format!("`{name}` was not added: {what} {wrong}")).into());
    }
    Ok(KeySource::Entered(Secret::new(key.to_owned())))
}

fn ask_value(terminal: &File, question: &str) -> Result<String> {
    let said = terminal::ask_line(terminal, question).filter(|said| !said.is_empty());
    said.ok_or_else(|| HostError::usage("nothing was entered, and nothing was added").into())
}
