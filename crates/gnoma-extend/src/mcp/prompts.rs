//! Prompts of servers, which people use as commands: `/mcp__server__prompt words`.

use serde_json::{Map, Value};

use super::{
    error::CallError,
    failure::ServerUseError,
    limits::MAX_TEXT_BYTES,
    listed_prompt::ListedPrompt,
    live_connection::LiveConnection,
    naming::{self, PREFIX},
    result,
    server_prompt::ServerPrompt,
};
use crate::commands::split_words;

/// Returns the name of the server if a name after a slash is one of a server's prompt.
pub(super) fn server_of(name: &str) -> Option<&str> {
    Some(name.strip_prefix(PREFIX)?.split_once("__")?.0)
}

impl LiveConnection {
    /// The server's prompts, as they are shown, and what of them is left out.
    pub(super) async fn list_prompts(
        &self,
        server: &str,
    ) -> Result<(Vec<ServerPrompt>, Vec<String>), CallError> {
        let all = self.list_pages::<ListedPrompt>("prompts").await?;
        let shown = all.elements.iter().map(|prompt| prompt.to_server_prompt(server));
        Ok((shown.collect(), all.describe_faults()))
    }

    /// Returns the text of the prompt of that name with these arguments; `None` where there is no such prompt.
    pub(super) async fn said_by(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
    ) -> Result<Option<String>, ServerUseError> {
        let all = self.list_pages::<ListedPrompt>("prompts").await?.elements;
        let Some(prompt) =
            all.iter().find(|prompt| naming::qualified_tool_name(server, &prompt.name) == name)
        else {
            return Ok(None);
        };
        let mut params = Map::new();
        params.insert("name".to_owned(), prompt.name.clone().into());
        if let Some(given) = bind_arguments(prompt, arguments)? {
            params.insert("arguments".to_owned(), Value::Object(given));
        }
        let got = self.send_short_request("prompts/get", params).await?;
        Ok(Some(render_messages(&got)))
    }
}

/// The text of a prompt's messages. What cannot be read is named where it stood.
pub(super) fn render_messages(got: &Value) -> String {
    let all = got.get("messages").and_then(Value::as_array).map(Vec::as_slice);
    let Some(all) = all else {
        return "[the server's prompt has no messages that can be read]".to_owned();
    };
    let mut text = String::new();
    for (at, message) in all.iter().enumerate() {
        let content = message.get("content");
        let parts = match content {
            Some(Value::Array(parts)) => parts.iter().collect(),
            Some(part) => vec![part],
            None => Vec::new(),
        };
        if parts.is_empty() {
            push_paragraph(
                &mut text,
                &format!("[message {} has no content that can be read]", at + 1),
            );
        }
        for part in parts {
            push_paragraph(&mut text, &result::text_of(part));
        }
    }
    gnoma_core::text_truncation::word_prefix(&text, MAX_TEXT_BYTES).to_owned()
}

fn push_paragraph(text: &mut String, part: &str) {
    let gap = if text.is_empty() { "" } else { "\n\n" };
    text.push_str(gap);
    text.push_str(part);
}

/// Words as a prompt's arguments, in their order; what is left over belongs to the last.
fn bind_arguments(
    prompt: &ListedPrompt,
    text: &str,
) -> Result<Option<Map<String, Value>>, ServerUseError> {
    let wanted = &prompt.arguments;
    let mut words = split_words(text);
    if let Some(last) = wanted.len().checked_sub(1)
        && words.len() > wanted.len()
    {
        let rest = words.split_off(last);
        words.push(rest.join(" "));
    }
    let missing = wanted.iter().skip(words.len()).find(|it| it.is_required);
    if let Some(missing) = missing {
        return Err(ServerUseError::NoArgument(missing.name.clone()));
    }
    let pairs = wanted.iter().zip(words).map(|(it, word)| (it.name.clone(), word.into()));
    let given: Map<String, Value> = pairs.collect();
    Ok((!given.is_empty()).then_some(given))
}
