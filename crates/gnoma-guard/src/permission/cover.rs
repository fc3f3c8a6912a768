//! Checks whether rules cover a call as a whole, for lists of allowed tools. It does not say whether the call may run:
//! whoever limits calls to a list of commands uses this, and judges the call as well.

use gnoma_core::{
    ToolCall, ToolSpec, glob::glob_matches, session::PermissionMode, tool::TouchedResource,
};
use gnoma_shell::StartContext;
use serde_json::Value;

use super::{JudgementContext, Permissions, RuleAction, Subject, Verdict};

impl Permissions {
    /// Reports whether one of the rules, which all deny, would stop a call, or might: because of a part of a shell
    /// line that it is about, or that cannot be understood, or of what the tool is given.
    #[must_use]
    pub fn may_stop(&self, world: &JudgementContext<'_>, tool: &ToolSpec, call: &ToolCall) -> bool {
        let is_shell =
            || tool.touches.iter().any(|touches| matches!(touches, TouchedResource::Command(_)));
        let mut rules = self.rules().to_vec();
        // A rule about one tool says nothing of another that does the same.
        rules.retain(|rule| match &rule.subject {
            Subject::Command(_) => is_shell(),
            Subject::Path { tool: glob, .. } => glob_matches(glob, &tool.name),
            Subject::Tool(_)
            | Subject::Host(_)
            | Subject::Mcp { .. }
            | Subject::Agent(_)
            | Subject::Skill(_)
            | Subject::Text { .. } => true,
        });
        let left = Self::new(rules).confirm_bypass();
        let verdict = left.judge(PermissionMode::Bypass, world, tool, call);
        !left.rules().is_empty() && !matches!(verdict, Verdict::Allow { .. })
    }

    /// Reports whether each part of a call is one that a rule allows by name: each simple command in a shell line,
    /// by its words alone, or what a file tool is given.
    #[must_use]
    pub fn speaks_of(
        &self,
        world: &JudgementContext<'_>,
        tool: &ToolSpec,
        call: &ToolCall,
    ) -> bool {
        let command = tool.touches.iter().find_map(|touches| match touches {
            TouchedResource::Command(argument) => Some(argument),
            TouchedResource::Path(_) | TouchedResource::Url(_) | TouchedResource::Action(..) => {
                None
            }
        });
        let Some(argument) = command else {
            let verdict = self.judge(PermissionMode::Deny, world, tool, call);
            return matches!(verdict, Verdict::Allow { .. });
        };
        let arguments: Value = call.arguments.read().unwrap_or_default();
        let text = arguments.get(&**argument).and_then(Value::as_str).unwrap_or_default();
        let home = world.home.map(std::path::Path::to_path_buf);
        let start = StartContext { cwd: world.cwd.to_path_buf(), home };
        let analysis = gnoma_shell::analyse_command(text, &start);
        let is_named = |words: &[Option<String>]| {
            self.rules().iter().any(|rule| match (&rule.subject, rule.action) {
                (Subject::Command(allowed), RuleAction::Allow) => allowed.covers_command(words),
                _ => false,
            })
        };
        analysis.unparsed.is_none()
            && !analysis.commands.is_empty()
            && analysis.commands.iter().all(|command| is_named(&command.words))
    }
}
