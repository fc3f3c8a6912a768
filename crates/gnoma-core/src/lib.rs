//! The vocabulary of all gnoma crates.
//!
//! Messages, the events a model streams, what a request asks for, what a tool is and answers, the
//! commands and events between a session and its front ends, the errors of a provider, which files
//! are sensitive, how names are typed, how two texts
//! differ, what a terminal shows of an output, and how times are written. Plain data and a few ports
//! ([`Provider`], [`Tool`]); no clock, no runtime, and no IO but in [`bounded_file`] and [`private_file`], which
//! read and write one file.

/// Gives errors their sentence as their `Debug` form: `debug_as_display!(ThemeError, KeymapError)`. A derived form would
/// print facts that the sentence leaves out, and cost half a kilobyte of the program for each type.
#[macro_export]
macro_rules! debug_as_display {
    ($($error:ty),+ $(,)?) => {$(
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    )+};
}

pub mod bounded_file;
pub mod branch_name;
pub mod call_arguments;
pub mod diff;
pub mod duration;
pub mod environment;
pub mod error;
pub mod error_policy;
pub mod glob;
pub mod home;
pub mod hunk_reader;
pub mod info;
pub mod json;
pub mod json_value;
pub mod ledger;
pub mod lifecycle;
pub mod lines;
pub mod merge;
pub mod message;
pub mod names;
pub mod picture;
pub mod places;
pub mod plan;
pub mod price;
pub mod private_file;
pub mod protocol;
pub mod provider;
pub mod quantity;
pub mod random;
pub mod secret;
pub mod session;
pub mod shell_line;
pub mod sort;
mod stop;
pub mod store;
pub mod stream;
pub mod suggest;
pub mod sync;
pub mod system_error;
pub mod task;
pub mod terminal_text;
pub mod text_truncation;
mod thinking;
pub mod tool;
pub mod usage;
pub mod written_text;

pub use self::thinking::ThinkingMode;
pub use error::{ErrorKind, ProviderError};
pub use json::RawJson;
pub use message::{
    CallId, Content, Image, Message, ModelRef, Redacted, ResultPart, Role, SYSTEM_NOTE, Text,
    Thinking, ToolCall, ToolResult,
};
pub use price::Price;
pub use provider::{
    AnswerFormat, Effort, EventStream, FormatStage, ModelInfo, ModelRequest, Provider, ToolChoice,
};
pub use secret::Secret;
pub use session::{Command, Event};
pub use stream::{Accumulator, Response, StopReason, StreamEvent};
pub use tool::{Tool, ToolCx, ToolOutcome, ToolSpec};
pub use usage::Usage;
