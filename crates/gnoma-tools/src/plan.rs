//! `plan`: the steps of the work, for people to see and for the model to come back to.

use std::sync::Arc;

use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec, plan,
    tool::{Access, BoxFuture, Tier, ToolKind},
};

use crate::args;

/// The tool. The session itself takes the plan from its calls.
#[must_use]
pub fn plan_tool() -> Arc<dyn Tool> {
    Arc::new(Plan { spec: plan_spec() })
}

struct Plan {
    spec: ToolSpec,
}

impl Tool for Plan {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, _cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            match plan::parse_plan(&call.arguments) {
                Ok(steps) if steps.is_empty() => ToolOutcome::success_text("the plan is empty"),
                Ok(steps) => ToolOutcome::success_text(plan::to_text(&steps)),
                Err(error) => ToolOutcome::failure_text(error.to_string()),
            }
        })
    }
}

fn plan_spec() -> ToolSpec {
    let spec = args::tool_spec(
        "plan",
        Access::Read,
        [],
        Tier::Full,
        "Show the user your plan for work of several steps; call again, with all steps, whenever one changes.",
        r#"{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"enum":["pending","active","done"]}},"required":["text","status"]}}},"required":["steps"]}"#,
    );
    ToolSpec { kind: ToolKind::Plans, ..spec }
}
