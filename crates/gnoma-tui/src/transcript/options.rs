//! How the conversation is shown.

/// The options that decide how much of the conversation is shown, and for whom.
#[derive(Clone, Copy, Debug, Default)]
pub struct TranscriptOptions {
    /// For screen readers and terminals that cannot redraw: words instead of marks, nothing is shown
    /// before it is final, nothing twice.
    pub accessible: bool,
    /// Output of tools and thinking are shown whole from the start.
    pub unfolded: bool,
}
