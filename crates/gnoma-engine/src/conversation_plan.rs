//! The plan of a conversation. It exists only in the history: in the last call that set it, or in the summary of
//! what came before.

use std::sync::Arc;

use gnoma_core::{
    Message, Role,
    plan::{self, PlanStep},
    tool::ToolKind,
};

use crate::{context::brief::Brief, prompt};

/// Name of the tool that sets it.
const TOOL: &str = "plan";
/// Most messages that are looked through for it.
const MAX_LOOKED_AT: usize = 4_000;

/// Reports whether a tool of this kind sets the plan.
pub(crate) fn is_plan_tool(kind: ToolKind) -> bool {
    kind == ToolKind::Plans
}

/// The current plan, if there is one.
pub(crate) fn current_plan(history: &[Arc<Message>]) -> Option<Vec<PlanStep>> {
    let mut failed = Vec::new();
    for message in history.iter().rev().take(MAX_LOOKED_AT) {
        match message.role() {
            Role::Tool => {
                let wrong = message.tool_results().filter(|result| result.is_error);
                failed = wrong.map(|result| result.call_id.clone()).collect();
            }
            Role::Assistant => {
                let calls: Vec<_> = message.tool_calls().collect();
                let sets =
                    calls.iter().rev().find(|call| call.name == TOOL && !failed.contains(&call.id));
                if let Some(steps) = sets.and_then(|call| plan::parse_plan(&call.arguments).ok()) {
                    return (!steps.is_empty()).then_some(steps);
                }
            }
            Role::User => {
                if let Some(summary) = prompt::summary_of(message) {
                    let steps = Brief::from_text(&summary).plan().to_vec();
                    return (!steps.is_empty()).then_some(steps);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use gnoma_core::{CallId, Content, RawJson, ToolCall, ToolResult};

    use super::*;

    fn set(id: &str, steps: &str, is_error: bool) -> [Arc<Message>; 2] {
        let arguments = RawJson::parse(format!("{{\"steps\":[{steps}]}}")).unwrap();
        let call = ToolCall::new(CallId::new(id), TOOL, arguments);
        let result = ToolResult::from_text(&call, "ok", is_error);
        let message = Message::assistant(vec![Content::ToolCall(call)], None, None).unwrap();
        [message, Message::results(vec![result]).unwrap()].map(Arc::new)
    }

    #[test]
    fn last_plan_stays_current_after_compaction() {
        let mut history = vec![Arc::new(Message::user_text("go"))];
        assert_eq!(current_plan(&history), None);
        history.extend(set(
            "a",
            r#"{"text":"one","status":"done"},{"text":"two","status":"active"}"#,
            false,
        ));
        history.extend(set("b", r#"{"text":"wrong","status":"done"}"#, true));
        let steps = current_plan(&history).unwrap();
        assert_eq!(plan::to_text(&steps), "[x] one\n[>] two");
        let brief = Brief::from_past(&history, &HashMap::new(), None);
        let summary = brief.render_text("We worked.", &[]);
        let told = [Arc::new(Message::user_text(prompt::summary_note(&summary)))];
        assert_eq!(current_plan(&told), Some(steps));
        history.extend(set("c", "", false));
        assert_eq!(current_plan(&history), None);
    }
}
