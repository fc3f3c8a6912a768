//! The port for large tool results on top of a store.

use std::sync::Arc;

use gnoma_core::store::{Durability, ResultId, ResultSlice, ResultStore, SessionId, StoreFuture};
use rusqlite::Connection;

use crate::{error::Result, results, store::Store};

/// The results of one session.
pub struct SessionResults {
    store: Arc<Store>,
    session: SessionId,
}

impl SessionResults {
    /// The result store of `session` in `store`.
    pub(crate) fn new(store: Arc<Store>, session: SessionId) -> Self {
        Self { store, session }
    }
}

impl ResultStore for SessionResults {
    fn save_result(&self, text: String) -> StoreFuture<'_, ResultId> {
        Box::pin(self.store.put_result(self.session.clone(), text))
    }

    fn read_slice(
        &self,
        id: ResultId,
        from: u64,
        max_bytes: usize,
    ) -> StoreFuture<'_, ResultSlice> {
        Box::pin(self.store.read_result(self.session.clone(), id, from, max_bytes))
    }
}

impl Store {
    /// Returns the store to which the large tool results of `session` go. There must be such a session when the
    /// first is put: they are stored beside its entries, shared with forks that share the entry that speaks of
    /// them, and go with the last of those.
    #[must_use]
    pub fn result_store(self: &Arc<Self>, session: SessionId) -> SessionResults {
        SessionResults::new(Arc::clone(self), session)
    }

    /// The handles of the large results of `session`, for an export that keeps everything.
    ///
    /// # Errors
    /// When there is no such session, or as the database's.
    pub async fn list_results(&self, session: SessionId) -> Result<Vec<ResultId>> {
        self.run_read(move |connection| results::list_results(connection, &session)).await
    }

    /// Keeps a large result.
    async fn put_result(&self, session: SessionId, text: String) -> Result<ResultId> {
        let (options, me) = (Arc::clone(&self.options), Arc::clone(&self.identity));
        let now_ms = (options.clock)();
        let prepare = move || results::prepare_result(&*options.redact, &text);
        let work = move |connection: &Connection, packed: results::PackedResult| {
            results::add_result(connection, &me, &session, &packed, now_ms)
        };
        self.change_prepared(Durability::Process, prepare, work).await
    }

    /// Reads from a large result.
    async fn read_result(
        &self,
        session: SessionId,
        id: ResultId,
        from: u64,
        max_bytes: usize,
    ) -> Result<ResultSlice> {
        self.run_read(move |connection| {
            results::read_slice(connection, &session, &id, from, max_bytes)
        })
        .await
    }
}
