//! Providers that can only be reached through a session's firewall.
//!
//! Many sessions share one [`Connection`]; each call of it names the firewall of the session that
//! calls, so that no session's placeholders are known to another.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use gnoma_core::{
    ErrorKind, EventStream, ModelInfo, ModelRequest, Provider, ProviderError, StreamEvent,
    tool::BoxFuture,
};

use super::{BlockedRequest, CheckedRequest, Firewall, policy::ProviderFacts};

/// A connection to a provider that gives nobody the provider itself: whatever is sent goes through
/// the firewall named at the call. Cheap to clone.
#[derive(Clone)]
pub struct Connection {
    provider: Arc<dyn Provider>,
    facts: Arc<ProviderFacts>,
}

impl Connection {
    /// Closes `provider` in. `local`: it runs on the user's machine.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>, local: bool) -> Self {
        let facts = ProviderFacts { name: provider.name().to_owned(), local };
        Self { provider, facts: Arc::new(facts) }
    }

    /// Whom firewalls take it for.
    #[must_use]
    pub fn provider_facts(&self) -> &ProviderFacts {
        &self.facts
    }

    /// Reports whether both connections lead to the same provider, by the same way and with the same credentials.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.provider, &other.provider)
    }

    /// The provider behind the firewall of the session that calls.
    #[must_use]
    pub fn with_firewall(&self, firewall: &Arc<Firewall>) -> GuardedProvider {
        GuardedProvider { connection: self.clone(), firewall: Arc::clone(firewall) }
    }

    /// The models that the provider offers. Sends nothing of any session.
    ///
    /// # Errors
    /// Why the provider does not list them, possibly in the server's own words: they pass a firewall before anyone
    /// reads them.
    pub fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        self.provider.list_models()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.facts).finish()
    }
}

/// A provider behind one session's firewall. There is no way to the provider itself: who asks for
/// this type knows that what is sent was looked through.
#[derive(Clone)]
pub struct GuardedProvider {
    connection: Connection,
    firewall: Arc<Firewall>,
}

impl std::fmt::Debug for GuardedProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Guarded").field(&self.connection.facts).finish()
    }
}

impl Provider for GuardedProvider {
    fn name(&self) -> &str {
        &self.connection.facts.name
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        match self.firewall.redact_request(&self.connection.facts, request) {
            Ok(CheckedRequest { request, notices }) => {
                self.firewall.queue_notices(notices);
                let firewall = Arc::clone(&self.firewall);
                Box::pin(CleanedStream {
                    inner: self.connection.provider.stream(request),
                    firewall,
                })
            }
            Err(blocked) => {
                let error =
                    ProviderError::new(ErrorKind::BadRequest, self.name(), blocked.sentence);
                Box::pin(RefusedStream(Some(error.with_hint(BlockedRequest::HINT))))
            }
        }
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        let models = self.connection.list_models();
        Box::pin(async move { models.await.map_err(|error| self.firewall.redact_error(error)) })
    }
}

/// A stream whose errors tell nothing that must not be shown.
struct CleanedStream {
    inner: EventStream,
    firewall: Arc<Firewall>,
}

impl Stream for CleanedStream {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = std::task::ready!(self.inner.as_mut().poll_next(cx));
        Poll::Ready(item.map(|event| event.map_err(|error| self.firewall.redact_error(error))))
    }
}

/// A stream of one error.
struct RefusedStream(Option<ProviderError>);

impl Stream for RefusedStream {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Err))
    }
}
