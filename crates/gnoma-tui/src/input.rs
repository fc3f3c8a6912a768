//! Everything that can happen to the view, as values: what the loop hands to it and nothing else.

use std::{sync::Arc, time::Instant};

use gnoma_core::{
    Image,
    protocol::{Envelope, Reply, RequestError, SessionView},
};

use crate::{ask::Purpose, frame::Size, keymap::Key, theme::Shade};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The time. It precedes everything that arrived together with it, and comes alone when a requested time has
    /// come.
    Tick(Instant),
    /// Something happened in the session.
    Session(Arc<Envelope>),
    /// The state of the session, in place of all events up to it.
    Snapshot(Box<SessionView>),
    /// What came of a request.
    Reply {
        /// What it was for.
        purpose: Purpose,
        /// The reply, or why there is none.
        result: Result<Reply, RequestError>,
    },
    /// No session could be opened, or the window could not be attached to it.
    NoSession(RequestError),
    /// The connection to the host has ended.
    Disconnected {
        /// It is being made again.
        returns: bool,
    },
    /// The connection is back.
    Connected,
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
    /// The terminal's window gained the focus.
    FocusGained,
    /// It is not any more.
    FocusLost,
    /// The terminal reported its background.
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
    /// A shell line has ended.
    Shell {
        /// The line.
        line: String,
        /// What it printed.
        output: String,
        /// How it failed, in a few words; `None` where it ended well.
        failure: Option<String>,
    },
    /// A requested image: from the clipboard, or from a pasted path.
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
    /// The person's script for the line at the bottom has ended: what it printed, or how it failed.
    StatusLine(Result<String, String>),
    /// A request failed; a sentence for people.
    Failed(String),
}
