//! The connections through which arms are called. Nothing gives the provider itself: each call goes through the firewall
//! of the session that makes it.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{ErrorKind, ModelRef, ProviderError, sync::Mutex};
use gnoma_guard::firewall::{Connection, Firewall, GuardedProvider};
use gnoma_router::Arm;

/// Returns the model of a connection's provider as an arm of which nothing else is known, with its connection.
#[must_use]
pub fn connect_arm(connection: Connection, model: impl Into<String>) -> (Arm, Connection) {
    let facts = connection.provider_facts();
    let id = ModelRef { provider: facts.name.clone(), model: model.into() };
    let arm = Arm { local: facts.local, stays_here: facts.local, ..Arm::new(id) };
    (arm, connection)
}

/// The connections of arms, by name. A connection stays when its arm goes, because a turn under way still works with
/// it.
#[derive(Default)]
pub(crate) struct Connections(Mutex<HashMap<ModelRef, Connection>>);

impl Connections {
    /// Adds the connection of an arm; it replaces the one before.
    pub(crate) fn insert(&self, arm: ModelRef, connection: Connection) {
        self.0.lock().insert(arm, connection);
    }

    /// Returns the provider of an arm behind the firewall of the session that calls.
    ///
    /// # Errors
    /// The arm was never one of these.
    pub(crate) fn with_firewall(
        &self,
        arm: &ModelRef,
        firewall: &Arc<Firewall>,
    ) -> Result<GuardedProvider, ProviderError> {
        let connections = self.0.lock();
        let connection = connections.get(arm).map(|connection| connection.with_firewall(firewall));
        connection.ok_or_else(|| {
            let text = format!("{arm} is not one of this session's models");
            ProviderError::new(ErrorKind::NotFound, &arm.provider, text)
        })
    }
}
