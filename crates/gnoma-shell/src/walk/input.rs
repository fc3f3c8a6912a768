//! Where a command's standard input comes from, as far as it matters to those that run it.

use std::sync::Arc;

use crate::expand::Field;
use crate::facts::{Effect, FilePlace, Invocation};

/// The source of standard input.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    /// The source of the whole line's input.
    Inherited,
    /// The content of a file.
    File(Field),
    /// A text that is known exactly.
    Text(String),
    /// Names that other commands list.
    Listing(Listing),
    /// The output of other commands.
    Pipe(InputSource),
}

/// Names of files that a command prints.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listing {
    /// The places of the files.
    pub(super) places: Arc<[FilePlace]>,
    /// The text with which each name begins.
    pub(super) start: String,
    /// A zero byte ends each name, and no other test chose them than those of `places`.
    pub(super) exact: bool,
}

/// The source of the data in a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InputSource {
    /// A source with no special risk.
    #[default]
    Plain,
    /// A program that decodes: what comes out is not what is to be read in the command.
    Decoded,
    /// Data from another machine.
    Network,
}

/// Returns the riskiest source of the data that commands feed into a pipe.
pub(super) fn feed_of(commands: &[Invocation]) -> InputSource {
    commands.iter().map(feed_of_one).max().unwrap_or_default()
}

fn feed_of_one(command: &Invocation) -> InputSource {
    if command.effects.iter().any(|effect| matches!(effect, Effect::Network(_))) {
        return InputSource::Network;
    }
    let mut words = command.words.iter().flatten().map(String::as_str);
    let program = words.next().unwrap_or_default();
    let mut has = |wanted: &[&str]| words.any(|word| wanted.contains(&word));
    let decodes = match program {
        "base64" | "base32" | "basenc" | "openssl" => has(&["-d", "-D", "--decode"]),
        "xxd" => has(&["-r", "-ps", "-rp"]),
        "rev" | "tr" | "uudecode" | "gunzip" | "zcat" | "printf" | "tac" => true,
        _ => false,
    };
    if decodes { InputSource::Decoded } else { InputSource::Plain }
}
