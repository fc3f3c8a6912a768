//! Agent definitions: the tools and the model of a session that runs as an agent.

use std::sync::Arc;

use gnoma_core::{
    ModelRef, Tool,
    session::PermissionMode,
    tool::{Tier, is_about},
};
use gnoma_engine::{Routes, session::Options};
use gnoma_tools::Agent;

use crate::{HostError, Notices, Project, Result, extensions, unused_settings::MCP};

/// The agent as which the person's session works, if it does.
///
/// # Errors
/// There is no such agent, or it is not trusted yet.
pub(crate) fn selected_agent(project: &Project) -> Result<Option<Agent>> {
    let Some(name) = &project.spec.agent else { return Ok(None) };
    let mut all = extensions::all_agents(project);
    let Some(at) = all.iter().position(|agent| agent.name == *name) else {
        let names: Vec<_> = all.iter().map(|agent| agent.name.as_str()).collect();
        let text = format!("there is no agent `{name}`; choose one of: {}", names.join(", "));
        return Err(HostError::usage(text));
    };
    let agent = all.swap_remove(at);
    agent.refusal.clone().map_or(Ok(Some(agent)), |why| Err(HostError::usage(why)))
}

/// Has a session work as an agent. Tools of it that are not here are warned of.
///
/// # Errors
/// None of its tools is here.
pub(crate) fn apply(agent: Agent, options: &mut Options, notices: &Notices) -> Result<()> {
    if let Some(listed) = agent.tools {
        let is_here = |rule: &str| options.tools.iter().any(|it| is_about(rule, &it.spec().name));
        let missing = listed.iter().filter(|rule| !rule.starts_with(MCP) && !is_here(rule));
        let missing: Vec<String> = missing.map(|rule| format!("`{rule}`")).collect();
        if !missing.is_empty() {
            let (name, missing) = (&agent.name, missing.join(", "));
            notices.warning(format_args!(
                "the agent `{name}` lists tools that are not in this session: {missing}"
            ));
        }
        options.tools = select_tools(std::mem::take(&mut options.tools), &listed)?;
        options.held_to = Some(listed.into());
    }
    forbid_tools(options, agent.forbidden);
    if !agent.prompt.is_empty() {
        let nothing: Box<dyn Fn(Tier) -> String + Send + Sync> = Box::new(|_| String::new());
        let own = std::mem::replace(&mut options.system, nothing);
        options.system = Box::new(move |tier| format!("{}\n\n{}", own(tier), agent.prompt));
    }
    Ok(())
}

/// The mode of a session that works as an agent: the agent's, where that allows less than the person's own.
pub(crate) fn stricter_mode(
    own: PermissionMode,
    of_agent: Option<PermissionMode>,
) -> PermissionMode {
    let allows = |mode| match mode {
        PermissionMode::Deny => 0,
        PermissionMode::Plan => 1,
        PermissionMode::Default => 2,
        PermissionMode::Auto => 3,
        PermissionMode::AcceptEdits => 4,
        PermissionMode::Bypass => 5,
    };
    of_agent.filter(|mode| allows(*mode) < allows(own)).unwrap_or(own)
}

/// Takes tools from a session: they are not offered, and no call of them runs, also of those that come later.
pub(crate) fn forbid_tools(options: &mut Options, forbidden: Vec<String>) {
    let is_forbidden = |name: &str| forbidden.iter().any(|rule| is_about(rule, name));
    options.tools.retain(|tool| !is_forbidden(&tool.spec().name));
    options.forbidden = forbidden.into();
}

/// The arm that an agent wants; one that is not in the session is warned of.
pub(crate) fn wanted_arm(agent: &Agent, routes: &Routes, notices: &Notices) -> Option<ModelRef> {
    let part = agent.model.as_deref()?;
    let arm = find_preferred_arm(routes, part);
    if arm.is_none() {
        let name = &agent.name;
        notices.warning(format_args!(
            "`{part}`, which the agent `{name}` wants, is not in this session; another model answers"
        ));
    }
    arm
}

/// The first arm whose name has what is preferred in it.
pub(crate) fn find_preferred_arm(routes: &Routes, part: &str) -> Option<ModelRef> {
    let part = part.to_lowercase();
    let names = routes.arms().iter().map(|arm| arm.id.clone()).collect::<Vec<_>>();
    names.into_iter().find(|name| name.to_string().to_lowercase().contains(&part))
}

/// Returns the tools that a list names, each by name or by a rule about it.
pub(crate) fn select_tools(
    tools: Vec<Arc<dyn Tool>>,
    listed: &[String],
) -> Result<Vec<Arc<dyn Tool>>> {
    let names: Vec<String> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
    let is_meant =
        |tool: &Arc<dyn Tool>| listed.iter().any(|rule| is_about(rule, &tool.spec().name));
    let given: Vec<_> = tools.into_iter().filter(is_meant).collect();
    if given.is_empty() && !listed.is_empty() {
        let (listed, names) = (listed.join(", "), names.join(", "));
        let text = format!("this session has none of the tools `{listed}`; choose one of: {names}");
        return Err(HostError::usage(text));
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_permission_mode_never_exceeds_the_users_mode() {
        use PermissionMode::{AcceptEdits, Auto, Default, Plan};
        assert_eq!(stricter_mode(AcceptEdits, Some(Plan)), Plan);
        assert_eq!(stricter_mode(Plan, Some(AcceptEdits)), Plan);
        assert_eq!(stricter_mode(Auto, Some(Default)), Default);
        assert_eq!(stricter_mode(Auto, None), Auto);
    }
}
