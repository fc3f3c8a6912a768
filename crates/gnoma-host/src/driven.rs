//! Sessions that a program drives: what it adds to them, beside the settings.

use std::sync::Arc;

use gnoma_config::settings::McpServer;
use gnoma_core::{Provider, Tool, lifecycle::Lifecycle, protocol::SessionSpec};
use gnoma_guard::permission::{AddedRules, Rule};

/// A session that is being made.
#[derive(Clone, Copy, Debug)]
pub struct DrivenSession<'a> {
    /// The id of the session.
    pub id: &'a str,
    /// The options that the session is opened with.
    pub spec: &'a SessionSpec,
}

/// A program that drives the sessions of this process, sub-agents included.
pub trait Driver: Send + Sync {
    /// Puts something between a provider and all sessions; it is behind their firewalls.
    fn wrap_provider(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        provider
    }

    /// The tools of a session, made of those that would be `offered`.
    fn session_tools(
        &self,
        session: DrivenSession<'_>,
        offered: Vec<Arc<dyn Tool>>,
    ) -> Vec<Arc<dyn Tool>>;

    /// Returns the handler that is asked at points of a session's life, besides those that would be asked anyway.
    fn session_lifecycle(
        &self,
        session: DrivenSession<'_>,
        added: Arc<dyn Lifecycle>,
    ) -> Arc<dyn Lifecycle>;

    /// Rules about permissions, besides those of the settings.
    fn permission_rules(&self) -> Vec<Rule>;

    /// Rules that it adds while its sessions run.
    fn rules_since(&self) -> AddedRules;

    /// MCP servers, besides those of the settings.
    fn mcp_servers(&self) -> Vec<McpServer>;

    /// No other servers than those are used.
    fn has_only_its_servers(&self) -> bool;

    /// Returns the text that is added to a session's system prompt.
    fn system_prompt_addition(&self, spec: &SessionSpec) -> Option<String>;
}
