//! Schemas that are refused, and values that do not fit one.

/// The reason why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is no JSON.
    #[error("the schema is not JSON: {0}")]
    NoJson(String),
    /// The schema is too long, or has too many parts.
    #[error("the schema is too large: {0}")]
    TooLarge(String),
    /// A part of the schema is wrong, or cannot be checked.
    #[error("the schema is wrong at `{at}`: {what}")]
    Wrong {
        /// The place of the part, as a JSON pointer; `/` for the whole.
        at: String,
        /// The description of what is wrong.
        what: String,
    },
}

/// A value that does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// The first faults of the value, a line for each: its place as a JSON pointer, and what is wrong there.
    #[error("{}", .0.join("\n"))]
    Faults(Vec<String>),
    /// The schema has too many alternatives to check them all.
    #[error("it takes too long to check; the schema has too many alternatives")]
    TooManyAlternatives,
}
