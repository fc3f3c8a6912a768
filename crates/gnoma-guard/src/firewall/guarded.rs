//! A provider that can only be reached through the firewall.

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

use super::{Blocked, Checked, Firewall, policy::ProviderFacts};

/// A provider behind the firewall. There is no way to the provider itself: who asks for this type
/// knows that what is sent was looked through.
#[derive(Clone)]
pub struct Guarded {
    inner: Arc<dyn Provider>,
    firewall: Arc<Firewall>,
    facts: ProviderFacts,
}

impl Guarded {
    /// Puts `inner` behind the firewall. `local`: it runs on the user's machine.
    #[must_use]
    pub fn new(inner: Arc<dyn Provider>, firewall: Arc<Firewall>, local: bool) -> Self {
        let facts = ProviderFacts { name: inner.name().to_owned(), local };
        Self { inner, firewall, facts }
    }

    /// Whom the firewall takes it for.
    #[must_use]
    pub fn facts(&self) -> &ProviderFacts {
        &self.facts
    }
}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Guarded").field(&self.facts).finish()
    }
}

impl Provider for Guarded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        match self.firewall.outbound(&self.facts, request) {
            Ok(Checked { request, notices }) => {
                self.firewall.queue(notices);
                let firewall = Arc::clone(&self.firewall);
                Box::pin(Cleaned { inner: self.inner.stream(request), firewall })
            }
            Err(blocked) => {
                let error =
                    ProviderError::new(ErrorKind::BadRequest, self.name(), blocked.sentence);
                Box::pin(Refused(Some(error.with_hint(Blocked::HINT))))
            }
        }
    }

    fn rate_limits(&self) -> Vec<(String, String)> {
        self.inner.rate_limits()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        let models = self.inner.models();
        Box::pin(async move { models.await.map_err(|error| self.firewall.error(error)) })
    }
}

/// A stream whose errors tell nothing that must not be shown.
struct Cleaned {
    inner: EventStream,
    firewall: Arc<Firewall>,
}

impl Stream for Cleaned {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = std::task::ready!(self.inner.as_mut().poll_next(cx));
        Poll::Ready(item.map(|event| event.map_err(|error| self.firewall.error(error))))
    }
}

/// A stream of one error.
struct Refused(Option<ProviderError>);

impl Stream for Refused {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Err))
    }
}
