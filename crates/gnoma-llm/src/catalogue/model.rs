//! One model of the catalogue: its limits, prices and capabilities.

use gnoma_core::Price;

/// The abilities of a model beyond text. Every listed model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// True if the model calls tools.
    pub tools: bool,
    /// True if the model sees pictures.
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
    /// The id of the model on the wire: the listed id that fits what was asked for.
    pub id: String,
    /// The listed id whose facts these are, where `id` is only another name for it.
    pub alias_of: Option<String>,
    /// Tokens of prompt it takes.
    pub context_window: u64,
    /// Tokens of answer it gives at most, where that is known. May be as large as the window.
    pub max_output: Option<u64>,
    /// The price of the model. If no price for reading from or writing to the cache is listed, it is the price of
    /// input.
    pub price: Price,
    /// The abilities of the model.
    pub capabilities: Capabilities,
    /// The day it came, as far as known.
    pub released: Option<i32>,
    /// The day it ends, or a day by which it was being withdrawn.
    pub deprecated: Option<i32>,
    /// True if the weights of the model are open, as far as known.
    pub open_weights: Option<bool>,
}

impl ListedModel {
    /// Reports whether the model is being withdrawn, or gone, on this day.
    #[must_use]
    pub fn is_deprecated(&self, today: i32) -> bool {
        self.deprecated.is_some_and(|day| day <= today)
    }
}
