//! The event loop of the terminal: waits for whatever comes first, passes everything that has arrived to the view,
//! performs the view's effects and draws once. While nothing happens it sleeps; it decides nothing itself.

mod link;
mod pace;
mod size_check;
mod stage;

use std::{io, sync::Arc, time::Instant};

pub use link::{Connector, Link};
pub use stage::Stage;

use crate::{
    ask::ViewRequest,
    charset::Charset,
    frame::{Frame, Size},
    input::Input,
    own_themes::ThemeSet,
    screen::Layout,
    terminal::tell::Notifier,
    theme::{Depth, Shade, ThemeError},
};

/// More frames than this in a second only cost.
pub const MAX_FRAMES_PER_SECOND: u32 = 30;

/// The state of the screen, which decides what is shown and what each input leads to. It never waits and never
/// performs anything.
pub trait View {
    /// An action that the view wants done.
    type Effect;

    /// Takes in an input and returns the effects that it has.
    fn on_input(&mut self, input: Input) -> Vec<Self::Effect>;

    /// Returns the frame to show now. Finished lines are handed over once.
    fn render_frame(&mut self, size: Size) -> Frame;

    /// Returns the time at which a tick is wanted although nothing happens: for what moves, and for deadlines.
    fn next_tick(&self) -> Option<Instant>;
}

/// Turns effects into actions of the loop; whatever needs files, programs or settings is done here or put into a job.
pub trait EffectHandler {
    /// An action that a view wants done.
    type Effect;

    /// Does it, or says what shall be done. Must not wait: see [`LoopAction::Work`].
    fn perform(&mut self, effect: Self::Effect) -> LoopAction;
}

/// Slow work for a thread of its own; its result goes to the view.
pub type Job = Box<dyn FnOnce() -> Input + Send>;

/// An action that the loop can perform.
pub enum LoopAction {
    /// The effect is done, and no action is left.
    Done,
    /// Ask the session or its host.
    Ask(ViewRequest),
    /// Say this when a panic ends the program.
    CrashNote(String),
    /// Tell the view something.
    Hear(Input),
    /// Run a job on its own thread.
    Work(Job),
    /// Run a job that has the terminal for itself: an editor, a shell.
    Lend(Job),
    /// Put a text into the clipboard of the terminal.
    Copy(String),
    /// Call the person's attention.
    Notify(String),
    /// Give the window a title.
    Title(String),
    /// Paint with another theme.
    Theme(String),
    /// Show an earlier part of the conversation, where the screen does its own scrolling; rows up.
    Scroll(isize),
    /// Redraw everything, whatever is on the terminal.
    Redraw,
    /// Suspend the program until it is continued.
    Suspend,
    /// End the running loop.
    Quit,
}

/// The options of the loop.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The layout of the conversation.
    pub layout: Layout,
    /// The name of a theme; empty for the usual one.
    pub theme: String,
    /// The themes that there are.
    pub themes: Arc<ThemeSet>,
    /// The background's shade; `None` follows the terminal.
    pub shade: Option<Shade>,
    /// The number of colours.
    pub depth: Depth,
    /// The characters that the terminal can show.
    pub charset: Charset,
    /// The terminal folds its rows when it is made narrower.
    pub reflows: bool,
    /// The means to call for attention.
    pub notifier: Notifier,
    /// The terminal reports a new size some time after it has it, as multiplexers do.
    pub tells_size_late: bool,
    /// Written after the message when a panic ends the program: where the session is kept.
    pub crash_note: String,
}

/// The way in which the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The view ended it.
    Quit,
    /// The system did; the signal's number.
    Signal(i32),
    /// The terminal gives nothing more.
    InputEnded,
}

/// The reason why the loop could not continue.
#[derive(thiserror::Error)]
pub enum RunError {
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    /// There is no such theme.
    #[error(transparent)]
    Theme(#[from] ThemeError),
}

gnoma_core::debug_as_display!(RunError);

impl RunOptions {
    fn theme_name(&self) -> &str {
        if self.theme.is_empty() { "gnoma" } else { &self.theme }
    }
}
