//! A store that is still being opened, as the store it will be.

use std::{sync::Arc, thread};

use gnoma_core::store::{
    EntryId, Hit, NewEntry, NewSession, Page, PageRequest, SessionFacts, SessionId, SessionStore,
    StoreError, StoreErrorKind, Stored, Taken,
};
use gnoma_store::Store;
use tokio::sync::watch;

type Opened<T> = Option<Result<Arc<T>, StoreError>>;

/// What a thread is opening.
pub(super) struct Late<T>(watch::Receiver<Opened<T>>);

impl<T> Clone for Late<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> Late<T> {
    /// Starts a thread that does `open`. It ends with that; nothing has to stop it.
    pub(super) fn opening(open: impl FnOnce() -> Result<T, StoreError> + Send + 'static) -> Self {
        let (done, opened) = watch::channel(None);
        let work = move || drop(done.send_replace(Some(open().map(Arc::new))));
        let started = thread::Builder::new().name("gnoma-opening".to_owned()).spawn(work);
        // Without a thread the sender is gone, which whoever asks is told.
        drop(started);
        Self(opened)
    }

    /// What is open already.
    pub(super) fn ready(value: Arc<T>) -> Self {
        Self(watch::channel(Some(Ok(value))).1)
    }

    /// Waits until it is open, or is known not to open.
    pub(super) async fn get(&self) -> Result<Arc<T>, StoreError> {
        let mut opened = self.0.clone();
        match opened.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            Ok(None) | Err(_) => {
                let text = "it could not be opened: the system gives no thread for that";
                Err(StoreError::new(StoreErrorKind::Io, text))
            }
        }
    }

    /// It, if it is open now.
    pub(super) fn now(&self) -> Option<Arc<T>> {
        self.0.borrow().as_ref()?.as_ref().ok().cloned()
    }
}

/// Sessions in a store that is being opened.
pub(super) struct LateStore(pub(super) Late<Store>);

impl SessionStore for LateStore {
    fn begin(&self, new: NewSession) -> Stored<'_, SessionId> {
        Box::pin(async move { self.0.get().await?.begin(new).await })
    }

    fn append(&self, new: NewEntry) -> Stored<'_, EntryId> {
        Box::pin(async move { self.0.get().await?.append(new).await })
    }

    fn load(&self, session: SessionId, page: PageRequest) -> Stored<'_, Page> {
        Box::pin(async move { self.0.get().await?.load(session, page).await })
    }

    fn facts(&self, session: SessionId) -> Stored<'_, SessionFacts> {
        Box::pin(async move { self.0.get().await?.facts(session).await })
    }

    fn list(&self, max: usize) -> Stored<'_, Vec<SessionFacts>> {
        Box::pin(async move { self.0.get().await?.list(max).await })
    }

    fn search(&self, query: String, max: usize) -> Stored<'_, Vec<Hit>> {
        Box::pin(async move { self.0.get().await?.search(query, max).await })
    }

    fn fork(&self, session: SessionId, at: EntryId, at_ms: i64) -> Stored<'_, SessionId> {
        Box::pin(async move { self.0.get().await?.fork(session, at, at_ms).await })
    }

    fn rename(&self, session: SessionId, title: String, at_ms: i64) -> Stored<'_, ()> {
        Box::pin(async move { self.0.get().await?.rename(session, title, at_ms).await })
    }

    fn delete(&self, session: SessionId) -> Stored<'_, ()> {
        Box::pin(async move { self.0.get().await?.delete(session).await })
    }

    fn hold(&self, session: SessionId, at_ms: i64) -> Stored<'_, Taken> {
        Box::pin(async move { self.0.get().await?.hold(session, at_ms).await })
    }

    fn release(&self, session: SessionId) -> Stored<'_, ()> {
        Box::pin(async move { self.0.get().await?.release(session).await })
    }
}
