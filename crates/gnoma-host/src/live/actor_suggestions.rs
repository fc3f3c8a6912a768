//! Offers a task at the end of a turn that did a chore again.

use std::sync::Arc;

use gnoma_core::{Event, session::Outcome, task::box_future};

use super::actor::{Actor, MAX_WORK};

impl Actor {
    /// Looks for a task to offer once a turn of the person has ended well at a terminal or page. Sessions that work for
    /// another one, and steps of tasks, offer nothing.
    pub(super) fn offer_task(&mut self, event: &Event) {
        let Event::TurnEnded { outcome: Outcome::Complete { .. }, .. } = event else { return };
        let is_child = self.log.with_view(|view| view.parent.is_some());
        let is_interactive = self.kept.lock().spec.interactive;
        if is_child || !is_interactive || self.tasks.is_running() || self.work.len() >= MAX_WORK {
            return;
        }
        let (services, notices) = (Arc::clone(&self.services), self.notices.clone());
        let session = self.id.clone();
        self.work.spawn(box_future(async move {
            let Some(files) = services.task_files() else { return };
            // Sessions that cannot be read are reported where the person asks for them.
            if let Ok(Some(line)) = files.offer_task(session).await {
                notices.info(line);
            }
        }));
    }
}
