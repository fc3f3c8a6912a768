//! Effects of the view on the world. They are performed by the loop; nothing here acts.

use std::path::PathBuf;

use serde_json::Value;

use crate::{ask::ViewRequest, composer::Draft, run::LoopAction};

/// An action that the view wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the session or its host; the reply comes back with what it was for.
    Ask(ViewRequest),
    /// Put text on the clipboard.
    Copy(String),
    /// Give the terminal back to the shell until somebody continues the program.
    Suspend,
    /// Leave the loop.
    Quit,
    /// Show the demonstration, which needs no provider and has the terminal meanwhile.
    Demo,
    /// Say this when a panic ends the program: where the session is kept.
    CrashNote(String),
    /// Let the text be written on in the editor of choice.
    OpenEditor(String),
    /// Run a line in a shell and report its output.
    RunShell(String),
    /// End the lines that run in a shell.
    StopShell,
    /// Let a program, or with `None` the person's shell, have the terminal until it ends.
    HandOver(Option<String>),
    /// Let this command of the running program itself have the terminal until it ends.
    RunGnoma(&'static str),
    /// Give the image on the clipboard, else its text as if it were pasted.
    PasteClipboard,
    /// Give the image in this file, if there is one; it takes the place of the text that names it.
    ReadImage {
        /// The path; it may begin with `~/`.
        path: PathBuf,
        /// The text that names the image in the editor.
        text: String,
    },
    /// Call for a person's attention.
    Notify(String),
    /// Set the title of the window.
    Title(String),
    /// Keep what is written and not sent, so that not even a crash loses it: first what is in the
    /// editor.
    Save(Vec<Draft>),
    /// Add this line to the file of the history.
    Remember(String),
    /// Paint with another theme.
    Theme(String),
    /// Redraw everything, because something else has written to the terminal.
    Redraw,
    /// Another settings profile applies from now on, including its rules about secrets.
    Profile(Option<String>),
    /// List the files for `@path`.
    List,
    /// Run the person's script for the line at the bottom with these facts.
    StatusLine(Value),
    /// Read what was spent, for the line at the bottom.
    ReadSpending,
    /// Say which of these files, below the session's folder, are not there.
    LookFor(Vec<String>),
    /// Move the transcript by this many lines, upwards when positive. Only where the terminal does
    /// not scroll itself.
    Scroll(isize),
}

impl Effect {
    /// The action, if the loop can perform the effect without files, programs or settings.
    ///
    /// # Errors
    /// The effect, if someone else must perform it.
    pub fn into_action(self) -> Result<LoopAction, Box<Self>> {
        Ok(match self {
            Self::Ask(ask) => LoopAction::Ask(ask),
            Self::CrashNote(text) => LoopAction::CrashNote(text),
            Self::Copy(text) => LoopAction::Copy(text),
            Self::Suspend => LoopAction::Suspend,
            Self::Quit => LoopAction::Quit,
            Self::Notify(text) => LoopAction::Notify(text),
            Self::Title(text) => LoopAction::Title(text),
            Self::Theme(name) => LoopAction::Theme(name),
            Self::Scroll(rows_up) => LoopAction::Scroll(rows_up),
            Self::Redraw => LoopAction::Redraw,
            Self::OpenEditor(_)
            | Self::RunShell(_)
            | Self::StopShell
            | Self::HandOver(_)
            | Self::RunGnoma(_)
            | Self::PasteClipboard
            | Self::ReadImage { .. }
            | Self::Save(_)
            | Self::Remember(_)
            | Self::LookFor(_)
            | Self::Demo
            | Self::Profile(_)
            | Self::StatusLine(_)
            | Self::ReadSpending
            | Self::List => return Err(Box::new(self)),
        })
    }
}
