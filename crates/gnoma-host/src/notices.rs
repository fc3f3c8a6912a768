//! What the host says by the way: nobody waits for it, and nothing fails without it.

use std::{fmt, sync::Arc};

use gnoma_core::session::NoticeLevel;

type Sink = dyn Fn(NoticeLevel, &str) + Send + Sync;

/// Takes what is said by the way. Cheap to clone; whoever opens a session decides where it goes.
#[derive(Clone)]
pub struct Notices(Arc<Sink>);

impl Notices {
    /// Notices that go to `sink`, which must not wait: it is called wherever something is said.
    #[must_use]
    pub fn to(sink: impl Fn(NoticeLevel, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Notices that nobody hears.
    #[must_use]
    pub fn unheard() -> Self {
        Self::to(|_, _| ())
    }

    /// Something good to know.
    pub fn info(&self, text: impl fmt::Display) {
        (self.0)(NoticeLevel::Info, &text.to_string());
    }

    /// Something is not as it should be.
    pub fn warning(&self, text: impl fmt::Display) {
        (self.0)(NoticeLevel::Warning, &text.to_string());
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
