//! Reads bash text into a tree, or says why not.
//!
//! It fails closed: what is not understood wholly is an error. Where bash itself decides late (settings,
//! versions, what a value holds), every reading must come to the same end, or it is an error too.
//! Nothing is run, expanded or looked up. Settings are those of `bash -c`: no aliases, no history
//! expansion, not POSIX mode; `extglob` patterns are read wherever they cannot be mistaken.

mod ansi;
mod arrays;
mod ast;
mod braces;
mod commands;
mod compound;
mod conditional;
mod cursor;
mod error;
mod expansions;
mod heredoc;
mod lists;
mod pairs;
mod parameters;
mod patterns;
mod pieces;
mod quoted;
mod redirections;
mod substitutions;
mod unquoted;
mod visit;

pub use ast::*;
pub use error::{ParseError, ParseErrorKind};
pub use visit::Node;

use cursor::{Budget, Parser};

/// Longest text that is looked at, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// How deep constructs may stand in each other.
pub const MAX_DEPTH: usize = 50;
/// How many words, parts and commands a text may have.
pub const MAX_NODES: usize = 200_000;
/// How many braces and commas may stand in a word with braces.
pub const MAX_BRACES: usize = 500;
/// How many bytes may be read again because their meaning shows only later.
pub const MAX_REREAD_BYTES: usize = 8 << 20;

/// Reads a whole text.
///
/// # Errors
/// When any of it is not understood for certain.
pub fn parse(text: &str) -> Result<Script, ParseError> {
    if text.len() > MAX_TEXT_BYTES {
        let kind = ParseErrorKind::Limit { what: "bytes", limit: MAX_TEXT_BYTES };
        return Err(ParseError { at: MAX_TEXT_BYTES, kind });
    }
    if let Some((at, found)) = text.char_indices().find(|(_, found)| is_hidden_control(*found)) {
        return Err(ParseError { at, kind: ParseErrorKind::ControlCharacter(found) });
    }
    Parser::new(text, &mut Budget::default()).whole_script()
}

fn is_hidden_control(found: char) -> bool {
    found.is_control() && !matches!(found, '\n' | '\t')
}
