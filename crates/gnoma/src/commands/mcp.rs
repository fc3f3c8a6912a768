//! `gnoma mcp`: the MCP servers of a project, how they are, and which there are.

use std::{fmt::Write as _, path::Path};

use anyhow::Result;
use futures_util::future::LocalBoxFuture;
use gnoma_core::{Secret, json_value::json};
use gnoma_extend::mcp::{self, ChangedTool, ServerOrigin, ServerReport, ServerState, Servers};
use gnoma_host::{Folders as _, HostError, Project, mcp as servers};

use super::common::{open_project, print_json, print_safe_text};
use crate::{
    args::{McpSub, NewServerArgs, TurnArgs},
    environment::ProcessEnvironment,
    report::Exit,
};

pub(crate) async fn run(
    what: &McpSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    if let McpSub::Serve = what {
        return Box::pin(super::mcp_serve::run(args, around)).await;
    }
    let project = &open_project(args, around)?;
    let command: LocalBoxFuture<'_, Result<Exit>> = match what {
        // It is served above.
        McpSub::Serve => return Ok(Exit::Done),
        McpSub::List { offline, json } => Box::pin(list_servers(project, *offline, *json)),
        McpSub::Test { name } => Box::pin(test_server(project, name)),
        McpSub::Approve { name } => Box::pin(approve_tools(project, name)),
        McpSub::Add(new) => return add_server(project, new),
        McpSub::Remove { name } => return remove_server(project, name),
        McpSub::Login { name, forget } => Box::pin(super::mcp_login::run(project, name, *forget)),
        McpSub::Conformance { url } => Box::pin(run_conformance(project, url)),
    };
    command.await
}

/// Connects to a server of the conformance suite and calls all that it has. Its scenario comes by the
/// environment.
async fn run_conformance(project: &Project, url: &str) -> Result<Exit> {
    let variable = |name: &str| project.environment().get(name).map(str::to_owned);
    let scenario = mcp::Scenario {
        url: url.to_owned(),
        context: variable("MCP_CONFORMANCE_CONTEXT"),
        version: variable("MCP_CONFORMANCE_PROTOCOL_VERSION"),
    };
    let said = mcp::run_scenario(&servers::http_client(project), scenario)
        .await
        .map_err(|error| HostError::usage(error.to_string()))?;
    print_safe_text(&said)
}

async fn list_servers(project: &Project, offline: bool, as_json: bool) -> Result<Exit> {
    let servers = servers::idle_servers(project);
    let standings =
        if offline { servers.server_standings() } else { servers.connect_all(None).await };
    let disabled = servers::disabled_servers(project);
    if as_json {
        return print_json(
            &standings
                .iter()
                .map(standing_to_json)
                .chain(disabled.iter().map(disabled_facts))
                .collect(),
        );
    }
    if standings.is_empty() && disabled.is_empty() {
        return print_safe_text("no MCP servers. `gnoma mcp add NAME -- COMMAND` adds one\n");
    }
    let mut text = String::new();
    for standing in &standings {
        describe_standing(&mut text, standing);
    }
    for definition in &disabled {
        let (name, shown, origin) = (&definition.name, definition.to_line(), &definition.origin);
        let _infallible = writeln!(text, "{name}: disabled\n  {shown}\n  from {origin}");
    }
    print_safe_text(&text)
}

fn disabled_facts(definition: &mcp::Definition) -> serde_json::Value {
    json!({
        "name": definition.name,
        "from": definition.origin.to_string(),
        "reached_by": definition.to_line(),
        "state": "disabled",
        "error": null,
        "tools": [],
        "withheld": [],
        "left_out": [],
        "tokens": 0,
        "started_in_ms": null,
    })
}

fn standing_to_json(standing: &ServerReport) -> serde_json::Value {
    let ServerReport { definition, seen, tokens, .. } = standing;
    let why = if let ServerState::Failed(why) = &seen.state { Some(why) } else { None };
    json!({
        "name": definition.name,
        "from": definition.origin.to_string(),
        "reached_by": definition.to_line(),
        "state": state_word(&seen.state),
        "error": why,
        "tools": seen.offered.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        "withheld": seen.changed.iter().map(|changed| &changed.now.name).collect::<Vec<_>>(),
        "left_out": seen.left_out.iter().chain(&seen.left_out_prompts).collect::<Vec<_>>(),
        "tokens": tokens,
        "started_in_ms": seen.started_in.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    })
}

fn state_word(state: &ServerState) -> &'static str {
    match state {
        ServerState::Idle => "not started",
        ServerState::Starting => "starting",
        ServerState::Ready => "ready",
        ServerState::Failed(_) => "failed",
    }
}

fn describe_standing(text: &mut String, standing: &ServerReport) {
    let ServerReport { definition, seen, tokens, .. } = standing;
    let took =
        seen.started_in.map(|time| format!(" in {} ms", time.as_millis())).unwrap_or_default();
    let _infallible = writeln!(
        text,
        "{}: {}{took}, {} tool{}, about {tokens} tokens\n  {}\n  from {}",
        definition.name,
        state_word(&seen.state),
        seen.offered.len(),
        if seen.offered.len() == 1 { "" } else { "s" },
        definition.to_line(),
        definition.origin,
    );
    if let ServerState::Failed(why) = &seen.state {
        let _infallible = writeln!(text, "  {why}");
    }
    for left in seen.left_out.iter().chain(&seen.left_out_prompts) {
        let _infallible = writeln!(text, "  left out: {left}");
    }
    if !seen.changed.is_empty() {
        let names: Vec<_> = seen.changed.iter().map(|changed| changed.now.name.as_str()).collect();
        let (names, name) = (names.join(", "), &definition.name);
        let _infallible =
            writeln!(text, "  withheld because they changed: {names}; `gnoma mcp approve {name}`");
    }
}

async fn test_server(project: &Project, name: &str) -> Result<Exit> {
    let standings = servers::connect_server(project, name).await;
    let [standing] = &standings[..] else { return Err(unknown_server_error(project, name).into()) };
    let mut text = String::new();
    describe_standing(&mut text, standing);
    for tool in &standing.seen.offered {
        let about = tool.description.lines().next().unwrap_or_default();
        let _infallible = writeln!(text, "  - {}: {about}", tool.name);
    }
    let stderr: Vec<&str> = standing.stderr.lines().map(str::trim).collect();
    // The end of what a server wrote stands in the reason of its failure, on one line.
    let is_told = match &standing.seen.state {
        ServerState::Failed(why) => why.ends_with(&stderr.join(" | ")),
        ServerState::Idle | ServerState::Starting | ServerState::Ready => false,
    };
    if !is_told && !standing.stderr.trim().is_empty() {
        let _infallible = writeln!(text, "its standard error:\n{}", standing.stderr.trim_end());
    }
    print_safe_text(&text)?;
    let works = matches!(standing.seen.state, ServerState::Ready);
    Ok(if works { Exit::Done } else { Exit::Failed })
}

fn unknown_server_error(project: &Project, name: &str) -> HostError {
    if servers::disabled_servers(project).iter().any(|server| server.name == name) {
        return HostError::usage(format!(
            "the MCP server `{name}` is disabled; remove `enabled = false` from it in config.toml to use it"
        ));
    }
    HostError::usage(format!("there is no MCP server `{name}`; `gnoma mcp list` lists them"))
}

async fn approve_tools(project: &Project, name: &str) -> Result<Exit> {
    let servers: Servers = servers::idle_servers(project);
    let standings = servers.connect_all(Some(name)).await;
    let [standing] = &standings[..] else { return Err(unknown_server_error(project, name).into()) };
    let mut text = String::new();
    for ChangedTool { before, now } in &standing.seen.changed {
        let before = before.as_ref().map_or("(no longer known)", |tool| tool.description.as_str());
        let _infallible = writeln!(
            text,
            "{}\n  was: {before}\n  is:  {}\n  arguments: {}",
            now.name, now.description, now.schema
        );
    }
    let approved = servers.approve_tools(name).await;
    approved.map_err(|error| HostError::usage(error.to_string()))?;
    let count = standing.seen.changed.len();
    let _infallible = writeln!(text, "approved the tools of `{name}`; {count} had changed");
    print_safe_text(&text)
}

fn add_server(project: &Project, new: &NewServerArgs) -> Result<Exit> {
    mcp::check_server(&new.name).map_err(|error| HostError::usage(error.to_string()))?;
    refuse_no_server(new)?;
    let pairs = |list: &[String]| -> Result<Vec<(String, Secret<String>)>> {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                HostError::usage(format!("`{text}` is not of the form NAME=VALUE"))
            })?;
            Ok((name.to_owned(), Secret::new(value.to_owned())))
        };
        list.iter().map(pair).collect()
    };
    let url = match &new.command[..] {
        [only] => parse_address(only)?,
        [first, ..] => parse_address(first).unwrap_or_default(),
        [] => None,
    };
    let wanted = servers::NewServer {
        name: new.name.clone(),
        url,
        command: new.command.clone(),
        env: pairs(&new.env)?,
        headers: pairs(&new.header)?,
        network: new.network,
    };
    let path = servers::add_server(&project.environment().config_dir(), &wanted)?;
    print_safe_text(&format!(
        "added `{name}` to {}; `gnoma mcp test {name}` tries it\n",
        path.display(),
        name = new.name
    ))
}

/// Refuses what can be no server: an option, which other programs take behind the name, a whole line as one word, and
/// words behind an address.
fn refuse_no_server(new: &NewServerArgs) -> Result<(), HostError> {
    let name = &new.name;
    let is_address = |word: &str| matches!(parse_address(word), Ok(Some(_)));
    let why = match &new.command[..] {
        [option, url, ..] if option == "--url" => {
            format!("an address needs no `--url`: `gnoma mcp add {name} {url}`")
        }
        [url, option, ..] if is_address(url) && option.starts_with('-') => format!(
            "options stand before the name: `gnoma mcp add --header KEY=VALUE {name} {url}`"
        ),
        [url, word, ..] if is_address(url) => {
            format!("nothing can follow an address, as `{word}` does: `gnoma mcp add {name} {url}`")
        }
        [first, ..] if first.starts_with('-') => format!(
            "options stand before the name: `gnoma mcp add --env KEY=VALUE {name} -- PROGRAM ARGUMENTS`"
        ),
        [line] if line.contains(char::is_whitespace) && !Path::new(line).is_file() => format!(
            "there is no program `{line}`; write the program and its arguments as words of their own: `gnoma mcp add \
             {name} -- {line}`"
        ),
        _ => return Ok(()),
    };
    Err(HostError::usage(format!("`{name}` was not added: {why}")))
}

/// Returns the address that a word is; `None` for a program.
///
/// # Errors
/// No server can have this address.
fn parse_address(word: &str) -> Result<Option<String>, HostError> {
    if let Some((scheme, rest)) = word.split_once("://") {
        let scheme = scheme.to_ascii_lowercase();
        return match scheme.as_str() {
            "http" | "https" => Ok(Some(format!("{scheme}://{rest}"))),
            _ => Err(HostError::usage(format!(
                "`{word}` was not added: a server's address begins with http:// or https://"
            ))),
        };
    }
    let host = word.split('/').next().unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
        !name.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if has_port {
        return Err(HostError::usage(format!(
            "`{word}` was not added: write the address with its scheme, as in http://{word}"
        )));
    }
    Ok(None)
}

fn remove_server(project: &Project, name: &str) -> Result<Exit> {
    let known = servers::server_definitions(project);
    let known = known.iter().find(|definition| definition.name == name);
    if let Some(ServerOrigin::File(path)) = known.map(|definition| &definition.origin) {
        let text = format!("`{name}` is in {}; take it out there", path.display());
        return Err(HostError::usage(text).into());
    }
    let path = servers::remove_server(&project.environment().config_dir(), name)?;
    print_safe_text(&format!("removed `{name}` from {}\n", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_server_address_is_distinguished_from_a_program() {
        for (word, url) in [
            ("http://h/mcp", Some("http://h/mcp")),
            ("HTTP://h/mcp", Some("http://h/mcp")),
            ("https://h:1/mcp", Some("https://h:1/mcp")),
            ("npx", None),
            ("/opt/a:80", None),
            ("C:/server", None),
        ] {
            assert_eq!(parse_address(word).unwrap().as_deref(), url, "{word}");
        }
        let refused = parse_address("ftp://x").unwrap_err().to_string();
        assert!(refused.contains("begins with http:// or https://"), "{refused}");
        let refused = parse_address("localhost:9000/mcp").unwrap_err().to_string();
        assert!(refused.contains("as in http://localhost:9000/mcp"), "{refused}");
    }
}
