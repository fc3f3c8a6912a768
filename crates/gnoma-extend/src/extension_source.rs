//! Who brings extensions along.

use std::fmt;

/// The party that provides an extension. Later ones take the place of earlier ones of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExtensionSource {
    /// The extension comes with gnoma itself.
    Bundled,
    /// The extension is the user's own.
    User,
    /// The extension belongs to the project.
    Project,
}

impl fmt::Display for ExtensionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bundled => "bundled",
            Self::User => "user",
            Self::Project => "project",
        })
    }
}
