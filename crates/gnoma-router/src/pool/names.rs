//! Names of pools, as the ledger counts them.

use std::fmt;

use gnoma_core::ModelRef;

/// A pool that amounts are counted on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// One turn; forgotten some days later.
    Turn(String),
    /// One session.
    Session(String),
    /// All that is spent.
    All,
    /// One project, by its key.
    Project(String),
    /// A set of rate limits by its name, most often a provider's.
    Rates(String),
    /// A part of such a set that a plan counts apart, by the set's name and a word of its models'.
    Part(String, String),
    /// One arm.
    Arm(ModelRef),
}

impl Pool {
    /// Reads a name back.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == "all" {
            return Some(Self::All);
        }
        let (kind, rest) = name.split_once(':')?;
        match kind {
            "turn" => Some(Self::Turn(rest.to_owned())),
            "session" => Some(Self::Session(rest.to_owned())),
            "project" => Some(Self::Project(rest.to_owned())),
            "rates" => Some(Self::Rates(rest.to_owned())),
            "part" => {
                let (set, word) = rest.rsplit_once('/')?;
                Some(Self::Part(set.to_owned(), word.to_owned()))
            }
            "arm" => {
                let (provider, model) = rest.split_once('/')?;
                Some(Self::Arm(ModelRef { provider: provider.to_owned(), model: model.to_owned() }))
            }
            _ => None,
        }
    }

    /// Describes the pool for people.
    #[must_use]
    pub fn display_name(&self) -> String {
        match self {
            Self::Turn(_) => "this turn".to_owned(),
            Self::Session(_) => "this session".to_owned(),
            Self::All => "gnoma".to_owned(),
            Self::Project(_) => "this project".to_owned(),
            Self::Rates(name) => name.clone(),
            Self::Part(set, word) => format!("{set} ({word})"),
            Self::Arm(arm) => arm.to_string(),
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(id) => write!(f, "turn:{id}"),
            Self::Session(id) => write!(f, "session:{id}"),
            Self::All => f.write_str("all"),
            Self::Project(key) => write!(f, "project:{key}"),
            Self::Rates(name) => write!(f, "rates:{name}"),
            Self::Part(set, word) => write!(f, "part:{set}/{word}"),
            Self::Arm(arm) => write!(f, "arm:{arm}"),
        }
    }
}
