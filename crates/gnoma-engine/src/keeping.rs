//! What of a session outlives it: ports that the binary hands over, or does not.
//!
//! Only the shape of it. Who writes when is decided in [`crate::session`]; where it goes, the ports
//! know. The default keeps nothing and touches nothing: that is what incognito means.

use std::{fmt, sync::Arc};

use gnoma_core::store::{Checkpoints, ResultStore, SessionId, SessionStore};

/// What is done with a call that changes files when their state could not be kept before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unkept {
    /// It runs; the person is told once that it cannot be taken back.
    #[default]
    Run,
    /// It does not run, and the model is told why.
    Refuse,
}

/// Where a session keeps what it does.
///
/// **Conversation.** With a store, every message is stored before anything it causes starts, so a
/// session that ends in the middle of anything can be continued. A new session is begun when the
/// first message is said, never earlier, and whatever history it was given is stored with it. To
/// continue a session the caller takes it in hand ([`SessionStore::hold`]), loads it, makes the
/// history with [`crate::resume::history`] and gives both that history and the session's id; its
/// tip must be the last entry of that history. The session lets go of it when it ends.
///
/// **Failures.** None stops a turn. The person is told once, in a notice. Where trying again can
/// help (a full or busy disk) it is tried at the end of the turn and at the beginning of the next,
/// and what is missing of the conversation is stored then. A store that does not answer for 15
/// seconds is given up.
///
/// **Secrets.** The store redacts what it is given. What goes to the result store and the labels of
/// checkpoints have passed the session's firewall before.
pub struct Keeping {
    /// The store, and which of its sessions is continued; without an id a new one is begun. `None`
    /// where nothing may be kept or no store could be opened.
    pub store: Option<(Arc<dyn SessionStore>, Option<SessionId>)>,
    /// Told the session's id in the store: at the start of one that is continued, else when the
    /// session has been begun, before anything is stored in it or put into its result store. Must return at
    /// once.
    pub begun: Box<dyn Fn(&SessionId) + Send + Sync>,
    /// Where large results go. Used only for models that are offered the tool
    /// [`ToolKind::ReadsResults`](gnoma_core::tool::ToolKind), which must read from the same result store.
    pub result_store: Option<Arc<dyn ResultStore>>,
    /// Keeps files before calls that may change them, and once more after a turn that did.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// What happens to a call when that fails.
    pub unkept: Unkept,
    /// The person knows already that nothing can be saved here: that is not said again.
    pub is_told: bool,
    /// The time, in milliseconds since 1970, for what is stored.
    pub now_ms: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl Default for Keeping {
    fn default() -> Self {
        Self {
            store: None,
            begun: Box::new(|_| ()),
            result_store: None,
            checkpoints: None,
            unkept: Unkept::default(),
            is_told: false,
            now_ms: Box::new(|| 0),
        }
    }
}

impl fmt::Debug for Keeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping")
            .field("store", &self.store.is_some())
            .field("result_store", &self.result_store.is_some())
            .field("checkpoints", &self.checkpoints.is_some())
            .finish_non_exhaustive()
    }
}
