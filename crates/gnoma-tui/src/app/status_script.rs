//! The person's script for the line at the bottom: when it runs, what it is told, and what of its output is shown.

use std::time::{Duration, Instant};

use gnoma_core::json_value::json;
use serde_json::Value;

use super::state::State;
use crate::{effect::Effect, sgr, status::MICRO_USD};

/// The time between two runs of the script, at least.
const PERIOD: Duration = Duration::from_secs(1);
/// The time after which a script that failed runs again.
const RETRY_AFTER: Duration = Duration::from_secs(30);

impl State {
    /// Runs the script if something has changed and it did not run a moment ago.
    pub(super) fn run_status_script(&mut self) {
        self.window.script.is_stale |= self.window.script.is_on && !self.is_idle();
        let now = self.now;
        if self.status_script_due().is_none_or(|due| due > now) {
            return;
        }
        let script = &mut self.window.script;
        (script.is_stale, script.is_running, script.next_at) = (false, true, Some(now + PERIOD));
        self.emit(Effect::StatusLine(self.status_facts()));
    }

    /// Returns the time at which the script is to run; `None` if nothing has changed.
    pub(super) fn status_script_due(&self) -> Option<Instant> {
        let script = &self.window.script;
        let is_leaving = self.exit.is_leaving;
        let is_wanted = script.is_on && script.is_stale && !script.is_running && !is_leaving;
        (is_wanted && self.session_id().is_some()).then(|| script.next_at.unwrap_or(self.now))
    }

    /// Shows the line that the script printed; an empty one leaves the usual status line.
    pub(super) fn show_scripted_status(&mut self, text: &str) {
        self.window.script.is_running = false;
        let line = sgr::coloured_line(text);
        self.window.script.line = Some(line).filter(|line| line.width() > 0);
    }

    /// Shows the usual status line until the script works again, and says once why.
    pub(super) fn on_status_script_failed(&mut self, why: &str) {
        let script = &mut self.window.script;
        (script.is_running, script.line, script.is_stale) = (false, None, true);
        script.next_at = Some(self.now + RETRY_AFTER);
        if !std::mem::replace(&mut script.is_told, true) {
            self.show_warning(&format!(
                "Your `status.command` failed ({why}), so the usual status line is shown; it is retried every {}",
                gnoma_core::duration::format_duration(RETRY_AFTER)
            ));
        }
    }

    /// Facts about the session, named as Claude Code's `statusLine` has them; names of gnoma's own are at the end.
    fn status_facts(&self) -> Value {
        let (facts, counts, view) = (&self.facts, &self.counts, &self.session.view);
        let model = facts.model.as_deref();
        let display_name = model.map(|name| name.split_once('/').map_or(name, |(_, model)| model));
        let cost = counts.session_cost;
        #[expect(clippy::cast_precision_loss, reason = "money that is shown")]
        let dollars = cost.describe_amount().map(|_| cost.micro_usd as f64 / MICRO_USD);
        let began = self.timers.clock.map_or(self.now, |(began, _)| began);
        let milliseconds = self.now.saturating_duration_since(began).as_millis();
        let (used, all) = (counts.context_tokens(), counts.session_usage());
        let percent = used.saturating_mul(100).checked_div(facts.window);
        json!({
            "session_id": self.session_id().map(ToString::to_string),
            "cwd": view.folder,
            "model": { "id": model, "display_name": display_name },
            "version": facts.version,
            "cost": {
                "total_cost_usd": dollars,
                "total_duration_ms": u64::try_from(milliseconds).unwrap_or(u64::MAX),
            },
            "spending": self.window.spending.parts.to_json(),
            "context_window": {
                "total_input_tokens": all.prompt_tokens(),
                "total_output_tokens": all.output,
                "context_window_size": facts.window,
                "used_percentage": percent,
                "remaining_percentage": percent.map(|percent| 100_u64.saturating_sub(percent)),
                "current_usage": {
                    "input_tokens": counts.round.input,
                    "output_tokens": counts.round.output,
                    "cache_creation_input_tokens": counts.round.cache_write,
                    "cache_read_input_tokens": counts.round.cache_read,
                },
            },
            "permission_mode": facts.mode.name(),
            "branch": facts.branch,
            "profile": facts.profile,
            "incognito": facts.incognito,
            "turns": counts.turns,
            "is_working": !self.is_idle(),
        })
    }
}
