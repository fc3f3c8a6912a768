//! What a list of models says of each.

use gnoma_core::Price;

/// What a model can do beyond text. Every listed model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Calls tools.
    pub tools: bool,
    /// Sees pictures.
    pub vision: bool,
    /// Thinks before it answers.
    pub thinking: bool,
    /// Answers in a given JSON schema.
    pub structured_output: bool,
}

/// A model as listed. Days are counted from 1970-01-01.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// The provider that was asked about.
    pub provider: String,
    /// Its id on the wire: the listed id that fits what was asked for.
    pub id: String,
    /// The listed id whose facts these are, where `id` is only another name for it.
    pub alias_of: Option<String>,
    /// Tokens of prompt it takes.
    pub context_window: u64,
    /// Tokens of answer it gives at most, where that is known. May be as large as the window.
    pub max_output: Option<u64>,
    /// Its price. What reading from or writing to the cache costs is the price of input where nobody
    /// says.
    pub price: Price,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The day it came, as far as known.
    pub released: Option<i32>,
    /// The day it ends, or a day by which it was being withdrawn.
    pub deprecated: Option<i32>,
    /// Whether its weights are open, as far as known.
    pub open_weights: Option<bool>,
}

impl ListedModel {
    /// Whether it is on its way out, or gone, on this day.
    #[must_use]
    pub fn is_deprecated(&self, today: i32) -> bool {
        self.deprecated.is_some_and(|day| day <= today)
    }
}
