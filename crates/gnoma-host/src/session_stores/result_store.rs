//! The result store of a session that may not have begun, in a store that may not be open.

use gnoma_core::store::{
    ResultId, ResultSlice, ResultStore, SessionId, StoreError, StoreErrorKind, StoreFuture,
};
use gnoma_store::Store;

use super::{begun_session::BegunSessionId, late_opening::LateOpening};

/// The result store of a session that may not be stored yet.
pub(super) struct LateResultStore {
    pub(super) store: LateOpening<Store>,
    pub(super) begun: BegunSessionId,
}

impl LateResultStore {
    fn session_id(&self) -> Result<SessionId, StoreError> {
        let text = "the session is not saved, so nothing can be saved with it";
        let missing = || StoreError::new(StoreErrorKind::NotFound, text);
        self.begun.get().cloned().ok_or_else(missing)
    }
}

impl ResultStore for LateResultStore {
    fn save_result(&self, text: String) -> StoreFuture<'_, ResultId> {
        Box::pin(async move {
            let session = self.session_id()?;
            self.store.get().await?.result_store(session).save_result(text).await
        })
    }

    fn read_slice(
        &self,
        id: ResultId,
        from: u64,
        max_bytes: usize,
    ) -> StoreFuture<'_, ResultSlice> {
        Box::pin(async move {
            let session = self.session_id()?;
            self.store.get().await?.result_store(session).read_slice(id, from, max_bytes).await
        })
    }
}
