//! Sentences on the command line that begin with, or contain, the name of a command: `gnoma config is broken` is a
//! prompt. Clap's own description of the commands decides, so this holds for every command that is added.
//!
//! A line is a command if clap reads it as one. A line that clap refuses is a sentence, unless it looks like a
//! command with a mistake in it: an option, a misspelt subcommand, or one wrong argument where one is expected.

use std::{ffi::OsString, path::Path};

use clap::{Arg, ArgAction, Command, CommandFactory as _, Parser as _, error::ErrorKind};
use gnoma_config::nearest;

use super::{
    Args,
    mistaken::{VERBS, shown},
};

/// Other programs' commands that answer one prompt.
const EXEC: &str = "exec";
const RUN: &str = "run";
/// The commands that show what a group has, in the order in which they are looked for.
const LISTS: [&str; 3] = ["list", "show", "stats"];
/// What follows it are words.
const SEPARATOR: &str = "--";
/// Stands for standard input.
const STDIN: &str = "-";
/// The commands of other assistants, which take a prompt of their own.
const ASSISTANTS: [&str; 2] = ["claude", "codex"];

/// Rewrites a command line whose words are not what clap would take them for: `help COMMAND`, `version` and `exec
/// PROMPT` become options, and a sentence becomes a prompt. `None` leaves the line as it is.
pub(crate) fn rewrite_line(line: &[OsString]) -> Option<Vec<OsString>> {
    let root = Args::command();
    let split = SplitLine::read(line, &root)?;
    let as_command = || split.as_option(&root).or_else(|| split.as_list(&root));
    if let Some(line) = as_command().or_else(|| split.with_options_first(&root)) {
        return Some(line);
    }
    let Some(line) = split.as_one_shot() else {
        let is_said = split.rest.iter().any(|word| word == SEPARATOR);
        return if is_said { None } else { split.as_prompt(&root) };
    };
    // What follows `exec` is a prompt whatever it names.
    let prompt = SplitLine::read(&line, &root).and_then(|split| split.prompt(&root));
    Some(prompt.unwrap_or(line))
}

/// How to send the words of a refused line as a prompt; `None` if they cannot be one.
pub(crate) fn prompt_hint(line: &[OsString]) -> Option<String> {
    let root = Args::command();
    let split = SplitLine::read(line, &root)?;
    let is_sentence = !split.rest.is_empty() && !split.rest.iter().any(is_option);
    let words = std::iter::once(split.first).chain(split.rest);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    is_sentence.then(|| format!("To send it to a model as a prompt: `gnoma -- {}`", shown(&words)))
}

/// A command line, taken apart at its first word.
struct SplitLine<'a> {
    program: &'a OsString,
    /// The options before the first word, with their values.
    options: &'a [OsString],
    first: &'a OsString,
    /// Everything after it.
    rest: &'a [OsString],
}

impl<'a> SplitLine<'a> {
    /// `None` where there is no word, or where `--` before the first says what the words are.
    fn read(line: &'a [OsString], root: &Command) -> Option<Self> {
        let (program, all) = line.split_first()?;
        let mut at = 0;
        while let Some(word) = all.get(at).filter(|word| is_option(word)) {
            at += 1 + values_after(word, all.get(at + 1), root)?;
        }
        let first = all.get(at)?;
        Some(Self { program, options: all.get(..at)?, first, rest: all.get(at + 1..)? })
    }

    /// `help`, `help COMMAND…` and `version` as the options that they are elsewhere.
    fn as_option(&self, root: &Command) -> Option<Vec<OsString>> {
        if self.first == "version" && self.rest.is_empty() {
            return Some(self.line([&OsString::from("--version")]));
        }
        if self.first != "help" {
            return None;
        }
        let mut command = root;
        for word in self.rest {
            command = command.find_subcommand(word)?;
        }
        Some(self.line(self.rest.iter().chain([&OsString::from("--help")])))
    }

    /// The name of a group of commands alone: the command of the group that shows what there is.
    fn as_list(&self, root: &Command) -> Option<Vec<OsString>> {
        let group = root.find_subcommand(self.first).filter(|_| self.rest.is_empty())?;
        if !group.is_subcommand_required_set() {
            return None;
        }
        let list = LISTS.iter().find(|name| group.find_subcommand(name).is_some())?;
        Some(self.line([self.first, &OsString::from(list)]))
    }

    /// `exec PROMPT`: one answer, without a window. `run` is also the first word of a sentence, so it means that only
    /// before options, `-` or one quoted prompt.
    fn as_one_shot(&self) -> Option<Vec<OsString>> {
        let is_one_shot = match (self.first.to_str()?, self.rest) {
            (EXEC, [first, ..]) => first != "--experimental-json",
            (RUN, [prompt]) => {
                is_option(prompt)
                    || prompt == STDIN
                    || prompt.to_string_lossy().contains(char::is_whitespace)
            }
            (RUN, [first, ..]) => is_option(first),
            (EXEC | RUN, []) => true,
            _ => false,
        };
        let print = OsString::from("--print");
        let words = self.rest.iter().filter(|word| *word != STDIN);
        is_one_shot.then(|| self.line([&print].into_iter().chain(words)))
    }

    /// The line with its words marked as a prompt, if they are a sentence.
    fn as_prompt(&self, root: &Command) -> Option<Vec<OsString>> {
        let is_sentence = match root.find_subcommand(self.first) {
            None => self.rest.iter().any(|word| root.find_subcommand(word).is_some()),
            Some(command) if ASSISTANTS.contains(&command.get_name()) => {
                self.rest.len() > 1
                    && self.rest.first().is_some_and(|word| word != EXEC)
                    && !self.rest.iter().any(is_option)
            }
            Some(command) => self.is_sentence(command, root),
        };
        is_sentence.then(|| self.prompt(root)).flatten()
    }

    /// A command whose options of gnoma stand behind its words: `gnoma mcp serve --permission plan`.
    fn with_options_first(&self, root: &Command) -> Option<Vec<OsString>> {
        root.find_subcommand(self.first)?;
        let (options, words) = self.options_and_words(root)?;
        // A short option may be a word of what a command takes: `gnoma guard explain ls -c`.
        let is_short =
            |word: &OsString| is_option(word) && !word.to_string_lossy().starts_with("--");
        let is_said = self.rest.iter().any(|word| word == SEPARATOR || is_short(word));
        if options.len() == self.options.len() || is_said {
            return None;
        }
        let line: Vec<_> =
            std::iter::once(self.program.clone()).chain(options).chain(words).collect();
        let as_given = self.line(std::iter::once(self.first).chain(self.rest));
        let is_command =
            Args::try_parse_from(as_given).is_err() && Args::try_parse_from(&line).is_ok();
        is_command.then_some(line)
    }

    fn prompt(&self, root: &Command) -> Option<Vec<OsString>> {
        let (options, words) = self.options_and_words(root)?;
        let program = std::iter::once(self.program.clone());
        Some(program.chain(options).chain([SEPARATOR.into()]).chain(words).collect())
    }

    /// gnoma's own options with their values, wherever they stand, and the words; `None` if there are other options.
    fn options_and_words(&self, root: &Command) -> Option<(Vec<OsString>, Vec<OsString>)> {
        let (mut options, mut words) = (self.options.to_vec(), vec![self.first.clone()]);
        let mut at = 0;
        while let Some(word) = self.rest.get(at) {
            if word == SEPARATOR {
                words.extend_from_slice(self.rest.get(at + 1..)?);
                break;
            }
            let values = match is_option(word) {
                true => values_after(word, self.rest.get(at + 1), root)?,
                false => 0,
            };
            let part = self.rest.get(at..=at + values)?;
            if is_option(word) {
                options.extend_from_slice(part);
            } else {
                words.extend_from_slice(part);
            }
            at += 1 + values;
        }
        Some((options, words))
    }

    /// Whether the words after a command are the rest of a sentence.
    fn is_sentence(&self, command: &Command, root: &Command) -> bool {
        let words: Vec<&str> = self.rest.iter().filter_map(|word| word.to_str()).collect();
        let Some((next, more)) = words.split_first() else { return false };
        let is_foreign_option =
            |word: &&OsString| is_option(word) && values_after(word, None, root).is_none();
        let Err(error) =
            Args::try_parse_from(self.line(std::iter::once(self.first).chain(self.rest)))
        else {
            return false;
        };
        let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if is_help || self.rest.iter().any(|word| is_foreign_option(&word)) {
            return false;
        }
        match command.find_subcommand(next) {
            Some(leaf) => {
                let takes_words = leaf.has_subcommands() || leaf.get_positionals().next().is_some();
                !takes_words && more.len() > 1
            }
            None if command.has_subcommands() => {
                let is_verb = more.is_empty() && VERBS.contains(&next.to_lowercase().as_str());
                !is_verb && !self.is_slip(command, next)
            }
            None => {
                let is_wrong_value = more.is_empty()
                    && matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
                !is_wrong_value && !words.iter().all(|word| is_argument(word))
            }
        }
    }

    /// Whether the line would be a command if its second word were a subcommand that is spelt nearly so.
    fn is_slip(&self, command: &Command, written: &str) -> bool {
        let subs = command.get_subcommands().map(Command::get_name);
        let Some(meant) = nearest(&written.to_lowercase(), subs) else { return false };
        let meant = OsString::from(meant);
        let rest = self.rest.iter().skip(1);
        let line = self.line([self.first, &meant].into_iter().chain(rest));
        match Args::try_parse_from(line) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::MissingRequiredArgument,
        }
    }

    fn line<'b>(&'b self, words: impl IntoIterator<Item = &'b OsString>) -> Vec<OsString> {
        std::iter::once(self.program).chain(self.options).chain(words).cloned().collect()
    }
}

/// A path or a number: nobody begins a sentence like that.
fn is_argument(word: &str) -> bool {
    Path::new(word).is_absolute()
        || word.starts_with(['.', '~'])
        || word.contains('/')
        || word.chars().all(|c| c.is_ascii_digit())
}

fn is_option(word: &OsString) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")
}

/// How many words after an option are its value; `None` if gnoma has no such option without a command.
fn values_after(option: &OsString, next: Option<&OsString>, root: &Command) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split('|').map(OsString::from).collect()
    }

    #[test]
    fn name_of_a_group_alone_lists_what_there_is() {
        for (line, list) in [
            ("gnoma|sessions", "list"),
            ("gnoma|agents", "list"),
            ("gnoma|skills", "list"),
            ("gnoma|plugin", "list"),
            ("gnoma|mcp", "list"),
            ("gnoma|config", "show"),
            ("gnoma|router", "stats"),
            ("gnoma|task", "list"),
            ("gnoma|--profile|work|sessions", "list"),
        ] {
            let line = rewrite_line(&words(line)).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(line.last(), Some(&OsString::from(list)));
            assert!(Args::try_parse_from(&line).is_ok(), "{line:?}");
        }
        for line in ["gnoma|providers", "gnoma|sessions|--help", "gnoma|guard"] {
            assert_eq!(rewrite_line(&words(line)), None, "{line}");
        }
    }

    /// What the words of a line are a prompt of; `None` for a command and for what clap refuses.
    fn prompt_of(line: &str) -> Option<String> {
        let line = words(line);
        let line = rewrite_line(&line).unwrap_or(line);
        let args = Args::try_parse_from(line).ok()?;
        args.command.is_none().then(|| args.turn.words.join(" "))
    }

    #[test]
    fn help_and_version_are_options_as_words() {
        let cases = [
            ("gnoma|help", Some("gnoma|--help")),
            ("gnoma|help|sessions|list", Some("gnoma|sessions|list|--help")),
            ("gnoma|version", Some("gnoma|--version")),
            ("gnoma|help|me", None),
            ("gnoma|version|control|is|broken", None),
            ("gnoma|--|help", None),
            ("gnoma", None),
        ];
        for (line, becomes) in cases {
            assert_eq!(rewrite_line(&words(line)), becomes.map(words), "{line}");
        }
    }

    #[test]
    fn exec_sends_its_words_as_the_prompt() {
        for (line, prompt) in [
            ("gnoma|exec|hello", "hello"),
            ("gnoma|exec|why|does|it|fail", "why does it fail"),
            ("gnoma|exec|fix the build", "fix the build"),
            ("gnoma|--permission|plan|exec|why|so", "why so"),
            ("gnoma|exec|-m|x/y|fix it", "fix it"),
            ("gnoma|exec|config|is|broken", "config is broken"),
            ("gnoma|exec|config|show", "config show"),
            ("gnoma|exec|sessions|list|--model|x/y", "sessions list"),
            ("gnoma|exec|help", "help"),
            ("gnoma|exec|--|config|show", "config show"),
            ("gnoma|exec|-m|x/y|--|-v|means what", "-v means what"),
            ("gnoma|exec|-", ""),
            ("gnoma|exec", ""),
            ("gnoma|run|-", ""),
            ("gnoma|run|-m|x/y|fix it", "fix it"),
            ("gnoma|run|the|tests", "run the tests"),
            ("gnoma|-p|run it", "run it"),
        ] {
            assert_eq!(prompt_of(line).as_deref(), Some(prompt), "{line}");
        }
        let line = rewrite_line(&words("gnoma|exec|hello")).unwrap();
        assert!(Args::try_parse_from(line).unwrap().turn.print);
        assert_eq!(rewrite_line(&words("gnoma|exec|--experimental-json|x")), None);
    }

    #[test]
    fn sentence_that_begins_with_or_names_a_command_is_a_prompt() {
        for line in [
            "gnoma|config|is|broken",
            "gnoma|usage|of|tokio|select",
            "gnoma|doctor|who|is|best",
            "gnoma|update|the|readme",
            "gnoma|sessions|are|lost",
            "gnoma|sessions|lost|when|the|disk|is|full",
            "gnoma|changes|since|yesterday|please",
            "gnoma|import|numpy|as|np",
            "gnoma|ci|is|failing",
            "gnoma|protocol|buffers|or|json",
            "gnoma|guard|clauses|everywhere",
            "gnoma|agents|list|the|open|files",
            "gnoma|trust|issues|in|the|code",
            "gnoma|redo|the|tests",
            "gnoma|rewind|the|tape",
            "gnoma|web|server|in|rust",
            "gnoma|claude|is|a|model",
            "gnoma|codex|is|slow",
            "gnoma|task|force|lost|contact",
            "gnoma|task|force|lost|contact|with|the|base",
            "gnoma|task|list|of|the|week",
            "gnoma|fix|the|config",
            "gnoma|explain|the|mcp|protocol",
            "gnoma|--model|x/y|config|is|broken",
            "gnoma|config|is|broken|--model|x/y",
        ] {
            let said = prompt_of(line).unwrap_or_else(|| panic!("{line} is no prompt"));
            let plain: Vec<_> = line.split('|').skip(1).collect();
            let plain = plain.join(" ").replace("--model x/y", "");
            assert_eq!(said, plain.trim(), "{line}");
        }
    }

    #[test]
    fn options_of_gnoma_may_stand_behind_a_command() {
        assert_eq!(
            rewrite_line(&words("gnoma|mcp|serve|--permission|plan")),
            Some(words("gnoma|--permission|plan|mcp|serve"))
        );
        assert_eq!(rewrite_line(&words("gnoma|guard|explain|ls|-c")), None);
        for line in ["gnoma|doctor|--nosuch", "gnoma|sessions|list|--profile|x"] {
            assert_eq!(prompt_of(line), None, "{line}");
        }
    }

    /// Holds for commands that are added later, too.
    #[test]
    fn every_command_name_can_begin_a_sentence() {
        let root = Args::command();
        for command in root.get_subcommands() {
            let takes_all_words = command
                .get_positionals()
                .any(|arg| arg.get_num_args().is_some_and(|count| count.max_values() > 5));
            let name = command.get_name();
            if takes_all_words && !ASSISTANTS.contains(&name) {
                continue;
            }
            let line = format!("gnoma|{name}|is|what|I|want|to|know|about");
            assert!(prompt_of(&line).is_some(), "{line}");
        }
    }

    #[test]
    fn commands_and_commands_with_a_mistake_are_not_sent_to_a_model() {
        for line in [
            "gnoma|config|show",
            "gnoma|config|shwo",
            "gnoma|config|gte|provider.default",
            "gnoma|config|set|provider.model|my|model",
            "gnoma|config|list",
            "gnoma|mcp|ls",
            "gnoma|models|gpt",
            "gnoma|doctor|--json",
            "gnoma|doctor|--help",
            "gnoma|import|cursor",
            "gnoma|completions|bsh",
            "gnoma|trust|/a|/b",
            "gnoma|rewind|2|3",
            "gnoma|sessions|search|the|disk|is|full",
            "gnoma|route|fix|the|build",
            "gnoma|--provider|x|sessions|list",
            "gnoma|claude|-p|hi",
            "gnoma|codex|exec|hi",
            "gnoma|task|run|release|v1.2.0",
            "gnoma|task|rnu|release",
            "gnoma|task|lst",
        ] {
            assert_eq!(prompt_of(line), None, "{line}");
        }
        let hint = prompt_hint(&words("gnoma|config|list")).unwrap();
        assert!(hint.ends_with("`gnoma -- config list`"), "{hint}");
    }
}
