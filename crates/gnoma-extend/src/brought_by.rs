//! Who brings extensions along.

use std::fmt;

/// Who brought an extension along. Later ones take the place of earlier ones of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BroughtBy {
    /// gnoma itself.
    Bundled,
    /// The person.
    User,
    /// The project.
    Project,
}

impl fmt::Display for BroughtBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bundled => "bundled",
            Self::User => "user",
            Self::Project => "project",
        })
    }
}
