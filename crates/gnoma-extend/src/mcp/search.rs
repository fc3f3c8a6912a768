//! Searches MCP tools by words, where there are too many to offer all.

use std::sync::{Arc, Weak};

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    tool::{Access, BoxFuture, Tier, ToolKind},
};
use serde::Deserialize;

use super::catalog::Catalog;

/// The name of the tool.
pub(super) const NAME: &str = "mcp.search";
/// Most tools that one search adds.
const MAX_FOUND: usize = 5;
/// Points of a word that stands in a tool's name; one in its description has one.
const IN_NAME: usize = 3;

/// The tool that finds others.
pub(super) struct ToolSearch {
    spec: ToolSpec,
    servers: Weak<dyn Catalog>,
}

impl ToolSearch {
    /// `names`: the servers'. They stay the same all through a session, as what models get in front of a
    /// conversation should.
    pub(super) fn new(servers: Weak<dyn Catalog>, names: &str) -> Self {
        let parameters = r#"{"type":"object","properties":{"query":{"type":"string","description":"what the tool should do, in a few words, or its name"}},"required":["query"],"additionalProperties":false}"#;
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: format!(
                "Finds tools of MCP servers by words and makes them available: tools that are found can be \
                 called right afterwards. Servers: {names}"
            ),
            parameters: RawJson::parse(parameters).unwrap_or_else(|_| RawJson::empty_object()),
            access: Access::Read,
            touches: Arc::default(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        };
        Self { spec, servers }
    }
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, _cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let servers = self.servers.upgrade();
        Box::pin(async move {
            #[derive(Deserialize)]
            struct Arguments {
                query: String,
            }
            let Some(servers) = servers else {
                return ToolOutcome::failure_text("the servers have ended");
            };
            let query = match call.arguments.read::<Arguments>() {
                Ok(Arguments { query }) => query,
                Err(error) => {
                    return ToolOutcome::failure_text(format!("unusable arguments: {error}"));
                }
            };
            let mut all = servers.tool_descriptions();
            let mut found = rank_tools(&query, &all);
            if found.is_empty() {
                let awaited = servers.wait_for_servers().await;
                all = servers.tool_descriptions();
                found = rank_tools(&query, &all);
                if found.is_empty() {
                    return ToolOutcome::failure_text(no_match_message(&awaited));
                }
            }
            let text: Vec<_> = found
                .iter()
                .map(|name| {
                    let about = all.iter().find(|(known, _)| known == name);
                    format!(
                        "{name}: {}",
                        about.map(|(_, about)| about.as_str()).unwrap_or_default()
                    )
                })
                .collect();
            servers.offer_tools(found).await;
            ToolOutcome::success_text(format!(
                "These tools are available now:\n{}",
                text.join("\n")
            ))
        })
    }
}

/// The message if nothing fits. `awaited`: servers that have not answered yet.
fn no_match_message(awaited: &[String]) -> String {
    let text = "no tool fits; try other words for what the tool should do";
    if awaited.is_empty() {
        return text.to_owned();
    }
    format!("{text}. Servers that have not answered yet: {}", awaited.join(", "))
}

/// The names of the tools that fit best, best first.
fn rank_tools(query: &str, tools: &[(String, String)]) -> Vec<String> {
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1)
        .map(str::to_lowercase)
        .collect();
    let mut scored: Vec<(usize, &str)> = tools
        .iter()
        .map(|(name, about)| {
            let (lower, about) = (name.to_lowercase(), about.to_lowercase());
            let score = |word: &String| {
                IN_NAME * usize::from(lower.contains(word.as_str()))
                    + usize::from(about.contains(word.as_str()))
            };
            let whole = if lower == query.to_lowercase() { 1000 } else { 0 };
            (words.iter().map(score).sum::<usize>() + whole, name.as_str())
        })
        .filter(|(score, _)| *score > 0)
        .collect();
    // A stable order: equally good ones stay as the servers list them.
    gnoma_core::sort::by_key(&mut scored, |(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(MAX_FOUND).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_tool_search_ranks_by_name_and_description() {
        let tools = [
            ("mcp__git__log", "Shows commits"),
            ("mcp__fs__read", "Reads a file"),
            ("mcp__fs__write", "Writes a file"),
        ];
        let tools = tools.map(|(name, about)| (name.to_owned(), about.to_owned()));
        let find = |query: &str| rank_tools(query, &tools);
        assert_eq!(find("show git commits"), ["mcp__git__log"]);
        assert_eq!(find("file"), ["mcp__fs__read", "mcp__fs__write"]);
        assert_eq!(find("mcp__fs__write")[0], "mcp__fs__write");
        assert!(find("weather").is_empty());
    }
}
