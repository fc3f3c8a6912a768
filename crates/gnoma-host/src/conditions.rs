//! For which calls alone a hook runs (`if`): its rules, judged like rules about permissions.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolSpec,
    tool::{Access, Tier, ToolKind},
};
use gnoma_extend::hooks::Hook;
use gnoma_guard::permission::{Origin, Permissions, Rule, RuleAction, RuleError};

use crate::{Project, guard_setup};

/// A function that says whether a call is, or may be, what one of the rules is about.
type Judge = Arc<dyn Fn(&[String], &ToolCall) -> bool + Send + Sync>;

/// The judge of a session with these tools.
pub(crate) fn build_judge(project: &Project, tools: &[Arc<dyn Tool>]) -> Judge {
    let place = guard_setup::gate_place(&project.guard, &project.places, &project.spec, None, None);
    let known: HashMap<String, ToolSpec> =
        tools.iter().map(|tool| (tool.spec().name.clone(), tool.spec().clone())).collect();
    Arc::new(move |rules, call| {
        let rules = rules.iter().filter_map(|text| parse_condition(text).ok()).collect();
        let unknown;
        let tool = match known.get(&call.name) {
            Some(tool) => tool,
            None => {
                unknown = unknown_tool_spec(&call.name);
                &unknown
            }
        };
        Permissions::new(rules).may_stop(&place.judgement_context(), tool, call)
    })
}

/// Takes the condition from a hook where it is no rule; says that the hook runs without.
pub(crate) fn drop_unreadable_condition(hook: &mut Hook) -> Option<String> {
    let why = hook.condition.as_ref()?.iter().find_map(|text| parse_condition(text).err())?;
    hook.condition = None;
    Some(format!(
        "{}: a hook for {} has an `if` that gnoma cannot read ({why}): the hook runs for everything that its \
         `matcher` matches",
        hook.origin.display(),
        hook.event
    ))
}

fn parse_condition(text: &str) -> Result<Rule, RuleError> {
    Rule::parse(RuleAction::Deny, text, Origin::User)
}

/// A tool that came after the session had begun, of which rules know the name.
fn unknown_tool_spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: RawJson::empty_object(),
        access: Access::Execute,
        touches: Arc::default(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    }
}
