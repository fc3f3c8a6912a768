//! `plan`: the steps of the work, for people to see and for the model to come back to.

use std::sync::Arc;

use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec, plan,
    tool::{Access, BoxFuture, Tier, ToolKind},
};

use crate::args;

/// The tool. The session itself takes the plan from its calls.
#[must_use]
pub fn plan() -> Arc<dyn Tool> {
    Arc::new(Plan { spec: spec() })
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
            match plan::read(&call.arguments) {
                Ok(steps) if steps.is_empty() => ToolOutcome::done("the plan is empty"),
                Ok(steps) => ToolOutcome::done(plan::to_text(&steps)),
                Err(why) => ToolOutcome::failed(why),
            }
        })
    }
}

fn spec() -> ToolSpec {
    let spec = args::spec(
        "plan",
        Access::Read,
        [],
        Tier::Full,
        "Show the user your plan for work of several steps; call again, with all steps, whenever one changes.",
        r#"{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"enum":["pending","active","done"]}},"required":["text","status"]}}},"required":["steps"]}"#,
    );
    ToolSpec { kind: ToolKind::Plans, ..spec }
}
