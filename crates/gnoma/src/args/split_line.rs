//! A command line, taken apart at its first word.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// The separator after which all arguments are words of the prompt.
pub(super) const SEPARATOR: &str = "--";

/// A command line, taken apart at its first word.
pub(super) struct SplitLine<'a> {
    pub(super) program: &'a OsString,
    /// The options before the first word, with their values.
    pub(super) options: &'a [OsString],
    pub(super) first: &'a OsString,
    /// All arguments after the first word.
    pub(super) rest: &'a [OsString],
}

impl<'a> SplitLine<'a> {
    /// `None` where there is no word, or where `--` before the first says what the words are.
    pub(super) fn split_at_first_word(line: &'a [OsString], root: &Command) -> Option<Self> {
        let (program, all) = line.split_first()?;
        let mut at = 0;
        while let Some(word) = all.get(at).filter(|word| is_option(word)) {
            at += 1 + values_after(word, all.get(at + 1), root)?;
        }
        let first = all.get(at)?;
        Some(Self { program, options: all.get(..at)?, first, rest: all.get(at + 1..)? })
    }

    /// Returns gnoma's own options with their values, wherever they stand, and the words. The options of `command` count
    /// as words. `None` if there are other options.
    pub(super) fn options_and_words(
        &self,
        root: &Command,
        command: Option<&Command>,
    ) -> Option<(Vec<OsString>, Vec<OsString>)> {
        let (mut options, mut words) = (self.options.to_vec(), vec![self.first.clone()]);
        let mut at = 0;
        while let Some(word) = self.rest.get(at) {
            if word == SEPARATOR {
                words.extend_from_slice(self.rest.get(at + 1..)?);
                break;
            }
            let next = self.rest.get(at + 1);
            let of_command = command.and_then(|command| values_after(word, next, command));
            let (values, into) = match (is_option(word), of_command) {
                (false, _) => (0, &mut words),
                (true, Some(values)) => (values, &mut words),
                (true, None) => (values_after(word, next, root)?, &mut options),
            };
            into.extend_from_slice(self.rest.get(at..=at + values)?);
            at += 1 + values;
        }
        Some((options, words))
    }

    pub(super) fn line_with_words<'b>(
        &'b self,
        words: impl IntoIterator<Item = &'b OsString>,
    ) -> Vec<OsString> {
        std::iter::once(self.program).chain(self.options).chain(words).cloned().collect()
    }
}

pub(super) fn is_option(word: &OsString) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")
}

/// Returns the number of words after an option that are its value; `None` if gnoma has no such option without a
/// command.
pub(super) fn values_after(
    option: &OsString,
    next: Option<&OsString>,
    root: &Command,
) -> Option<usize> {
    let text = option.to_str()?;
    let is_value =
        |arg: &Arg| usize::from(takes_value(arg) && next.is_some_and(|next| !is_option(next)));
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) =
            long.split_once('=').map_or((long, None), |(name, it)| (name, Some(it)));
        if ["help", "version"].contains(&name) {
            return Some(0);
        }
        let has_name = |arg: &&Arg| {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        let arg = root.get_arguments().find(has_name)?;
        return Some(if value.is_some() { 0 } else { is_value(arg) });
    }
    let mut letters = text.strip_prefix('-')?.chars();
    while let Some(letter) = letters.next() {
        if ['h', 'V'].contains(&letter) {
            continue;
        }
        let arg = root.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
        if takes_value(arg) {
            return Some(if letters.as_str().is_empty() { is_value(arg) } else { 0 });
        }
    }
    Some(0)
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}
