//! Everything that can happen to the face, as values: what the loop hands to it and nothing else.

use std::time::Instant;

use gnoma_core::{
    Image,
    session::{Command, Event},
};

use crate::{desk::Offer, frame::Size, keymap::Key, theme::Shade};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The time. It comes before everything else that arrived together, and alone when a time that
    /// was asked for has come.
    Tick(Instant),
    /// The session says something.
    Session(Event),
    /// The session is closed; nothing more comes from it.
    SessionClosed,
    /// A command did not reach the session, which is closed or does not keep up.
    Undelivered(Command),
    /// A key.
    Key(Key),
    /// Text that was pasted, with line breaks as `\n`.
    Paste(String),
    /// A paste of so many bytes was too large and is not taken.
    PasteRefused(u64),
    /// The wheel was turned by so many rows, up by positive numbers.
    Wheel(isize),
    /// The terminal has another size.
    Resize(Size),
    /// The terminal's window is being looked at.
    FocusGained,
    /// It is not any more.
    FocusLost,
    /// The terminal has told what its background is like.
    Background(Shade),
    /// The program was stopped and is back.
    Resumed,
    /// It ends in a moment, because of a signal or because the terminal is gone: what must not be lost
    /// is saved now.
    Ending,
    /// Files for `@path`, in the order they were found.
    Listing(Vec<String>),
    /// Of the files that a message names, those that are not there.
    Missing(Vec<String>),
    /// All models that there are to choose from.
    Models(Vec<Offer>),
    /// A shell line has ended.
    Shell {
        /// The line.
        line: String,
        /// What it printed.
        output: String,
        /// How it failed, in a few words; `None` where it ended well.
        failure: Option<String>,
    },
    /// An image that was asked for: from the clipboard, or from a path that was pasted.
    Image {
        /// What it takes the place of in what is written, if that stands before the cursor still.
        instead: String,
        /// The image.
        image: Image,
        /// What it is called; may be empty.
        name: String,
    },
    /// The external editor is closed; `None` when it could not be used.
    Edited(Option<String>),
    /// Something that was asked for could not be done; a sentence for people.
    Failed(String),
}
