//! Notices on their way into a session's log.

use gnoma_core::{Event, info::CommandInfo, session::NoticeLevel};
use gnoma_extend::mcp::PREFIX;

use super::log::EventLog;

/// A notice for a session's log.
pub(super) enum Notice {
    /// A text for people, with its level.
    Said(NoticeLevel, String),
    /// Prompts of servers, which replace the earlier ones.
    Prompts(Vec<CommandInfo>),
}

impl Notice {
    /// The entry in the log.
    pub(super) fn into_event(self, log: &EventLog) -> Event {
        match self {
            Self::Said(level, text) => Event::Notice { level, text },
            Self::Prompts(prompts) => {
                let mut info = log.with_view(|view| view.info.clone());
                info.commands.retain(|known| !known.name.starts_with(PREFIX));
                info.commands.extend(prompts);
                Event::Info(Box::new(info))
            }
        }
    }
}
