//! What shows a turn without a screen.

use gnoma_core::{Event, store::SessionId};

use super::output::{Output, OutputClosed};

/// Takes the events of a turn.
pub(super) trait View {
    /// Shows one event of the session.
    fn on_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed>;

    /// One event of a session that a call of this one has started. What is shown of it elsewhere is enough,
    /// unless a view says otherwise.
    fn child_event(
        &mut self,
        _session: &SessionId,
        _event: &Event,
        _out: &mut Output,
    ) -> Result<(), OutputClosed> {
        Ok(())
    }

    /// The turn does not reach its end: what is held back of it is written now.
    fn break_off(&mut self, _out: &mut Output) -> Result<(), OutputClosed> {
        Ok(())
    }

    /// The end, once the error has been said: what is left, and how to go on.
    fn last_words(&mut self) {}

    /// Some time has passed; called a few times a second while nothing else happens.
    fn tick(&mut self) {}
}

/// A view that shows nothing.
pub(super) struct SilentView;

impl View for SilentView {
    fn on_event(&mut self, _: &Event, _: &mut Output) -> Result<(), OutputClosed> {
        Ok(())
    }
}
