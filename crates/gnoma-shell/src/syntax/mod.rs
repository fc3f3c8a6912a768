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
mod constant;
mod cursor;
mod error;
mod expansions;
mod heredoc;
mod limits;
mod lists;
mod pairs;
mod parameters;
mod patterns;
mod pieces;
mod quoted;
mod redirections;
mod span;
mod substitutions;
mod unquoted;
mod visit;

pub use ast::*;
pub use error::{ParseError, ParseErrorKind};
pub use limits::*;
pub use span::Span;
pub use visit::SyntaxNode;

use cursor::{ParseBudget, Parser};

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
    Parser::new(text, &mut ParseBudget::default()).whole_script()
}

fn is_hidden_control(found: char) -> bool {
    found.is_control() && !matches!(found, '\n' | '\t')
}
