//! Turns words into what programs get, as far as that is certain before anything runs.
//!
//! Quotes go, braces are multiplied out, `~` and variables with known values are put in. Whatever else
//! is expanded makes the word unknown. Nothing is read: file names of a pattern stay a pattern.

mod braces;
mod expander;
mod field;
mod hazards;
mod join;
pub(crate) mod place;
mod value;
mod variables;

pub(crate) use expander::Expander;
pub(crate) use field::Field;
pub(crate) use place::Folders;
pub(crate) use value::Value;
pub(crate) use variables::looks_secret;
