//! Words that were meant as a command and are none. Sent to a model they would cost money and answer
//! nothing, so they are explained instead; after `--` and with `--print` words are a prompt, and after `exec` all but
//! a command of the conversation.
//!
//! A sentence is never taken for a command: either there is one word alone, or what follows it reads
//! as a command's arguments.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use gnoma_config::nearest_name;
use gnoma_extend::{
    commands::{may_be_prompt_or_folder, parse_invocation as named_command},
    tasks::is_reserved_name,
};
use gnoma_llm::KNOWN;

use super::{
    Args, TurnArgs,
    verbs::{self, EXEC},
};

/// Shorter words are near to too much.
const MIN_GUESSED_CHARS: usize = 3;
/// Runs the tasks of a project, in the conversation and as a command.
pub(crate) const TASK: &str = "task";
/// Words that are near to a command's name and begin prompts of their own.
const OWN_WORDS: [&str; 1] = ["talk"];

/// Words that other programs have as commands, and what gnoma has in their place.
const RESERVED: &[(&[&str], &str)] = &[
    (&["help"], "`gnoma --help` lists commands and options, `gnoma COMMAND --help` explains one"),
    (&["version", "ver"], "`gnoma --version` prints the version"),
    (
        &[
            "login", "signin", "auth", "account", "whoami", "apikey", "api-key", "key", "keys",
            "token",
        ],
        "You need no account, only the API key of a provider. `gnoma providers add` \
         sets one up, `gnoma providers` lists them",
    ),
    (
        &["logout", "signout"],
        "`gnoma providers remove NAME` removes a provider and its key, `gnoma providers` lists those that are set up",
    ),
    (
        &["memory"],
        "`/memory` in a session lists the instructions that models get, which are in AGENTS.md, and what you added",
    ),
    (
        &["setup", "onboard", "onboarding", "configure", "connect"],
        "`gnoma providers add` sets a provider up, `gnoma config init` writes a configuration file",
    ),
    (
        &["init", "new"],
        "gnoma works in any folder without setup. `gnoma config init` writes a configuration file; instructions \
         for models go into AGENTS.md, and `gnoma \"write an AGENTS.md for this project\"` makes one",
    ),
    (&["plugins"], "`gnoma plugin list` lists plugins, `gnoma plugin install` installs one"),
    (
        &["extension", "hooks", "hook", "skill", "agent", "commands"],
        "`gnoma extensions` lists hooks, skills, commands and agents",
    ),
    (&["model", "arms", "list-models"], "`gnoma models` lists models, `--model NAME` chooses one"),
    (&["add"], "`gnoma providers add` sets a provider up"),
    (
        &["settings", "setting", "preferences", "prefs", "options"],
        "`gnoma config show` prints the configuration, `gnoma config set KEY VALUE` changes it",
    ),
    (&["get", "set"], "`gnoma config get KEY` and `gnoma config set KEY VALUE` do that"),
    (
        &["history", "conversations", "chats", "threads", "logs", "log", "ls"],
        "`gnoma sessions list` lists sessions, `gnoma models` models and `gnoma providers` providers",
    ),
    (
        &["resume", "continue", "open"],
        "`gnoma --continue` continues the newest session here, `gnoma --resume ID` another one",
    ),
    (
        &["chat", "start", "tui", "repl", "interactive", "code"],
        "`gnoma` without words starts a session at the terminal",
    ),
    (
        &["exec", "run", "ask", "prompt"],
        "`gnoma \"what you want\"` answers and exits, and so does `gnoma exec \"what you want\"`",
    ),
    (&["undo", "revert", "restore"], "`gnoma rewind` undoes the last turn"),
    (&["diff"], "`gnoma changes --diff` shows what the last turn changed"),
    (
        &["fork", "rename", "export", "delete", "search", "repair"],
        "`gnoma sessions` has that: see `gnoma sessions --help`",
    ),
    (
        &["cost", "costs", "stats", "billing", "budget", "limits", "quota"],
        "`gnoma usage` shows what was spent, `gnoma router pools` how much of each limit is left",
    ),
    (
        &["status", "info", "check", "health", "debug", "diagnose", "ping"],
        "`gnoma doctor` checks this machine, `gnoma providers` shows which providers respond, `gnoma ps` lists \
         sessions in the server",
    ),
    (&["server", "daemon"], "`gnoma serve` runs sessions in a server"),
    (
        &["permission", "permissions", "allow", "deny"],
        "`--permission MODE` chooses what needs approval; see `gnoma --help`",
    ),
    (
        &["upgrade", "install", "uninstall", "self-update"],
        "`gnoma update` says how this installation is updated and removed",
    ),
    (&["quit", "exit", "stop", "kill"], "Nothing is running: gnoma exits after each prompt"),
    (&["completion", "autocomplete"], "`gnoma completions SHELL` prints a completion script"),
    (&["feedback", "bug", "issue"], "`gnoma doctor` prints what to put in a bug report"),
];

/// Those of the reserved words that are things, so that a verb may follow.
const NOUNS: &[&str] = &[
    "mcp",
    "plugin",
    "plugins",
    "extension",
    "hooks",
    "hook",
    "skill",
    "agent",
    "commands",
    "auth",
    "account",
    "model",
    "arms",
    "keys",
    "key",
    "settings",
    "setting",
    "history",
    "conversations",
    "chats",
    "threads",
    "logs",
    "usage",
    "cost",
    "costs",
    "stats",
    "billing",
    "budget",
    "limits",
    "quota",
    "permissions",
    "server",
    "daemon",
];

/// Most words behind a command of the conversation that are its arguments; more are a sentence that begins with its
/// name, as in `/config is wrong in the docs`.
const MAX_SLASH_ARGUMENTS: usize = 3;

/// Returns advice, in sentences, if the words of a prompt were probably meant as a command. `line` is the whole
/// command line, `cwd` the folder that paths start from.
pub(crate) fn mistaken_prompt_advice(
    args: &TurnArgs,
    line: &[String],
    cwd: &Path,
) -> Option<String> {
    if is_said_to_be_a_prompt(args, line) {
        return None;
    }
    let (first, rest) = args.words.split_first()?;
    if first.is_empty() {
        return None;
    }
    // A quoted text is a prompt, and so is what begins with a slash, as far as can be said without the project.
    if first.contains(char::is_whitespace) {
        return None;
    }
    let is_slashed = first.starts_with('/');
    let why = if is_slashed { None } else { misspelt_command_advice(first, rest) }
        .or_else(|| reserved_command_advice(first, rest))
        .or_else(|| named_thing_advice(first, rest, cwd))?;
    Some(format!("{why}\n{}", prompt_advice(&args.words)))
}

/// Returns advice if the words begin with a command that is for the conversation alone, or that does not exist. `own`
/// are the commands that the project and the person have.
pub(crate) fn slash_advice(args: &TurnArgs, line: &[String], own: &[String]) -> Option<String> {
    let text = args.words.join(" ");
    let (name, arguments) = named_command(&text)?;
    let is_known = own.iter().any(|known| known == name);
    // `-p` makes a prompt of words, and this one would run a task if there were such a one.
    let is_prompt =
        is_marked_as_prompt(args, line) && (name != TASK || line.iter().any(|word| word == "--"));
    if is_known || is_prompt {
        return None;
    }
    if let Some(why) = conversation_command_advice(name, arguments) {
        return Some(format!("{why}\n{}", prompt_advice(&args.words)));
    }
    if may_be_prompt_or_folder(name)
        || gnoma_tui::slash_command_arguments(&name.to_lowercase()).is_some()
    {
        return None;
    }
    // A prompt that is quoted as a whole may begin with anything but a slip in the name of one's own command, and a
    // route or a folder of a program (`/health is broken`) begins a sentence as well.
    let is_quoted = args.words.first().is_some_and(|word| word.contains(char::is_whitespace));
    let builtin =
        gnoma_tui::slash_command_names().filter(|_| !is_quoted).map(|name| -> &str { name });
    let known = own.iter().map(String::as_str).chain(builtin);
    let near = nearest_name(&name.to_lowercase(), known);
    if near.is_none() && (is_quoted || args.words.len() > 1) {
        return None;
    }
    let near = near.map_or_else(String::new, |near| format!("; did you mean `/{near}`?"));
    Some(format!("there is no command `/{name}`{near}\n{}", prompt_advice(&args.words)))
}

/// Returns advice if a prompt that begins with `task` was meant as a command: a task that exists follows, or a word
/// that only `/task` understands.
pub(crate) fn task_prompt_advice(
    args: &TurnArgs,
    line: &[String],
    is_task: impl FnOnce(&str) -> bool,
) -> Option<String> {
    let is_prompt = is_marked_as_prompt(args, line) || line.iter().any(|word| word == EXEC);
    let (first, rest) = args.words.split_first().filter(|_| !is_prompt)?;
    let told = task_advice(rest, is_task).filter(|_| first == TASK)?;
    Some(format!("{told}\n{}", prompt_advice(&args.words)))
}

/// Returns what the words behind `task` are as a command.
pub(super) fn task_advice(words: &[String], is_task: impl FnOnce(&str) -> bool) -> Option<String> {
    let (name, rest) = words.split_first()?;
    match name.as_str() {
        "save" if rest.len() <= 1 => Some(
            "`/task save NAME` is for the conversation: start `gnoma` and type it there".to_owned(),
        ),
        "never" if rest.is_empty() => Some(
            "`/task never` is for the conversation: start `gnoma` and type it there".to_owned(),
        ),
        name => {
            is_task(name).then(|| format!("`gnoma task run {}` runs the task", quote_words(words)))
        }
    }
}

/// True if the words are a prompt whatever they are: marked as one, or behind `exec`.
fn is_said_to_be_a_prompt(args: &TurnArgs, line: &[String]) -> bool {
    args.print || is_marked_as_prompt(args, line)
}

/// True if an option or `--` in the line marks its words as a prompt.
fn is_marked_as_prompt(args: &TurnArgs, line: &[String]) -> bool {
    let is_mark = |word: &String| word == "--" || word == "--print" || word.starts_with("-p");
    args.newest || args.resume.is_some() || line.iter().any(is_mark)
}

/// Returns advice on how to send words as a prompt that look like a command.
pub(super) fn prompt_advice(words: &[String]) -> String {
    format!("To send it to a model as a prompt: `gnoma -- {}`", quote_words(words))
}

/// The command that words are: one alone is the whole command, several are quoted as a shell reads them.
pub(crate) fn shell_line(words: &[String]) -> String {
    match words {
        [whole] => whole.clone(),
        words => quote_words(words),
    }
}

/// The words as a shell takes them.
pub(super) fn quote_words(words: &[String]) -> String {
    let plain = |word: &String| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(plain).collect::<Vec<_>>().join(" ")
}

/// Returns advice about `/task` with words that name no task.
fn conversation_task_advice(arguments: &str) -> String {
    match arguments.split_whitespace().next() {
        None => "`gnoma task list` lists the tasks, `gnoma task run NAME` runs one".to_owned(),
        Some(word @ ("save" | "never")) => {
            format!("`/task {word}` is for the conversation: start `gnoma` and type it there")
        }
        Some(word) if is_reserved_name(word) => {
            format!("`gnoma task {word}` does that, and `gnoma task {word} --help` explains it")
        }
        Some(name) => format!(
            "there is no task `{name}`: `gnoma task list` lists them, `gnoma task run NAME` runs one"
        ),
    }
}

/// Returns advice if a command is one of the conversation's own, and what follows it reads as its arguments.
fn conversation_command_advice(name: &str, arguments: &str) -> Option<String> {
    if name.eq_ignore_ascii_case(TASK) {
        return Some(conversation_task_advice(arguments));
    }
    let taken = gnoma_tui::slash_command_arguments(&name.to_lowercase())?;
    let mut words = arguments.split_whitespace();
    let is_named = words.clone().next().is_some_and(|first| {
        taken.split(|c: char| !c.is_ascii_lowercase()).any(|word| word == first)
    });
    let is_short = words.by_ref().take(MAX_SLASH_ARGUMENTS + 1).count() <= MAX_SLASH_ARGUMENTS;
    if !arguments.is_empty() && (taken.is_empty() || !is_short && !is_named) {
        return None;
    }
    let all = Args::command();
    let shell = all.find_subcommand(name.to_lowercase()).map(Command::get_name);
    let shell = shell.map_or_else(String::new, |shell| format!(", or run `gnoma {shell}`"));
    Some(format!("`/{name}` is for the conversation: start `gnoma` and type it there{shell}"))
}

/// A command with a slip in it, or with its first letter in capitals.
fn misspelt_command_advice(first: &str, rest: &[String]) -> Option<String> {
    let all = Args::command();
    let lower = first.to_lowercase();
    // A sentence may begin with the name of a command.
    let is_exact = all.find_subcommand(first).is_some();
    if is_exact
        || OWN_WORDS.contains(&lower.as_str())
        || lower.chars().count() < MIN_GUESSED_CHARS
        || reserved_command_advice(first, rest).is_some()
    {
        return None;
    }
    let names =
        all.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let name = nearest_name(&lower, names)?;
    let command = all.find_subcommand(name)?;
    let after = match rest {
        [] => String::new(),
        [word, ..] => format!(
            " {}",
            misspelt_argument_advice(command, word, rest.get(1..).unwrap_or_default())?
        ),
    };
    let more = rest.get(1..).filter(|more| !more.is_empty()).map(quote_words);
    let more = more.map_or_else(String::new, |more| format!(" {more}"));
    Some(format!("there is no command `{first}`; did you mean `gnoma {name}{after}{more}`?"))
}

/// The word after a command that was not written right, if it reads as an argument of it.
fn misspelt_argument_advice(command: &Command, word: &str, more: &[String]) -> Option<String> {
    if command.has_subcommands() {
        let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let found = command.find_subcommand(word).map(Command::get_name);
        let meant = found.or_else(|| nearest_name(word, subs.map(Command::get_name)));
        let has_arguments = verbs::are_arguments(more.iter().map(String::as_str));
        let synonym = || verbs::find_synonym(word, command).map(Command::get_name);
        return meant.or_else(|| synonym().filter(|_| has_arguments)).map(str::to_owned);
    }
    let choices: Vec<_> =
        command.get_positionals().flat_map(clap::Arg::get_possible_values).collect();
    let is_choice = choices.iter().any(|choice| choice.matches(word, true));
    // A path, a number or an id, and nothing after it.
    let is_path = word.contains('/') || word.starts_with('.');
    let is_id = word.chars().any(|c| c.is_ascii_digit());
    (is_choice || more.is_empty() && (is_path || is_id)).then(|| word.to_owned())
}

/// Returns advice if the words are a command that other programs have.
pub(super) fn reserved_command_advice(first: &str, rest: &[String]) -> Option<String> {
    let word = first.to_lowercase();
    let (_, instead) = RESERVED.iter().find(|(words, _)| words.contains(&word.as_str()))?;
    let is_command = match rest {
        [] => true,
        [second, more @ ..] => completes_reserved_command(&word, second, more),
    };
    is_command.then(|| format!("there is no command `{first}`. {instead}"))
}

/// True if the word after a reserved one forms a command with it, instead of continuing a sentence.
fn completes_reserved_command(first: &str, second: &str, more: &[String]) -> bool {
    let is_last = more.is_empty();
    let second = second.to_lowercase();
    let takes_provider = ["login", "logout", "auth", "add", "connect", "key", "apikey"];
    let is_provider = KNOWN.iter().any(|known| known.name == second);
    let all = Args::command();
    let is_command = all.find_subcommand(&second).is_some_and(|command| match more {
        [] => true,
        [third, ..] => command.find_subcommand(third).is_some(),
    });
    let arguments = || more.iter().map(String::as_str);
    let has_arguments = !is_last
        && verbs::are_arguments(arguments())
        && (more.len() == 1 && verbs::is_lone_word(&second)
            || verbs::look_like_arguments(arguments()));
    (NOUNS.contains(&first) && has_arguments && verbs::is_verb(&second))
        || (NOUNS.contains(&first) && is_last && verbs::is_lone_word(&second))
        || (takes_provider.contains(&first) && is_provider)
        || (is_command && ["help", "ls", "setup"].contains(&first))
        || (["get", "set"].contains(&first) && second.contains('.') && !second.ends_with('.'))
        || (is_last && first == "model" && second.contains(|c: char| c.is_ascii_digit()))
}

/// One word that names a provider, a model or something on disk, and says nothing about it.
fn named_thing_advice(first: &str, rest: &[String], cwd: &Path) -> Option<String> {
    if !rest.is_empty() {
        return None;
    }
    let provider = |name: &str| KNOWN.iter().any(|known| known.name == name);
    if provider(first) {
        return Some(format!(
            "`{first}` is a provider: `gnoma --provider {first}` uses it, `gnoma providers add {first}` sets it up"
        ));
    }
    if first.split_once('/').is_some_and(|(name, model)| provider(name) && !model.is_empty()) {
        return Some(format!("`{first}` is a model: `gnoma --model {first}` uses it"));
    }
    if !first.contains(['/', '.']) {
        return None;
    }
    let facts = cwd.join(first).metadata().ok()?;
    Some(if facts.is_dir() {
        format!(
            "`{first}` is a folder: `gnoma --cwd {}` works there",
            quote_words(&[first.to_owned()])
        )
    } else {
        format!("`{first}` is a file: say what to do with it, as in `gnoma \"explain {first}\"`")
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::Parser as _;

    use super::*;
    use crate::args::rewrite_line;

    fn advised(line: &str) -> Option<String> {
        let line: Vec<String> = line.split('|').map(str::to_owned).collect();
        let args = Args::try_parse_from(&line).unwrap();
        assert!(args.command.is_none(), "{line:?} is a command");
        mistaken_prompt_advice(&args.turn, &line, Path::new("/"))
    }

    #[test]
    fn mistaken_command_gets_advice_and_is_not_sent_to_a_model() {
        let cases = [
            ("gnoma|version", "gnoma --version"),
            ("gnoma|Login", "gnoma providers add"),
            ("gnoma|login|anthropic", "gnoma providers add"),
            ("gnoma|init", "AGENTS.md"),
            ("gnoma|plugins", "gnoma plugin list"),
            ("gnoma|plugins|add|github", "gnoma plugin install"),
            ("gnoma|session|list", "`gnoma sessions list`"),
            ("gnoma|sesions|list", "`gnoma sessions list`"),
            ("gnoma|sesions|lst", "`gnoma sessions list`"),
            ("gnoma|sessoin", "`gnoma sessions`"),
            ("gnoma|Doctor", "`gnoma doctor`"),
            ("gnoma|tasks", "`gnoma task`"),
            ("gnoma|tsak|list", "`gnoma task list`"),
            ("gnoma|provider", "`gnoma providers`"),
            ("gnoma|confg|show", "`gnoma config show`"),
            ("gnoma|rewnd|2", "`gnoma rewind 2`"),
            ("gnoma|completion|bash", "`gnoma completions bash`"),
            ("gnoma|model|list", "gnoma models"),
            ("gnoma|hooks|list", "gnoma extensions"),
            ("gnoma|logs|show|x", "gnoma sessions list"),
            ("gnoma|session|rm|2026", "`gnoma sessions delete 2026`"),
            ("gnoma|set|tui.vim|true", "gnoma config set"),
            ("gnoma|--provider|x|upgrade", "gnoma update"),
            ("gnoma|mistral", "--provider mistral"),
            ("gnoma|anthropic/claude-opus", "--model anthropic/claude-opus"),
            ("gnoma|.", "--cwd ."),
            ("gnoma|resume", "--continue"),
            ("gnoma|logout", "`gnoma providers remove NAME`"),
            ("gnoma|memory", "`/memory`"),
        ];
        for (line, told) in cases {
            let said = advised(line).unwrap_or_else(|| panic!("{line} goes to a model"));
            assert!(said.contains(told) && said.contains("`gnoma -- "), "{line}: {said}");
        }
    }

    #[test]
    fn sentences_and_explicit_prompts_are_not_mistaken_for_commands() {
        for line in [
            "gnoma|hi",
            "gnoma|hello",
            "gnoma|review",
            "gnoma|why",
            "gnoma|test",
            "gnoma|talk",
            "gnoma|fix it",
            "gnoma|help|me|fix|the|build",
            "gnoma|help me",
            "gnoma|run|the|tests",
            "gnoma|costs|of|tokio|select",
            "gnoma|status|of|the|build",
            "gnoma|install|the|dependencies",
            "gnoma|memory|leaks|in|the|loader",
            "gnoma|change|the|port|to|8080",
            "gnoma|sessions are lost when the disk is full: why?",
            "gnoma|set|the|port",
            "gnoma|model|the|data",
            "gnoma|model|test",
            "gnoma|hooks|test",
            "gnoma|settings|reset",
            "gnoma|list|all|todos",
            "gnoma|init|a|git|repository",
            "gnoma|provide|an|example",
            "gnoma|demonstrate|it",
            "gnoma|/usr/bin/frobnicate",
            "gnoma|/review|the|parser",
            "gnoma|/review the parser",
            "gnoma|/redoo",
            "gnoma|--|version",
            "gnoma|--|models",
            "gnoma|-p|version",
            "gnoma|-c|continue",
            "gnoma|日本語",
            "gnoma|",
        ] {
            assert_eq!(advised(line), None, "{line}");
        }
    }

    #[test]
    fn commands_of_the_conversation_that_do_not_exist_are_not_sent_to_a_model() {
        let unknown = |line: &str| {
            let line: Vec<String> = line.split('|').map(str::to_owned).collect();
            let words: Vec<OsString> = line.iter().map(OsString::from).collect();
            let args = Args::try_parse_from(rewrite_line(&words).unwrap_or(words)).unwrap();
            slash_advice(&args.turn, &line, &["fix", "review", "status"].map(str::to_owned))
        };
        for (line, told) in [
            ("gnoma|/fxi|42", "there is no command `/fxi`; did you mean `/fix`?"),
            ("gnoma|/reviw", "did you mean `/review`?"),
            ("gnoma|/redoo", "did you mean `/redo`?"),
            ("gnoma|/nosuch", "there is no command `/nosuch`\n"),
            ("gnoma|/fxi 42", "did you mean `/fix`?"),
            ("gnoma|/help", "start `gnoma`"),
            ("gnoma|/hooks", "start `gnoma`"),
            ("gnoma|/Doctor", "type it there, or run `gnoma doctor`"),
            ("gnoma|/rename x", "start `gnoma`"),
            ("gnoma|/effort|off", "start `gnoma`"),
            ("gnoma|/memory add tests run with cargo test", "start `gnoma`"),
            ("gnoma|/model|gpt-5", "start `gnoma`"),
            ("gnoma|/model gpt-5", "start `gnoma`"),
            ("gnoma|/compact focus on x", "start `gnoma`"),
            ("gnoma|/permission plan", "start `gnoma`"),
            ("gnoma|/task two v1", "there is no task `two`"),
            ("gnoma|-p|/task two v1 and many more words", "there is no task `two`"),
            ("gnoma|/task", "`gnoma task list` lists the tasks"),
            ("gnoma|/task|list", "`gnoma task list` does that"),
            ("gnoma|/task run release v1", "`gnoma task run` does that"),
            ("gnoma|/task save release", "`/task save` is for the conversation"),
            ("gnoma|exec|/reviw", "did you mean `/review`?"),
            ("gnoma|exec|/memory add x", "start `gnoma`"),
            ("gnoma|--permission|plan|exec|/help", "start `gnoma`"),
        ] {
            let said = unknown(line).unwrap_or_else(|| panic!("{line}"));
            assert!(said.contains(told) && said.contains("`gnoma -- "), "{line}: {said}");
        }
        for line in [
            "gnoma|/fix|42",
            "gnoma|/etc/passwd|what is this",
            "gnoma|/tmp|is|full",
            "gnoma|--|/fxi|42",
            "gnoma|--|/task|two",
            "gnoma|-p|/fxi|42",
            "gnoma|exec|-p|/fxi|42",
            "gnoma|exec|--|/fxi|42",
            "gnoma|exec|/review|42",
            "gnoma|/server:prompt",
            "gnoma|/nobody knows this",
            "gnoma|/config is wrong in the docs",
            "gnoma|/profile|answers|500|in|production",
            "gnoma|/version is not shown",
            "gnoma|/status",
            "gnoma|/modl is wrong",
            "gnoma|/health|endpoint|broken",
            "gnoma|/v1|route|is|slow",
            "gnoma|what|is|/fxi",
        ] {
            assert_eq!(unknown(line), None, "{line}");
        }
    }

    #[test]
    fn words_behind_task_are_a_command_only_if_they_name_a_task() {
        let advised = |line: &str| {
            let line: Vec<String> = line.split('|').map(str::to_owned).collect();
            let words: Vec<OsString> = line.iter().map(OsString::from).collect();
            let args = Args::try_parse_from(rewrite_line(&words).unwrap_or(words)).unwrap();
            task_prompt_advice(&args.turn, &line, |name| name == "release")
        };
        let told = advised("gnoma|task|release|v1|to it").unwrap();
        assert!(told.starts_with("`gnoma task run release v1 'to it'` runs the task\n"), "{told}");
        assert!(advised("gnoma|task|save|foo").unwrap().starts_with("`/task save NAME`"));
        for line in [
            "gnoma|task|force|lost|contact",
            "gnoma|task|save|the|whales",
            "gnoma|--|task|release|v1",
            "gnoma|-p|task|release|v1",
            "gnoma|exec|task|release|v1",
            "gnoma|fix|release",
        ] {
            assert_eq!(advised(line), None, "{line}");
        }
    }

    #[test]
    fn reserved_words_are_not_commands() {
        let all = Args::command();
        for word in RESERVED.iter().flat_map(|(words, _)| *words) {
            assert!(all.find_subcommand(word).is_none(), "`{word}` is a command");
        }
    }
}
