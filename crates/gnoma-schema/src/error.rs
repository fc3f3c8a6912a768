//! Why a schema is refused.

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is no JSON.
    #[error("the schema is not JSON: {0}")]
    NoJson(String),
    /// It is too long, or has too many parts.
    #[error("the schema is too large: {0}")]
    TooLarge(String),
    /// Something in it is wrong, or cannot be checked.
    #[error("the schema is wrong at `{at}`: {what}")]
    Wrong {
        /// Where, as a JSON pointer; `/` for the whole.
        at: String,
        /// What.
        what: String,
    },
}
