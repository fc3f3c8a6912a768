//! Thinking levels (reasoning effort) of models.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How much a person wants a model to think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThinkingMode {
    /// Not at all, or as little as the model allows.
    Off,
    /// As much as the task needs: the model decides where it can, else the task does.
    Adaptive,
    /// About this many tokens.
    Tokens(u32),
}

impl fmt::Display for ThinkingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Adaptive => f.write_str("adaptive"),
            Self::Tokens(tokens) => write!(f, "{tokens}"),
        }
    }
}

/// A text that is no way to think.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a way to think; write off, adaptive or a number of tokens such as 8000")]
pub struct ThinkingModeError {
    /// The text.
    pub text: String,
}

crate::debug_as_display!(ThinkingModeError);

impl FromStr for ThinkingMode {
    type Err = ThinkingModeError;

    fn from_str(text: &str) -> Result<Self, ThinkingModeError> {
        match text {
            "off" => Ok(Self::Off),
            "adaptive" => Ok(Self::Adaptive),
            number => match number.parse() {
                Ok(tokens) if tokens > 0 => Ok(Self::Tokens(tokens)),
                _ => Err(ThinkingModeError { text: text.to_owned() }),
            },
        }
    }
}
