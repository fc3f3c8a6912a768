//! Options of other assistants, and gnoma's in their place.

use std::ffi::OsString;

use clap::{
    CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::Args;

/// The beginning of the last line of clap's errors.
const LAST_LINE: &str = "For more information";

/// Option names that other assistants use, each with advice on what to do in gnoma instead.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &[
            "--yolo",
            "--dangerously-skip-permissions",
            "--dangerously-bypass-approvals-and-sandbox",
            "--allow-dangerously-skip-permissions",
            "--yes-always",
            "--yes",
            "-y",
            "--allow-all-tools",
            "--auto-approve",
            "--trust-all-tools",
        ],
        "`--permission bypass` runs commands and edits without asking. It still asks before dangerous actions, \
         unless you add `--confirm-bypass`",
    ),
    (
        &["--full-auto"],
        "`--permission accept_edits` edits without asking, `--permission bypass` runs commands without asking, \
         too",
    ),
    (
        &["-a", "--ask-for-approval", "--approval-mode", "--approval-policy", "--mode"],
        "`--permission MODE` says what needs approval: `gnoma --help` lists the modes",
    ),
    (
        &[
            "--allowedTools",
            "--allowed-tools",
            "--disallowedTools",
            "--disallowed-tools",
            "--tools",
            "--allow-tool",
            "--deny-tool",
        ],
        "rules allow and deny tools: write `[[permission.rules]]` into the configuration (`gnoma config path`)",
    ),
    (
        &["-s", "--sandbox", "--no-sandbox"],
        "commands run in a sandbox if this machine has one. `gnoma config set sandbox.mode auto|required|off` \
         changes that",
    ),
    (
        &["--append-system-prompt", "--append-system"],
        "write instructions into AGENTS.md, or into ~/.config/gnoma/AGENTS.md for all projects. `--system` \
         replaces the built-in prompt",
    ),
    (&["--mcp-config", "--strict-mcp-config"], "`gnoma mcp add` adds a server"),
    (
        &["-i", "--interactive", "--prompt-interactive"],
        "`gnoma` without a prompt starts a session at the terminal",
    ),
    (
        &["--prompt", "--message", "--query"],
        "write the prompt without an option: `gnoma \"what you want\"`",
    ),
    (
        &["-f", "--file", "--message-file", "--prompt-file", "--read", "--image"],
        "name the file in the prompt, as in `gnoma \"explain src/main.rs\"`, or pipe it in",
    ),
    (
        &["-q", "--quiet", "--silent"],
        "only the answer goes to standard output; `2>/dev/null` hides the rest",
    ),
    (
        &["-v", "--verbose", "--debug", "-d"],
        "`--output-format stream-json` prints every event, `gnoma doctor` checks this machine",
    ),
    (
        &["--json", "--stream-json", "--jsonl", "--format"],
        "`--output-format json` prints one object at the end, `--output-format stream-json` one for each event",
    ),
    (
        &["--api-key", "--key", "--openai-api-key", "--anthropic-api-key", "--gemini-api-key"],
        "others could read a key on a command line. Export it, as in OPENAI_API_KEY, or name its variable: \
         `gnoma providers add NAME --key-env VARIABLE`",
    ),
    (
        &["--base-url", "--api-base", "--openai-api-base", "--url", "--endpoint", "--api-url"],
        "the option is `--address`: `gnoma providers add NAME --address URL` adds a server, and \
         `--provider NAME` uses it",
    ),
    (
        &["--config", "--settings", "--config-file"],
        "`gnoma config path` prints where the files are, and `--profile NAME` uses another profile",
    ),
    (
        &["--effort", "--reasoning-effort", "--reasoning", "--think"],
        "`--thinking off|adaptive|N` sets how much the model thinks, \
         `gnoma config set provider.effort none|low|medium|high` how hard it tries",
    ),
    (
        &["--temperature", "--max-tokens", "--max-output-tokens"],
        "`gnoma config set provider.temperature N` sets the temperature, \
         `gnoma config set provider.max_tokens N` the maximum tokens of an answer",
    ),
    (
        &["--max-budget-usd", "--budget", "--max-cost"],
        "`gnoma config set router.caps.session N` caps what is spent",
    ),
    (&["--fork-session"], "`--fork` continues in a copy of the session"),
    (
        &["--session", "--session-id"],
        "`--resume ID` continues a session, `gnoma sessions list` lists them",
    ),
    (
        &["--last", "--restore-chat-history"],
        "`gnoma --continue` continues the newest session of this project",
    ),
    (
        &["-C", "--dir", "--directory", "--workspace", "--working-directory"],
        "`--cwd DIR` chooses the folder",
    ),
    (&["--list-models", "--models"], "`gnoma models` lists them"),
    (&["--list-sessions", "--sessions"], "`gnoma sessions list` lists them"),
    (
        &["--vim", "--dark-mode", "--light-mode", "--theme"],
        "`gnoma config set tui.vim true` turns vim keys on, `gnoma config set tui.theme NAME` chooses the \
         colours",
    ),
    (
        &["--no-git", "--git", "--auto-commits", "--no-auto-commits", "--commit"],
        "gnoma makes no commits unless you ask for them, and works without git",
    ),
];

/// Options that people expect to take a key.
const KEY_OPTIONS: [&str; 5] = ["--key", "--api-key", "--apikey", "--token", "--secret"];

/// Returns what is wrong with a command line that has an option of another assistant, and what to write instead.
/// The advice is about prompts, so it does not apply to commands.
pub(crate) fn foreign_option_advice(error: &clap::Error, line: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument || command_of(error).is_some() {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let option = option.split('=').next().unwrap_or(option);
    if let Some(command) = command_in(line) {
        return Some(format!(
            "there is no option `{option}` before a command. `gnoma {command} --help` lists those of `{command}`"
        ));
    }
    let (_, instead) = OPTIONS.iter().find(|(names, _)| names.contains(&option))?;
    Some(format!("there is no option `{option}`: {instead}"))
}

/// Returns what is wrong with an unknown option of a command, and where the command's options are listed.
pub(crate) fn unknown_option_advice(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let command = command_of(error)?;
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.split('=').next().unwrap_or_default(),
        _ => "",
    };
    if command.starts_with("providers") && KEY_OPTIONS.contains(&option) {
        let text =
            "a key on the command line is visible to others: use --key-stdin or --key-env NAME";
        return Some(text.to_owned());
    }
    if command.starts_with("providers add") && option.contains("://") {
        return Some(format!("write the address as `--address {option}`"));
    }
    let rendered = error.render().to_string();
    let told = rendered.rsplit_once(LAST_LINE).map_or(rendered.as_str(), |(told, _)| told);
    // An option that a command does not have is never meant as a text.
    let parts: Vec<&str> =
        told.trim_end().split("\n\n").filter(|part| !part.ends_with(&tip_of(option))).collect();
    Some(format!("{}\n\n`gnoma {command} --help` lists the options", parts.join("\n\n")))
}

/// Returns the end of clap's tip on how an option is passed as a text.
fn tip_of(option: &str) -> String {
    format!("as a value, use '-- {option}'")
}

/// The command that a line names behind its options, such as `trust` of `gnoma --yes trust`.
fn command_in(line: &[OsString]) -> Option<&str> {
    let mut words = line.iter().skip(1).filter_map(|word| word.to_str());
    let first = words.find(|word| !word.starts_with('-'))?;
    Args::command().find_subcommand(first).map(|_| first)
}

/// The command that an error is about, such as `config set`; `None` if the line has none.
pub(super) fn command_of(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return None;
    };
    let usage = usage.to_string();
    let after_program = usage.split_whitespace().skip(2);
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let names: Vec<_> = after_program.take_while(is_name).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{GnomaSubcommand, ProvidersSub};

    fn words(line: &str) -> Vec<OsString> {
        line.split('|').map(OsString::from).collect()
    }

    #[test]
    fn options_of_other_assistants_are_explained() {
        for (line, told) in [
            ("gnoma|--yolo|x", "--permission bypass"),
            ("gnoma|--allowedTools=Bash|x", "permission.rules"),
            ("gnoma|-y|x", "--confirm-bypass"),
            ("gnoma|--json|x", "--output-format json"),
            ("gnoma|-C|/x|y", "--cwd"),
        ] {
            let error = Args::try_parse_from(line.split('|')).unwrap_err();
            let said = foreign_option_advice(&error, &words(line)).unwrap_or_default();
            assert!(said.contains(told), "{line}: {error}");
        }
        let error = Args::try_parse_from(["gnoma", "--modle", "x"]).unwrap_err();
        assert_eq!(
            (
                foreign_option_advice(&error, &words("gnoma|--modle|x")),
                unknown_option_advice(&error)
            ),
            (None, None)
        );
    }

    #[test]
    fn unknown_option_before_a_command_points_to_the_help_of_that_command() {
        for (line, option, command) in [
            ("gnoma|--yes|trust", "--yes", "trust"),
            ("gnoma|-p|--verbose|sessions|list", "--verbose", "sessions"),
            ("gnoma|--whatever|models", "--whatever", "models"),
        ] {
            let error = Args::try_parse_from(line.split('|')).unwrap_err();
            let told = format!(
                "there is no option `{option}` before a command. `gnoma {command} --help` lists those of `{command}`"
            );
            assert_eq!(foreign_option_advice(&error, &words(line)), Some(told), "{line}");
        }
    }

    #[test]
    fn the_model_of_a_new_provider_is_explained_as_that() {
        let add = |line: &str| {
            let args = Args::try_parse_from(line.split('|')).unwrap();
            let Some(GnomaSubcommand::Providers { what: Some(ProvidersSub::Add(new)) }) =
                args.command
            else {
                panic!("{line}")
            };
            new.model.or(args.turn.model)
        };
        for line in ["gnoma|providers|add|x|-m|m1", "gnoma|-m|m1|providers|add|x"] {
            assert_eq!(add(line).as_deref(), Some("m1"), "{line}");
        }
        let mut all = Args::command();
        all.build();
        let add = all.find_subcommand("providers").unwrap().find_subcommand("add").unwrap();
        let help = add.clone().render_help().to_string();
        assert!(help.contains("one of those that it lists"), "{help}");
        assert!(!help.contains("Model to use\n"), "{help}");
    }

    #[test]
    fn rejected_argument_gets_no_tip_to_pass_it_as_text() {
        for (line, has, has_not) in [
            ("gnoma|rewind|--to|2", "unexpected argument '--to' found", "tip:"),
            ("gnoma|providers|add|work|http://x/v1", "`--address http://x/v1`", "unexpected"),
        ] {
            let error = Args::try_parse_from(line.split('|')).unwrap_err();
            let told = unknown_option_advice(&error).unwrap();
            assert!(told.contains(has) && !told.contains(has_not), "{told}");
        }
    }

    #[test]
    fn options_of_commands_are_not_those_of_other_assistants() {
        for (line, command) in [
            ("gnoma|trust|--sure", "trust"),
            ("gnoma|trust|--list|--yolo", "trust"),
            ("gnoma|sessions|list|--verbose", "sessions list"),
        ] {
            let error = Args::try_parse_from(line.split('|')).unwrap_err();
            assert_eq!(foreign_option_advice(&error, &words(line)), None, "{line}: {error}");
            let told = unknown_option_advice(&error).unwrap();
            let last = format!("\n\n`gnoma {command} --help` lists the options");
            assert!(told.starts_with("error: ") && told.ends_with(&last), "{line}: {told}");
            assert!(!told.contains(LAST_LINE) && !told.contains("bypass"), "{line}: {told}");
        }
    }

    #[test]
    fn foreign_options_are_not_options_of_gnoma() {
        let all = Args::command();
        for name in OPTIONS.iter().flat_map(|(names, _)| *names) {
            let is_ours = all.get_arguments().any(|arg| {
                arg.get_long().is_some_and(|long| format!("--{long}") == *name)
                    || arg.get_short().is_some_and(|short| format!("-{short}") == *name)
            });
            assert!(!is_ours, "{name}");
        }
    }

    #[test]
    fn option_spellings_of_other_assistants_are_accepted() {
        let line = [
            "gnoma",
            "--permission-mode",
            "acceptEdits",
            "--system-prompt",
            "s",
            "--cd",
            "/x",
            "hi",
        ];
        let args = Args::try_parse_from(line).unwrap().turn;
        assert!(args.permission.is_some_and(|mode| mode.name() == "accept_edits"));
        assert_eq!((args.system.as_deref(), args.cwd), (Some("s"), Some("/x".into())));
    }
}
