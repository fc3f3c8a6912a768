//! What came of recovering a damaged database, for people. Recovering is [`crate::rescue`]'s.

use std::path::PathBuf;

/// The result of a rescue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescueReport {
    /// The path at which the damaged database is now.
    pub aside: PathBuf,
    /// Sessions in the new database.
    pub sessions: u64,
    /// Entries in the new database.
    pub entries: u64,
    /// Entries and large results that were there and could not be read, as far as that is known.
    pub lost: u64,
    /// Parts of the file could not be read, and their content is unknown.
    pub unknown: bool,
}

impl std::fmt::Display for RescueReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |count: u64, one: &str, more: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {more}"),
        };
        write!(
            f,
            "the session database was damaged; recovered {} with {}",
            count(self.sessions, "session", "sessions"),
            count(self.entries, "entry", "entries")
        )?;
        if self.lost > 0 {
            let lost = count(self.lost, "entry or large result", "entries or large results");
            write!(f, "; could not read at least {lost}")?;
        }
        if self.unknown {
            f.write_str("; parts of the file are unreadable, and their contents are unknown")?;
        }
        write!(f, "; the damaged file is saved as `{}`", self.aside.display())
    }
}
