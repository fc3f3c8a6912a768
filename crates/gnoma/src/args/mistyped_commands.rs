//! Commands whose second word is wrong, and help on commands that do not exist: `gnoma config edit`, `gnoma help
//! sesions`. Sent to a model they would cost money and answer nothing.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory as _, Parser as _, error::ErrorKind};
use gnoma_config::{is_slip_of, nearest_name};

use super::{
    Args,
    mistaken_commands::{prompt_advice, quote_words, reserved_command_advice},
    split_line::{SEPARATOR, SplitLine, is_option},
    verbs::{self, EXEC, RUN},
};

/// The text that `gnoma help exec` prints.
const EXEC_HELP: &str = "\
Answer one prompt and exit

Usage: gnoma exec [OPTIONS] [PROMPT]...

All words behind it are the prompt. Without a prompt, or with `-`, it is read from standard input.
The options are those of a prompt: `gnoma --help` lists them.
";
/// Verbs that one command has nothing for, and what to do instead.
const INSTEAD: [(&str, &[&str], &str); 13] = [
    ("providers", &["test", "check", "ping"], "`gnoma providers` shows which providers respond"),
    ("serve", &["stop", "kill"], "Ctrl+C in its terminal stops it, and so does SIGTERM"),
    ("web", &["stop", "kill"], "Ctrl+C in its terminal stops it, and so does SIGTERM"),
    ("providers", &["login", "auth", "signin"], "`gnoma providers add NAME` sets one up"),
    ("providers", &["default", "use"], "`gnoma config set provider.default NAME` chooses one"),
    ("models", &["pull", "download"], "`ollama pull NAME` downloads a local model"),
    ("sessions", &["open", "resume"], "`gnoma --resume ID` continues a session"),
    (
        "skills",
        &["add", "install", "create", "new"],
        "Put its folder, with a SKILL.md, below `.gnoma/skills`",
    ),
    ("agents", &["add", "install", "create", "new"], "Put its file, NAME.md, into `.gnoma/agents`"),
    (
        "mcp",
        &["restart", "reload"],
        "Its program starts with each session; `gnoma mcp test NAME` tries it",
    ),
    (
        "plugin",
        &["enable", "disable"],
        "`plugins.enabled` and `plugins.disabled` in the configuration do that",
    ),
    (
        "config",
        &["unset", "reset", "remove", "rm", "delete", "del", "clear", "drop"],
        "To remove a setting, delete its line from the file that `gnoma config path` names",
    ),
    (
        "config",
        &["edit", "open"],
        "`gnoma config set KEY VALUE` changes a setting, `gnoma config path` prints where the file is",
    ),
];

/// The answer to a line that neither runs a command nor sends a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LineAnswer {
    /// Help that was asked for.
    Help(&'static str),
    /// The mistake in the line, and advice on what to write instead.
    Mistake(String),
}

/// Answers a line with a mistake in its second word, or that asks for help on what is no command of clap's. `None` for
/// all other lines; sentences are never answered.
pub(crate) fn answer_line(line: &[OsString]) -> Option<LineAnswer> {
    let root = Args::command();
    let split = SplitLine::split_at_first_word(line, &root)?;
    if split.prints_only() || split.rest.iter().any(|word| word == SEPARATOR) {
        return None;
    }
    let mistake = match root.find_subcommand(split.first) {
        Some(command) => {
            split.mistyped_subcommand(command).or_else(|| split.undashed_option(command))
        }
        None if split.first == "help" => match split.rest {
            [name] if name == EXEC || name == RUN => return Some(LineAnswer::Help(EXEC_HELP)),
            _ => split.mistyped_help(&root),
        },
        None => None,
    }?;
    Some(LineAnswer::Mistake(format!("{mistake}\n{}", prompt_advice(&split.words_to_strings()))))
}

impl SplitLine<'_> {
    /// True if the line says that its words are a prompt.
    fn prints_only(&self) -> bool {
        self.options.iter().any(|option| option == "-p" || option == "--print")
    }

    fn words_to_strings(&self) -> Vec<String> {
        let words = std::iter::once(self.first).chain(self.rest);
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Returns what is wrong with the word after a command that has subcommands. The word is a mistake if it is
    /// none of these and the line reads as a command: it is a verb of command lines, or nearly one of the
    /// subcommands.
    pub(super) fn mistyped_subcommand(&self, command: &Command) -> Option<String> {
        let (next, more) = self.rest.split_first()?;
        let (name, next) = (command.get_name(), next.to_str()?);
        let instead = find_instead(name, next);
        // `gnoma models pull` asks for the models with that in their name.
        let is_argument = more.is_empty() && command.get_positionals().next().is_some();
        let takes_no_verb = !command.has_subcommands() && (instead.is_none() || is_argument);
        if takes_no_verb || command.find_subcommand(next).is_some() || is_option(&next.into()) {
            return None;
        }
        if let Some(meant) = skipped_subcommand(command, next).filter(|_| more.is_empty()) {
            return Some(format!("there is no `gnoma {name} {next}`; did you mean `{meant}`?"));
        }
        let arguments: Vec<String> =
            more.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let words: Vec<_> =
            arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
        let are_arguments = verbs::are_arguments(words.iter().copied());
        let synonym = verbs::find_synonym(next, command);
        // One plain word may be the name that the verb is about.
        let takes_name = (synonym.is_some() || instead.is_some()) && words.len() < 2;
        let is_command = takes_name || verbs::look_like_arguments(words.iter().copied());
        let is_verb = (instead.is_some() || verbs::is_verb(next)) && are_arguments && is_command;
        let slip = self.nearly_written(command, next).filter(|_| are_arguments);
        if !is_verb && slip.is_none() {
            return None;
        }
        // `uninstall` is nearly `install`, and means the opposite.
        let meant = synonym.or(slip);
        let told = instead.unwrap_or_else(|| match meant {
            Some(meant) => {
                let takes_more = meant.get_positionals().next().is_some() && !arguments.is_empty();
                let more = takes_more.then(|| format!(" {}", quote_words(&arguments)));
                let more = more.unwrap_or_default();
                format!("; did you mean `gnoma {name} {}{more}`?", meant.get_name())
            }
            None => format!("; `gnoma {name} --help` lists what there is"),
        });
        Some(format!("there is no `gnoma {name} {next}`{told}"))
    }

    /// Returns what is wrong with the one word after a command if it is an option without its dashes.
    fn undashed_option(&self, command: &Command) -> Option<String> {
        let [word] = self.rest else { return None };
        let mut options = command.get_arguments().filter_map(Arg::get_long);
        let option = options.find(|long| word.as_os_str() == *long)?;
        if Args::try_parse_from(self.line_with_words([self.first, word])).is_ok() {
            return None;
        }
        let name = command.get_name();
        let meant = format!("did you mean `gnoma {name} --{option}`?");
        Some(format!("there is no `gnoma {name} {option}`; {meant}"))
    }

    /// The subcommand that would make the line a command if it were spelt right.
    fn nearly_written<'a>(&self, command: &'a Command, written: &str) -> Option<&'a Command> {
        let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let names = subs.flat_map(|sub| sub.get_all_aliases().chain([sub.get_name()]));
        let meant =
            nearest_name(&written.to_lowercase(), names).filter(|it| is_slip_of(written, it))?;
        let as_typed = OsString::from(meant);
        let rest = self.rest.iter().skip(1);
        let line = self.line_with_words([self.first, &as_typed].into_iter().chain(rest));
        let is_command = match Args::try_parse_from(line) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::MissingRequiredArgument,
        };
        command.find_subcommand(meant).filter(|_| is_command)
    }

    /// Returns what is wrong with `help` followed by a word that is nearly a command. Any other words are taken as
    /// the subject that help is wanted with.
    fn mistyped_help(&self, root: &Command) -> Option<String> {
        let words: Vec<&str> = self.rest.iter().filter_map(|word| word.to_str()).collect();
        if !verbs::are_arguments(words.iter().copied())
            || words.iter().any(|it| it.starts_with('-'))
        {
            return None;
        }
        let (mut command, mut path) = (root, "gnoma".to_owned());
        for (depth, word) in words.iter().enumerate() {
            if let Some(sub) = command.find_subcommand(word) {
                (command, path) = (sub, format!("{path} {word}"));
                continue;
            }
            let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
            let near = nearest_name(&word.to_lowercase(), subs.map(Command::get_name))
                .filter(|near| is_slip_of(word, near));
            let is_last = depth + 1 == words.len();
            if let Some(told) = reserved_command_advice(word, &[]).filter(|_| depth == 0 && is_last)
            {
                return Some(told);
            }
            return match (depth, near) {
                (0, Some(near)) => {
                    Some(format!("there is no command `{word}`; did you mean `gnoma help {near}`?"))
                }
                (0, None) => None,
                _ if !command.has_subcommands() => None,
                (_, Some(near)) => Some(format!(
                    "there is no `{path} {word}`; did you mean `gnoma help{} {near}`?",
                    path.trim_start_matches("gnoma")
                )),
                (_, None) => Some(format!(
                    "there is no `{path} {word}`; `{path} --help` lists what there is"
                )),
            };
        }
        None
    }
}

/// Returns what to do in place of a verb that a command has nothing for, as the end of a sentence.
fn find_instead(name: &str, verb: &str) -> Option<String> {
    let verb = verb.to_lowercase();
    let mut rows = INSTEAD.iter();
    let row = rows.find(|(of, verbs, _)| *of == name && verbs.contains(&verb.as_str()));
    row.map(|(_, _, instead)| format!(". {instead}"))
}

/// Returns the command that one word behind the name of a group is the argument of: a setting with its value, or a
/// choice of a subcommand.
fn skipped_subcommand(command: &Command, argument: &str) -> Option<String> {
    let name = command.get_name();
    if let Some((key, value)) = argument.split_once('=').filter(|_| name == "config") {
        let words = quote_words(&[key.to_owned(), value.to_owned()]);
        return Some(format!("gnoma config set {words}"));
    }
    let has_choice = |sub: &&Command| {
        let mut choices = sub.get_positionals().flat_map(Arg::get_possible_values);
        choices.any(|choice| choice.matches(argument, true))
    };
    let sub = command.get_subcommands().find(has_choice)?;
    Some(format!("gnoma {name} {} {argument}", sub.get_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str) -> Option<LineAnswer> {
        let line: Vec<_> = line.split_whitespace().map(OsString::from).collect();
        answer_line(&line)
    }

    #[test]
    fn mistyped_subcommand_suggests_the_existing_one() {
        for (line, told) in [
            ("gnoma sessions remov 2026", "`gnoma sessions delete 2026`"),
            ("gnoma sessions info 2026", "`gnoma sessions show 2026`"),
            ("gnoma sessions lst", "`gnoma sessions list`"),
            ("gnoma providers del work", "`gnoma providers remove work`"),
            ("gnoma providers lst", "`gnoma providers list`"),
            ("gnoma mcp get x", "`gnoma mcp list`"),
            ("gnoma config edit", "gnoma config path"),
            ("gnoma config unset tui.vim", "delete its line"),
            ("gnoma config unset nosuch", "delete its line"),
            ("gnoma config reset", "delete its line"),
            ("gnoma config list", "`gnoma config show`"),
            ("gnoma config shwo", "`gnoma config show`"),
            ("gnoma agents show x", "`gnoma agents list`"),
            ("gnoma guard check a.txt", "`gnoma guard scan a.txt`"),
            ("gnoma plugin uninstall x", "`gnoma plugin remove x`"),
            ("gnoma router login", "`gnoma router --help`"),
            ("gnoma config tui.theme=light", "`gnoma config set tui.theme light`"),
            ("gnoma ci github", "`gnoma ci init github`"),
            ("gnoma providers test mock", "`gnoma providers` shows"),
            ("gnoma providers login mistral", "`gnoma providers add NAME`"),
            ("gnoma providers default mock", "provider.default"),
            ("gnoma serve stop", "Ctrl+C"),
            ("gnoma models pull x", "`ollama pull NAME`"),
            ("gnoma sessions open x", "`gnoma --resume ID`"),
            ("gnoma skills install x", "SKILL.md"),
            ("gnoma agents create x", "NAME.md"),
            ("gnoma mcp restart x", "`gnoma mcp test NAME`"),
            ("gnoma plugin enable x", "`plugins.enabled`"),
            ("gnoma protocol schema", "`gnoma protocol --schema`"),
            ("gnoma ps json", "`gnoma ps --json`"),
            ("gnoma --profile work config edit", "gnoma config path"),
        ] {
            let Some(LineAnswer::Mistake(said)) = answered(line) else { panic!("{line}") };
            assert!(said.starts_with("there is no `gnoma ") && said.contains(told), "{said}");
            assert!(said.contains("as a prompt: `gnoma -- "), "{said}");
        }
    }

    #[test]
    fn help_of_an_unknown_command_suggests_a_known_one() {
        for (line, told) in [
            ("gnoma help sesions", "did you mean `gnoma help sessions`?"),
            ("gnoma help sesions list", "did you mean `gnoma help sessions`?"),
            ("gnoma help sessions lst", "did you mean `gnoma help sessions list`?"),
            ("gnoma help login", "gnoma providers add"),
        ] {
            let Some(LineAnswer::Mistake(said)) = answered(line) else { panic!("{line}") };
            assert!(said.contains(told), "{line}: {said}");
        }
        for line in ["gnoma help exec", "gnoma help run"] {
            assert_eq!(answered(line), Some(LineAnswer::Help(EXEC_HELP)));
        }
    }

    #[test]
    fn valid_commands_and_sentences_get_no_typo_advice() {
        for line in [
            "gnoma",
            "gnoma help",
            "gnoma help sessions list",
            "gnoma help me",
            "gnoma help me with this",
            "gnoma help fix tests",
            "gnoma help fix",
            "gnoma help tests",
            "gnoma help bitte",
            "gnoma help README",
            "gnoma config remove dead code",
            "gnoma config test failures",
            "gnoma config sets wrong port",
            "gnoma router login page",
            "gnoma models pull",
            "gnoma models pull too much memory",
            "gnoma sessions open twice after restart",
            "gnoma config a=b is read as text",
            "gnoma agents run parallel",
            "gnoma task stop button",
            "gnoma sessions expire early",
            "gnoma config is broken",
            "gnoma config update the docs",
            "gnoma config check fails",
            "gnoma sessions list is slow: why?",
            "gnoma plugin add a file to it",
            "gnoma agents list",
            "gnoma sessions rm 2026",
            "gnoma mcp ls",
            "gnoma -p config edit",
            "gnoma -- config edit",
            "gnoma exec config edit",
            "gnoma usage of tokio select",
        ] {
            assert_eq!(answered(line), None, "{line}");
        }
    }
}
