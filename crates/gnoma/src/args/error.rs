//! The error about a value on the command line, in words that follow clap's "invalid value".

use thiserror::Error;

/// The reason why a value on the command line cannot be used.
#[derive(Clone, PartialEq, Eq, Error)]
pub(super) enum ArgumentError {
    /// The value is not a whole number.
    #[error("`{0}` is not a whole number")]
    NotANumber(String),
    /// The number is outside a range whose ends people know.
    #[error("the number must be {least} to {most}")]
    OutOfRange { least: u64, most: u64 },
    /// The number is smaller than the least one.
    #[error("the number must be {least} or more")]
    TooSmall { least: u64 },
    /// The number is larger than the largest one.
    #[error("the number must be at most {most}")]
    TooLarge { most: u64 },
    /// The number of turns is zero or negative.
    #[error("the number of turns must be 1 or more")]
    NoTurns,
    /// The value does not have the form that `expected` names.
    #[error("`{value}` is not {expected}; write it like {example}")]
    Malformed { value: String, expected: &'static str, example: &'static str },
    /// The value is not an address with a port; `port` is the one that an example has.
    #[error("`{value}` is not an address with a port; write it like 127.0.0.1:{port}")]
    NotAnAddress { value: String, port: u16 },
    /// The value of `--thinking` is neither a word that it takes nor a number of tokens.
    #[error("--thinking takes off, adaptive or a number of tokens (1 or more)")]
    NotThinking,
    /// The value is empty, such as from an unset variable.
    #[error("the {what} is empty; {remedy}")]
    Empty { what: &'static str, remedy: &'static str },
    /// gnoma has no command of this name.
    #[error("there is no command `{0}`; `gnoma --help` lists them")]
    UnknownCommand(String),
    /// The value does not name a provider and its model.
    #[error("name it as PROVIDER/MODEL, such as mistral/devstral-small")]
    NotAModel,
    /// The value cannot be the name of a variable in a template.
    #[error("write it in capital letters, digits and `_`, like MISTRAL_API_KEY")]
    NotAVariable,
    /// The value is not an amount of dollars that a run may cost.
    #[error("write dollars above 0 and up to {most_usd}, such as 0.50")]
    NotABudget { most_usd: u32 },
}

gnoma_core::debug_as_display!(ArgumentError);
