//! Everything that can happen to the view, as values: what the loop hands to it and nothing else.

use std::{sync::Arc, time::Instant};

use gnoma_core::{
    Image,
    protocol::{Envelope, Reply, RequestError, SessionView},
};

use crate::{ask::Purpose, frame::Size, keymap::Key, status::SpendingParts, theme::Shade};

/// An event that the view takes in.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The time. It precedes everything that arrived together with it, and comes alone when a requested time has
    /// come.
    Tick(Instant),
    /// An event of the session.
    Session(Arc<Envelope>),
    /// The state of the session, in place of all events up to it.
    Snapshot(Box<SessionView>),
    /// The result of a request.
    Reply {
        /// The purpose of the request.
        purpose: Purpose,
        /// The reply, or why there is none.
        result: Result<Reply, RequestError>,
    },
    /// No session could be opened, or the window could not be attached to it.
    NoSession(RequestError),
    /// The connection to the host has ended.
    Disconnected {
        /// `true` if the connection is being made again.
        returns: bool,
    },
    /// The connection is back.
    Connected,
    /// A key that was pressed.
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
    /// The terminal's window lost the focus.
    FocusLost,
    /// The terminal reported its background.
    Background(Shade),
    /// The program was stopped and is back.
    Resumed,
    /// The program ends in a moment, because of a signal or because the terminal is gone: what must not be lost is
    /// saved now.
    Ending,
    /// Files for `@path`, in the order they were found.
    Listing(Vec<String>),
    /// Of the files that a message names, those that are not there.
    Missing(Vec<String>),
    /// A shell line has ended.
    Shell {
        /// The shell line that ran.
        line: String,
        /// The output of the shell line.
        output: String,
        /// The failure of the line, in a few words; `None` where it ended well.
        failure: Option<String>,
    },
    /// A requested image: from the clipboard, or from a pasted path.
    Image {
        /// The text that the image replaces in what is written, if that text still stands before the cursor.
        instead: String,
        /// The image that was requested.
        image: Image,
        /// The name of the image; may be empty.
        name: String,
    },
    /// The external editor is closed; `None` when it could not be used.
    Edited(Option<String>),
    /// The person's script for the line at the bottom has printed this.
    StatusLine(String),
    /// The person's script for the line at the bottom has failed; the reason in a few words.
    StatusScriptFailed(String),
    /// What the line at the bottom shows has changed with the settings.
    StatusSources {
        /// A script of the person's writes it.
        has_script: bool,
        /// It shows what was spent.
        has_spending: bool,
    },
    /// What was spent; `None` if the ledger could not be read.
    Spending(Option<SpendingParts>),
    /// A request failed; a sentence for people.
    Failed(String),
}
