//! What a session is made of, and a front end's end of it.

use std::{fmt, sync::Arc};

use gnoma_core::{
    Command, Event, Message, ThinkingMode, Tool,
    lifecycle::Lifecycle,
    session::PermissionMode,
    tool::{CallSpans, Spawner, Tier},
};
use gnoma_guard::{firewall::Firewall, permission::Permissions};
use gnoma_router::pool::Scope;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    answer_form::AnswerForm, gate_place::GatePlace, last_model_request::LastRequest,
    limits::Limits, persistence_options::PersistenceOptions, resume::MeasuredPrefix,
    rights::Rights, routing::Routes,
};

/// The parts from which a session is built.
pub struct Options {
    /// Names the session in events and files.
    pub id: String,
    /// The place where the session works.
    pub place: GatePlace,
    /// The tools, in the order they are offered.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The models that can be called, and how one is chosen.
    pub routes: Arc<Routes>,
    /// System prompt for an arm that gets the tools of that tier.
    pub system: Box<dyn Fn(Tier) -> String + Send + Sync>,
    /// The mode that says how much is asked before tools run.
    pub mode: PermissionMode,
    /// The exceptions from that mode.
    pub permissions: Permissions,
    /// Keeps secrets from models; the arms' providers use the same firewall.
    pub firewall: Arc<Firewall>,
    /// True if a person can answer permission questions.
    pub interactive: bool,
    /// Numbers turns stay within.
    pub limits: Limits,
    /// The form that answers must have; `None` for words.
    pub shape: Option<AnswerForm>,
    /// The amount that models think; `None` leaves it to the settings of each.
    pub thinking: Option<ThinkingMode>,
    /// The conversation that the session continues; empty for a new one.
    pub history: Vec<Arc<Message>>,
    /// The size of that history, if its provider reported it.
    pub measured: Option<MeasuredPrefix>,
    /// The stores for what outlives the session.
    pub keeping: PersistenceOptions,
    /// Whose money it spends, where another session started it (see [`Scope::for_child`]); `None`: its
    /// own, counted by `id`.
    pub scope: Option<Scope>,
    /// The step of a saved task that its first turn is, such as `release/Look`, for what the router learns.
    pub step: Option<Arc<str>>,
    /// The rights of the session that started this one, if another did; this session may do no more than that one.
    pub above: Option<Rights>,
    /// Shows what its model is sent.
    pub gauge: Arc<LastRequest>,
    /// The spawner that starts other sessions for the tools of this session.
    pub spawner: Option<Arc<dyn Spawner>>,
    /// The spans of calls, if there is telemetry.
    pub spans: Option<Arc<dyn CallSpans>>,
    /// The extensions that people added: hooks, commands, skills.
    pub lifecycle: Option<Arc<dyn Lifecycle>>,
    /// The tools, by name or rule, that its calls may use; `None` means all that it has.
    pub held_to: Option<Arc<[String]>>,
    /// The tools, by name or by a glob of names, that its calls never use.
    pub forbidden: Arc<[String]>,
    /// The signal that the files with which the session works are there, if they are not there at once. No call is
    /// judged before it.
    pub ready: Option<CheckpointReadiness>,
}

/// A signal that says whether files are there; an error says why they never will be.
pub type CheckpointReadiness = watch::Receiver<Option<Result<(), MissingFilesError>>>;

/// The files with which a session works will never be there; the reason in words for people.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MissingFilesError(pub String);

gnoma_core::debug_as_display!(MissingFilesError);

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An order that comes in through a [`Handle`].
pub(super) enum Order {
    Command(Command),
    Tools(Vec<Arc<dyn Tool>>),
    ProveAgain,
}

/// A way to give a session other tools, for who finds them while it lives.
#[derive(Clone, Debug)]
pub struct ToolUpdates(mpsc::WeakSender<Order>);

impl ToolUpdates {
    /// As [`Handle::tools_changed`], once the session keeps up. False when it is closed.
    pub async fn send(&self, tools: Vec<Arc<dyn Tool>>) -> bool {
        match self.0.upgrade() {
            Some(orders) => orders.send(Order::Tools(tools)).await.is_ok(),
            None => false,
        }
    }
}

/// Runs the project's checks in a session without a message, for those who change its files between turns. The
/// findings are reported as at the end of a turn.
#[derive(Clone, Debug)]
pub struct ProjectCheckRunner(mpsc::WeakSender<Order>);

impl ProjectCheckRunner {
    /// Begins, once the session keeps up; a turn that runs is not disturbed. False when it is closed.
    pub async fn run_checks(&self) -> bool {
        match self.0.upgrade() {
            Some(orders) => orders.send(Order::ProveAgain).await.is_ok(),
            None => false,
        }
    }
}

/// A front end's end of a session.
#[derive(Debug)]
pub struct Handle {
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) rights: Rights,
    pub(super) has_checks: bool,
    pub(super) _task: JoinSet<()>,
}

impl Handle {
    /// Tells the session something. False when it is closed or does not keep up.
    pub fn send_command(&self, command: Command) -> bool {
        self.orders.try_send(Order::Command(command)).is_ok()
    }

    /// These are the session's tools: those that come are on offer from the next call of a model on, and
    /// those that go stay until the turn ends. Those that stay keep their order and those
    /// that come follow them, whatever their order here; of two with one name the first counts. False
    /// when the session is closed or does not keep up.
    pub fn tools_changed(&self, tools: Vec<Arc<dyn Tool>>) -> bool {
        self.orders.try_send(Order::Tools(tools)).is_ok()
    }

    /// A way to do the same without the handle. It does not keep the session open.
    #[must_use]
    pub fn tool_updates(&self) -> ToolUpdates {
        ToolUpdates(self.orders.downgrade())
    }

    /// A way to run the project's checks, if it has any. It does not keep the session open.
    #[must_use]
    pub fn prover(&self) -> Option<ProjectCheckRunner> {
        self.has_checks.then(|| ProjectCheckRunner(self.orders.downgrade()))
    }

    /// Returns the rights of the session, for the sessions that it starts.
    #[must_use]
    pub fn rights(&self) -> Rights {
        self.rights.clone()
    }

    /// The next event; `None` once the session is closed. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event, if one has arrived.
    pub fn try_next_event(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}
