//! What the program adds to the sessions of this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gnoma_config::settings::McpServer;
use gnoma_core::{Provider, Tool, lifecycle::Lifecycle, protocol::SessionSpec};
use gnoma_extend::{
    claude::{RenamingProvider, our_name},
    hooks::{Callback, Callbacks},
};
use gnoma_guard::permission::{AddedRules, Origin, Rule, RuleAction};
use gnoma_host::driven::{DrivenSession, Driver};

use super::{
    agents::{AgentTool, Agents, TOOL},
    control::ControlChannel,
    error::DriverError,
    flags::ToolFlags,
    mcp::SdkServer,
    permission::Permission,
    program_hooks::{ProgramHookCaller, ProgramLifecycle, SubagentIdentity},
    rules,
};

/// The facts that a program has given about its session before the session opens.
#[derive(Default)]
pub(super) struct ProgramInit {
    pub(super) callbacks: Vec<Callback>,
    pub(super) sdk_servers: Vec<SdkServer>,
    /// The text that is added to the system prompt.
    pub(super) append: Option<String>,
    /// The id of the session.
    pub(super) session: String,
}

/// The parts that the program adds to the sessions of this process.
pub(super) struct Program {
    pub(super) control: ControlChannel,
    pub(super) permission: Permission,
    pub(super) agents: Agents,
    pub(super) tools: ToolFlags,
    pub(super) rules: Vec<Rule>,
    pub(super) servers: Vec<McpServer>,
    pub(super) only_these_servers: bool,
    pub(super) said: Mutex<ProgramInit>,
}

impl Program {
    /// Returns the facts that the program has given so far, locked.
    pub(super) fn lock_session_setup(&self) -> MutexGuard<'_, ProgramInit> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a tool is offered to the model.
    fn offers_tool(&self, name: &str) -> bool {
        if self.tools.disallowed.iter().any(|listed| rules::names_tool(listed, name)) {
            return false;
        }
        // What reads stored results back belongs to the others, and jobs to the shell.
        let is_own = name != "read_result" && !name.starts_with("mcp__");
        let name = if name == "job" { "bash" } else { name };
        match &self.tools.base {
            Some(base) if is_own => base.iter().any(|listed| our_name(listed) == name),
            Some(_) | None => name != "ask" || self.permission.can_ask(),
        }
    }
}

/// The rules of lists such as `Bash(git add:*)`, and what comes to nothing of them, a sentence each.
///
/// # Errors
/// Something that is to be denied cannot be.
pub(super) fn rules_from_flags(tools: &ToolFlags) -> Result<(Vec<Rule>, Vec<String>), DriverError> {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    for written in &tools.disallowed {
        let read = rules::parse_rules(RuleAction::Deny, written, Origin::Flag);
        all.extend(read.map_err(|error| DriverError::UnenforcedDenial {
            written: written.clone(),
            source: Box::new(error),
        })?);
    }
    for written in &tools.allowed {
        match rules::parse_rules(RuleAction::Allow, written, Origin::Flag) {
            Ok(read) => all.extend(read),
            Err(why) => faults.push(format!("`--allowedTools {written}` allows nothing: {why}")),
        }
    }
    let listed = tools.disallowed.iter().chain(&tools.allowed);
    faults.extend(listed.filter_map(|written| rules::about_nothing(written)));
    // Starting an agent does nothing by itself: each of its calls is judged.
    all.extend(Rule::parse(RuleAction::Allow, TOOL, Origin::Flag));
    Ok((all, faults))
}

impl Driver for Program {
    fn wrap_provider(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(RenamingProvider::new(provider))
    }

    fn session_tools(
        &self,
        session: DrivenSession<'_>,
        mut offered: Vec<Arc<dyn Tool>>,
    ) -> Vec<Arc<dyn Tool>> {
        let mut said = self.lock_session_setup();
        let agent = self.agents.agent_of_session(session.spec);
        if agent.is_none() {
            session.id.clone_into(&mut said.session);
        }
        if agent.is_none() && !self.agents.all_agents().is_empty() {
            let (agents, control) = (self.agents.clone(), self.control.clone());
            offered.retain(|tool| tool.spec().name != TOOL);
            offered.push(Arc::new(AgentTool::new(agents, control, said.session.clone())));
        }
        offered.extend(said.sdk_servers.iter().flat_map(|server| server.tools.iter().cloned()));
        offered.retain(|tool| {
            let name = &tool.spec().name;
            self.offers_tool(name) && agent.as_ref().is_none_or(|agent| agent.has_tool(name))
        });
        offered
    }

    fn session_lifecycle(
        &self,
        session: DrivenSession<'_>,
        added: Arc<dyn Lifecycle>,
    ) -> Arc<dyn Lifecycle> {
        let said = self.lock_session_setup();
        let agent = self.agents.agent_of_session(session.spec);
        let agent =
            agent.map(|agent| SubagentIdentity { id: session.id.to_owned(), name: agent.name });
        let child = agent.as_ref().map(|agent| agent.id.clone());
        let caller = ProgramHookCaller { control: self.control.clone(), agent };
        let cwd = session.spec.folder.display().to_string();
        let callbacks =
            Callbacks::new(&said.callbacks, said.session.clone(), cwd, Arc::new(caller));
        Arc::new(ProgramLifecycle {
            added,
            callbacks,
            permission: self.permission.clone(),
            session: child,
        })
    }

    fn permission_rules(&self) -> Vec<Rule> {
        self.rules.clone()
    }

    fn rules_since(&self) -> AddedRules {
        self.permission.rules_since()
    }

    fn mcp_servers(&self) -> Vec<McpServer> {
        self.servers.clone()
    }

    fn has_only_its_servers(&self) -> bool {
        self.only_these_servers
    }

    fn system_prompt_addition(&self, spec: &SessionSpec) -> Option<String> {
        let is_agent = self.agents.agent_of_session(spec).is_some();
        let place = spec.system.as_ref().map(|_| {
            let folder = spec.folder.display();
            format!("Working folder: {folder}\nOperating system: {}", std::env::consts::OS)
        });
        let append = self.lock_session_setup().append.clone().filter(|_| !is_agent);
        let parts: Vec<_> = append.into_iter().chain(place).collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}
