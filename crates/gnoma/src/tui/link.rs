//! The face's end of a session that may still be on its way: what is said meanwhile waits for it.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
};

use anyhow::Result;
use gnoma_core::{
    Command, Event, Message,
    session::{NoticeLevel, PermissionMode},
};
use gnoma_engine::Handle;
use gnoma_host::{keeping::Kept, routing::Discovery};
use gnoma_tui::run::Link;

/// Commands that wait for a session on its way; one more is refused.
const MAX_WAITING: usize = 64;

/// A session on its way.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<Opened>>>>;

/// A session, and what looks for models beside it.
pub(super) type Opened = (Handle, Option<Discovery>);

enum End {
    Opening(Opening),
    Open(Opened),
    Closed,
}

/// See the module.
pub(super) struct Line {
    end: End,
    waiting: RefCell<Vec<Command>>,
    /// Why the session could not be opened, a line each.
    complaints: VecDeque<String>,
    is_quiet: bool,
    said: Vec<Arc<Message>>,
    mode: Cell<Option<PermissionMode>>,
    kept: Kept,
}

impl Line {
    /// `said`: the conversation that goes on; `kept`: what the session is kept in.
    pub(super) fn new(opening: Opening, said: Vec<Arc<Message>>, kept: Kept) -> Self {
        let (waiting, mode) = (RefCell::default(), Cell::default());
        let complaints = VecDeque::new();
        Self { end: End::Opening(opening), waiting, complaints, is_quiet: false, said, mode, kept }
    }

    /// Says nothing about a session that cannot be opened.
    pub(super) fn keep_quiet(&mut self) {
        self.is_quiet = true;
    }

    /// The conversation so far.
    pub(super) fn said(&self) -> &[Arc<Message>] {
        &self.said
    }

    /// The mode that the person has chosen last.
    pub(super) fn mode(&self) -> Option<PermissionMode> {
        self.mode.get()
    }

    /// Ends the session, which ends its tools before it says that it is closed.
    pub(super) async fn close(self) {
        if let End::Open((mut handle, _discovery)) = self.end {
            handle.tell(Command::Close);
            while handle.next().await.is_some() {}
        }
        self.kept.tidy().await;
    }

    fn begin(&mut self, opened: Result<Opened>) {
        match opened {
            Ok(opened) => {
                for command in self.waiting.take() {
                    opened.0.tell(command);
                }
                self.end = End::Open(opened);
            }
            Err(error) => {
                self.end = End::Closed;
                if self.is_quiet {
                    return;
                }
                self.complaints.extend(format!("{error:#}").lines().map(str::to_owned));
            }
        }
    }

    fn complaint(&mut self) -> Option<Event> {
        let text = self.complaints.pop_front()?;
        Some(Event::Notice { level: NoticeLevel::Warning, text })
    }

    fn note(&mut self, event: Option<Event>) -> Option<Event> {
        if let Some(Event::Appended(message)) = &event {
            self.said.push(Arc::clone(message));
        }
        event
    }
}

impl Link for Line {
    fn tell(&self, command: Command) -> bool {
        if let Command::SetMode { mode } = &command {
            self.mode.set(Some(*mode));
        }
        match &self.end {
            End::Open((handle, _)) => handle.tell(command),
            End::Closed => false,
            End::Opening(_) => {
                let mut waiting = self.waiting.borrow_mut();
                let has_room = waiting.len() < MAX_WAITING;
                if has_room {
                    waiting.push(command);
                }
                has_room
            }
        }
    }

    async fn next(&mut self) -> Option<Event> {
        if let End::Opening(opening) = &mut self.end {
            let opened = opening.await;
            self.begin(opened);
        }
        let End::Open((handle, _)) = &mut self.end else { return self.complaint() };
        let event = handle.next().await;
        self.note(event)
    }

    fn ready(&mut self) -> Option<Event> {
        let End::Open((handle, _)) = &mut self.end else { return None };
        let event = handle.ready();
        self.note(event)
    }
}
