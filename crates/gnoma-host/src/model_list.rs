//! The models that one server has, asked once for all sessions of the process that look.

use std::time::Duration;

use gnoma_core::{ModelInfo, duration::format_duration, task::box_future};
use gnoma_guard::firewall::Connection;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

/// The time a server on this machine may take to list its models.
const PATIENCE: Duration = Duration::from_secs(3);
/// Age at which an answer is too old for who begins to look.
const STALE: Duration = Duration::from_secs(2);

/// The models of one server, which is asked only while the list has viewers. Dropping the list ends the requests.
pub(crate) struct ModelList {
    server: Connection,
    interval: Option<Duration>,
    answers: watch::Receiver<Option<ListedModels>>,
    /// The time when a look at the list was last begun.
    looked: watch::Sender<Instant>,
    _task: JoinSet<()>,
}

/// The models that a server listed when it was last asked.
struct ListedModels {
    at: Instant,
    models: Vec<ModelInfo>,
    /// The reason why there is no list, with the provider's name before it.
    failure: Option<String>,
}

impl ListedModels {
    fn is_fresh(&self, begun: Instant) -> bool {
        self.at + STALE >= begun
    }
}

/// A viewer of a list.
pub(crate) struct ModelListViewer {
    answers: watch::Receiver<Option<ListedModels>>,
    begun: Instant,
}

impl ModelList {
    /// Begins to ask. `interval`: the time from one request to the next; `None` asks only when a viewer comes. Must be
    /// called within a runtime.
    pub(crate) fn start(server: Connection, interval: Option<Duration>) -> Self {
        let (said, answers) = watch::channel(None);
        let (looked, looks) = watch::channel(Instant::now());
        let mut task = JoinSet::new();
        task.spawn(box_future(keep_asking(server.clone(), said, looks, interval)));
        Self { server, interval, answers, looked, _task: task }
    }

    /// Reports whether this is the list of that server with that interval.
    pub(crate) fn is_of(&self, server: &Connection, interval: Option<Duration>) -> bool {
        self.interval == interval && self.server.is_same(server)
    }

    /// Whose models they are.
    pub(crate) fn provider(&self) -> &str {
        &self.server.provider_facts().name
    }

    /// Returns the reason why the server gave no list when it was last asked, with the provider's name before it.
    pub(crate) fn failure(&self) -> Option<String> {
        self.answers.borrow().as_ref()?.failure.clone()
    }

    /// Begins a look at the list.
    pub(crate) fn request_models(&self) -> ModelListViewer {
        let look = ModelListViewer { answers: self.answers.clone(), begun: Instant::now() };
        self.looked.send_replace(look.begun);
        look
    }
}

impl ModelListViewer {
    /// The models, as they were a moment before the look began or later. A server that does not answer
    /// has none.
    pub(crate) async fn models(&mut self) -> Vec<ModelInfo> {
        let is_fresh = |last: &Option<ListedModels>| {
            last.as_ref().is_some_and(|last| last.is_fresh(self.begun))
        };
        match self.answers.wait_for(is_fresh).await {
            Ok(last) => last.as_ref().map(|last| last.models.clone()).unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// Waits for another answer.
    pub(crate) async fn wait_for_change(&mut self) {
        if self.answers.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Asks at once, again after each interval while there are viewers, and if the last answer is too old for a new viewer.
async fn keep_asking(
    server: Connection,
    said: watch::Sender<Option<ListedModels>>,
    mut looks: watch::Receiver<Instant>,
    interval: Option<Duration>,
) {
    loop {
        let (models, failure) = match timeout(PATIENCE, server.list_models()).await {
            Ok(Ok(models)) => (models, None),
            Ok(Err(error)) => (Vec::new(), Some(error.to_string())),
            Err(_) => {
                let (name, limit) = (&server.provider_facts().name, format_duration(PATIENCE));
                (Vec::new(), Some(format!("{name}: no answer within {limit}")))
            }
        };
        let at = Instant::now();
        let answer = ListedModels { at, models, failure };
        let due = interval.map(|interval| at + interval);
        let is_needed = |looked: Instant| {
            // The list itself is among those that listen.
            let is_due = due.is_some_and(|due| due <= Instant::now());
            is_due && said.receiver_count() > 1 || looked > at + STALE
        };
        said.send_replace(Some(answer));
        while !is_needed(*looks.borrow_and_update()) {
            let is_over = due.is_none_or(|due| due <= Instant::now());
            tokio::select! {
                () = sleep_until(due.unwrap_or(at)), if !is_over => (),
                looked = looks.changed() => if looked.is_err() { return },
            }
        }
    }
}
