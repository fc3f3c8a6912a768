//! A line for each thing that happens, in the session and in the elfs below it.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{Event, store::SessionId};
use gnoma_guard::firewall::Firewall;

use super::{
    json::{ElfLines, Json},
    output::{Output, OutputClosed},
    view::View,
};

/// Most elfs that are told of at once.
const MAX_ELFS: usize = 512;

/// The lines of a session and of the elfs below it.
pub(super) struct StreamJson {
    main: Json,
    elfs: HashMap<SessionId, Json>,
    firewall: Arc<Firewall>,
}

impl StreamJson {
    pub(super) fn new(firewall: Arc<Firewall>) -> Self {
        let main = Json::new(Arc::clone(&firewall), true);
        Self { main, elfs: HashMap::new(), firewall }
    }
}

impl View for StreamJson {
    fn on_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        self.main.on_event(event, out)
    }

    fn child_event(
        &mut self,
        session: &SessionId,
        event: &Event,
        out: &mut Output,
    ) -> Result<(), OutputClosed> {
        if let Event::Info(info) = event
            && let Some(child) = info.child.clone()
            && self.elfs.len() < MAX_ELFS
        {
            let (main, id) = (self.main.session().to_owned(), session.to_string());
            let lines = ElfLines { main, session: id, child };
            self.elfs.insert(session.clone(), Json::of_elf(Arc::clone(&self.firewall), lines));
        }
        let Some(elf) = self.elfs.get_mut(session) else { return Ok(()) };
        elf.on_event(event, out)?;
        if let Event::TurnEnded { .. } = event {
            self.elfs.remove(session);
        }
        Ok(())
    }
}
