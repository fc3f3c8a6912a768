//! Permission decisions: allow, ask or deny a tool call, with the reason. Facts in, a verdict out.
//!
//! A rule that denies beats one that asks, and that beats one that allows, except that the more specific of the
//! last two decides; without a rule, the mode decides. Places and effects that need approval in every mode
//! ([`Severity::Guarded`](crate::places::Severity) and the like) take precedence over both. [`JudgementContext::resolve`]
//! follows links; nothing here touches a disk, and whoever runs the call must make sure that it opens what was
//! judged.

mod added_rules;
mod command;
mod command_grant;
mod command_words;
mod cover;
mod effects;
mod explain;
mod extension;
mod file;
mod git_lookups;
mod host;
mod judgement_context;
mod machine;
mod metadata;
mod opinion;
mod paths;
pub(crate) mod pattern_overlap;
mod processes;
mod rule;
mod ruled_paths;
mod suggest;
mod trial;
mod url;

use std::{path::Path, sync::Arc};

use gnoma_core::{
    ToolCall, ToolSpec,
    glob::glob_matches,
    session::PermissionMode,
    tool::{Access, Grant, ToolKind, TouchedResource},
};
use serde_json::Value;

pub use added_rules::AddedRules;
pub use command_words::{CommandWords, CommandWordsError};
pub use explain::ShellRow;
pub use host::{HostPattern, HostPatternError};
pub use judgement_context::JudgementContext;
pub(crate) use judgement_context::one_line;
pub use paths::{PathPattern, PathPatternError};
pub use rule::{Origin, Rule, RuleAction, RuleError, RuleSyntaxError, Subject};
pub use ruled_paths::RuleReach;
pub use trial::TrialRun;

use crate::firewall::RestoredCall;
use extension::starts_subject;
use judgement_context::PathSnapshot;
use opinion::{Decision, Opinion};

/// The decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call is allowed to run.
    Allow {
        /// The rule or mode that allows the call, in one line.
        reason: String,
        /// The things that the call may reach beyond the workspace.
        grant: Grant,
    },
    /// The call does not run; the reason goes to the model.
    Deny {
        /// The reason for the denial, in one line.
        reason: String,
    },
    /// A person decides about the call.
    Ask {
        /// The reason why a person must decide, in one line.
        reason: String,
        /// The things that the call may reach beyond the workspace if the answer is yes.
        grant: Grant,
        /// The rules that "always" adds; empty where one answer must not cover later calls.
        always: Vec<Rule>,
        /// The parts of the reason that say what is lost, what leaves the machine, and what is not what it seems.
        dangers: Vec<String>,
    },
}

/// Limits of a child (an elf, a hook, a skill) in addition to its parent's rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// A mode that also judges it; the stricter verdict applies.
    pub mode: Option<PermissionMode>,
    /// Globs of the tools it may use; `None` for all of its parent's.
    pub tools: Option<Vec<String>>,
}

/// The rules of a session and what else decides besides the mode.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    rules: Vec<Rule>,
    confirmed_bypass: bool,
    limits: Vec<Limit>,
    since: AddedRules,
}

impl Permissions {
    /// With these rules, in any order.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Adds rules that may grow later.
    #[must_use]
    pub fn with_since(mut self, since: AddedRules) -> Self {
        self.since = since;
        self
    }

    /// The same with all that was added since.
    #[must_use]
    pub fn with_later_rules(this: &Arc<Self>) -> Arc<Self> {
        let mut now = Arc::clone(this);
        for rule in this.since.all_rules() {
            Arc::make_mut(&mut now).add_rule(rule);
        }
        now
    }

    /// In mode bypass, also runs what otherwise needs approval in every mode. Only for a separate setting that a
    /// person confirmed.
    #[must_use]
    pub fn confirm_bypass(mut self) -> Self {
        self.confirmed_bypass = true;
        self
    }

    /// Adds a rule, such as an answer of "always". Derive children after it.
    pub fn add_rule(&mut self, rule: Rule) {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Returns the list of rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The permissions of a child: it never may what this may not.
    #[must_use]
    pub fn for_child(&self, limit: Limit) -> Self {
        let mut child = self.clone();
        child.limits.push(limit);
        child
    }

    /// Judges a call of `tool` in the session's `mode`.
    #[must_use]
    pub fn judge(
        &self,
        mode: PermissionMode,
        world: &JudgementContext<'_>,
        tool: &ToolSpec,
        call: &ToolCall,
    ) -> Verdict {
        self.judge_or_try(mode, world, tool, call).0
    }

    /// The same, with the trial that would answer what is asked or refused, where one would. Whether
    /// commands can be tried here is for the caller to know.
    #[must_use]
    pub fn judge_or_try(
        &self,
        mode: PermissionMode,
        world: &JudgementContext<'_>,
        tool: &ToolSpec,
        call: &ToolCall,
    ) -> (Verdict, Option<TrialRun>) {
        let (opinion, grant) = self.judge_with_grant(mode, world, tool, call);
        let modes = self.limits.iter().filter_map(|limit| limit.mode).chain([mode]);
        let trial = trial::trial_for_call(modes, world, &opinion, &grant);
        let Opinion { decision, reason, always, dangers, .. } = opinion;
        let verdict = match decision {
            Decision::Allow => Verdict::Allow { reason, grant },
            Decision::Deny => Verdict::Deny { reason },
            Decision::Ask => {
                Verdict::Ask { reason, grant, always: always.unwrap_or_default(), dangers }
            }
        };
        (verdict, trial)
    }

    /// Judges a call by what the tool will receive, and describes it as it was `written`: a quotation may be
    /// shortened, and nobody can recognize a shortened secret as one. A call with a secret does not run on trial,
    /// because it could write the secret anywhere in what is shown.
    #[must_use]
    pub fn judge_restored(
        &self,
        mode: PermissionMode,
        world: &JudgementContext<'_>,
        tool: &ToolSpec,
        written: &ToolCall,
        restored: &RestoredCall,
    ) -> (Verdict, Option<TrialRun>) {
        if restored.used_placeholders().is_empty() {
            return self.judge_or_try(mode, world, tool, restored.expose());
        }
        let said = self.judge(mode, world, tool, written);
        let other = || "one of your secrets in it makes it a different call".to_owned();
        let verdict = match self.judge(mode, world, tool, restored.expose()) {
            Verdict::Allow { grant, .. } => {
                let reason =
                    if let Verdict::Allow { reason, .. } = said { reason } else { other() };
                Verdict::Allow { reason, grant }
            }
            Verdict::Deny { .. } => {
                let reason = if let Verdict::Deny { reason } = said { reason } else { other() };
                Verdict::Deny { reason }
            }
            Verdict::Ask { grant, .. } => {
                let (reason, dangers) = match said {
                    Verdict::Ask { reason, dangers, .. } => (reason, dangers),
                    Verdict::Allow { .. } | Verdict::Deny { .. } => (other(), Vec::new()),
                };
                // A rule for good would hold the secret.
                Verdict::Ask { reason, grant, always: Vec::new(), dangers }
            }
        };
        (verdict, None)
    }

    fn judge_with_grant(
        &self,
        mode: PermissionMode,
        world: &JudgementContext<'_>,
        tool: &ToolSpec,
        call: &ToolCall,
    ) -> (Opinion, Grant) {
        let snapshot = PathSnapshot::new(world.resolve);
        let resolve = |path: &Path| snapshot.resolve(path);
        let world = &JudgementContext { resolve: &resolve, ..*world };
        let (mut opinion, grant) = self.build_judgement(mode, world).judge_call(tool, call);
        for limit in &self.limits {
            let is_listed =
                |tools: &Vec<String>| tools.iter().any(|glob| glob_matches(glob, &call.name));
            if !limit.tools.as_ref().is_none_or(is_listed) {
                let reason = format!("`{}` is not one of the tools it was given", call.name);
                return (Opinion::deny(reason), Grant::default());
            }
            if let Some(narrower_mode) = limit.mode {
                opinion = opinion.merge_stricter(
                    self.build_judgement(narrower_mode, world).judge_call(tool, call).0,
                );
            }
        }
        (opinion, grant)
    }

    fn build_judgement<'a>(
        &'a self,
        mode: PermissionMode,
        world: &'a JudgementContext<'a>,
    ) -> Judgement<'a> {
        // A project that is not trusted may restrict, nothing else.
        let holds = |rule: &&Rule| {
            world.trusted || rule.origin != Origin::Project || rule.action != RuleAction::Allow
        };
        Judgement {
            rules: self.rules.iter().filter(holds).collect(),
            mode,
            world,
            confirmed: self.confirmed_bypass && mode == PermissionMode::Bypass,
        }
    }
}

/// One judgement: the rules that hold, the mode and the world.
struct Judgement<'a> {
    rules: Vec<&'a Rule>,
    mode: PermissionMode,
    world: &'a JudgementContext<'a>,
    /// Mode bypass, and meant.
    confirmed: bool,
}

impl<'a> Judgement<'a> {
    fn judge_call(&self, tool: &ToolSpec, call: &ToolCall) -> (Opinion, Grant) {
        let arguments: Value = call.arguments.read().unwrap_or_default();
        if let Some(rule) = self.denying_rule_for_call(tool, call, &arguments) {
            return (by_rule(rule, "denies"), Grant::default());
        }
        if tool.kind == ToolKind::AsksPerson {
            return (Opinion::allow("it only asks you"), Grant::default());
        }
        if tool.kind == ToolKind::Plans {
            return (Opinion::allow("it only shows you a plan"), Grant::default());
        }
        if tool.kind == ToolKind::AgentStep {
            return (Opinion::allow("you chose the agent"), self.agent_grant());
        }
        let touched =
            tool.touches.iter().map(|touches| self.judge_touch(tool, touches, &arguments));
        // As strict as the strictest of all that it touches.
        let whole = touched.reduce(|(opinion, grant), (next, more)| {
            (opinion.merge_stricter(next), grant.union_with(more))
        });
        let (opinion, grant) = whole.unwrap_or_else(|| {
            (self.judge_by_name(tool, tool.access, &arguments), Grant::default())
        });
        (self.clamp_to_mode(opinion), grant)
    }

    /// Returns what an agent may change by itself: nothing while planning, and in mode deny.
    fn agent_grant(&self) -> Grant {
        let reads_only = matches!(self.mode, PermissionMode::Plan | PermissionMode::Deny);
        Grant { reads_only, ..Grant::default() }
    }

    fn judge_touch(
        &self,
        tool: &ToolSpec,
        touches: &TouchedResource,
        arguments: &Value,
    ) -> (Opinion, Grant) {
        match touches {
            TouchedResource::Action(name, looks) => {
                let looks = text_of(arguments, name)
                    .is_some_and(|action| looks.iter().any(|look| **look == *action));
                let access = if looks { Access::Read } else { tool.access };
                (self.judge_by_name(tool, access, arguments), Grant::default())
            }
            TouchedResource::Path(name) => self.judge_file_call(tool, arguments, name),
            TouchedResource::Command(name) => self.judge_shell_call(arguments, name),
            TouchedResource::Url(name) => self.judge_url_call(tool, text_of(arguments, name)),
        }
    }

    /// In mode deny nobody is asked.
    fn clamp_to_mode(&self, opinion: Opinion) -> Opinion {
        if self.mode == PermissionMode::Deny && opinion.decision == Decision::Ask {
            return Opinion::deny(format!("mode deny: {}", opinion.reason));
        }
        opinion
    }

    /// A rule that denies the call by its name, its server or a text in it.
    fn denying_rule_for_call(
        &self,
        tool: &ToolSpec,
        call: &ToolCall,
        arguments: &Value,
    ) -> Option<&'a Rule> {
        let applies = |rule: &Rule| match &rule.subject {
            Subject::Tool(glob) => glob_matches(glob, &tool.name),
            Subject::Mcp { server, tool: of_server } => {
                is_of_server(&tool.name, server, of_server.as_deref(), Strictness::Loose)
            }
            Subject::Agent(_) | Subject::Skill(_) => starts_subject(&rule.subject, tool, arguments),
            Subject::Text { tool: glob, text } => {
                // An escape must not hide the text from the rule.
                glob_matches(glob, &tool.name)
                    && (call.arguments.get().contains(text) || contains_text(arguments, text))
            }
            Subject::Command(_) | Subject::Path { .. } | Subject::Host(_) => false,
        };
        self.rules_with_action(RuleAction::Deny).find(|rule| applies(rule))
    }

    fn rules_with_action(&self, action: RuleAction) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().copied().filter(move |rule| rule.action == action)
    }

    /// Of the rules that allow or ask and `apply`, the most specific; of equals one that asks.
    fn find_matching_rule(&self, applies: impl Fn(&Rule) -> bool) -> Option<&'a Rule> {
        let fitting = self.rules.iter().copied().filter(|rule| rule.action != RuleAction::Deny);
        fitting
            .filter(|rule| applies(rule))
            .max_by_key(|rule| (rule.subject.specificity_score(), rule.action))
    }

    /// A tool that does not say what it touches.
    fn judge_by_name(&self, tool: &ToolSpec, access: Access, arguments: &Value) -> Opinion {
        let rule = self.find_matching_rule(|rule| match &rule.subject {
            Subject::Tool(glob) => glob_matches(glob, &tool.name),
            Subject::Mcp { server, tool: of_server } => {
                let strictness = Strictness::for_action(rule.action);
                is_of_server(&tool.name, server, of_server.as_deref(), strictness)
            }
            Subject::Agent(_) | Subject::Skill(_) => starts_subject(&rule.subject, tool, arguments),
            _ => false,
        });
        self.apply_rule(tool, rule).unwrap_or_else(|| {
            // What the session that it starts does is judged call by call, by the same rules.
            if tool.kind == ToolKind::StartsSessions && self.mode != PermissionMode::Deny {
                return Opinion::allow("each call of what it starts is checked separately");
            }
            self.by_mode(access).with_always(suggest::for_tool(tool))
        })
    }

    /// Returns the opinion that a rule that allows or asks gives of a call; planning is not lifted by rules.
    fn apply_rule(&self, tool: &ToolSpec, rule: Option<&Rule>) -> Option<Opinion> {
        let rule = rule?;
        if self.mode == PermissionMode::Plan && tool.access != Access::Read {
            return None;
        }
        Some(match rule.action {
            RuleAction::Allow => by_rule(rule, "allows"),
            RuleAction::Ask | RuleAction::Deny => by_rule(rule, "asks about"),
        })
    }

    /// Returns the opinion that the mode alone gives of a tool.
    fn by_mode(&self, access: Access) -> Opinion {
        let mode = self.mode;
        let allow = |what: &str| Opinion::allow(format!("mode {mode}: {what}"));
        let ask = |what: &str| Opinion::ask(format!("mode {mode}: {what}"));
        let deny = |what: &str| Opinion::deny(format!("mode {mode}: {what}"));
        match (mode, access) {
            (PermissionMode::Bypass, _) => allow("everything runs"),
            (PermissionMode::Deny, _) => deny("nothing runs unless a rule allows it"),
            (PermissionMode::Default, _) => ask("every call needs approval"),
            (
                PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::Plan,
                Access::Read,
            ) => allow("reads run"),
            (PermissionMode::Plan, Access::Edit | Access::Execute) => {
                deny("only reads run while planning")
            }
            (PermissionMode::AcceptEdits, Access::Edit) => allow("edits run"),
            (PermissionMode::Auto, Access::Edit) => ask("edits need approval"),
            (PermissionMode::AcceptEdits | PermissionMode::Auto, Access::Execute) => {
                ask("commands need approval")
            }
        }
    }
}

fn by_rule(rule: &Rule, says: &str) -> Opinion {
    let reason = format!("the rule `{rule}` {says} it");
    match rule.action {
        RuleAction::Allow => Opinion::allow(reason),
        RuleAction::Ask => Opinion::ask(reason),
        RuleAction::Deny => Opinion::deny(reason),
    }
}

fn text_of<'v>(arguments: &'v Value, name: &str) -> Option<&'v str> {
    arguments.get(name).and_then(Value::as_str)
}

/// Reports whether `text` stands anywhere in what a tool will read.
fn contains_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value.contains(text),
        Value::Array(items) => items.iter().any(|item| contains_text(item, text)),
        Value::Object(fields) => {
            fields.iter().any(|(name, item)| name.contains(text) || contains_text(item, text))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().contains(text),
    }
}

/// The certainty that a rule needs to apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// To allow: no doubt.
    Tight,
    /// To forbid or ask: it can be.
    Loose,
}

impl Strictness {
    fn for_action(action: RuleAction) -> Self {
        if action == RuleAction::Allow { Self::Tight } else { Self::Loose }
    }
}

/// Reports whether a tool is that of a server; their names are joined as `mcp__server__tool`.
fn is_of_server(name: &str, server: &str, tool: Option<&str>, strictness: Strictness) -> bool {
    let rest = name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(server));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix("__")) else { return false };
    match tool {
        Some(tool) => rest == tool,
        // Another server's name could begin with this one's and the joint.
        None => strictness == Strictness::Loose || !rest.contains("__"),
    }
}
