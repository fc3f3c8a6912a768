//! What of a session outlives it: ports that the binary provides or leaves out.
//!
//! Only their shape is defined here. [`crate::session`] decides who writes when, and the ports decide where. The
//! default saves nothing and touches nothing, which is what incognito means.

use std::{fmt, sync::Arc};

use gnoma_core::store::{Checkpoints, ResultStore, SessionId, SessionStore};

/// The treatment of a call that changes files when their state could not be saved before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointFailurePolicy {
    /// The call runs, and a notice says once that it cannot be undone.
    #[default]
    Run,
    /// The call does not run, and the model learns why.
    Refuse,
}

/// The stores in which a session saves what it does.
///
/// **Conversation.** With a store, every message is stored before anything that it causes, so a session that ends
/// in the middle of anything can be continued. A new session is created with the first message, never earlier, and
/// any history that it was given is stored with it. To continue a session, the caller holds it
/// ([`SessionStore::hold_session`]), loads it, builds the history with [`crate::resume::history`], and passes both that
/// history and the session's id; the session's tip must be the last entry of that history. The session releases it
/// at its end.
///
/// **Failures.** None stops a turn. A notice reports each once. If a retry can help (the disk is full or busy), it
/// happens at the end of the turn and at the beginning of the next, and then also stores what is missing of the
/// conversation. A store that does not answer for 15 seconds is abandoned.
///
/// **Secrets.** The store redacts what it receives. What goes to the result store and the labels of checkpoints has
/// passed the session's firewall first.
pub struct PersistenceOptions {
    /// The store, and the session to continue; without an id, a new one begins. `None` if nothing may be saved or
    /// no store could be opened.
    pub store: Option<(Arc<dyn SessionStore>, Option<SessionId>)>,
    /// Told the session's id in the store: at the start of one that is continued, else when the
    /// session has been begun, before anything is stored in it or put into its result store. Must return at
    /// once.
    pub begun: Box<dyn Fn(&SessionId) + Send + Sync>,
    /// The store for large results. Used only for models that are offered the tool
    /// [`ToolKind::ReadsResults`](gnoma_core::tool::ToolKind), which must read from the same result store.
    pub result_store: Option<Arc<dyn ResultStore>>,
    /// Saves files before calls that may change them, and again after a turn that did.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// The treatment of a call when saving the files before it fails.
    pub unkept: CheckpointFailurePolicy,
    /// The person already knows that nothing can be saved here, so no notice repeats it.
    pub is_told: bool,
    /// The time, in milliseconds since 1970, for what is stored.
    pub now_ms: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl Default for PersistenceOptions {
    fn default() -> Self {
        Self {
            store: None,
            begun: Box::new(|_| ()),
            result_store: None,
            checkpoints: None,
            unkept: CheckpointFailurePolicy::default(),
            is_told: false,
            now_ms: Box::new(|| 0),
        }
    }
}

impl fmt::Debug for PersistenceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping")
            .field("store", &self.store.is_some())
            .field("result_store", &self.result_store.is_some())
            .field("checkpoints", &self.checkpoints.is_some())
            .finish_non_exhaustive()
    }
}
