//! What keys do in the editor, and how far a command of vim has been typed.

/// The effect of keys in the editor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The keys write text.
    #[default]
    Insert,
    /// They move and change.
    Normal,
}

/// The operation that a motion is to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Copy,
}

/// The state of vim's keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Vim {
    pub(super) mode: Mode,
    pub(super) pending: Option<Operator>,
    pub(super) count: usize,
}
