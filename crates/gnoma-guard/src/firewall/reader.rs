//! Redacts the parts of a request for one provider.
//!
//! Every string that a model gets to see passes here: text, thinking, arguments and results of tools, tool names,
//! descriptions and schemas. What passes unexamined: images, ids, and the tokens that providers want back
//! unchanged, which they made themselves.
//!
//! Thinking that carries its author's signature must not change. It goes back unchanged to the provider that wrote
//! it, which learns nothing that it did not write; for anyone else it is rewritten like other text and loses the
//! signature, which only its author could read.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    RawJson, ToolCall, ToolSpec,
    message::{Content, Message, ResultPart, Role, Text, Thinking, ToolResult},
};

use super::{
    judge::{Judge, JudgedText, Secret},
    notice::RequestPart,
    policy::{FirewallAction, Policy, ProviderFacts},
};

/// Keys under which tools take the path of the file they work on.
const PATH_KEYS: [&str; 3] = ["path", "file", "file_path"];

/// The secrets and disguises met while a request is rewritten for a reader.
#[derive(Default)]
pub(super) struct ReaderFindings {
    /// The secrets, with what was done and where they stood.
    pub secrets: Vec<(Secret, FirewallAction, RequestPart)>,
    /// The disguises that were found, in words, and where they stood.
    pub disguises: Vec<(String, RequestPart)>,
}

/// Rewrites for one reader.
pub(super) struct RequestReader<'a> {
    pub judge: &'a Judge,
    pub policy: &'a Policy,
    /// The provider that reads; `None` for logs and stores.
    pub provider: Option<&'a ProviderFacts>,
    /// The file that a tool's result came from.
    path: Option<String>,
    pub met: ReaderFindings,
}

impl<'a> RequestReader<'a> {
    pub(super) fn new(
        judge: &'a Judge,
        policy: &'a Policy,
        provider: Option<&'a ProviderFacts>,
    ) -> Self {
        let met = ReaderFindings::default();
        Self { judge, policy, provider, path: None, met }
    }

    /// The text as this reader gets it; `None` when that is as it is.
    pub(super) fn rewrite_text(&mut self, text: &str, place: &RequestPart) -> Option<String> {
        let judged = self.judge.judge_text(text)?;
        let rewritten = self.render_judged(&judged, place);
        (rewritten != text).then_some(rewritten)
    }

    fn rewrite_json(&mut self, json: &RawJson, place: &RequestPart) -> Option<RawJson> {
        let judged = self.judge.judge_json(json.get())?;
        let rewritten = self.render_judged(&judged, place);
        if rewritten == json.get() {
            return None;
        }
        // Pieces of strings are encoded each by itself, so this stays JSON; were it none, an empty
        // object keeps the promise that the secret does not leave.
        Some(RawJson::parse(rewritten).unwrap_or_else(|_| RawJson::empty_object()))
    }

    fn render_judged(&mut self, judged: &JudgedText, place: &RequestPart) -> String {
        let action =
            |secret: &Secret| self.policy.action(&secret.rule, self.provider, self.path.as_deref());
        for secret in judged.secrets() {
            self.met.secrets.push((secret.clone(), action(secret), place.clone()));
        }
        let suspicious = judged.flags.iter().filter(|flag| flag.kind.is_suspicious());
        self.met.disguises.extend(suspicious.map(|flag| (flag.to_sentence(), place.clone())));
        judged.render(&self.judge.vault, action)
    }

    /// The message as this reader gets it; `None` when that is as it is. `before` is the message
    /// before it, which names the files that results come from.
    pub(super) fn rewrite_message(
        &mut self,
        message: &Message,
        before: Option<&Message>,
    ) -> Option<Message> {
        let is_author = message.origin().is_some_and(|origin| {
            self.provider.is_some_and(|provider| provider.name == origin.provider)
        });
        let paths = self.call_paths(before);
        let mut is_changed = false;
        let mut content = Vec::with_capacity(message.content().len());
        for block in message.content() {
            let rewritten = self.rewrite_block(block, message.role(), is_author, &paths);
            is_changed |= rewritten.is_some();
            content.push(rewritten.unwrap_or_else(|| block.clone()));
        }
        is_changed.then(|| rebuild_message(message, content))
    }

    fn call_paths(&self, before: Option<&Message>) -> HashMap<String, String> {
        let calls = before.filter(|_| self.policy.asks_for_paths()).map(Message::tool_calls);
        let path = |call: &ToolCall| {
            let arguments: serde_json::Value = call.arguments.read().ok()?;
            let path = PATH_KEYS.iter().find_map(|key| arguments.get(key)?.as_str())?;
            Some((call.id.to_string(), path.to_owned()))
        };
        calls.into_iter().flatten().filter_map(path).collect()
    }

    fn rewrite_block(
        &mut self,
        block: &Content,
        role: Role,
        is_author: bool,
        paths: &HashMap<String, String>,
    ) -> Option<Content> {
        match block {
            Content::Text(text) => {
                let place =
                    if role == Role::User { RequestPart::User } else { RequestPart::Answer };
                let rewritten = self.rewrite_text(&text.text, &place)?;
                let signature = text.signature.clone();
                Some(Content::Text(Text { text: fill_empty_text(rewritten), signature }))
            }
            Content::Thinking(thinking) if is_author && thinking.signature.is_some() => None,
            Content::Thinking(thinking) => {
                let text = self.rewrite_text(&thinking.text, &RequestPart::Thinking)?;
                Some(Content::Thinking(Thinking {
                    text,
                    signature: None,
                    item: thinking.item.clone(),
                }))
            }
            Content::Image(_) | Content::RedactedThinking(_) => None,
            Content::ToolCall(call) => self.rewrite_call(call).map(Content::ToolCall),
            Content::ToolResult(result) => {
                self.path = paths.get(result.call_id.as_str()).cloned();
                let rewritten = self.rewrite_result(result);
                self.path = None;
                rewritten.map(Content::ToolResult)
            }
        }
    }

    fn rewrite_call(&mut self, call: &ToolCall) -> Option<ToolCall> {
        let place = RequestPart::Arguments(call.name.clone());
        let arguments = self.rewrite_json(&call.arguments, &place);
        let name = self.rewrite_text(&call.name, &place);
        if arguments.is_none() && name.is_none() {
            return None;
        }
        let mut call = call.clone();
        call.arguments = arguments.unwrap_or(call.arguments);
        call.name = name.unwrap_or(call.name);
        Some(call)
    }

    fn rewrite_result(&mut self, result: &ToolResult) -> Option<ToolResult> {
        let place = RequestPart::Result(result.name.clone());
        let mut rewritten = result.clone();
        let mut is_changed = false;
        for part in &mut rewritten.parts {
            match part {
                ResultPart::Image(_) => {}
                ResultPart::Text { text } => {
                    if let Some(new) = self.rewrite_text(text, &place) {
                        *text = fill_empty_text(new);
                        is_changed = true;
                    }
                }
            }
        }
        if let Some(name) = self.rewrite_text(&result.name, &place) {
            rewritten.name = name;
            is_changed = true;
        }
        is_changed.then_some(rewritten)
    }

    /// The tool as this reader gets it; `None` when that is as it is.
    pub(super) fn rewrite_tool(&mut self, tool: &ToolSpec) -> Option<ToolSpec> {
        let place = RequestPart::Tool(tool.name.clone());
        let description = self.rewrite_text(&tool.description, &place);
        let parameters = self.rewrite_json(&tool.parameters, &place);
        if description.is_none() && parameters.is_none() {
            return None;
        }
        let mut tool = tool.clone();
        tool.description = description.unwrap_or(tool.description);
        tool.parameters = parameters.unwrap_or(tool.parameters);
        Some(tool)
    }

    /// The tools as this reader gets them; `None` when that is as they are.
    pub(super) fn rewrite_tools(
        &mut self,
        tools: &[Arc<ToolSpec>],
    ) -> Option<Arc<[Arc<ToolSpec>]>> {
        let rewritten: Vec<_> = tools.iter().map(|tool| self.rewrite_tool(tool)).collect();
        rewritten.iter().any(Option::is_some).then(|| {
            let pairs = tools.iter().zip(rewritten);
            pairs.map(|(old, new)| new.map_or_else(|| Arc::clone(old), Arc::new)).collect()
        })
    }
}

/// Providers refuse empty texts.
fn fill_empty_text(text: String) -> String {
    if text.is_empty() { " ".to_owned() } else { text }
}

/// The message with other content of the same kinds.
fn rebuild_message(message: &Message, content: Vec<Content>) -> Message {
    let results = |content: Vec<Content>| {
        let results = content.into_iter().filter_map(|block| match block {
            Content::ToolResult(result) => Some(result),
            Content::Text(_)
            | Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolCall(_) => None,
        });
        Message::results(results.collect())
    };
    let rebuilt = match message.role() {
        Role::User => Message::user(content),
        Role::Assistant => {
            Message::assistant(content, message.origin().cloned(), message.stop_reason())
        }
        Role::Tool => results(content),
    };
    // Content of the same kinds makes a message again; were it none, nothing of it leaves.
    rebuilt.unwrap_or_else(|_| Message::user_text("(left out)"))
}
