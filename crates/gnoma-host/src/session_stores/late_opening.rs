//! A store that is still being opened, as the store it will be.

use std::{sync::Arc, thread, time::Duration};

use gnoma_core::{
    duration,
    store::{
        EntryId, Hit, HoldReport, NewEntry, NewSession, Page, PageRequest, SessionFacts, SessionId,
        SessionStore, StoreError, StoreErrorKind, StoreFuture,
    },
    sync::Mutex,
};
use gnoma_store::Store;
use tokio::{sync::watch, time::timeout};

use crate::debug_log::LoggedStep;

/// The time to wait for a store. Shorter than the time that a conversation gives its store for one entry, so that a
/// store that takes long to open counts as busy and not as lost.
const PATIENCE: Duration = Duration::from_secs(8);

/// The known state of the opening.
enum LateState<T> {
    Opening,
    Open(Arc<T>),
    Failed(StoreError),
}

struct Inner<T> {
    open: Box<dyn Fn() -> Result<Arc<T>, StoreError> + Send + Sync>,
    state: watch::Sender<LateState<T>>,
}

/// A value that a thread is opening.
pub(super) struct LateOpening<T>(Arc<Inner<T>>);

impl<T> Clone for LateOpening<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + Sync + 'static> LateOpening<T> {
    /// Starts a thread that does `open` and ends. If that fails for a reason that may pass, the next use tries again.
    pub(super) fn begin_opening(
        open: impl Fn() -> Result<Arc<T>, StoreError> + Send + Sync + 'static,
    ) -> Self {
        let late = Self::with_state(open, LateState::Opening);
        late.start_thread();
        late
    }

    /// Wraps a value that is open already.
    pub(super) fn from_value(value: Arc<T>) -> Self {
        let again = Arc::clone(&value);
        Self::with_state(move || Ok(Arc::clone(&again)), LateState::Open(value))
    }

    fn with_state(
        open: impl Fn() -> Result<Arc<T>, StoreError> + Send + Sync + 'static,
        state: LateState<T>,
    ) -> Self {
        Self(Arc::new(Inner { open: Box::new(open), state: watch::Sender::new(state) }))
    }

    fn start_thread(&self) {
        let inner = Arc::clone(&self.0);
        let work = move || {
            let opened = (inner.open)();
            inner.state.send_replace(opened.map_or_else(LateState::Failed, LateState::Open));
        };
        let started = thread::Builder::new().name("gnoma-opening".to_owned()).spawn(work);
        if started.is_err() {
            let text = "it could not be opened: the system could not start a thread";
            let error = StoreError::new(StoreErrorKind::Io, text);
            self.0.state.send_replace(LateState::Failed(error));
        }
    }

    /// Waits until it is open, or is known not to open; not forever.
    pub(super) async fn get(&self) -> Result<Arc<T>, StoreError> {
        self.get_within(PATIENCE).await
    }

    async fn get_within(&self, patience: Duration) -> Result<Arc<T>, StoreError> {
        let again = self.0.state.send_if_modified(|state| {
            let again = matches!(state, LateState::Failed(error) if may_pass(&error.kind));
            if again {
                *state = LateState::Opening;
            }
            again
        });
        if again {
            self.start_thread();
        }
        let mut state = self.0.state.subscribe();
        let known = state.wait_for(|state| !matches!(state, LateState::Opening));
        match timeout(patience, known).await.as_ref().map(|known| known.as_deref()) {
            Ok(Ok(LateState::Open(value))) => Ok(Arc::clone(value)),
            Ok(Ok(LateState::Failed(error))) => Err(error.clone()),
            Ok(Ok(LateState::Opening) | Err(_)) | Err(_) => Err(still_opening(patience)),
        }
    }

    /// Returns the value, if it is open now.
    pub(super) fn opened_value(&self) -> Option<Arc<T>> {
        match &*self.0.state.borrow() {
            LateState::Open(value) => Some(Arc::clone(value)),
            LateState::Opening | LateState::Failed(_) => None,
        }
    }
}

/// Reports whether opening again may help.
fn may_pass(kind: &StoreErrorKind) -> bool {
    match kind {
        StoreErrorKind::Full
        | StoreErrorKind::ReadOnly
        | StoreErrorKind::Busy
        | StoreErrorKind::Io => true,
        StoreErrorKind::Held { .. }
        | StoreErrorKind::Damaged
        | StoreErrorKind::NotFound
        | StoreErrorKind::Exists
        | StoreErrorKind::InvalidId
        | StoreErrorKind::TooNew
        | StoreErrorKind::Foreign => false,
    }
}

fn still_opening(patience: Duration) -> StoreError {
    let text =
        format!("the session store did not open within {}", duration::format_duration(patience));
    StoreError::new(StoreErrorKind::Busy, text)
}

/// Sessions in a store that is being opened.
pub(super) struct LateStore {
    pub(super) store: LateOpening<Store>,
    /// The id of the session that is begun first.
    pub(super) id: Mutex<Option<SessionId>>,
    /// The session that starts it, and what that one calls it, where another one does.
    pub(super) parent: Option<(SessionId, String)>,
    /// A stored session may have that id already.
    pub(super) is_reopened: bool,
}

/// Waits for a write, and writes its line into the debug log.
async fn write_logged<T>(
    step: Option<LoggedStep>,
    entries: usize,
    write: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let written = write.await;
    if let Some(step) = step {
        step.end("store write", ("entries", &entries), written.as_ref().err());
    }
    written
}

impl SessionStore for LateStore {
    fn begin(&self, new: NewSession) -> StoreFuture<'_, SessionId> {
        let id = self.id.lock().take();
        let parent = new.parent.clone().or_else(|| self.parent.clone());
        Box::pin(async move {
            let store = self.store.get().await?;
            let is_taken = match id.clone().filter(|_| self.is_reopened) {
                Some(id) => !matches!(
                    store.session_facts(id).await,
                    Err(StoreError { kind: StoreErrorKind::NotFound, .. })
                ),
                None => false,
            };
            let id = id.filter(|_| !is_taken);
            store.begin(NewSession { id: new.id.clone().or(id), parent, ..new }).await
        })
    }

    fn append(&self, new: NewEntry) -> StoreFuture<'_, EntryId> {
        let step = LoggedStep::begin(new.session.as_str());
        let write = async move { self.store.get().await?.append(new).await };
        Box::pin(write_logged(step, 1, write))
    }

    fn append_all(&self, new: Vec<NewEntry>) -> StoreFuture<'_, Vec<EntryId>> {
        let step = new.first().and_then(|entry| LoggedStep::begin(entry.session.as_str()));
        let entries = new.len();
        let write = async move { self.store.get().await?.append_all(new).await };
        Box::pin(write_logged(step, entries, write))
    }

    fn load(&self, session: SessionId, page: PageRequest) -> StoreFuture<'_, Page> {
        Box::pin(async move { self.store.get().await?.load(session, page).await })
    }

    fn session_facts(&self, session: SessionId) -> StoreFuture<'_, SessionFacts> {
        Box::pin(async move { self.store.get().await?.session_facts(session).await })
    }

    fn list(&self, max: usize) -> StoreFuture<'_, Vec<SessionFacts>> {
        Box::pin(async move { self.store.get().await?.list(max).await })
    }

    fn children(&self, session: SessionId) -> StoreFuture<'_, Vec<SessionFacts>> {
        Box::pin(async move { self.store.get().await?.children(session).await })
    }

    fn search(&self, query: String, max: usize) -> StoreFuture<'_, Vec<Hit>> {
        Box::pin(async move { self.store.get().await?.search(query, max).await })
    }

    fn fork(&self, session: SessionId, at: EntryId, at_ms: i64) -> StoreFuture<'_, SessionId> {
        Box::pin(async move { self.store.get().await?.fork(session, at, at_ms).await })
    }

    fn rename(&self, session: SessionId, title: String, at_ms: i64) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.store.get().await?.rename(session, title, at_ms).await })
    }

    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.store.get().await?.delete(session).await })
    }

    fn hold_session(&self, session: SessionId, at_ms: i64) -> StoreFuture<'_, HoldReport> {
        Box::pin(async move { self.store.get().await?.hold_session(session, at_ms).await })
    }

    fn release_session(&self, session: SessionId) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.store.get().await?.release_session(session).await })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    use super::*;

    /// Fails with these, one at each opening, and then opens; and how often it was tried.
    fn failing(
        kinds: impl IntoIterator<Item = StoreErrorKind>,
    ) -> (LateOpening<&'static str>, Arc<AtomicUsize>) {
        let kinds = Mutex::new(kinds.into_iter().collect::<Vec<_>>());
        let tried = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tried);
        let late = LateOpening::begin_opening(move || {
            count.fetch_add(1, Ordering::SeqCst);
            match kinds.lock().pop() {
                Some(kind) => Err(StoreError::new(kind, "made to fail")),
                None => Ok(Arc::new("open")),
            }
        });
        (late, tried)
    }

    async fn failed(late: &LateOpening<&'static str>) -> StoreErrorKind {
        late.get().await.unwrap_err().kind
    }

    #[tokio::test]
    async fn store_opening_is_retried_after_transient_errors() {
        for kind in [
            StoreErrorKind::Full,
            StoreErrorKind::Busy,
            StoreErrorKind::Io,
            StoreErrorKind::ReadOnly,
        ] {
            let (late, tried) = failing([kind.clone(), kind.clone(), kind.clone()]);
            while let Err(error) = late.get().await {
                assert_eq!(error.kind, kind);
            }
            assert_eq!(late.opened_value().as_deref(), Some(&"open"));
            assert_eq!(tried.load(Ordering::SeqCst), 4, "{kind:?}");
            assert_eq!(tried.load(Ordering::SeqCst), 4, "what is open is not opened again");
        }
    }

    #[tokio::test]
    async fn store_opening_is_not_retried_after_permanent_errors() {
        for kind in [StoreErrorKind::Foreign, StoreErrorKind::TooNew, StoreErrorKind::Damaged] {
            let (late, tried) = failing([kind.clone()]);
            assert_eq!((failed(&late).await, failed(&late).await), (kind.clone(), kind));
            assert_eq!((tried.load(Ordering::SeqCst), late.opened_value()), (1, None));
        }
    }

    #[tokio::test]
    async fn slow_store_opening_reports_busy_until_it_is_open() {
        let (open, may_open) = mpsc::channel::<()>();
        let may_open = Mutex::new(may_open);
        let late = LateOpening::begin_opening(move || {
            may_open.lock().recv().unwrap();
            Ok(Arc::new("open"))
        });
        let early = late.get_within(Duration::from_millis(1)).await;
        assert_eq!((early.unwrap_err().kind, late.opened_value()), (StoreErrorKind::Busy, None));
        open.send(()).unwrap();
        assert_eq!(*late.get().await.unwrap(), "open");
    }
}
