//! Sentences on the command line that begin with, or contain, the name of a command: `gnoma config is broken` is a
//! prompt. Clap's own description of the commands decides, so this holds for every command that is added.
//!
//! A line is a command if clap reads it as one. A line that clap refuses is a sentence, unless it looks like a
//! command with a mistake in it: an option, a misspelt subcommand, or one wrong argument where one is expected.

use std::{ffi::OsString, path::Path};

use clap::{
    Command, CommandFactory as _, Parser as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use gnoma_config::is_slip_of;
use gnoma_llm::KNOWN;

use super::{
    Args,
    mistaken_commands::prompt_advice,
    split_line::{SEPARATOR, SplitLine, is_option, values_after},
    verbs::{self, EXEC, RUN},
};

/// The commands that show what a group has, in the order in which they are looked for.
const LISTS: [&str; 3] = ["list", "show", "stats"];
/// Prints a page of the manual.
const MAN: &str = "man";
/// Stands for standard input.
const STDIN: &str = "-";
/// The commands of other assistants, which take a prompt of their own.
const ASSISTANTS: [&str; 2] = ["claude", "codex"];

/// Rewrites a command line whose words are not what clap would take them for: `help COMMAND`, `version` and `exec
/// PROMPT` become options, and a sentence becomes a prompt. `None` leaves the line as it is.
pub(crate) fn rewrite_line(line: &[OsString]) -> Option<Vec<OsString>> {
    let root = Args::command();
    let split = SplitLine::split_at_first_word(line, &root)?;
    let as_command = || split.as_option(&root).or_else(|| split.as_list(&root));
    if let Some(line) = as_command().or_else(|| split.with_options_first(&root)) {
        return Some(line);
    }
    let Some(line) = split.as_one_shot() else {
        let is_said = split.rest.iter().any(|word| word == SEPARATOR);
        return if is_said { None } else { split.as_prompt(&root) };
    };
    // What follows `exec` is a prompt whatever it names.
    let prompt =
        SplitLine::split_at_first_word(&line, &root).and_then(|split| split.as_prompt_line(&root));
    Some(prompt.unwrap_or(line))
}

/// Returns advice on how to send the words of a refused line as a prompt; `None` if they cannot be one.
pub(crate) fn prompt_hint(line: &[OsString]) -> Option<String> {
    let root = Args::command();
    let split = SplitLine::split_at_first_word(line, &root)?;
    let has_option = split.rest.iter().any(is_option);
    let is_command = root.find_subcommand(split.first).is_some();
    let begins_sentence = split.rest.first().is_some_and(|word| !is_option(word));
    let is_sentence = begins_sentence && !(has_option && is_command);
    let words = std::iter::once(split.first).chain(split.rest);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    is_sentence.then(|| prompt_advice(&words))
}

impl SplitLine<'_> {
    /// `help`, `help COMMAND…` and `version` as the options that they are elsewhere.
    fn as_option(&self, root: &Command) -> Option<Vec<OsString>> {
        if self.first == "version" && self.rest.is_empty() {
            return Some(self.line_with_words([&OsString::from("--version")]));
        }
        if self.first != "help" {
            return None;
        }
        let mut command = root;
        for word in self.rest {
            command = command.find_subcommand(word)?;
        }
        Some(self.line_with_words(self.rest.iter().chain([&OsString::from("--help")])))
    }

    /// The name of a group of commands alone: the command of the group that shows what there is.
    fn as_list(&self, root: &Command) -> Option<Vec<OsString>> {
        let group = root.find_subcommand(self.first).filter(|_| self.rest.is_empty())?;
        if !group.is_subcommand_required_set() {
            return None;
        }
        let list = LISTS.iter().find(|name| group.find_subcommand(name).is_some())?;
        Some(self.line_with_words([self.first, &OsString::from(list)]))
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
        is_one_shot.then(|| self.line_with_words([&print].into_iter().chain(words)))
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
        is_sentence.then(|| self.as_prompt_line(root)).flatten()
    }

    /// A command whose options of gnoma stand behind its words: `gnoma mcp serve --permission plan`.
    fn with_options_first(&self, root: &Command) -> Option<Vec<OsString>> {
        let mut command = root.find_subcommand(self.first)?;
        while let Some(inner) = self.rest.iter().find_map(|word| command.find_subcommand(word)) {
            command = inner;
        }
        let (options, words) = self.options_and_words(root, Some(command))?;
        // A short option may be a word of what a command takes: `gnoma guard explain ls -c`.
        let is_short =
            |word: &OsString| is_option(word) && !word.to_string_lossy().starts_with("--");
        let is_said = self.rest.iter().any(|word| word == SEPARATOR || is_short(word));
        if options.len() == self.options.len() || is_said {
            return None;
        }
        let line: Vec<_> =
            std::iter::once(self.program.clone()).chain(options).chain(words).collect();
        let as_given = self.line_with_words(std::iter::once(self.first).chain(self.rest));
        // A wrong value of an option is told of as such, not as an option that the command lacks.
        let is_understood = |line: &[OsString]| match Args::try_parse_from(line) {
            Ok(_) => true,
            Err(error) => has_wrong_option_value(&error),
        };
        let is_command = Args::try_parse_from(as_given).is_err() && is_understood(&line);
        is_command.then_some(line)
    }

    fn as_prompt_line(&self, root: &Command) -> Option<Vec<OsString>> {
        let (options, words) = self.options_and_words(root, None)?;
        let program = std::iter::once(self.program.clone());
        Some(program.chain(options).chain([SEPARATOR.into()]).chain(words).collect())
    }

    /// True if the words after a command are the rest of a sentence.
    fn is_sentence(&self, command: &Command, root: &Command) -> bool {
        let words: Vec<&str> = self.rest.iter().filter_map(|word| word.to_str()).collect();
        let Some((next, more)) = words.split_first() else { return false };
        let is_foreign_option =
            |word: &&OsString| is_option(word) && values_after(word, None, root).is_none();
        let Err(error) = Args::try_parse_from(
            self.line_with_words(std::iter::once(self.first).chain(self.rest)),
        ) else {
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
            None if more.is_empty() && verbs::is_lone_word(next) => false,
            None if command.has_subcommands() => {
                let is_name = KNOWN.iter().any(|known| known.name == *next) || is_argument(next);
                let is_lone_name = is_name && more.is_empty();
                !is_lone_name && self.mistyped_subcommand(command).is_none()
            }
            None => {
                let is_wrong_value = more.is_empty()
                    && matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
                // `gnoma man` takes the name of a command, and nothing that is far from one.
                let names_nothing = command.get_name() == MAN && !is_nearly_a_command(next, root);
                (!is_wrong_value || names_nothing) && !words.iter().all(|word| is_argument(word))
            }
        }
    }
}

/// True if a word is the name of a command, or that name with a slip in it.
fn is_nearly_a_command(word: &str, root: &Command) -> bool {
    root.get_subcommands().any(|command| is_slip_of(word, command.get_name()))
}

/// True for a path or a number: no sentence begins with one.
fn is_argument(word: &str) -> bool {
    Path::new(word).is_absolute()
        || word.starts_with(['.', '~'])
        || word.contains('/')
        || word.chars().all(|c| c.is_ascii_digit())
}

/// Returns whether a line is refused only for the value of an option.
fn has_wrong_option_value(error: &clap::Error) -> bool {
    let is_value = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
    let argument = error.get(ContextKind::InvalidArg);
    is_value && matches!(argument, Some(ContextValue::String(name)) if name.starts_with("--"))
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

    /// Returns the prompt that a line is; `None` for a command and for what clap refuses.
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
            ("gnoma|-p|exec|hi", "hi"),
            ("gnoma|exec|-p|hi", "hi"),
            ("gnoma|exec|--print|hi", "hi"),
            ("gnoma|-p|-p|hi", "hi"),
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
            "gnoma|update|dependencies",
            "gnoma|update|all",
            "gnoma|web|search",
            "gnoma|doctor|test",
            "gnoma|serve|test",
            "gnoma|man|page",
            "gnoma|man|pages|for|it",
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
    fn mistyped_command_lines_are_not_sent_to_a_model() {
        for line in [
            "gnoma|config|show",
            "gnoma|config|shwo",
            "gnoma|config|gte|provider.default",
            "gnoma|config|set|provider.model|my|model",
            "gnoma|config|list",
            "gnoma|config|edit",
            "gnoma|plugin|uninstall|x",
            "gnoma|update|now",
            "gnoma|doctor|check",
            "gnoma|man|sesions",
            "gnoma|man|sessions",
            "gnoma|man|providers|add",
            "gnoma|mcp|ls",
            "gnoma|providers|mistral",
            "gnoma|sessions|2026",
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
        let hint = prompt_hint(&words("gnoma|what|is|--force")).unwrap();
        assert!(hint.ends_with("`gnoma -- what is --force`"), "{hint}");
        for line in ["gnoma|sessions|list|--force", "gnoma|hi|--force", "gnoma|hi"] {
            assert_eq!(prompt_hint(&words(line)), None, "{line}");
        }
    }
}
