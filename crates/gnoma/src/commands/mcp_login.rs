//! `gnoma mcp login`: a browser tells a server who asks, and the tokens are kept.

use anyhow::Result;
use gnoma_extend::mcp::{self, ServerReach, Tokens};
use gnoma_host::{Folders as _, HostError, Project, mcp as servers};

use super::common::print_safe_text;
use crate::{report::Exit, screen};

pub(crate) async fn run(project: &Project, name: &str, forget: bool) -> Result<Exit> {
    let definitions = servers::server_definitions(project);
    let definition = definitions.iter().find(|definition| definition.name == name);
    let definition =
        definition.ok_or_else(|| HostError::usage(format!("there is no MCP server `{name}`")))?;
    let ServerReach::Http { url, .. } = &definition.reach else {
        let text = format!("`{name}` is a program; only servers at an address have a login");
        return Err(HostError::usage(text).into());
    };
    let keyring = servers::token_keyring(project);
    let tokens = Tokens::in_state(&project.environment().state_dir(), url, keyring);
    if forget {
        let had = tokens.remove_all().await?;
        return print_safe_text(if had {
            "logged out; the tokens are deleted\n"
        } else {
            "nobody was logged in\n"
        });
    }
    let show = |page: &str| {
        let page = screen::mark_unsafe_chars(page);
        // If it cannot be printed, the login ends with an error after its time limit.
        let _unread =
            print_safe_text(&format!("Open this page in a browser on this machine:\n  {page}\n"));
    };
    mcp::log_in(&servers::http_client(project), url, &tokens, &show)
        .await
        .map_err(|error| HostError::usage(error.to_string()))?;
    print_safe_text(&format!("logged in to `{name}`\n"))
}
