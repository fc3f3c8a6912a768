//! Questions about calls that a person approved each time, with the narrow rules that would answer them.

use std::collections::BTreeMap;

use gnoma_core::{
    RawJson, ToolCall, ToolSpec,
    tool::{Access, Tier, ToolKind, split_mcp_name},
};
use gnoma_guard::permission::Verdict;

use crate::{Project, Result, session};

/// Most different calls that are told apart. Beyond it approvals are left out.
const MAX_CALLS: usize = 1_000;
/// Beyond this number of different calls denials are left out as well, and no rule is named: it might be one that was
/// denied.
const MAX_CALLS_WITH_DENIALS: usize = 2_000;
/// Fewest approvals that a rule is named for.
const LEAST_APPROVED: u64 = 3;

/// A rule that would answer questions that a person approved each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOffer {
    /// The rule, such as `bash(cargo test)`; several have commas.
    pub rule: String,
    /// Questions about such calls.
    pub approved: u64,
}

/// The answers to questions about equal calls.
struct Answers {
    call: ToolCall,
    approved: u64,
    denied: u64,
}

/// Answered questions by the tool and the arguments of the call.
#[derive(Default)]
pub(super) struct AnsweredQuestions {
    by_call: BTreeMap<(String, String), Answers>,
    lacks_denials: bool,
}

impl AnsweredQuestions {
    pub(super) fn add(&mut self, call: &ToolCall, is_allowed: bool) {
        let key = (call.name.clone(), call.arguments.get().to_owned());
        let limit = if is_allowed { MAX_CALLS } else { MAX_CALLS_WITH_DENIALS };
        if self.by_call.len() >= limit && !self.by_call.contains_key(&key) {
            self.lacks_denials |= !is_allowed;
            return;
        }
        let new = || Answers { call: call.clone(), approved: 0, denied: 0 };
        let answers = self.by_call.entry(key).or_insert_with(new);
        if is_allowed {
            answers.approved += 1;
        } else {
            answers.denied += 1;
        }
    }

    /// Returns the rules for calls that were approved each time, the most used first. `rule_of` finds the rule for a
    /// call.
    pub(super) fn find_offers(
        self,
        rule_of: impl Fn(&ToolCall) -> Option<String>,
    ) -> Vec<RuleOffer> {
        if self.lacks_denials {
            return Vec::new();
        }
        let mut by_rule: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for Answers { call, approved, denied } in self.by_call.into_values() {
            if let Some(rule) = rule_of(&call) {
                let sums = by_rule.entry(rule).or_default();
                *sums = (sums.0 + approved, sums.1 + denied);
            }
        }
        let offers = by_rule.into_iter().filter_map(|(rule, (approved, denied))| {
            (denied == 0 && approved >= LEAST_APPROVED).then_some(RuleOffer { rule, approved })
        });
        let mut offers: Vec<RuleOffer> = offers.collect();
        gnoma_core::sort::by_key(&mut offers, |offer| std::cmp::Reverse(offer.approved));
        offers
    }
}

/// Returns a function that finds the rule that an answer of "always" would add for a call in the project now. There is
/// none for calls that run without a question, or that must be asked about each time.
///
/// # Errors
/// The rules about permissions cannot be used.
pub(super) fn narrow_rule_finder(
    project: &Project,
) -> Result<impl Fn(&ToolCall) -> Option<String> + use<>> {
    let tools = session::session_tools(project, "", None, None);
    let place = session::gate_place(project, None, None);
    let permissions = session::session_permissions(project)?;
    let mode = project.guard.permission.mode;
    Ok(move |call: &ToolCall| {
        let known = tools.iter().map(|tool| tool.spec()).find(|spec| spec.name == call.name);
        let of_server = split_mcp_name(&call.name).map(|_| server_tool(&call.name));
        let spec = known.or(of_server.as_ref())?;
        match permissions.judge(mode, &place.judgement_context(), spec, call) {
            Verdict::Ask { always, .. } if !always.is_empty() => {
                Some(always.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            Verdict::Ask { .. } | Verdict::Allow { .. } | Verdict::Deny { .. } => None,
        }
    })
}

/// Describes a tool of an MCP server that is not connected, as far as rules depend on it.
fn server_tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: RawJson::empty_object(),
        access: Access::Execute,
        touches: [].into(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    }
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;
    use gnoma_core::{
        CallId,
        protocol::{Environment, SessionSpec},
    };

    use super::*;
    use crate::{Notices, ProcessResources};

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall::new(CallId::new("c"), name, RawJson::parse(arguments).unwrap())
    }

    #[test]
    fn permission_rule_is_suggested_for_calls_always_approved() {
        let mut questions = AnsweredQuestions::default();
        for (command, is_allowed, times) in [
            ("test a", true, 2),
            ("test b", true, 2),
            ("once", true, 1),
            ("no", true, 9),
            ("no", false, 1),
        ] {
            for _ in 0..times {
                questions.add(&call("bash", &format!("{{\"command\":\"{command}\"}}")), is_allowed);
            }
        }
        let rule_of = |call: &ToolCall| {
            let text = call.arguments.get();
            let words = ["test", "once", "no"];
            words.into_iter().find(|word| text.contains(word)).map(str::to_owned)
        };
        let offers = questions.find_offers(rule_of);
        assert_eq!(offers, [RuleOffer { rule: "test".to_owned(), approved: 4 }]);
    }

    #[test]
    fn denials_prevent_permission_rule_suggestions_over_the_call_limit() {
        let rule_of = |call: &ToolCall| Some(call.arguments.get().get(..6)?.to_owned());
        for (denials, offers) in [(0, 1), (1, 0), (MAX_CALLS_WITH_DENIALS, 0)] {
            let mut questions = AnsweredQuestions::default();
            for number in 0..MAX_CALLS + 9 {
                questions.add(&call("bash", &format!("{{\"a\":\"{number}\"}}")), true);
            }
            for number in 0..denials {
                questions.add(&call("bash", &format!("{{\"a\":\"no {number}\"}}")), false);
            }
            assert_eq!(questions.find_offers(rule_of).len(), offers, "{denials} denials");
        }
    }

    #[test]
    fn suggested_permission_rule_equals_the_rule_always_adds() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().canonicalize().unwrap();
        let nowhere = folder.join("no-settings");
        let sources =
            Sources { config_dir: nowhere.clone(), state_dir: nowhere, ..Sources::default() };
        let lowered = gnoma_config::load_settings(&sources).unwrap().into();
        let variables = [("HOME".to_owned(), folder.display().to_string())];
        let environment = Environment::new(variables.into());
        let spec = SessionSpec { folder, environment, ..SessionSpec::default() };
        let (notices, resources) = (Notices::without_sink(), ProcessResources::default());
        let project = Project::with_settings(spec, lowered, notices, resources).unwrap();
        let rule_of = narrow_rule_finder(&project).unwrap();
        let bash =
            |command: &str| rule_of(&call("bash", &format!("{{\"command\":\"{command}\"}}")));
        assert_eq!(bash("cargo test").as_deref(), Some("bash(cargo test)"));
        assert_eq!(bash("rm -rf build"), None, "it is asked each time");
        assert_eq!(bash("ls"), None, "it runs without a question");
        assert!(
            rule_of(&call("mcp__github__search", "{}")).is_some_and(|rule| rule.contains("github"))
        );
    }
}
