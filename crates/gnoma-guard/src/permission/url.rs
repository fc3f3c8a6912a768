//! Judges a call that is given an address, by the host in it.

use gnoma_core::{
    glob::glob_matches,
    session::PermissionMode,
    tool::{Grant, ToolSpec},
};

use super::{
    Judgement, by_rule, host, one_line,
    opinion::{Decision, Opinion},
    rule::{Rule, RuleAction, Subject},
    suggest,
};

/// Longest piece of a call that a reason shows, in characters.
const MAX_SHOWN_CHARS: usize = 80;

impl Judgement<'_> {
    /// A tool that is given an address: what is asked for leaves the machine, so reading is no
    /// reason to run it unasked.
    pub(super) fn judge_url_call(
        &self,
        tool: &ToolSpec,
        address: Option<&str>,
    ) -> (Opinion, Grant) {
        let grant = Grant { network: true, ..Grant::default() };
        let host = address.and_then(host::host_of);
        let Some(host) = host else {
            let shown = one_line(address.unwrap_or_default(), MAX_SHOWN_CHARS);
            return (self.unless_bypass(tool, &format!("no plain host in `{shown}`"), None), grant);
        };
        let denies =
            |rule: &&Rule| matches!(&rule.subject, Subject::Host(it) if it.touches_host(&host));
        if let Some(rule) = self.rules_with_action(RuleAction::Deny).find(denies) {
            return (by_rule(rule, "denies"), grant);
        }
        let rule = self.find_matching_rule(|rule| match (&rule.subject, rule.action) {
            (Subject::Host(pattern), RuleAction::Allow) => pattern.covers_host(&host),
            (Subject::Host(pattern), RuleAction::Ask | RuleAction::Deny) => {
                pattern.touches_host(&host)
            }
            (Subject::Tool(glob), _) => glob_matches(glob, &tool.name),
            _ => false,
        });
        let opinion = self.apply_rule(tool, rule).unwrap_or_else(|| {
            self.unless_bypass(tool, &format!("it talks to `{host}`"), suggest::for_host(&host))
        });
        (opinion, grant)
    }

    fn unless_bypass(&self, tool: &ToolSpec, why: &str, always: Option<Vec<Rule>>) -> Opinion {
        let by_mode = self.by_mode(tool.access);
        match (by_mode.decision, self.mode) {
            (Decision::Allow, PermissionMode::Bypass) | (Decision::Deny, _) => by_mode,
            _ => Opinion::ask(format!("mode {}: {why}", self.mode))
                .with_always(always)
                .mark_danger(self.mode),
        }
    }
}
