//! What shows a turn without a screen.

use gnoma_core::Event;

use super::output::{Gone, Output};

/// Takes the events of a turn.
pub(super) trait View {
    /// One event.
    fn event(&mut self, event: &Event, out: &mut Output) -> Result<(), Gone>;

    /// Some time has passed; called a few times a second while nothing else happens.
    fn tick(&mut self) {}
}

/// Shows nothing.
pub(super) struct Silent;

impl View for Silent {
    fn event(&mut self, _: &Event, _: &mut Output) -> Result<(), Gone> {
        Ok(())
    }
}
