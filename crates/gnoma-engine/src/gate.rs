//! The gate of a session: every tool call is judged here before it runs, also a restored one.
//!
//! A call passes here twice: when it is judged, and when it runs exactly as judged. In between come the questions
//! to people and the rules that their answers create. `gnoma-guard` makes the decisions.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ToolCall, ToolSpec,
    message::CallId,
    session::PermissionMode,
    tool::{Grant, PreviewError, Question, ToolKind, TouchedResource},
};
use gnoma_guard::{
    firewall::{Firewall, RestoredCall},
    permission::{self, Origin, Permissions, Rule, RuleAction, RuleError},
};
use serde_json::Value;

use crate::{gate_place::GatePlace, rights::Rights, turn::Verdict};

/// Longest rule that "always" offers: people must be able to read it at a glance.
const MAX_OFFERED_BYTES: usize = 200;
/// The end of the question about a call that was handed a secret.
const HOLDS_SECRET: &str = "it contains one of your secrets";

/// A call that may run, at once or after a question, and has not run to its end.
pub(crate) struct ApprovedCall {
    /// As it runs: placeholders are secrets again.
    call: RestoredCall,
    grant: Grant,
    /// The rules that "always" would add.
    always: Vec<Rule>,
}

impl ApprovedCall {
    /// The call as it runs and what it may reach, unless it holds secrets.
    pub(crate) fn without_secrets(self) -> Option<(gnoma_core::ToolCall, Grant)> {
        let Self { call, grant, .. } = self;
        call.used_placeholders().is_empty().then(|| (call.expose().clone(), grant))
    }
}

/// The reason why no rule of a person's answer was saved.
#[derive(thiserror::Error)]
pub(crate) enum AnswerRuleError {
    #[error("this question must be asked each time; no rule was saved")]
    AskedEachTime,
    #[error("{0}; no rule was saved")]
    Unreadable(#[from] RuleError),
}

gnoma_core::debug_as_display!(AnswerRuleError);

/// The guard between calls: what holds now, and which calls it has let through.
pub(crate) struct Gate {
    pub(crate) rights: Rights,
    place: Arc<GatePlace>,
    /// True if a person can answer questions.
    interactive: bool,
    firewall: Arc<Firewall>,
    /// Emptied as calls end; a round has few.
    admitted: HashMap<CallId, ApprovedCall>,
}

impl Gate {
    pub(crate) fn new(
        rights: Rights,
        place: GatePlace,
        interactive: bool,
        firewall: Arc<Firewall>,
    ) -> Self {
        Self { rights, place: Arc::new(place), interactive, firewall, admitted: HashMap::new() }
    }

    /// Returns a judge that decides about calls by the rules and mode that hold now, on any thread.
    pub(crate) fn current_judge(&self) -> Judge {
        let (mode, permissions) = self.rights.effective_permissions();
        Judge {
            mode,
            permissions,
            place: Arc::clone(&self.place),
            interactive: self.interactive,
            firewall: Arc::clone(&self.firewall),
        }
    }

    /// A call may run, unless a person says no.
    pub(crate) fn register_call(&mut self, call: CallId, admitted: ApprovedCall) {
        self.admitted.insert(call, admitted);
    }

    /// A person answered "always": the rules in the question apply from now on.
    pub(crate) fn add_offered_rules(&mut self, id: &CallId) {
        if let Some(judged) = self.admitted.get_mut(id) {
            for rule in judged.always.drain(..) {
                self.rights.add_rule(rule);
            }
        }
    }

    /// A person answered "always" with rules of their own: they apply from now on, if the question offered any.
    ///
    /// # Errors
    /// The question offered no rule, or one of the rules cannot be read. Then none is added.
    pub(crate) fn remember_written(
        &mut self,
        id: &CallId,
        text: &str,
    ) -> Result<(), AnswerRuleError> {
        if self.admitted.get(id).is_none_or(|judged| judged.always.is_empty()) {
            return Err(AnswerRuleError::AskedEachTime);
        }
        let parse = |part: &str| Rule::parse(RuleAction::Allow, part, Origin::Session);
        let rules: Result<Vec<_>, _> = Rule::split_list(text).map(parse).collect();
        for rule in rules? {
            self.rights.add_rule(rule);
        }
        Ok(())
    }

    /// The rules that "always" would add, as a question shows them.
    pub(crate) fn offered_rules(&self, id: &CallId) -> Option<String> {
        self.admitted.get(id).and_then(|judged| render_offered_rules(&judged.always))
    }

    /// Returns an approved call with the access that it was granted.
    pub(crate) fn call_and_grant(&self, id: &CallId) -> Option<(RestoredCall, Grant)> {
        self.admitted.get(id).map(|judged| (judged.call.clone(), judged.grant.clone()))
    }

    /// A person lets the call run outside the sandbox.
    pub(crate) fn let_outside(&mut self, id: &CallId) {
        if let Some(judged) = self.admitted.get_mut(id) {
            judged.grant.outside = true;
        }
    }

    /// Reports whether a person can be asked to let the call run again outside the sandbox.
    pub(crate) fn may_offer_outside(&self, id: &CallId) -> bool {
        let may = |judged: &ApprovedCall| {
            !judged.grant.outside && judged.call.used_placeholders().is_empty()
        };
        let is_held = matches!(self.rights.mode(), PermissionMode::Plan | PermissionMode::Deny);
        self.interactive && !is_held && self.admitted.get(id).is_some_and(may)
    }

    /// Returns the reason why a question that a call raises cannot be asked, if no person is there to answer it.
    pub(crate) fn unattended_denial(&self, question: &Question) -> Option<String> {
        // Only the question which changes stay has parts, and that mode keeps edits.
        let edits_help = !question.parts.is_empty();
        let describe = || describe_unattended(&question.text, self.rights.mode(), edits_help);
        (!self.interactive).then(describe)
    }

    /// No call of an earlier round will run.
    pub(crate) fn clear(&mut self) {
        self.admitted.clear();
    }

    /// The call is over.
    pub(crate) fn remove_call(&mut self, id: &CallId) {
        self.admitted.remove(id);
    }
}

/// The decision of the rules about a call, with regard to the secrets that it holds.
enum RuleDecision {
    Deny { reason: String },
    Run { reason: String, grant: Grant },
    Ask(ApprovalQuestion),
}

/// A question that a person answers before a call runs.
struct ApprovalQuestion {
    reason: String,
    grant: Grant,
    /// The rules that "always" would add.
    always: Vec<Rule>,
    dangers: Vec<String>,
}

/// The guard as it is at one moment.
#[derive(Clone)]
pub(crate) struct Judge {
    mode: PermissionMode,
    permissions: Arc<Permissions>,
    place: Arc<GatePlace>,
    interactive: bool,
    firewall: Arc<Firewall>,
}

impl Judge {
    /// The only place that decides whether a call may run. `preview` shows what it would change.
    pub(crate) fn decide(
        &self,
        spec: &ToolSpec,
        written: &ToolCall,
        preview: impl FnOnce(&ToolCall, &Grant) -> Result<Option<String>, PreviewError>,
    ) -> (Verdict, Option<ApprovedCall>) {
        let call = match self.firewall.restore_secrets(spec.kind, written) {
            Ok(restored) => restored,
            Err(error) => return (Verdict::Deny { reason: error.to_string() }, None),
        };
        let holds_secrets = !call.used_placeholders().is_empty();
        let (verdict, trial) = self.permissions.judge_restored(
            self.mode,
            &self.place.judgement_context(),
            spec,
            written,
            &call,
        );
        if let Some(trial) = trial.filter(|_| self.may_try(spec)) {
            let permission::TrialRun { reason, grant, always } = trial;
            let always = if render_offered_rules(&always).is_some() { always } else { Vec::new() };
            return (Verdict::Allow { reason }, Some(ApprovedCall { call, grant, always }));
        }
        if matches!(verdict, permission::Verdict::Ask { .. })
            && let Some(text) = describe_misfit(spec, written)
        {
            return (Verdict::Fail { text }, None);
        }
        match self.weigh_secrets(spec, verdict, holds_secrets) {
            RuleDecision::Deny { reason } => (Verdict::Deny { reason }, None),
            RuleDecision::Run { reason, grant } => {
                let admitted = ApprovedCall { call, grant, always: Vec::new() };
                (Verdict::Allow { reason }, Some(admitted))
            }
            RuleDecision::Ask(question) => self.ask_person(spec, call, question, preview),
        }
    }

    /// Adds to the verdict of the rules that secrets which a call holds are shown only after a question.
    fn weigh_secrets(
        &self,
        spec: &ToolSpec,
        verdict: permission::Verdict,
        holds_secrets: bool,
    ) -> RuleDecision {
        RuleDecision::Ask(match verdict {
            permission::Verdict::Deny { reason } => return RuleDecision::Deny { reason },
            permission::Verdict::Allow { reason, grant } => {
                let shows = if holds_secrets { self.secret_exposure(spec, &grant) } else { None };
                let Some(shows) = shows else { return RuleDecision::Run { reason, grant } };
                let (reason, dangers) = (shows.to_owned(), vec![shows.to_owned()]);
                ApprovalQuestion { reason, grant, always: Vec::new(), dangers }
            }
            permission::Verdict::Ask { reason, grant, always, dangers } if !holds_secrets => {
                ApprovalQuestion { reason, grant, always, dangers }
            }
            permission::Verdict::Ask { reason, grant, mut dangers, .. } => {
                dangers.push(HOLDS_SECRET.to_owned());
                let reason = format!("{reason}; {HOLDS_SECRET}");
                ApprovalQuestion { reason, grant, always: Vec::new(), dangers }
            }
        })
    }

    /// Puts a question to the person, or denies the call if no person can answer.
    fn ask_person(
        &self,
        spec: &ToolSpec,
        call: RestoredCall,
        question: ApprovalQuestion,
        preview: impl FnOnce(&ToolCall, &Grant) -> Result<Option<String>, PreviewError>,
    ) -> (Verdict, Option<ApprovedCall>) {
        let ApprovalQuestion { reason, grant, always, dangers } = question;
        if !self.interactive {
            let edits_help = self.runs_with_edits(spec, &call);
            let reason = describe_unattended(&reason, self.mode, edits_help);
            return (Verdict::Deny { reason }, None);
        }
        let preview = match self.redact_preview(spec, &call, &grant, preview(call.expose(), &grant))
        {
            Ok(preview) => preview,
            Err(error) => return (Verdict::Fail { text: error.0 }, None),
        };
        let offered = render_offered_rules(&always);
        let always = if offered.is_some() { always } else { Vec::new() };
        let admitted = ApprovedCall { call, grant, always };
        (Verdict::Ask { reason, preview, always: offered, dangers }, Some(admitted))
    }

    /// Reports whether a call of this tool can run on trial here. An agent does itself what it asks for: nothing of it
    /// can be tried.
    fn may_try(&self, spec: &ToolSpec) -> bool {
        spec.kind != ToolKind::AgentRequest && (self.place.can_try)()
    }

    /// Reports whether mode accept_edits would run a call about which this mode asks.
    fn runs_with_edits(&self, spec: &ToolSpec, call: &RestoredCall) -> bool {
        let (mode, world) = (PermissionMode::AcceptEdits, self.place.judgement_context());
        let (verdict, trial) = self.permissions.judge_or_try(mode, &world, spec, call.expose());
        let is_tried = trial.is_some() && self.may_try(spec);
        // A call with a secret is asked about in every mode.
        call.used_placeholders().is_empty()
            && (is_tried || matches!(verdict, permission::Verdict::Allow { .. }))
    }

    /// As [`Self::decide`], but where the call would run unasked a person is asked first; why.
    pub(crate) fn require_approval(
        &self,
        spec: &ToolSpec,
        written: &ToolCall,
        why: &str,
        preview: impl FnOnce(&ToolCall, &Grant) -> Result<Option<String>, PreviewError>,
    ) -> (Verdict, Option<ApprovedCall>) {
        let (verdict, admitted) = self.decide(spec, written, |_, _| Ok(None));
        match (verdict, admitted) {
            (Verdict::Allow { .. }, Some(admitted)) if self.interactive => {
                let found = preview(admitted.call.expose(), &admitted.grant);
                let preview =
                    match self.redact_preview(spec, &admitted.call, &admitted.grant, found) {
                        Ok(preview) => preview,
                        Err(error) => return (Verdict::Fail { text: error.0 }, None),
                    };
                let reason = why.to_owned();
                let admitted = ApprovedCall { always: Vec::new(), ..admitted };
                let dangers = Vec::new();
                (Verdict::Ask { reason, preview, always: None, dangers }, Some(admitted))
            }
            (Verdict::Allow { .. }, _) => {
                (Verdict::Deny { reason: describe_unattended(why, self.mode, false) }, None)
            }
            (verdict, admitted) => (verdict, admitted),
        }
    }

    /// Returns the preview of a call that a question shows, or the error with which the call would fail. The error
    /// may tell what is in the file, so a person is asked as before if even reading the file needs approval.
    fn redact_preview(
        &self,
        spec: &ToolSpec,
        call: &RestoredCall,
        grant: &Grant,
        found: Result<Option<String>, PreviewError>,
    ) -> Result<Option<String>, PreviewError> {
        let shown = |text: String| self.firewall.redact_text(&text).into_owned();
        match found {
            Ok(preview) => Ok(preview.map(shown)),
            Err(error) => {
                let world = self.place.judgement_context();
                let call = call.expose();
                let may_read = self.permissions.may_read(self.mode, &world, spec, call, grant);
                if may_read { Err(PreviewError(shown(error.0))) } else { Ok(None) }
            }
        }
    }

    /// Reports whether these tool names and rules allow a call.
    pub(crate) fn is_within(&self, tools: &[String], spec: &ToolSpec, call: &ToolCall) -> bool {
        if tools.contains(&spec.name) {
            return true;
        }
        let parse = |text: &String| Rule::parse(RuleAction::Allow, text, Origin::Session).ok();
        let rules: Vec<Rule> = tools.iter().filter_map(parse).collect();
        Permissions::new(rules).speaks_of(&self.place.judgement_context(), spec, call)
    }

    /// To whom the call could show the secret that it holds, if to anybody.
    fn secret_exposure(&self, spec: &ToolSpec, grant: &Grant) -> Option<&'static str> {
        const SENT: &str = "it could send one of your secrets over the network";
        const SHOWN: &str = "it gets one of your secrets, and the model reads its output";
        let shows = |touches: &TouchedResource| match touches {
            TouchedResource::Path(_) => None,
            TouchedResource::Command(_) if grant.network || !(self.place.network_is_walled)() => {
                Some(SENT)
            }
            TouchedResource::Command(_) => Some(SHOWN),
            // The secret goes to a program that runs already.
            TouchedResource::Action(..) | TouchedResource::Url(_) => Some(SENT),
        };
        // The purpose of a tool that touches nothing is not known.
        if spec.touches.is_empty() { Some(SENT) } else { spec.touches.iter().find_map(shows) }
    }
}

/// The reason that a refusal gives when approval is needed and no person is there to give it.
pub const NOBODY_TO_ASK: &str = "nobody is there to approve it";

/// Describes a refusal for want of a person, with what would help. `edits_help` is true if mode accept_edits would.
fn describe_unattended(reason: &str, mode: PermissionMode, edits_help: bool) -> String {
    let remedy = match mode {
        PermissionMode::Bypass => "--confirm-bypass (also what always needs approval)",
        PermissionMode::Default
        | PermissionMode::Auto
        | PermissionMode::Plan
        | PermissionMode::Deny
            if edits_help =>
        {
            "--permission accept_edits (edits) or --permission bypass (everything; what always needs \
             approval, with --confirm-bypass as well)"
        }
        PermissionMode::Default
        | PermissionMode::AcceptEdits
        | PermissionMode::Auto
        | PermissionMode::Plan
        | PermissionMode::Deny => {
            "--permission bypass (everything; what always needs approval, with --confirm-bypass as well)"
        }
    };
    format!(
        "{reason}, and {NOBODY_TO_ASK}; the user can allow it with a rule (`permission.rules`) \
         or with {remedy}"
    )
}

/// Describes for the model a command or address that is no text. No tool takes one, so there is nothing to approve.
fn describe_misfit(spec: &ToolSpec, call: &ToolCall) -> Option<String> {
    let arguments: Value = call.arguments.read().ok()?;
    let name = spec.touches.iter().find_map(|touches| match touches {
        TouchedResource::Command(name) | TouchedResource::Url(name) => {
            arguments.get(&**name).is_some_and(|value| !value.is_string()).then_some(name)
        }
        TouchedResource::Path(_) | TouchedResource::Action(..) => None,
    })?;
    let tool = &spec.name;
    Some(format!("the arguments do not fit `{tool}`: `{name}` must be a string; nothing was done"))
}

/// The rules as a question shows them.
fn render_offered_rules(rules: &[Rule]) -> Option<String> {
    let shown: Vec<_> = rules.iter().map(ToString::to_string).collect();
    let shown = shown.join(", ");
    (!shown.is_empty() && shown.len() <= MAX_OFFERED_BYTES).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_hint_never_suggests_the_current_permission_mode() {
        for (mode, advised) in [
            (PermissionMode::Auto, "--permission accept_edits"),
            (PermissionMode::AcceptEdits, "--permission bypass"),
            (PermissionMode::Bypass, "--confirm-bypass"),
        ] {
            let said = describe_unattended("it writes `/x`", mode, true);
            assert!(said.contains(advised), "{said}");
            assert!(!said.contains(&format!("--permission {mode}")), "{said}");
        }
    }

    #[test]
    fn denial_hint_skips_permission_modes_that_deny_as_well() {
        let said = describe_unattended("it reads `../other`", PermissionMode::Auto, false);
        assert!(said.contains("--permission bypass") && !said.contains("accept_edits"), "{said}");
    }
}
