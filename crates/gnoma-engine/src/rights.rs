//! What a session may do, as its own gate and the sessions that it starts see it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gnoma_core::session::PermissionMode;
use gnoma_guard::permission::{Limit, Permissions, Rule};

/// The mode and the rules of a session, as they are at each moment. Clones are the same.
///
/// A session that another one started is judged by the rules of that one and by its mode as well, and
/// the stricter verdict holds: whatever changes above holds below from the next call on, and nothing
/// that changes below gives it more than what stands above it may.
#[derive(Clone)]
pub struct Rights(Arc<Mutex<RightsNow>>);

struct RightsNow {
    mode: PermissionMode,
    /// Those that hold, or, where another session stands above, what is added to that one's.
    permissions: Arc<Permissions>,
    above: Option<Rights>,
}

impl Rights {
    /// The rights of a session; `above`: those of the session that started it. Then of `permissions`
    /// only the rules count, which come on top of the other's.
    #[must_use]
    pub fn new(mode: PermissionMode, permissions: Permissions, above: Option<Self>) -> Self {
        Self(Arc::new(Mutex::new(RightsNow { mode, permissions: Arc::new(permissions), above })))
    }

    fn held(&self) -> MutexGuard<'_, RightsNow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much the session may do without asking, but for what stands above it.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        self.held().mode
    }

    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        self.held().mode = mode;
    }

    /// Adds a rule, such as an answer of "always".
    pub(crate) fn remember(&self, rule: Rule) {
        Arc::make_mut(&mut self.held().permissions).remember(rule);
    }

    /// The mode, and all rules that hold now.
    pub(crate) fn now(&self) -> (PermissionMode, Arc<Permissions>) {
        let held = self.held();
        let Some(above) = &held.above else { return (held.mode, Arc::clone(&held.permissions)) };
        let (mode, permissions) = above.now();
        let mut all = permissions.child(Limit { mode: Some(mode), tools: None });
        held.permissions.rules().iter().for_each(|rule| all.remember(rule.clone()));
        (held.mode, Arc::new(all))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rights").field("mode", &self.mode()).finish_non_exhaustive()
    }
}
