//! Whose money a call spends: its session's, and that of every session above it.

use std::{fmt, sync::Arc};

/// Most sessions that stand above one another, the first included.
pub const MAX_DEPTH: usize = 8;

/// The session and the turn that a call belongs to and, for a session that another one started, those
/// of that one. What is spent counts in all of them, so that no child spends what its parent may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    session: Arc<str>,
    turn: Arc<str>,
    agent: Arc<str>,
    /// The most that the session may spend in its life, in micro-dollars.
    limit: Option<u64>,
    parent: Option<Arc<Self>>,
    depth: usize,
}

/// A session would stand below [`MAX_DEPTH`] others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sessions can start sessions at most {MAX_DEPTH} levels deep")
    }
}

impl std::error::Error for TooDeep {}

impl Scope {
    /// A session that nobody but a person started. Until its first turn the turn is empty.
    pub fn new(session: impl Into<Arc<str>>) -> Self {
        let (session, turn, agent) = (session.into(), Arc::default(), Arc::default());
        Self { session, turn, agent, limit: None, parent: None, depth: 1 }
    }

    /// The session, which works as a definition of this name; empty if it works as none.
    #[must_use]
    pub fn with_agent(self, agent: impl Into<Arc<str>>) -> Self {
        Self { agent: agent.into(), ..self }
    }

    /// Returns the name of the definition that the session works as; empty if it works as none.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// A session that this one starts in its turn as it is now. `limit`: what the child may spend in
    /// its life, in micro-dollars, beside all that its parents may.
    ///
    /// # Errors
    /// It would stand too deep.
    pub fn for_child(
        self: &Arc<Self>,
        session: impl Into<Arc<str>>,
        limit: Option<u64>,
    ) -> Result<Self, TooDeep> {
        if self.depth >= MAX_DEPTH {
            return Err(TooDeep);
        }
        let parent = Some(Arc::clone(self));
        Ok(Self { limit, parent, depth: self.depth + 1, ..Self::new(session) })
    }

    /// The session in another turn.
    #[must_use]
    pub fn in_turn(&self, turn: impl Into<Arc<str>>) -> Self {
        Self { turn: turn.into(), ..self.clone() }
    }

    /// The session's id, as its spending is counted.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The turn's id, as its spending is counted.
    #[must_use]
    pub fn turn(&self) -> &str {
        &self.turn
    }

    /// Returns the most that the session itself may spend in its life, in micro-dollars.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// The session that started this one, in the turn in which it did.
    #[must_use]
    pub fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    /// The session that a person started: this one, or the outermost above it.
    #[must_use]
    pub fn root(&self) -> &Self {
        self.self_and_ancestors().last().unwrap_or(self)
    }

    /// This session and those above it, the innermost first; at most [`MAX_DEPTH`].
    pub fn self_and_ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |scope| scope.parent.as_deref())
    }
}
