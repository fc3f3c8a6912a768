//! How room is made in a window. Experimental: what a strategy does may still change.

/// How room is made in a window that is about to be full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The oldest messages are left out. Asks no model.
    Truncate,
    /// A model summarizes the oldest messages; where none can, all stays as it is.
    Summarize,
    /// Large results are set aside so that they can be read, then the oldest messages are summarized; where
    /// no model can, they are left out.
    #[default]
    Full,
}
