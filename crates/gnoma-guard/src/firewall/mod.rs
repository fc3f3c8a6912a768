//! The firewall between a session and every provider, log and store: redacts secrets and restores them in tool calls.
//!
//! Nothing reaches a model but through [`GuardedProvider`], which asks [`Firewall::redact_request`]: every string
//! of the request is cleaned of what hides in it ([`crate::unicode`]) and searched for secrets,
//! which are replaced by placeholders ([`crate::vault`]) unless the [`Policy`] says otherwise. The
//! same goes, by [`Firewall::redact_text`], for what is logged, stored or shown.
//!
//! Decides only: sends nothing, writes nothing, asks nobody.

mod guarded;
mod judge;
mod notice;
mod policy;
mod reader;
mod seen_values;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use gnoma_core::{
    Message, ModelRequest, ProviderError, RawJson, ToolCall, ToolOutcome, ToolSpec,
    message::ResultPart,
    sync::Mutex,
    tool::{CommandReport, ToolKind, ToolOutput},
};
use gnoma_secrets::Scanner;

pub use guarded::{Connection, GuardedProvider};
pub use notice::{Notice, RequestPart};
pub use policy::{
    AllowEntry, AllowedHash, AllowedHashError, FirewallAction, Policy, ProviderFacts,
};

use crate::vault::{RestoredText, Vault};
use judge::{Judge, Secret};
use reader::{ReaderFindings, RequestReader};
use seen_values::SeenValues;

/// Times a request is looked through: what is found late may stand in its beginning, disguised.
const MAX_PASSES: usize = 4;
/// Notices that wait to be taken; older ones are dropped.
const MAX_NOTICES: usize = 256;
/// Most things that are remembered as reported; after that, reporting starts over.
const MAX_TOLD: usize = 65_536;

/// The parts that a firewall is made of.
#[derive(Debug)]
pub struct FirewallOptions {
    /// The scanner that finds secrets.
    pub scanner: Scanner,
    /// Says what is done with them.
    pub policy: Policy,
    /// The values that look like secrets but are none.
    pub allowed: Vec<AllowedHash>,
    /// The first number used for placeholders: random, new for each session.
    pub first_placeholder: u64,
}

/// Looks through all that leaves a session.
pub struct Firewall {
    judge: Judge,
    policy: Policy,
    state: Mutex<FirewallState>,
}

/// The result for a shared value: its rewritten form where it needs one, or the rules that forbid sending it and
/// where they were met.
type ScanResult<T> = Result<Option<Arc<T>>, BlockedRequest>;

#[derive(Default)]
struct FirewallState {
    readers: Vec<ProviderFacts>,
    /// The number of values that were known when the outcomes below were decided.
    known: usize,
    messages: SeenValues<Message, ScanResult<Message>>,
    systems: SeenValues<str, ScanResult<str>>,
    tools: SeenValues<[Arc<ToolSpec>], ScanResult<[Arc<ToolSpec>]>>,
    told: HashSet<(String, bool)>,
    waiting: VecDeque<Notice>,
}

/// A request that may be sent.
#[derive(Debug)]
pub struct CheckedRequest {
    /// The request; messages without a finding are the very ones that were given.
    pub request: ModelRequest,
    /// The actions of the firewall that have not been reported yet.
    pub notices: Vec<Notice>,
}

/// A request that may not be sent.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct BlockedRequest {
    /// The rule that forbids the request, and where it was met; a fragment without a full stop.
    pub sentence: String,
    /// The rules that forbid it, each once.
    pub rules: Vec<Arc<str>>,
}

gnoma_core::debug_as_display!(BlockedRequest);

/// A call with a placeholder that stands for no secret of the session; for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the arguments of `{tool}` contain `{placeholder}`, which does not stand for any secret of this session; copy placeholders exactly, or read the value's source again"
)]
pub struct UnknownPlaceholder {
    /// The name of the tool that is called.
    pub tool: String,
    /// The placeholder as it was written.
    pub placeholder: String,
}

/// A call with its secrets restored. Descriptions of it use the call as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct RestoredCall {
    call: ToolCall,
    used: Vec<Arc<str>>,
}

impl RestoredCall {
    /// The call as the tool shall get it. Not for history, logs, screens or messages.
    #[must_use]
    pub fn expose(&self) -> &ToolCall {
        &self.call
    }

    /// The placeholders that were replaced, each once. Where the call reaches the network or is a
    /// command, the person is to be asked first.
    #[must_use]
    pub fn used_placeholders(&self) -> &[Arc<str>] {
        &self.used
    }
}

impl fmt::Debug for RestoredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, used } = self;
        f.debug_struct("RestoredCall").field("tool", &call.name).field("used", used).finish()
    }
}

impl BlockedRequest {
    /// The advice on what the user can do about a blocked request.
    pub const HINT: &str =
        "Take it out of the conversation, or change what the settings do for this rule.";
}

impl Firewall {
    /// A firewall for one session.
    #[must_use]
    pub fn new(options: FirewallOptions) -> Self {
        let FirewallOptions { scanner, policy, allowed, first_placeholder } = options;
        let judge = Judge::new(scanner, allowed, Vault::new(first_placeholder));
        Self { judge, policy, state: Mutex::default() }
    }

    /// Looks through a request on its way to a provider.
    ///
    /// # Errors
    /// When the policy forbids sending something in it.
    pub fn redact_request(
        &self,
        provider: &ProviderFacts,
        request: ModelRequest,
    ) -> Result<CheckedRequest, BlockedRequest> {
        let mut state = self.state.lock();
        let mut notices = Vec::new();
        for _ in 1..MAX_PASSES {
            let request = self.replace_secrets_in_request(
                &mut state,
                provider,
                request.clone(),
                &mut notices,
            )?;
            if state.known == self.judge.known_count() {
                return Ok(CheckedRequest { request, notices });
            }
        }
        let request =
            self.replace_secrets_in_request(&mut state, provider, request, &mut notices)?;
        Ok(CheckedRequest { request, notices })
    }

    fn replace_secrets_in_request(
        &self,
        state: &mut FirewallState,
        provider: &ProviderFacts,
        mut request: ModelRequest,
        notices: &mut Vec<Notice>,
    ) -> Result<ModelRequest, BlockedRequest> {
        let id = state.reader_id(provider);
        state.update_known_count(self.judge.known_count());
        let mut reader = RequestReader::new(&self.judge, &self.policy, Some(provider));
        let FirewallState { messages, systems, tools, told, .. } = state;

        let outcome = systems.get_or_decide(&request.system, id, || {
            let system = reader.rewrite_text(&request.system, &RequestPart::System);
            decide_encounters(&mut reader, system.map(Arc::from), told, notices)
        });
        if let Some(system) = outcome.clone()? {
            request.system = system;
        }
        let outcome = tools.get_or_decide(&request.tools, id, || {
            let tools = reader.rewrite_tools(&request.tools);
            decide_encounters(&mut reader, tools, told, notices)
        });
        if let Some(tools) = outcome.clone()? {
            request.tools = tools;
        }
        for index in 0..request.messages.len() {
            let (before, rest) = request.messages.split_at_mut(index);
            let Some(message) = rest.first_mut() else { break };
            let outcome = messages.get_or_decide(message, id, || {
                let rewritten = reader.rewrite_message(message, before.last().map(Arc::as_ref));
                decide_encounters(&mut reader, rewritten.map(Arc::new), told, notices)
            });
            if let Some(rewritten) = outcome.clone()? {
                *message = rewritten;
            }
        }
        Ok(request)
    }

    /// A text as it may be logged, stored or shown.
    #[must_use]
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let judged = self.judge.judge_text(text);
        let rendered = judged.map(|judged| {
            judged.render(&self.judge.vault, |secret| {
                match self.policy.action(&secret.rule, None, None) {
                    FirewallAction::Block | FirewallAction::Redact => FirewallAction::Redact,
                    shown @ (FirewallAction::Warn | FirewallAction::Allow) => shown,
                }
            })
        });
        rendered.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// The outcome of a call as it may be saved: for a call that received secrets, which its tool may quote.
    #[must_use]
    pub fn redact_outcome(&self, outcome: ToolOutcome) -> ToolOutcome {
        let clean = |text: String| self.redact_text(&text).into_owned();
        let output = |output: ToolOutput| ToolOutput {
            parts: output
                .parts
                .into_iter()
                .map(|part| match part {
                    ResultPart::Text { text } => ResultPart::Text { text: clean(text) },
                    ResultPart::Image(image) => ResultPart::Image(image),
                })
                .collect(),
            diff: output.diff.map(clean),
            report: output.report.map(|report| CommandReport {
                command: clean(report.command),
                exit_code: report.exit_code,
                walled: report.walled.map(clean),
                trial: report.trial,
            }),
        };
        match outcome {
            ToolOutcome::Done(done) => ToolOutcome::Done(output(done)),
            ToolOutcome::Failed(failed) => ToolOutcome::Failed(output(failed)),
            ToolOutcome::Denied(reason) => ToolOutcome::Denied(clean(reason)),
            ToolOutcome::Interrupted(text) => ToolOutcome::Interrupted(clean(text)),
        }
    }

    /// An error as it may be logged, stored or shown.
    #[must_use]
    pub fn redact_error(&self, mut error: ProviderError) -> ProviderError {
        let clean = |text: &mut String| {
            if let Cow::Owned(cleaned) = self.redact_text(text) {
                *text = cleaned;
            }
        };
        clean(&mut error.message);
        error.code.as_mut().map(clean);
        error.hint.as_mut().map(clean);
        error
    }

    /// Restores the secrets in a call of a tool of this kind, for the tool alone. In a file, examples of
    /// placeholders stay as they are; one that this or an earlier session could have issued would be a lost secret.
    ///
    /// # Errors
    /// A placeholder is unknown: the call must not run.
    pub fn restore_secrets(
        &self,
        kind: ToolKind,
        call: &ToolCall,
    ) -> Result<RestoredCall, UnknownPlaceholder> {
        let RestoredText { text, used, unknown }: RestoredText<RawJson> =
            self.judge.vault.restore_json(&call.arguments);
        let goes_to_file = kind == ToolKind::WritesFiles;
        let is_lost = |written: &&String| !goes_to_file || !Vault::is_example(written);
        if let Some(placeholder) = unknown.iter().find(is_lost) {
            let (tool, placeholder) = (call.name.clone(), placeholder.clone());
            return Err(UnknownPlaceholder { tool, placeholder });
        }
        Ok(RestoredCall { call: ToolCall { arguments: text, ..call.clone() }, used })
    }

    /// Returns the vault of the session.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.judge.vault
    }

    /// Takes what [`GuardedProvider`] providers did and has not been reported yet.
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        self.state.lock().waiting.drain(..).collect()
    }

    fn queue_notices(&self, notices: Vec<Notice>) {
        let mut state = self.state.lock();
        state.waiting.extend(notices);
        let surplus = state.waiting.len().saturating_sub(MAX_NOTICES);
        state.waiting.drain(..surplus);
    }
}

impl fmt::Debug for Firewall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Firewall")
            .field("vault", &self.judge.vault)
            .field("texts", &self.judge.remembered_count())
            .field("messages", &self.state.lock().messages.len())
            .finish_non_exhaustive()
    }
}

impl FirewallState {
    /// Forgets the outcomes that were decided when fewer values were known, so that they are decided again.
    fn update_known_count(&mut self, known: usize) {
        if self.known != known {
            self.known = known;
            self.messages = SeenValues::default();
            self.systems = SeenValues::default();
            self.tools = SeenValues::default();
        }
    }

    /// The number of a reader, by which outcomes are remembered.
    fn reader_id(&mut self, provider: &ProviderFacts) -> usize {
        self.readers.iter().position(|known| known == provider).unwrap_or_else(|| {
            self.readers.push(provider.clone());
            self.readers.len() - 1
        })
    }
}

/// Finds the rules that block a request because of these secrets.
fn find_blocking_rules(
    secrets: &[(Secret, FirewallAction, RequestPart)],
) -> Option<BlockedRequest> {
    let blocking = secrets.iter().filter(|(_, action, _)| *action == FirewallAction::Block);
    let (secret, _, place) = blocking.clone().next()?;
    let rule = &secret.rule;
    let rules: BTreeSet<_> =
        gnoma_core::sort::to_set(blocking.map(|(secret, ..)| Arc::clone(&secret.rule)));
    Some(BlockedRequest {
        sentence: format!(
            "nothing was sent, because {place} contains a secret that rule `{rule}` blocks"
        ),
        rules: rules.into_iter().collect(),
    })
}

/// Decides over what a reader met in one value, and notes what is to be told.
fn decide_encounters<T: ?Sized>(
    reader: &mut RequestReader<'_>,
    rewritten: Option<Arc<T>>,
    told: &mut HashSet<(String, bool)>,
    notices: &mut Vec<Notice>,
) -> ScanResult<T> {
    let provider = reader.provider.map_or("", |provider| provider.name.as_str()).to_owned();
    let ReaderFindings { secrets, disguises } = std::mem::take(&mut reader.met);
    if let Some(blocked) = find_blocking_rules(&secrets) {
        return Err(blocked);
    }
    if told.len() >= MAX_TOLD {
        told.clear();
    }
    let mut fresh: Vec<(FirewallAction, Arc<str>, RequestPart, usize)> = Vec::new();
    for (secret, action, place) in secrets {
        if !told.insert((secret.placeholder.to_string(), action == FirewallAction::Warn)) {
            continue;
        }
        let same = |entry: &&mut (FirewallAction, Arc<str>, RequestPart, usize)| {
            (entry.0, &entry.1, &entry.2) == (action, &secret.rule, &place)
        };
        match fresh.iter_mut().find(same) {
            Some((.., count)) => *count += 1,
            None => fresh.push((action, secret.rule, place, 1)),
        }
    }
    notices.extend(fresh.into_iter().filter_map(|(action, rule, place, count)| {
        Notice::from_action(action, rule, count, place, provider.clone())
    }));
    for (what, place) in disguises {
        if told.insert((format!("{place}: {what}"), false)) {
            notices.push(Notice::Disguised { what, place });
        }
    }
    Ok(rewritten)
}
