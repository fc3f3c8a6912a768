//! `gnoma claude`: the command line and the wire of `claude`, for programs that drive it. [`codex`] is the same for
//! programs that drive `codex exec`.
//!
//! A client of the host like every other front end: events become messages of that wire, and its requests
//! become requests of the protocol. Whose models answer is gnoma's matter.

mod agents;
mod blocks;
pub mod codex;
mod control;
mod driver;
mod error;
mod flags;
mod ids;
mod input;
mod mcp;
mod message_translation;
mod names;
mod open;
mod partial_answer;
mod permission;
mod program_hooks;
mod program_output;
mod request_handlers;
mod requests;
mod rules;
mod session_driver;
mod session_events;
mod session_init_message;
mod start;
mod updates;

use std::{ffi::OsString, path::Path};

use anyhow::Result;
use gnoma_front::{
    ProcessEnvironment,
    report::{self, Exit},
    stdout::{print_raw_data, print_safe_text},
};
use gnoma_host::HostError;

use self::{
    error::DriverError,
    flags::{Flags, OutputForm},
    open::OpenParameters,
    session_driver::SessionDriver,
};

/// The name under which this program is that one.
const NAME: &str = "claude";

const HELP: &str = "\
Speak the wire of `claude`, for programs that drive it

Usage: gnoma claude [OPTIONS] [PROMPT]...
       claude [OPTIONS] [PROMPT]...        where `claude` is a link to gnoma

The official SDKs start it when their path to the program is set to gnoma: `cli_path` (Python),
`pathToClaudeCodeExecutable` (TypeScript). Whatever model gnoma is configured for answers.

Options:
  --input-format FORMAT      text or stream-json
  --output-format FORMAT     text, json or stream-json
  --model MODEL              a model of gnoma's; names such as `sonnet` leave the choice to gnoma
  --system-prompt TEXT       replace the system prompt; --append-system-prompt adds to it
  --permission-mode MODE     default, acceptEdits, plan, dontAsk or bypassPermissions
  --permission-prompt-tool stdio   put questions to the program
  --allowedTools LIST        run without approval, such as `Read,Bash(git log:*)`
  --disallowedTools LIST     never run
  --tools LIST               all the built-in tools there are
  --mcp-config JSON|FILE     MCP servers, those in the program included
  --agents JSON              sub-agents
  --max-turns N              most model calls in one turn
  --max-budget-usd AMOUNT    most to spend
  --continue, --resume ID, --fork-session, --session-id UUID
  --include-partial-messages, --replay-user-messages
  --debug                    write a debug log, which standard error names
  --add-dir DIR, --no-session-persistence, --strict-mcp-config

Options of `claude` that are not done are named on standard error. See docs/claude.md.
";

/// Returns the words behind the command where `line`, the whole command line, starts `gnoma claude`: by that name, through
/// a link named `claude`, or with options that only the SDKs write.
pub fn command_words(line: &[OsString]) -> Option<Vec<String>> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let program = Path::new(line.first()?).file_stem()?;
    let rest = line.get(1..)?;
    let first = rest.first().map(text);
    if program == NAME {
        return Some(rest.iter().map(text).collect());
    }
    if first.as_deref() == Some(NAME) {
        return Some(rest.iter().skip(1).map(text).collect());
    }
    // The SDKs start whatever they are given as that program.
    let streams = rest.iter().take_while(|word| *word != "--").any(|word| {
        let word = word.to_string_lossy();
        word == "--input-format" || word.starts_with("--input-format=")
    });
    (streams && first.is_some_and(|first| first.starts_with("--")))
        .then(|| rest.iter().map(text).collect())
}

/// Runs the `gnoma claude` command with the words of [`command_words`]. `start_log` starts the debug log that `--debug`
/// asks for.
///
/// # Errors
/// The line is wrong, or the session cannot be opened.
pub async fn run(
    words: Vec<String>,
    around: &ProcessEnvironment,
    start_log: fn(&ProcessEnvironment) -> Result<(), HostError>,
) -> Result<Exit> {
    let flags = Flags::parse_words(words).map_err(DriverError::into_usage_error)?;
    if flags.tells.help {
        return print_safe_text(HELP);
    }
    if flags.tells.version {
        return print_safe_text(&format!(
            "{} (gnoma {})\n",
            session_init_message::COMPATIBLE,
            env!("CARGO_PKG_VERSION")
        ));
    }
    if flags.tells.debug {
        start_log(around)?;
    }
    for said in &flags.unheard {
        report::print_line(format_args!("gnoma: {said}"));
    }
    let output = flags.output;
    match OpenParameters::new(flags, around).await {
        Ok(openable) => SessionDriver::new(openable, around)?.run().await,
        Err(error) => {
            if output != OutputForm::Text {
                // Whoever reads JSON gets a result, also of a session that cannot be opened.
                let result =
                    message_translation::failure_result(&format!("{error:#}"), &ids::random_uuid());
                print_raw_data(&format!("{result}\n"))?;
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(line: &str) -> Option<String> {
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        command_words(&line).map(|words| words.join(" "))
    }

    #[test]
    fn claude_mode_is_detected_by_program_name_command_or_sdk_flags() {
        assert_eq!(words_of("/x/claude -p hi").as_deref(), Some("-p hi"));
        assert_eq!(words_of("gnoma claude --help").as_deref(), Some("--help"));
        let sdk = "--output-format stream-json --input-format stream-json";
        assert_eq!(words_of(&format!("/x/gnoma {sdk}")).as_deref(), Some(sdk));
        assert_eq!(words_of("gnoma what does claude do"), None);
        assert_eq!(words_of("gnoma --output-format json -- --input-format"), None);
        assert_eq!(words_of("gnoma"), None);
    }
}
