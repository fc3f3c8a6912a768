//! Front ends without a screen: they show a session on standard output and standard error, and ask on the terminal.
//!
//! [`Front`] writes a turn or a task as text or as JSON; programs that expect another wire implement [`View`] or
//! follow an [`AttachedSession`] themselves. Nothing here reads the environment or the command line: the binary hands
//! in a [`ProcessEnvironment`].

pub mod answer_schema;
mod ask;
mod attached_session;
mod children;
pub mod code_review;
mod ending;
mod environment;
mod front;
pub mod json;
mod notice_lines;
pub mod output;
mod output_format;
pub mod prompt;
pub mod report;
pub mod screen;
pub mod session_resume;
mod signals;
pub mod stdout;
mod stream_json;
pub mod table;
pub mod terminal;
mod text;
mod view;
mod wording;

pub use self::{
    ask::Asker,
    attached_session::{AttachedMessage, AttachedSession},
    children::Children,
    ending::Ending,
    environment::ProcessEnvironment,
    front::Front,
    output_format::OutputFormat,
    signals::Signals,
    view::View,
    wording::call_headline,
};
