//! Groups of places, and what the walls around commands do about each.

/// Places of one kind that the walls around commands treat alike.
#[derive(Clone, Copy, Debug)]
pub struct Group<W> {
    /// The description of the places, as the end of a sentence.
    pub kind: &'static str,
    /// The treatment of the places by the sandbox.
    pub walls: W,
    pub(super) names: &'static str,
}

/// The visibility, for sandboxed commands, of a secret that their verdict does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretVisibility {
    /// Not at home; elsewhere as [`Self::NotForReading`].
    Hidden,
    /// Commands that were taken to change nothing do not see it in the workspace. Others may need it.
    NotForReading,
    /// As far as the system lets the user see it.
    Seen,
}

/// The condition under which sandboxed commands find a guarded place read-only, unless their verdict names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteProtection {
    /// In the workspace and at home; what is absent cannot be made.
    Always,
    /// At home as [`Self::Always`], in the workspace where it is present.
    AtHome,
    /// Read-only if the place is present when a command starts.
    Present,
    /// Only a judgement by its name keeps it.
    Never,
}

impl<W> Group<W> {
    /// Returns the places of the group, as they are written.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<W> {
        self.names.split_whitespace()
    }
}
