//! Steps of tasks: the calls of those that run side by side, and the model that a step wants.

use gnoma_core::{
    ModelRef, RawJson, ToolCall,
    session::{NoticeLevel, SideStep, SideWork},
    tool::ToolKind,
};
use serde_json::json;

use super::state::{FrontEndGone, Session};
use crate::turn::SideCall;

/// The names of the tools that steps need, for the refusal of a session that has none.
const SHELL: &str = "bash";
const ELF_STARTER: &str = "elf.spawn";

impl Session {
    /// Returns the name of the tool that runs commands.
    pub(super) fn shell_name(&self) -> Option<String> {
        let shell = self.tools.full.iter().find(|spec| spec.kind == ToolKind::Shell);
        shell.map(|spec| spec.name.clone())
    }

    /// Lets the turn that is about to begin use the model or the role that its step wants.
    pub(super) async fn pin_step(
        &mut self,
        model: Option<String>,
        role: Option<String>,
    ) -> Result<(), FrontEndGone> {
        let text = match (model, role) {
            (Some(model), _) if !self.router.pin_turn(&model) => {
                format!("`{model}` is not in this session; another model answers")
            }
            (None, Some(role)) => match self.router.model_by_role(&role) {
                Some(model) => {
                    self.router.turn_pin = Some(model);
                    return Ok(());
                }
                None => format!("no model has the role `{role}`; the router chooses one"),
            },
            _ => return Ok(()),
        };
        self.notify(NoticeLevel::Warning, text).await
    }

    /// Returns the call that does the work of a step beside others. `task`: the name of its task.
    pub(super) fn side_call(
        &self,
        task: &str,
        SideStep { call, text, title, work }: SideStep,
    ) -> SideCall {
        let (tool, arguments, head, tail) = match work {
            SideWork::Command { command, timeout_s } => {
                let arguments =
                    json!({ "command": command, "timeout": timeout_s, "stop_at_error": true });
                let tool = self.shell_name().unwrap_or_else(|| SHELL.to_owned());
                (tool, arguments, format!("{text}\n```\n$ {command}\n"), "\n```")
            }
            SideWork::Prompt { text: prompt, model, role } => {
                let model = self.wanted_model(model, role).map(|model| model.to_string());
                let step = format!("{task}/{title}");
                let task = json!({ "task": prompt, "name": title, "prefers": model, "step": step });
                let starter = self.tools.session_starter();
                let tool =
                    starter.map_or_else(|| ELF_STARTER.to_owned(), |it| it.spec().name.clone());
                // What changes something does not begin after an elf that did half of its work.
                let arguments = json!({ "tasks": [task], "must_complete": true });
                (tool, arguments, format!("{text}\n\n{prompt}\n\n"), "")
            }
        };
        let arguments = RawJson::from_value(&arguments).unwrap_or_else(|_| RawJson::empty_object());
        SideCall { call: ToolCall::new(call, tool, arguments), head, tail }
    }

    /// Returns the model of this name, or else the one of this role.
    fn wanted_model(&self, model: Option<String>, role: Option<String>) -> Option<ModelRef> {
        match model {
            Some(model) => self.router.model_by_name(&model),
            None => self.router.model_by_role(&role?),
        }
    }
}
