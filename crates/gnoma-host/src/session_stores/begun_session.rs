//! The id of a session that is yet to be stored.

use std::sync::{Arc, OnceLock};

use gnoma_core::store::SessionId;

/// The id that a session has in its store, once it has been begun.
pub type BegunSessionId = Arc<OnceLock<SessionId>>;
