//! The rights of a session: its permission mode and rules, as its gate and its children see them.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gnoma_core::{lifecycle::Lifecycle, session::PermissionMode};
use gnoma_guard::permission::{Limit, Permissions, Rule};

/// A limit on the tools that calls may use.
#[derive(Clone, Debug)]
pub(crate) enum ToolLimit {
    /// To these, by name or rule; the words that refuse the others.
    Only(Arc<[String]>, &'static str),
    /// To all but these, by name or by a glob of names.
    Never(Arc<[String]>),
}

/// The mode, the rules and the tools of a session, as they are at each moment. Clones share one state.
///
/// A session that another one started is also judged by that one's rules and mode, and the stricter verdict
/// applies: a change above takes effect below from the next call on, and no change below allows more than what is
/// allowed above.
#[derive(Clone)]
pub struct Rights(Arc<Mutex<CurrentRights>>);

struct CurrentRights {
    mode: PermissionMode,
    /// The permissions of the session or, if another session started it, the rules that it adds to those of that
    /// session.
    permissions: Arc<Permissions>,
    /// The tools that the calls of the session are limited to, from its beginning to its end.
    given: Option<Arc<[String]>>,
    /// The tools that the calls of the session never use.
    forbidden: Arc<[String]>,
    /// Knows what a command or skill in use holds them to.
    lifecycle: Option<Arc<dyn Lifecycle>>,
    above: Option<Rights>,
}

impl Rights {
    /// The rights of a session; `above`: those of the session that started it. Then of `permissions`
    /// only the rules count, which come on top of the other's.
    #[must_use]
    pub fn new(mode: PermissionMode, permissions: Permissions, above: Option<Self>) -> Self {
        let permissions = Arc::new(permissions);
        let (given, forbidden, lifecycle) = (None, Arc::default(), None);
        let now = CurrentRights { mode, permissions, given, forbidden, lifecycle, above };
        Self(Arc::new(Mutex::new(now)))
    }

    /// Holds the calls of the session, and of those that it starts, to `given`, to what is not `forbidden`,
    /// and to what `lifecycle` says at each moment.
    pub(crate) fn limit_tools(
        &self,
        given: Option<Arc<[String]>>,
        forbidden: Arc<[String]>,
        lifecycle: Option<Arc<dyn Lifecycle>>,
    ) {
        let mut held = self.lock_state();
        (held.given, held.forbidden, held.lifecycle) = (given, forbidden, lifecycle);
    }

    /// All lists that a call must be on now: those of the session and of each session above it.
    pub(crate) fn tool_limits(&self) -> Vec<ToolLimit> {
        let held = self.lock_state();
        let in_use = held.lifecycle.as_ref().and_then(|lifecycle| lifecycle.held_to());
        let own = [
            (in_use, "the command or skill in use allows only these tools"),
            (held.given.clone(), "this session was given only these tools"),
        ];
        let mut all: Vec<_> =
            own.into_iter().filter_map(|(tools, why)| Some(ToolLimit::Only(tools?, why))).collect();
        if !held.forbidden.is_empty() {
            all.push(ToolLimit::Never(Arc::clone(&held.forbidden)));
        }
        all.extend(held.above.iter().flat_map(Self::tool_limits));
        all
    }

    fn lock_state(&self) -> MutexGuard<'_, CurrentRights> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how much the session may do without approval, ignoring the sessions above it.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        self.lock_state().mode
    }

    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        self.lock_state().mode = mode;
    }

    /// Adds a rule, such as an answer of "always".
    pub(crate) fn add_rule(&self, rule: Rule) {
        Arc::make_mut(&mut self.lock_state().permissions).add_rule(rule);
    }

    /// The mode, and all rules that hold now.
    pub(crate) fn effective_permissions(&self) -> (PermissionMode, Arc<Permissions>) {
        let held = self.lock_state();
        let own = Permissions::with_later_rules(&held.permissions);
        let Some(above) = &held.above else { return (held.mode, own) };
        let (mode, permissions) = above.effective_permissions();
        let mut all = permissions.for_child(Limit { mode: Some(mode), tools: None });
        own.rules().iter().for_each(|rule| all.add_rule(rule.clone()));
        (held.mode, Arc::new(all))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rights").field("mode", &self.mode()).finish_non_exhaustive()
    }
}
