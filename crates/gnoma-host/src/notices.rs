//! Notices of the host beside its answers. Sending one never blocks and never fails.

use std::{fmt, sync::Arc};

use gnoma_core::{info::CommandInfo, session::NoticeLevel, system_error::without_numbers};

type Sink = dyn Fn(NoticeLevel, &str) + Send + Sync;
type CommandSink = dyn Fn(Vec<CommandInfo>) + Send + Sync;

/// A destination of notices. Cheap to clone; the opener of a session decides where they go.
#[derive(Clone)]
pub struct Notices {
    sink: Arc<Sink>,
    commands: Option<Arc<CommandSink>>,
}

impl Notices {
    /// Sends notices to `sink`, which must not wait: it is called from anywhere.
    #[must_use]
    pub fn with_sink(sink: impl Fn(NoticeLevel, &str) + Send + Sync + 'static) -> Self {
        Self { sink: Arc::new(sink), commands: None }
    }

    /// The same, with prompts of servers as they become known, which must not wait either.
    #[must_use]
    pub(crate) fn and_prompts(
        self,
        sink: impl Fn(Vec<CommandInfo>) + Send + Sync + 'static,
    ) -> Self {
        Self { commands: Some(Arc::new(sink)), ..self }
    }

    /// These prompts of servers can be used as commands.
    pub(crate) fn publish_prompts(&self, prompts: Vec<CommandInfo>) {
        if let Some(sink) = &self.commands {
            sink(prompts);
        }
    }

    /// Notices that nobody hears.
    #[must_use]
    pub fn without_sink() -> Self {
        Self::with_sink(|_, _| ())
    }

    /// Sends a notice that is good to know.
    pub fn info(&self, text: impl fmt::Display) {
        self.send(NoticeLevel::Info, &text.to_string());
    }

    /// Sends a warning about something that is not as it should be.
    pub fn warning(&self, text: impl fmt::Display) {
        self.send(NoticeLevel::Warning, &text.to_string());
    }

    fn send(&self, level: NoticeLevel, text: &str) {
        (self.sink)(level, &without_numbers(text));
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
