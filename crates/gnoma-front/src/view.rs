//! The view of a turn without a screen: text, JSON or stream-json.

use gnoma_core::{Event, store::SessionId};

use super::output::{Output, OutputClosed};

/// Shows the events of a turn on standard output.
pub trait View {
    /// Shows one event of the session.
    ///
    /// # Errors
    /// Standard output takes no more.
    fn on_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed>;

    /// Shows one event of a session that a call of this one has started. By default nothing: what is shown of it
    /// elsewhere is enough.
    ///
    /// # Errors
    /// Standard output takes no more.
    fn child_event(
        &mut self,
        _session: &SessionId,
        _event: &Event,
        _out: &mut Output,
    ) -> Result<(), OutputClosed> {
        Ok(())
    }

    /// Writes what is held back of a turn that does not reach its end.
    ///
    /// # Errors
    /// Standard output takes no more.
    fn break_off(&mut self, _out: &mut Output) -> Result<(), OutputClosed> {
        Ok(())
    }

    /// Says at the end, after the error, what is left and how to go on.
    fn last_words(&mut self) {}

    /// Redraws what changes with time; called a few times a second while nothing else happens.
    fn tick(&mut self) {}
}

/// A view that shows nothing.
pub(super) struct SilentView;

impl View for SilentView {
    fn on_event(&mut self, _: &Event, _: &mut Output) -> Result<(), OutputClosed> {
        Ok(())
    }
}
