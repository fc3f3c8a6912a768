//! Prompts of servers, which people use as commands: `/mcp__server__prompt words`.

use rmcp::model::{ContentBlock, GetPromptRequestParams, JsonObject, Prompt, ResourceContents};
use tokio::time::timeout;

use super::{
    limits::{CALL_TIMEOUT, MAX_TEXT_BYTES},
    live::{Live, spoken},
    naming::{self, PREFIX},
    server_prompt::ServerPrompt,
};
use crate::commands::words;

/// Most prompts of a server that are looked at.
const MAX_PROMPTS: usize = 200;

/// Whether a name behind a slash is one of a server's prompt, and then the server's name.
pub(super) fn server_of(name: &str) -> Option<&str> {
    Some(name.strip_prefix(PREFIX)?.split_once("__")?.0)
}

impl Live {
    /// The server's prompts.
    async fn listed_prompts(&self) -> Result<Vec<Prompt>, String> {
        if !self.has_prompts() {
            return Ok(Vec::new());
        }
        let listed = timeout(CALL_TIMEOUT, self.service().peer().list_prompts(None)).await;
        let listed = listed.map_err(|_late| "the server did not answer in time".to_owned())?;
        let mut prompts = listed.map_err(spoken)?.prompts;
        prompts.truncate(MAX_PROMPTS);
        Ok(prompts)
    }

    /// The same, as they are shown.
    pub(super) async fn prompts(&self, server: &str) -> Result<Vec<ServerPrompt>, String> {
        let all = self.listed_prompts().await?;
        Ok(all.iter().map(|prompt| ServerPrompt::of(server, prompt)).collect())
    }

    /// What the prompt of that name says with these words; `None` where there is no such prompt.
    pub(super) async fn said_by(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
    ) -> Result<Option<String>, String> {
        let all = self.listed_prompts().await?;
        let Some(prompt) = all.iter().find(|prompt| naming::tool(server, &prompt.name) == name)
        else {
            return Ok(None);
        };
        let params = GetPromptRequestParams::new(&prompt.name);
        let params = match given(prompt, arguments)? {
            Some(given) => params.with_arguments(given),
            None => params,
        };
        let got = timeout(CALL_TIMEOUT, self.service().get_prompt(params)).await;
        let got = got.map_err(|_late| "the server did not answer in time".to_owned())?;
        let mut text = String::new();
        for message in got.map_err(spoken)?.messages {
            let part = match &message.content {
                ContentBlock::Text(part) => part.text.clone(),
                ContentBlock::Resource(embedded) => match &embedded.resource {
                    ResourceContents::TextResourceContents { text, .. } => text.clone(),
                    _ => "[something that is not text was left out]".to_owned(),
                },
                _ => "[something that is not text was left out]".to_owned(),
            };
            let gap = if text.is_empty() { "" } else { "\n\n" };
            text.push_str(&format!("{gap}{part}"));
        }
        Ok(Some(gnoma_core::cut::head(&text, MAX_TEXT_BYTES).to_owned()))
    }
}

/// Words as a prompt's arguments, in their order; what is left over belongs to the last.
fn given(prompt: &Prompt, text: &str) -> Result<Option<JsonObject>, String> {
    let wanted: Vec<_> = prompt.arguments.iter().flatten().collect();
    let mut words = words(text);
    if let Some(last) = wanted.len().checked_sub(1)
        && words.len() > wanted.len()
    {
        let rest = words.split_off(last);
        words.push(rest.join(" "));
    }
    let missing = wanted.iter().skip(words.len()).find(|it| it.required == Some(true));
    if let Some(missing) = missing {
        return Err(format!("it needs `{}`", missing.name));
    }
    let pairs = wanted.iter().zip(words).map(|(it, word)| (it.name.clone(), word.into()));
    let given: JsonObject = pairs.collect();
    Ok((!given.is_empty()).then_some(given))
}
