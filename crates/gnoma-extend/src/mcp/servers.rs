//! All servers of a session: which of their tools are on offer, and how they are.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_core::{Tool, sync::Mutex, task::box_future, tool::BoxFuture};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{
    approval::{DescribedTool, ToolMemory},
    catalog::Catalog,
    definition::Definition,
    failure::{McpError, ServerUseError},
    limits::{MAX_SERVERS, NAMED_WAIT, SEARCH_WAIT, START_DELAY},
    naming,
    process::ServerEnvironment,
    prompts,
    resource::Resources,
    search::ToolSearch,
    server::{CleanText, ManagedServer, NoticeSink, ServerContext, ServerFacts},
    tool::McpTool,
};

/// The share of a model's window that tools of servers may take before they are found by searching:
/// one part in so many.
const WINDOW_PARTS: usize = 10;
/// Most tokens that they take however large the window is.
const MAX_OFFERED_TOKENS: usize = 8_000;
/// Bytes of a description or a schema that make a token, at the least.
const BYTES_PER_TOKEN: usize = 4;
/// Tokens that a wire puts around a tool.
const TOKENS_AROUND: usize = 12;
/// The time that a search waits until the tools it found are on offer.
const PUBLISH_WAIT: Duration = Duration::from_secs(2);

/// The parts from which the servers of a session are built.
pub struct ServerOptions {
    /// The servers; of two with one name the first counts.
    pub definitions: Vec<Definition>,
    /// The environment in which the servers run.
    pub around: ServerEnvironment,
    /// The store of what is known about their tools.
    pub memory: ToolMemory,
    /// The function that takes notices.
    pub tell: NoticeSink,
    /// Takes out of a server's own words what nobody should see.
    pub clean: CleanText,
    /// The window of the model that is asked, in tokens.
    pub window: usize,
}

/// The state of a server, for people.
#[derive(Clone, Debug)]
pub struct ServerReport {
    /// The definition of the server, as it is configured.
    pub definition: Definition,
    /// The facts known about the server.
    pub seen: ServerFacts,
    /// Tokens that its tools take where all are on offer.
    pub tokens: usize,
    /// The end of what it wrote to its standard error.
    pub stderr: String,
}

/// The servers of a session. Dropped, it ends them.
pub struct Servers {
    shared: Arc<ServersState>,
    _starting: JoinSet<()>,
}

/// The state that the servers' tools share.
pub(super) struct ServersState {
    servers: Vec<Arc<ManagedServer>>,
    common: Arc<ServerContext>,
    window: usize,
    /// Names of the tools that a search has found, in that order.
    found: Mutex<Vec<String>>,
    /// The number of the change that was put on offer last.
    published: watch::Sender<u64>,
    /// Tools of which it was said why they replace none.
    told: Mutex<BTreeSet<String>>,
    /// `true` if the tools of a server had never been seen when the session began: they can be searched for
    /// throughout the session, so that a turn that needs them can wait for them and no other turn has to.
    had_unseen: bool,
    /// `true` once a turn waits for servers whose tools were never seen.
    wanted: watch::Sender<bool>,
}

impl Servers {
    /// The servers of a session. Those whose tools are already known start when one is called; the others start
    /// shortly, or when they are needed, side by side. Nothing waits for them.
    #[must_use]
    pub fn start(options: ServerOptions) -> Self {
        let servers = Self::start_on_demand(options);
        let mut starting = JoinSet::new();
        for server in servers.shared.servers.iter().filter(|server| !server.is_known()) {
            let (server, tell) = (Arc::clone(server), Arc::clone(&servers.shared.common.tell));
            let mut wanted = servers.shared.wanted.subscribe();
            starting.spawn(box_future(async move {
                timeout(START_DELAY, wanted.wait_for(|is_wanted| *is_wanted)).await.ok();
                if let Err(error) = server.ensure_connected().await {
                    tell(true, error.to_string());
                }
            }));
        }
        Self { _starting: starting, ..servers }
    }

    /// The servers, of which none is started before it is asked something.
    #[must_use]
    pub fn start_on_demand(options: ServerOptions) -> Self {
        let ServerOptions { definitions, around, memory, tell, clean, window } = options;
        let changes = watch::Sender::new(0);
        let common = Arc::new(ServerContext { around, memory, tell, clean, changes });
        let mut names = BTreeSet::new();
        let mut servers = Vec::new();
        for definition in definitions {
            let name = &definition.name;
            if !names.insert(name.to_lowercase()) {
                (common.tell)(
                    true,
                    format!(
                        "a second MCP server is named `{name}` (in {}); it is not used, so that \
                     it cannot replace the first",
                        definition.origin
                    ),
                );
            } else if servers.len() >= MAX_SERVERS {
                (common.tell)(
                    true,
                    format!(
                        "the MCP server `{name}` is not used: there are more than {MAX_SERVERS}"
                    ),
                );
            } else {
                servers.push(Arc::new(ManagedServer::new(definition, Arc::clone(&common))));
            }
        }
        let shared = ServersState {
            had_unseen: servers.iter().any(|server| !server.is_known()),
            servers,
            common,
            window,
            found: Mutex::default(),
            published: watch::Sender::new(0),
            told: Mutex::default(),
            wanted: watch::Sender::new(false),
        };
        Self { shared: Arc::new(shared), _starting: JoinSet::new() }
    }

    /// Reports whether the session has no servers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.servers.is_empty()
    }

    /// The tools that are on offer now: those of the session's `own`, some of them replaced, and the
    /// servers'.
    #[must_use]
    pub fn offered_tools(&self, own: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        self.shared.offered_tools(own)
    }

    /// Follows what is on offer besides the session's `own` tools.
    #[must_use]
    pub fn subscribe_offers(&self, own: Vec<Arc<dyn Tool>>) -> ToolOfferWatcher {
        let mut changes = self.shared.common.changes.subscribe();
        // Tools that have come since the session's tools were listed are on offer at once.
        changes.mark_changed();
        ToolOfferWatcher { shared: Arc::clone(&self.shared), changes, own }
    }

    /// A look at them that keeps none of them.
    #[must_use]
    pub fn weak_view(&self) -> ServersView {
        ServersView(Arc::downgrade(&self.shared))
    }

    /// Returns the state of each server.
    #[must_use]
    pub fn server_standings(&self) -> Vec<ServerReport> {
        self.shared.servers.iter().map(server_standing).collect()
    }

    /// Connects to all of them, or to the one of that name, side by side, and says how they are then.
    pub async fn connect_all(&self, name: Option<&str>) -> Vec<ServerReport> {
        let chosen = self.shared.servers.iter();
        let chosen: Vec<_> = chosen
            .filter(|server| name.is_none_or(|name| server.definition.name == name))
            .collect();
        futures_util::future::join_all(chosen.iter().map(|server| server.ensure_connected())).await;
        chosen.into_iter().map(server_standing).collect()
    }

    /// Approves the tools of a server as it lists them now.
    ///
    /// # Errors
    /// There is no such server, or it cannot be asked.
    pub async fn approve_tools(&self, name: &str) -> Result<(), McpError> {
        let server = self.shared.servers.iter().find(|server| server.definition.name == name);
        let server = server.ok_or_else(|| ServerUseError::NoServer(name.to_owned()))?;
        let listed = server.list_current_tools().await?;
        Ok(server.approve_tools(&listed).map_err(ServerUseError::Memory)?)
    }
}

fn server_standing(server: &Arc<ManagedServer>) -> ServerReport {
    let seen = server.current_facts();
    let tokens = seen.offered.iter().map(estimate_tokens).sum();
    let stderr = server.stderr_text();
    ServerReport { definition: server.definition.clone(), seen, tokens, stderr }
}

/// A look at the servers of a session, as long as it lives.
#[derive(Clone)]
pub struct ServersView(Weak<ServersState>);

impl std::fmt::Debug for ServersView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Glance")
    }
}

impl ServersView {
    /// Reports whether the tools of a server had never been seen when the session began.
    #[must_use]
    pub fn had_unseen(&self) -> bool {
        self.0.upgrade().is_some_and(|shared| shared.had_unseen)
    }

    /// Waits a moment for the servers that `text` names, where nobody has seen their tools yet, and until
    /// what came is on offer.
    pub async fn named_in(&self, text: &str) {
        let Some(shared) = self.0.upgrade() else { return };
        let is_named = |server: &ManagedServer| naming::is_named(&server.definition.name, text);
        shared.wait_for(NAMED_WAIT, is_named).await;
        let late = shared.servers.iter().filter(|server| server.is_awaited() && is_named(server));
        late.for_each(|server| server.warn_late(NAMED_WAIT));
    }

    /// Returns the text of a server's prompt with these arguments; `None` where the name is not that of a server's
    /// prompt.
    pub async fn expand_prompt(
        &self,
        name: &str,
        arguments: &str,
    ) -> Option<Result<String, McpError>> {
        let named = prompts::server_of(name)?;
        let server = self.0.upgrade()?.find_server(named)?;
        let asked = async {
            let said = server.ensure_connected().await?.said_by(named, name, arguments).await?;
            said.ok_or_else(|| ServerUseError::NoPrompt(named.to_owned()))
        };
        Some(asked.await.map_err(McpError::from))
    }

    /// The tools of a session that this one starts: its `own`, replaced as here, and the servers'. Where those
    /// are too many, it gets the ones that a search has found here and those that `is_named` says.
    #[must_use]
    pub fn tools_for_child(
        &self,
        own: &[Arc<dyn Tool>],
        is_named: &dyn Fn(&str) -> bool,
    ) -> Vec<Arc<dyn Tool>> {
        self.0
            .upgrade()
            .map_or_else(|| own.to_vec(), |shared| shared.tools_for_child(own, is_named))
    }

    /// Returns the state of each server.
    #[must_use]
    pub fn server_standings(&self) -> Vec<ServerReport> {
        let shared = self.0.upgrade();
        shared.iter().flat_map(|shared| &shared.servers).map(server_standing).collect()
    }
}

/// Follows what is on offer.
pub struct ToolOfferWatcher {
    shared: Arc<ServersState>,
    changes: watch::Receiver<u64>,
    own: Vec<Arc<dyn Tool>>,
}

impl ToolOfferWatcher {
    /// The tools after the next change; `None` when there will be none. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<(u64, Vec<Arc<dyn Tool>>)> {
        self.changes.changed().await.ok()?;
        let change = *self.changes.borrow_and_update();
        Some((change, self.shared.offered_tools(&self.own)))
    }

    /// The tools of that change are on offer.
    pub fn mark_published(&self, change: u64) {
        self.shared.published.send_replace(change);
    }
}

impl ServersState {
    /// Waits for servers whose tools nobody has seen yet, for so long, and until what came is on offer.
    async fn wait_for(&self, patience: Duration, is_meant: impl Fn(&ManagedServer) -> bool) {
        let mut changes = self.common.changes.subscribe();
        let until = Instant::now() + patience;
        let is_awaited = || self.servers.iter().any(|it| it.is_awaited() && is_meant(it));
        if !is_awaited() {
            return;
        }
        self.wanted.send_replace(true);
        while is_awaited() {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = sleep_until(until) => break,
            }
        }
        self.on_offer().await;
    }

    /// Waits until what is known now is on offer.
    async fn on_offer(&self) {
        let mut published = self.published.subscribe();
        let change = *self.common.changes.borrow();
        let is_published = published.wait_for(|published| *published >= change);
        // A session that is late offers them in the round after the next.
        timeout(PUBLISH_WAIT, is_published).await.ok();
    }

    /// All tools, by the names under which they are offered.
    fn all_tools(&self) -> Vec<(String, Arc<ManagedServer>, DescribedTool)> {
        let mut all = Vec::new();
        for server in &self.servers {
            for tool in server.current_facts().offered {
                let name = naming::qualified_tool_name(&server.definition.name, &tool.name);
                all.push((name, Arc::clone(server), tool));
            }
        }
        all
    }

    fn weak_catalog(self: &Arc<Self>) -> Weak<dyn Catalog> {
        let shared: Weak<Self> = Arc::downgrade(self);
        shared
    }

    /// The tool that reads resources, if there are any.
    fn resource_tool(self: &Arc<Self>) -> Option<Arc<dyn Tool>> {
        let has = self.servers.iter().filter(|server| server.has_resources());
        let names: Vec<_> = has.map(|server| server.definition.name.as_str()).collect();
        (!names.is_empty()).then(|| {
            Arc::new(Resources::new(self.weak_catalog(), &names.join(", "))) as Arc<dyn Tool>
        })
    }

    fn offered_tools(self: &Arc<Self>, own: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let mut all = self.all_tools();
        let mut tools = own.to_vec();
        all.retain(|(_, server, tool)| !self.replace_built_in(&mut tools, server, tool));
        tools.extend(self.additional_tools(&all));
        tools
    }

    fn tools_for_child(
        self: &Arc<Self>,
        own: &[Arc<dyn Tool>],
        is_named: &dyn Fn(&str) -> bool,
    ) -> Vec<Arc<dyn Tool>> {
        let mut all = self.all_tools();
        let mut tools = own.to_vec();
        all.retain(|(_, server, tool)| !self.replace_built_in(&mut tools, server, tool));
        if !self.fits_window(&all) {
            let found = self.found.lock().clone();
            all.retain(|(name, _, _)| found.contains(name) || is_named(name));
        }
        tools.extend(self.resource_tool());
        tools.extend(all.iter().filter_map(|(_, server, tool)| to_mcp_tool(server, tool)));
        tools
    }

    /// Reports whether all of the tools can be on offer.
    fn fits_window(&self, all: &[(String, Arc<ManagedServer>, DescribedTool)]) -> bool {
        let whole: usize = all.iter().map(|(_, _, tool)| estimate_tokens(tool)).sum();
        whole <= (self.window / WINDOW_PARTS).min(MAX_OFFERED_TOKENS)
    }

    /// Puts a tool in the place of the built-in one that it is to replace. Says whether it did.
    fn replace_built_in(
        &self,
        tools: &mut [Arc<dyn Tool>],
        server: &Arc<ManagedServer>,
        tool: &DescribedTool,
    ) -> bool {
        let Some(name) = server.definition.replaces.get(&tool.name) else { return false };
        let Some(place) = tools.iter_mut().find(|known| known.spec().name == *name) else {
            self.warn_not_replaced(server, tool, &format!("there is no built-in tool `{name}`"));
            return false;
        };
        match McpTool::with_built_in_spec(server, tool, place.spec()) {
            Ok(replacing) => {
                *place = Arc::new(replacing);
                true
            }
            Err(why) => {
                self.warn_not_replaced(
                    server,
                    tool,
                    &format!("it does not replace `{name}`: {why}"),
                );
                false
            }
        }
    }

    /// Says, once for each tool, why it replaces none.
    fn warn_not_replaced(&self, server: &ManagedServer, tool: &DescribedTool, why: &str) {
        let name = naming::qualified_tool_name(&server.definition.name, &tool.name);
        let text = format!("the tool `{name}` is offered under its own name: {why}");
        let mut told = self.told.lock();
        if told.insert(name) {
            (self.common.tell)(true, text);
        }
    }

    /// The servers' tools that replace none: directly, or those that a search has found.
    fn additional_tools(
        self: &Arc<Self>,
        all: &[(String, Arc<ManagedServer>, DescribedTool)],
    ) -> Vec<Arc<dyn Tool>> {
        let fits = self.fits_window(all);
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if self.had_unseen || !fits {
            tools.push(Arc::new(ToolSearch::new(self.weak_catalog(), &self.server_names())));
        }
        tools.extend(self.resource_tool());
        if fits {
            tools.extend(all.iter().filter_map(|(_, server, tool)| to_mcp_tool(server, tool)));
            return tools;
        }
        let found = self.found.lock().clone();
        tools.extend(found.iter().filter_map(|name| {
            let (_, server, tool) = all.iter().find(|(known, _, _)| known == name)?;
            to_mcp_tool(server, tool)
        }));
        tools
    }

    /// The names of all servers.
    fn server_names(&self) -> String {
        let names = self.servers.iter().map(|server| server.definition.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

impl Catalog for ServersState {
    fn tool_descriptions(&self) -> Vec<(String, String)> {
        self.all_tools().into_iter().map(|(name, _, tool)| (name, tool.description)).collect()
    }

    fn offer_tools(&self, names: Vec<String>) -> BoxFuture<'_, ()> {
        {
            let mut found = self.found.lock();
            let new: Vec<_> = names.into_iter().filter(|name| !found.contains(name)).collect();
            if new.is_empty() {
                return Box::pin(std::future::ready(()));
            }
            found.extend(new);
        }
        self.common.changes.send_modify(|count| *count += 1);
        Box::pin(self.on_offer())
    }

    fn wait_for_servers(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async {
            self.wait_for(SEARCH_WAIT, |_| true).await;
            let awaited = self.servers.iter().filter(|server| server.is_awaited());
            awaited.map(|server| server.definition.name.clone()).collect()
        })
    }

    fn find_server(&self, name: &str) -> Option<Arc<ManagedServer>> {
        self.servers.iter().find(|server| server.definition.name == name).cloned()
    }
}

fn to_mcp_tool(server: &Arc<ManagedServer>, tool: &DescribedTool) -> Option<Arc<dyn Tool>> {
    McpTool::new(server, tool).map(|tool| Arc::new(tool) as Arc<dyn Tool>)
}

/// Returns roughly how many tokens a tool adds to each request.
fn estimate_tokens(tool: &DescribedTool) -> usize {
    let bytes = tool.name.len() + tool.description.len() + tool.schema.len();
    bytes.div_ceil(BYTES_PER_TOKEN) + TOKENS_AROUND
}
