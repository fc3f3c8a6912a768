//! How room is made in a window. Experimental: what a strategy does may still change.

/// The way to make room in a window that is about to be full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The oldest messages are left out. Asks no model.
    Truncate,
    /// A model summarizes the oldest messages; where none can, all stays as it is.
    Summarize,
    /// Large results move to the result store, where they can be read; then the oldest messages are summarized, or
    /// left out if no model can summarize them.
    #[default]
    Full,
}
