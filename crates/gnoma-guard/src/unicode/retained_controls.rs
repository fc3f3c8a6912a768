//! Control characters that may stay beside text.

/// The content that may stay beside text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetainedControls {
    /// Text only: for models, logs and stores.
    Text,
    /// Text and its colours (`CSI … m`): for a terminal. Colours that hide text still go.
    Colour,
}
