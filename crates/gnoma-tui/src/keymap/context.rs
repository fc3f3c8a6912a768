//! The parts of the screen that keys go to.

/// A part of the screen that keys go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Context {
    /// The editor, and every other field.
    Composer,
    /// The editor in vim's normal mode.
    Normal,
    /// A list to choose from.
    Picker,
    /// The question whether a call may run.
    Permission,
    /// Everywhere, where the context has no use for the key.
    Global,
}

impl Context {
    /// Every context, in the order in which help shows them.
    pub const ALL: [Self; 5] =
        [Self::Composer, Self::Normal, Self::Picker, Self::Permission, Self::Global];

    /// Describes in words where the keys of this context hold.
    #[must_use]
    pub fn help_title(self) -> &'static str {
        match self {
            Self::Composer => "While you write",
            Self::Normal => "In vim's normal mode",
            Self::Picker => "In lists",
            Self::Permission => "In a question for approval",
            Self::Global => "Everywhere",
        }
    }

    /// The name of its part of the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Composer => "composer",
            Self::Normal => "normal",
            Self::Picker => "picker",
            Self::Permission => "permission",
            Self::Global => "global",
        }
    }
}
