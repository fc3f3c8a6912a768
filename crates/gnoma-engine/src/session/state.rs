//! The state of a session: conversation machine, tools, gate, router and pending work.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::PathBuf,
    sync::Arc,
};

use gnoma_core::{
    Event, EventStream, Message, ProviderError, ToolCx, ToolOutcome, ToolSpec,
    ledger::Level,
    lifecycle::{PointAnswer, PreparedPrompt},
    message::CallId,
    store::StoreError,
    tool::{BoxFuture, Grant, Progress, Tier, ToolKind},
};
use gnoma_guard::firewall::Firewall;
use gnoma_router::{choice::Task, pool::Scope};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    additions::Additions,
    handle::{Options, Order},
    model_port::ModelPort,
    pending::{ChildStarter, PendingRequests},
    room::RoomResult,
    router::Router,
    spending::{Spending, resume_tracker},
    toolset::Toolset,
    verdicts::JudgementQueue,
};
use crate::{
    answer_form::AnswerForm,
    compact::CompactionSummary,
    compaction::CompactionFailure,
    effect::{Effect, Timer},
    gate::Gate,
    last_model_request::LastRequest,
    limits::Limits,
    persistence::Persistence,
    prompt,
    rights::Rights,
    routing::{arm_panel::Shares, ask::Share, verify::Finding},
    turn::{Input, Turn},
};

/// Pieces of tool output that may wait; more are dropped, they are only for watching.
const MAX_PROGRESS: usize = 256;

/// The way to the front end and back.
pub(super) struct FrontEnd {
    /// `None` once the session was closed.
    pub(super) orders: Option<mpsc::Receiver<Order>>,
    pub(super) events: mpsc::Sender<Event>,
}

/// The front end is gone.
pub(super) struct FrontEndGone;

/// A call that has run.
pub(super) struct FinishedCall {
    pub(super) call: CallId,
    pub(super) outcome: ToolOutcome,
    pub(super) duration_ms: u64,
    /// True if the call was a check of the project.
    pub(super) is_check: bool,
    /// The turn ends after it: why.
    pub(super) stop: Option<String>,
}

/// The work that the turn waits for, beside the model and the tools. One thing at a time.
pub(super) enum PendingWork {
    /// The type of task, the usage of finding it out, how much of each limit is used, and a warning if the arm that
    /// classifies does not answer.
    Task(Task, Vec<Share>, Vec<Level>, Option<String>),
    /// The result of reserving room for the call.
    Room(Result<RoomResult, StoreError>),
    /// The summary, and what it leaves out unseen, or why there is none; and the usage of making it.
    Summary(Result<(CompactionSummary, Option<String>), CompactionFailure>, Vec<Share>),
    /// The arms have compared their ways.
    Conferred(Result<String, ProviderError>, Shares),
    /// The work was reviewed.
    Reviewed(ReviewOutcome),
    /// The person's message is prepared.
    Prepared(Box<PreparedPrompt>),
    /// The answer of the extensions to the question whether the turn may end.
    Stopping(Box<PointAnswer>),
}

/// The result of a review.
pub(super) struct ReviewOutcome {
    pub(super) finding: Finding,
    /// The usage of the review.
    pub(super) shares: Vec<Share>,
    /// The reviewers that could not tell, with the reasons.
    pub(super) failures: Vec<String>,
}

/// The text and messages that precede a conversation in requests.
pub(super) struct Prompts {
    make: Box<dyn Fn(Tier) -> String + Send + Sync>,
    made: HashMap<Tier, Arc<str>>,
    /// Kept, so that it is encoded once.
    example: Option<Vec<Arc<Message>>>,
    /// The last request that was sent.
    pub(super) gauge: Arc<LastRequest>,
}

impl Prompts {
    /// Makes the prompts of a session, and notes what fills its window before the first request.
    fn open(
        make: Box<dyn Fn(Tier) -> String + Send + Sync>,
        gauge: Arc<LastRequest>,
        tools: &Toolset,
        turn: &Turn,
    ) -> Self {
        let mut prompts = Self { make, made: HashMap::new(), example: None, gauge };
        let specs = Arc::clone(tools.specs(Tier::Full));
        let system = prompts.system_prompt(Tier::Full);
        prompts.gauge.record_request(system, specs, turn.history().to_vec());
        prompts.gauge.set_summary(turn.conversation().0.cloned());
        prompts
    }

    pub(super) fn system_prompt(&mut self, tier: Tier) -> Arc<str> {
        Arc::clone(self.made.entry(tier).or_insert_with(|| (self.make)(tier).into()))
    }

    /// Messages that show a lean arm how it is done.
    pub(super) fn example_messages(
        &mut self,
        tier: Tier,
        tools: &[Arc<ToolSpec>],
    ) -> &[Arc<Message>] {
        match tier {
            Tier::Lean => {
                let can_spawn = tools.iter().any(|spec| spec.kind == ToolKind::StartsSessions);
                self.example.get_or_insert_with(|| prompt::example_messages(can_spawn)).as_slice()
            }
            Tier::Full => &[],
        }
    }
}

/// The task that runs a session.
pub struct Session {
    pub(super) turn: Turn,
    pub(super) tools: Toolset,
    /// The requests of running tools.
    pub(super) pending: PendingRequests,
    pub(super) cwd: Arc<PathBuf>,
    roots: Arc<[PathBuf]>,
    pub(super) router: Router,
    pub(super) spending: Spending,
    pub(super) prompts: Prompts,
    pub(super) gate: Gate,
    pub(super) judging: JudgementQueue,
    pub(super) added: Additions,
    pub(super) firewall: Arc<Firewall>,
    pub(super) persistence: Persistence,
    /// The tool with which the last called model can read large results; if it has the tool, they move to the
    /// result store.
    pub(super) reads_results: Option<Arc<ToolSpec>>,
    /// The effects being performed end the turn.
    pub(super) turn_ends: bool,
    pub(super) front_end: FrontEnd,
    pub(super) stream: Option<EventStream>,
    pub(super) waiting: Option<BoxFuture<'static, PendingWork>>,
    pub(super) running: JoinSet<FinishedCall>,
    pub(super) stop: CancellationToken,
    pub(super) progress: (mpsc::Sender<Progress>, mpsc::Receiver<Progress>),
    pub(super) wake: Option<(Timer, Instant)>,
    /// Facts that came up while effects were performed.
    pub(super) inbox: VecDeque<Input>,
    /// Kept between facts, so that a delta allocates nothing for its effects.
    pub(super) effects: Vec<Effect>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// Makes the turn machine of a session, with the tools that are on offer.
fn open_turn(
    history: Vec<Arc<Message>>,
    limits: Limits,
    shape: Option<AnswerForm>,
    (added, tools): (&Additions, &Toolset),
) -> Turn {
    let turn = Turn::new(history, [], limits).stopping_at(added.stop_points());
    let mut turn = turn.in_shape(shape);
    turn.handle_input(tools.to_input(), &mut Vec::new());
    turn
}

impl Session {
    pub(super) fn new(options: Options, front_end: FrontEnd) -> Self {
        let Options { id, place, tools, routes, system, mode, permissions, .. } = options;
        let Options { firewall, interactive, limits, history, keeping, thinking, .. } = options;
        let Options { scope, above, spawner, measured, gauge, lifecycle, held_to, .. } = options;
        let is_child = above.is_some();
        let rights = Rights::new(mode, permissions, above);
        rights.limit_tools(held_to, options.forbidden, lifecycle.clone());
        let tools = Toolset::new(tools);
        let scope = scope.unwrap_or_else(|| Scope::new(id));
        let router = Router::new(routes, scope).with_thinking(thinking).for_step(options.step);
        let starts = ChildStarter::new(spawner, lifecycle.clone(), rights.clone(), options.spans);
        let pending = PendingRequests::new(starts, Arc::clone(&router.scope));
        let added = Additions::new(lifecycle);
        added.set_side_model(ModelPort::for_session(&pending, is_child));
        let spending = Spending::new(resume_tracker(&history, measured, &router), keeping.is_told);
        let persistence = Persistence::new(keeping, &firewall, &limits, history.len());
        let turn = open_turn(history, limits, options.shape, (&added, &tools));
        let prompts = Prompts::open(system, gauge, &tools, &turn);
        Self {
            cwd: Arc::new(place.cwd.clone()),
            roots: place.roots.clone().into(),
            pending,
            router,
            spending,
            prompts,
            gate: Gate::new(rights, place, interactive, Arc::clone(&firewall)),
            judging: JudgementQueue { ready: options.ready, ..JudgementQueue::default() },
            persistence,
            turn,
            added,
            tools,
            firewall,
            reads_results: None,
            turn_ends: false,
            front_end,
            stream: None,
            waiting: None,
            running: JoinSet::new(),
            stop: CancellationToken::new(),
            progress: mpsc::channel(MAX_PROGRESS),
            wake: None,
            inbox: VecDeque::new(),
            effects: Vec::new(),
        }
    }

    /// Returns the context that a tool call is given, without the access that it is granted.
    pub(super) fn tool_cx(&self) -> ToolCx {
        ToolCx {
            cwd: Arc::clone(&self.cwd),
            roots: Arc::clone(&self.roots),
            grant: Grant::default(),
            stop: self.stop.child_token(),
            progress: self.progress.0.clone(),
            stores_large_results: self.reads_results.is_some()
                && self.persistence.large_results.is_some(),
            budget: self.budget(),
            session: Some(self.pending.port()),
            traceparent: None,
        }
    }
}
