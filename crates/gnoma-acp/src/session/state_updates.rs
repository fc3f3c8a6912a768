//! Updates about the state of a session: its options, its commands, the use of its window, and its title.

use gnoma_core::json_value::json;

use super::{COMPACT, ClientSession, TASK};
use crate::{effect::SessionEffect, tools::without_paths};

impl ClientSession {
    /// Tells what can be chosen, where it has changed.
    pub(super) fn tell_options(&mut self, fx: &mut Vec<SessionEffect>) {
        let options = self.options();
        if self.told_options != options {
            self.told_options = options.clone();
            fx.push(SessionEffect::Update(json!({
                "sessionUpdate": "config_option_update", "configOptions": options,
            })));
        }
    }

    pub(super) fn tell_commands(&mut self, fx: &mut Vec<SessionEffect>) {
        if !self.commands.is_empty() && self.commands == self.view.info.commands {
            return;
        }
        self.commands.clone_from(&self.view.info.commands);
        let own = |name: &str, about: &str, hint: &str| json!({ "name": name, "description": about, "input": { "hint": hint } });
        let mut commands = vec![
            own(COMPACT, "Replace the conversation so far with a summary", "what to focus on"),
            own(TASK, "Run a task; without a name, list the tasks", "NAME ARGUMENTS"),
        ];
        let names =
            self.commands.iter().filter(|command| ![COMPACT, TASK].contains(&&*command.name));
        commands.extend(names.map(|command| {
            let mut told = json!({ "name": command.name, "description": command.about });
            if !command.hint.is_empty() {
                told["input"] = json!({ "hint": command.hint });
            }
            told
        }));
        fx.push(SessionEffect::Update(json!({
            "sessionUpdate": "available_commands_update", "availableCommands": commands,
        })));
    }

    /// Tells how full the window is and what the session cost, where that is known and has changed.
    pub(super) fn tell_usage(&mut self, fx: &mut Vec<SessionEffect>) {
        let view = &self.view;
        let arm = view.models.iter().find(|choice| choice.arm.is_some() && choice.arm == view.arm);
        let Some(size) = arm.and_then(|choice| choice.window).or(view.info.window) else { return };
        let used = match (view.context.tokens, view.last_call.total_tokens()) {
            (0, 0) => view.info.last_call.total_tokens(),
            (0, used) | (used, _) => used,
        };
        let mut update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        if view.micro_usd > 0 && !view.is_cost_partial {
            let amount = view.micro_usd as f64 / 1e6;
            update["cost"] = json!({ "amount": amount, "currency": "USD" });
        }
        if used > 0 && self.usage.as_ref() != Some(&update) {
            self.usage = Some(update.clone());
            fx.push(SessionEffect::Update(update));
        }
    }

    /// Tells the title, where it is another one.
    pub(crate) fn tell_title(&mut self, title: &str, changed: &str, fx: &mut Vec<SessionEffect>) {
        let title = &without_paths(title);
        if self.is_open() && !title.is_empty() && self.title != *title {
            title.clone_into(&mut self.title);
            fx.push(SessionEffect::Update(json!({
                "sessionUpdate": "session_info_update", "title": title, "updatedAt": changed,
            })));
        }
    }
}
