//! One MCP server of a session: connected on first use, and reconnected after it has ended.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_core::{
    ToolCall, ToolCx, ToolOutcome, duration, sync::Mutex, task::box_future, tool::BoxFuture,
};
use tokio::{
    sync::{Mutex as Turn, watch},
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    approval::{
        ChangedTool, DescribedTool, KnownTools, ToolListComparison, ToolMemory, ToolMemoryError,
    },
    calls::ServerCall,
    definition::Definition,
    failure::{
        CallFailure, ConnectionError, ServerUseError, ToolRefusal, UnavailableError, output_clause,
    },
    handler::Handler,
    limits::{MAX_RESUMES, RESUME_WAIT, RETRY_AFTER, START_TIMEOUT},
    live_connection::{self, LiveConnection, SharedConnection, ToolList},
    process::{ServerEnvironment, Stderr, last_lines},
    server_prompt::ServerPrompt,
    version::Handshake,
};

/// The number of lines of the server's standard error that are shown with a failure.
const TOLD_LINES: usize = 3;

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// The server was not started yet.
    Idle,
    /// The server is being started.
    Starting,
    /// The server is connected and can be used.
    Ready,
    /// The server could not be connected, or has ended, with the reason.
    Failed(String),
}

/// The facts known about a server, and the statistics of its calls.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// The state of the server.
    pub state: ServerState,
    /// The tools of the server that may be offered to models.
    pub offered: Vec<DescribedTool>,
    /// The tools of the server that are withheld until they are approved.
    pub changed: Vec<ChangedTool>,
    /// The prompts of the server, once they are known.
    pub prompts: Vec<ServerPrompt>,
    /// The parts of the server's list of tools that are left out.
    pub left_out: Vec<String>,
    /// The same of the prompts.
    pub left_out_prompts: Vec<String>,
    /// The number of calls to the server.
    pub calls: u64,
    /// The number of calls that failed.
    pub failed: u64,
    /// The total time that the calls took.
    pub took: Duration,
    /// The time that the start of the server took.
    pub started_in: Option<Duration>,
    /// The number of its process.
    pub process: Option<i32>,
}

/// Takes notices. The flag says whether it is a warning.
pub type NoticeSink = Arc<dyn Fn(bool, String) + Send + Sync>;

/// Cleans a text of a server.
pub type CleanText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The state that all servers of a session share.
pub(super) struct ServerContext {
    pub(super) around: ServerEnvironment,
    pub(super) memory: ToolMemory,
    pub(super) tell: NoticeSink,
    pub(super) clean: CleanText,
    /// Counts how often what is offered has changed.
    pub(super) changes: watch::Sender<u64>,
}

/// A server of a session.
pub(super) struct ManagedServer {
    pub(super) definition: Definition,
    common: Arc<ServerContext>,
    seen: Mutex<ServerFacts>,
    known: Mutex<KnownTools>,
    pub(super) stderr: Stderr,
    connection: Turn<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    live: Option<SharedConnection>,
    failed: Option<(Instant, UnavailableError)>,
    /// Follows the lists of the connection; ends with it.
    following: JoinSet<()>,
}

impl ManagedServer {
    pub(super) fn new(definition: Definition, common: Arc<ServerContext>) -> Self {
        let known = common.memory.load_known(&definition).unwrap_or_else(|error| {
            (common.tell)(true, error.to_string());
            KnownTools::default()
        });
        let seen = ServerFacts {
            state: ServerState::Idle,
            offered: known.tools.clone(),
            changed: Vec::new(),
            prompts: known.prompts.clone(),
            left_out: Vec::new(),
            left_out_prompts: Vec::new(),
            calls: 0,
            failed: 0,
            took: Duration::ZERO,
            started_in: None,
            process: None,
        };
        Self {
            definition,
            common,
            seen: Mutex::new(seen),
            known: Mutex::new(known),
            stderr: Stderr::default(),
            connection: Turn::default(),
        }
    }

    /// Returns the facts about the server as they are now.
    pub(super) fn current_facts(&self) -> ServerFacts {
        self.seen.lock().clone()
    }

    /// The end of what it wrote to its standard error, as people may see it.
    pub(super) fn stderr_text(&self) -> String {
        (self.common.clean)(&self.stderr.text())
    }

    /// Reports whether the server's tools were seen, now or in an earlier session.
    pub(super) fn is_known(&self) -> bool {
        self.known.lock().is_known()
    }

    /// Reports whether the server has resources, as far as is known.
    pub(super) fn has_resources(&self) -> bool {
        self.known.lock().has_resources
    }

    /// Reports whether the server's tools were never seen and may come yet.
    pub(super) fn is_awaited(&self) -> bool {
        !self.is_known()
            && matches!(self.seen.lock().state, ServerState::Idle | ServerState::Starting)
    }

    /// A connection: the one there is, or a new one.
    pub(super) async fn ensure_connected(
        self: &Arc<Self>,
    ) -> Result<SharedConnection, UnavailableError> {
        let mut connection = self.connection.lock().await;
        if let Some(live) = connection.live.as_ref().filter(|live| live.is_open()) {
            return Ok(Arc::clone(live));
        }
        if let Some((at, error)) = &connection.failed
            && at.elapsed() < RETRY_AFTER
        {
            return Err(error.clone());
        }
        *connection = ConnectionState::default();
        self.set_state(ServerState::Starting);
        match self.connect(&mut connection).await {
            Ok(live) => Ok(live),
            Err(error) => {
                // Perhaps it is another one now, which speaks the other wire.
                self.known.lock().shakes_hands = false;
                let error = self.to_unavailable(error);
                self.set_state(ServerState::Failed(error.to_string()));
                connection.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Connects, and takes in what the server lists.
    fn connect<'a>(
        self: &'a Arc<Self>,
        link: &'a mut ConnectionState,
    ) -> BoxFuture<'a, Result<SharedConnection, ConnectionError>> {
        box_future(async move {
            let began = Instant::now();
            let handler = Handler::new(&self.definition.name);
            let lists = handler.lists.subscribe();
            let handler_lists = handler.lists.clone();
            let handshake = match self.known.lock().shakes_hands {
                true => Handshake::Yes,
                false => Handshake::Ask,
            };
            let connecting = self.connect_and_list(handler, handshake);
            let connected = timeout(START_TIMEOUT, connecting).await;
            let (live, (tools, left_out)) =
                connected.unwrap_or_else(|_| Err(ConnectionError::TimedOut(START_TIMEOUT)))?;
            let live = Arc::new(live);
            {
                let mut seen = self.seen.lock();
                seen.started_in = Some(began.elapsed());
                seen.process = live.process_id();
            }
            self.leave_out(left_out, |seen| &mut seen.left_out);
            self.store_tools(tools, Some(&live));
            self.set_state(ServerState::Ready);
            let (server, of) = (Arc::downgrade(self), Arc::downgrade(&live));
            link.following
                .spawn(box_future(look_for_prompts(Weak::clone(&server), Weak::clone(&of))));
            if live.is_stateless() {
                link.following
                    .spawn(box_future(listen_for_changes(Weak::clone(&of), handler_lists)));
            }
            link.following.spawn(box_future(relist_on_change(server, of, lists)));
            link.live = Some(Arc::clone(&live));
            Ok(live)
        })
    }

    async fn connect_and_list(
        &self,
        handler: Handler,
        handshake: Handshake,
    ) -> Result<(LiveConnection, ToolList), ConnectionError> {
        let Self { definition, common, stderr, .. } = self;
        let live =
            live_connection::connect_server(definition, &common.around, stderr, handler, handshake)
                .await?;
        let tools = live.list_tools().await;
        Ok((live, tools.map_err(|error| CallFailure::new(error, definition))?))
    }

    /// Says what of one of the server's lists is left out, where that is news.
    fn leave_out(&self, left_out: Vec<String>, of: fn(&mut ServerFacts) -> &mut Vec<String>) {
        /// Most of them that are named in a notice.
        const NAMED: usize = 3;
        let name = &self.definition.name;
        let before = std::mem::replace(of(&mut self.seen.lock()), left_out.clone());
        let left_out: Vec<_> =
            left_out.into_iter().filter(|fault| !before.contains(fault)).collect();
        if left_out.is_empty() {
            return;
        }
        let more = match left_out.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more: `gnoma mcp test {name}` shows them"),
        };
        let named: Vec<_> = left_out.into_iter().take(NAMED).collect();
        let said = format!(
            "the MCP server `{name}` does not keep to the protocol: {}{more}",
            named.join("; ")
        );
        (self.common.tell)(true, said);
    }

    /// Adds to an error what the server wrote about it.
    fn to_unavailable(&self, error: ConnectionError) -> UnavailableError {
        let (server, output) = (self.definition.name.clone(), self.last_output());
        UnavailableError { server, source: Arc::new(error), output }
    }

    /// The last lines that it wrote beside its messages, in one.
    fn last_output(&self) -> String {
        last_lines(&self.stderr_text(), TOLD_LINES)
    }

    /// Says that it has not answered since it was needed, and what it wrote instead.
    pub(super) fn warn_late(&self, waited: Duration) {
        let (name, waited) = (&self.definition.name, duration::format_duration(waited));
        let text = format!(
            "the MCP server `{name}` has not answered within {waited}; its tools are offered \
             when it has{}",
            output_clause(&self.last_output())
        );
        (self.common.tell)(true, text);
    }

    fn set_state(&self, state: ServerState) {
        self.seen.lock().state = state;
        self.common.changes.send_modify(|count| *count += 1);
    }

    /// Takes in a list of its tools, and says what people must know of it.
    pub(super) fn update_tools(&self, listed: Vec<DescribedTool>) {
        self.store_tools(listed, None);
    }

    fn store_tools(&self, listed: Vec<DescribedTool>, from: Option<&LiveConnection>) {
        let name = &self.definition.name;
        let (compared, written) = {
            let mut known = self.known.lock();
            let before = known.clone();
            if let Some(live) = from {
                known.has_resources = live.has_resources();
                known.shakes_hands = !live.is_stateless();
            }
            let compared = known.compare_list(name, listed);
            let written = if *known == before {
                Ok(())
            } else {
                self.common.memory.save_known(&self.definition, &known)
            };
            (compared, written)
        };
        if let Err(error) = written {
            (self.common.tell)(true, error.to_string());
        }
        let ToolListComparison { offered, changed, new } = compared;
        for ChangedTool { now, .. } in &changed {
            (self.common.tell)(
                true,
                format!(
                    "the MCP server `{name}` describes its tool `{}` differently than when it \
                     was approved, so the tool is withheld; `gnoma mcp approve {name}` shows the \
                     difference and approves it",
                    now.name
                ),
            );
        }
        if !new.is_empty() {
            (self.common.tell)(
                false,
                format!("the MCP server `{name}` has new tools: {}", new.join(", ")),
            );
        }
        let mut seen = self.seen.lock();
        (seen.offered, seen.changed) = (offered, changed);
        drop(seen);
        self.common.changes.send_modify(|count| *count += 1);
    }

    /// Calls a tool by the server's name for it.
    pub(super) async fn call_tool(
        self: Arc<Self>,
        tool: String,
        call: ToolCall,
        cx: ToolCx,
    ) -> ToolOutcome {
        let stop = cx.stop.clone();
        let live = tokio::select! {
            biased;
            () = stop.cancelled() => return ToolOutcome::Interrupted(String::new()),
            live = self.ensure_connected() => live,
        };
        let live = match live {
            Ok(live) => live,
            Err(error) => return ToolOutcome::failure_text(error.to_string()),
        };
        if let Err(refusal) = self.check_offered(&tool) {
            return ToolOutcome::failure_text(refusal.to_string());
        }
        let began = Instant::now();
        let running = ServerCall { id: call.id.clone(), cx };
        let definition = &self.definition;
        let (arguments, timeout) = (&call.arguments, definition.timeout);
        let outcome = live.call_tool(definition, &tool, arguments, timeout, running).await;
        let mut seen = self.seen.lock();
        seen.calls += 1;
        seen.took += began.elapsed();
        seen.failed += u64::from(matches!(outcome, ToolOutcome::Failed(_)));
        drop(seen);
        if live.is_open() { outcome } else { self.on_ended_during_call(outcome) }
    }

    /// The server has ended during a call.
    fn on_ended_during_call(&self, outcome: ToolOutcome) -> ToolOutcome {
        match outcome {
            ToolOutcome::Failed(_) => {
                let why = self.to_unavailable(ConnectionError::EndedInCall).to_string();
                self.set_state(ServerState::Failed(why.clone()));
                ToolOutcome::failure_text(why)
            }
            other => other,
        }
    }

    /// Checks that a tool may be called.
    fn check_offered(&self, tool: &str) -> Result<(), ToolRefusal> {
        let seen = self.seen.lock();
        let has_changed = seen.changed.iter().any(|changed| changed.now.name == tool);
        if !has_changed && seen.offered.iter().any(|offered| offered.name == tool) {
            return Ok(());
        }
        let (server, tool) = (self.definition.name.clone(), tool.to_owned());
        Err(match has_changed {
            true => ToolRefusal::Changed { server, tool },
            false => ToolRefusal::Gone { server, tool },
        })
    }

    /// Takes in its prompts.
    fn take_prompts(&self, prompts: Vec<ServerPrompt>) {
        let known = {
            let mut known = self.known.lock();
            if known.prompts == prompts {
                return;
            }
            known.prompts.clone_from(&prompts);
            known.clone()
        };
        if let Err(error) = self.common.memory.save_known(&self.definition, &known) {
            (self.common.tell)(true, error.to_string());
        }
        self.seen.lock().prompts = prompts;
        self.common.changes.send_modify(|count| *count += 1);
    }

    /// Lists the tools as the server has them now, approved or not.
    pub(super) async fn list_current_tools(
        self: &Arc<Self>,
    ) -> Result<Vec<DescribedTool>, ServerUseError> {
        let tools = self.ensure_connected().await?.list_tools().await;
        Ok(tools.map_err(|error| CallFailure::new(error, &self.definition))?.0)
    }

    /// Records that a person approved these tools.
    pub(super) fn approve_tools(&self, listed: &[DescribedTool]) -> Result<(), ToolMemoryError> {
        let known = {
            let mut known = self.known.lock();
            known.approve(&self.definition.name, listed);
            known.clone()
        };
        self.common.memory.save_known(&self.definition, &known)?;
        self.update_tools(listed.to_vec());
        Ok(())
    }
}

/// Lists the prompts, which nothing waits for.
async fn look_for_prompts(server: Weak<ManagedServer>, live: Weak<LiveConnection>) {
    let Some((server, live)) = server.upgrade().zip(live.upgrade()) else { return };
    if let Ok((prompts, left_out)) = live.list_prompts(&server.definition.name).await {
        server.leave_out(left_out, |seen| &mut seen.left_out_prompts);
        server.take_prompts(prompts);
    }
}

/// Listens for changes of the list as long as the server tells of them. After each break the list is read again: a
/// change may have been missed.
async fn listen_for_changes(live: Weak<LiveConnection>, lists: watch::Sender<u64>) {
    /// The time after which the end of a stream does not count as a failure.
    const LASTED: Duration = Duration::from_secs(30);
    let mut in_vain = 0;
    while in_vain < MAX_RESUMES {
        let Some(live) = live.upgrade() else { return };
        let began = Instant::now();
        let ended = live.listen_for_changes().await;
        let has_lasted = began.elapsed() >= LASTED;
        match ended {
            Err(error) if error.is_final() => return,
            Ok(()) | Err(_) => in_vain = if has_lasted { 0 } else { in_vain + 1 },
        }
        drop(live);
        tokio::time::sleep(RESUME_WAIT * in_vain.max(1)).await;
        lists.send_modify(|count| *count += 1);
    }
}

/// Lists the tools again whenever the server says that they are others.
async fn relist_on_change(
    server: Weak<ManagedServer>,
    live: Weak<LiveConnection>,
    mut lists: watch::Receiver<u64>,
) {
    /// Changes that come faster are taken together.
    const SETTLE: Duration = Duration::from_millis(200);
    loop {
        if lists.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(SETTLE).await;
        lists.mark_unchanged();
        let (Some(server), Some(live)) = (server.upgrade(), live.upgrade()) else { return };
        // A list that does not come leaves what was there.
        if let Ok(Ok((tools, left_out))) = timeout(START_TIMEOUT, live.list_tools()).await {
            server.leave_out(left_out, |seen| &mut seen.left_out);
            server.update_tools(tools);
        }
    }
}
