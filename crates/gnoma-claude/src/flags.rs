//! The command line of `claude` as the SDKs write it. Pure.

use std::path::PathBuf;

use super::error::DriverError;

/// The options that a program passes on the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Flags {
    /// Words that are no flag: a prompt.
    pub words: Vec<String>,
    /// Messages come as JSON lines on standard input.
    pub streams_in: bool,
    /// The form of the output.
    pub output: OutputForm,
    /// The options with which the session is opened.
    pub session: SessionFlags,
    /// The choice of tools, and of those that need no approval.
    pub tools: ToolFlags,
    /// The flags for additional output to the program.
    pub tells: OutputFlags,
    /// The options that the program asks for and gnoma does not carry out, a sentence each.
    pub unheard: Vec<String>,
}

/// The form of what is written to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OutputForm {
    /// The answer as plain text.
    #[default]
    Text,
    /// The result object as JSON.
    Json,
    /// A line for each thing that happens.
    Stream,
}

/// The options with which a session is opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SessionFlags {
    pub model: Option<String>,
    pub system: Option<String>,
    pub append: Option<String>,
    pub mode: Option<String>,
    pub skips_permissions: bool,
    pub resume: Option<String>,
    pub continues: bool,
    pub forks: bool,
    pub id: Option<String>,
    pub keeps_nothing: bool,
    pub max_turns: Option<u32>,
    pub max_usd: Option<f64>,
    pub folders: Vec<PathBuf>,
    /// The MCP servers, given as JSON texts or as files.
    pub servers: Vec<String>,
    pub only_these_servers: bool,
    /// The sub-agents that the program defines, as JSON.
    pub agents: Option<String>,
    /// A JSON schema that answers must fit.
    pub schema: Option<String>,
}

/// The choice of tools, and of those that need no approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ToolFlags {
    /// All that there are of the built-in ones; `None`: the usual ones.
    pub base: Option<Vec<String>>,
    pub allowed: Vec<String>,
    pub disallowed: Vec<String>,
    /// Questions are put to the program.
    pub asks: bool,
}

/// The flags for additional output to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputFlags {
    pub partial: bool,
    pub replays: bool,
    pub help: bool,
    pub version: bool,
    pub debug: bool,
}

/// Flags that say nothing here: with a value or without.
const WITHOUT_EFFECT: [&str; 5] =
    ["--verbose", "--print", "-p", "--await-initialize", "--debug-to-stderr"];
const VALUES_WITHOUT_EFFECT: [&str; 3] =
    ["--debug-file", "--initialize-fields", "--project-config-root"];
/// Flags with a value, which may begin with dashes itself.
const VALUED: [&str; 26] = [
    "--output-format",
    "--input-format",
    "--model",
    "--system-prompt",
    "--system-prompt-file",
    "--append-system-prompt",
    "--append-system-prompt-file",
    "--permission-mode",
    "--permission-prompt-tool",
    "--allowedTools",
    "--allowed-tools",
    "--disallowedTools",
    "--disallowed-tools",
    "--tools",
    "--max-turns",
    "--max-budget-usd",
    "--session-id",
    "--add-dir",
    "--mcp-config",
    "--agents",
    "--fallback-model",
    "--betas",
    "--settings",
    "--json-schema",
    "--thinking",
    "--effort",
];

/// Flags whose value may be several words.
const LISTS: [&str; 4] =
    ["--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools"];

/// Flags with a value that nothing is done for, and why.
const UNHEARD: [(&str, &str); 17] = [
    ("--fallback-model", "gnoma's router chooses who takes over"),
    ("--betas", "they are features of one vendor's API"),
    ("--task-budget", "gnoma has no token budget; use `--max-budget-usd`"),
    ("--settings", "gnoma uses its own settings"),
    ("--managed-settings", "gnoma uses its own settings"),
    ("--setting-sources", "gnoma's own settings and what you trust decide what is loaded"),
    ("--plugin-dir", "add the plugin to gnoma instead"),
    ("--plugin-dir-no-mcp", "add the plugin to gnoma instead"),
    ("--thinking", "gnoma chooses how hard a model thinks"),
    ("--thinking-display", "thinking is shown as the provider sends it"),
    ("--max-thinking-tokens", "gnoma chooses how hard a model thinks"),
    ("--effort", "gnoma chooses how hard a model thinks"),
    ("--resume-session-at", "a session is resumed at its end"),
    ("--resume-drops-turn", "a session is resumed at its end"),
    ("--channels", "there are no channels"),
    ("--agent", "the main session is not a sub-agent"),
    ("--permission-prompts", "gnoma asks as usual"),
];
/// The same, without a value.
const UNHEARD_SWITCHES: [(&str, &str); 5] = [
    ("--include-hook-events", "hook events are not reported"),
    ("--session-mirror", "sessions are saved in gnoma's own store"),
    ("--managed-settings-in-initialize", "gnoma uses its own settings"),
    ("--chrome", "there is no browser"),
    ("--ide", "there is no connection to an editor"),
];

impl Flags {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse_words(
        words: impl IntoIterator<Item = String>,
    ) -> Result<Self, DriverError> {
        let mut flags = Self::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                flags.words.extend(words);
                break;
            }
            if !word.starts_with('-') || word == "-" {
                flags.words.push(word);
                continue;
            }
            let (name, mut value) = split_flag(word);
            // `--switch=false` does not switch on.
            if value.as_deref() == Some("false") && Self::default().set_switch(&name) {
                continue;
            }
            if flags.set_switch(&name) {
                match value.as_deref() {
                    None | Some("" | "true") => continue,
                    Some(other) => {
                        let value = other.to_owned();
                        return Err(DriverError::UnexpectedValue { flag: name, value });
                    }
                }
            }
            let lists = value.is_none() && LISTS.contains(&name.as_str());
            if value.is_none() {
                let next_is_flag = words.peek().is_none_or(|next| next.starts_with("--"));
                let is_alone = next_is_flag && !VALUED.contains(&name.as_str());
                value = if is_alone { Some(String::new()) } else { words.next() };
            }
            let value = value.ok_or_else(|| DriverError::MissingValue { flag: name.clone() })?;
            flags.set_option(&name, value)?;
            // What is left of a list would be taken for the prompt, and a tool would not be denied.
            while lists && let Some(more) = words.next_if(|word| !word.starts_with('-')) {
                flags.set_option(&name, more)?;
            }
        }
        Ok(flags)
    }

    /// Takes a flag that has no value; whether it is one.
    fn set_switch(&mut self, name: &str) -> bool {
        let Self { session, tools: _, tells, .. } = self;
        match name {
            "--continue" | "-c" => session.continues = true,
            "--fork-session" => session.forks = true,
            "--no-session-persistence" | "--incognito" => session.keeps_nothing = true,
            "--strict-mcp-config" => session.only_these_servers = true,
            "--dangerously-skip-permissions" => {
                session.skips_permissions = true;
                session.mode.get_or_insert_with(|| "bypassPermissions".to_owned());
            }
            "--allow-dangerously-skip-permissions" => session.skips_permissions = true,
            "--include-partial-messages" => tells.partial = true,
            "--replay-user-messages" => tells.replays = true,
            "--help" | "-h" => tells.help = true,
            "--version" | "-v" => tells.version = true,
            "--debug" => tells.debug = true,
            name if WITHOUT_EFFECT.contains(&name) => (),
            name => match UNHEARD_SWITCHES.iter().find(|(switch, _)| *switch == name) {
                Some((_, why)) => self.unheard.push(format!("`{name}` has no effect: {why}")),
                None => return false,
            },
        }
        true
    }

    fn set_option(&mut self, name: &str, value: String) -> Result<(), DriverError> {
        let Self { session, tools, .. } = self;
        match name {
            "--output-format" => self.output = parse_output_form(&value)?,
            "--input-format" => self.streams_in = parse_output_form(&value)? == OutputForm::Stream,
            "--model" => session.model = Some(value),
            "--system-prompt" => session.system = Some(value),
            "--system-prompt-file" => session.system = Some(read_named_file(name, &value)?),
            "--append-system-prompt" => session.append = Some(value),
            "--append-system-prompt-file" => session.append = Some(read_named_file(name, &value)?),
            "--permission-mode" => session.mode = Some(value),
            "--permission-prompt-tool" if value == "stdio" => tools.asks = true,
            "--permission-prompt-tool" => self.unheard.push(format!(
                "questions are not put to the tool `{value}`: only `stdio` is known, so what needs \
                 approval is denied"
            )),
            "--allowedTools" | "--allowed-tools" => tools.allowed.extend(split_list(&value)),
            "--disallowedTools" | "--disallowed-tools" => {
                tools.disallowed.extend(split_list(&value));
            }
            "--tools" if value == "default" => tools.base = None,
            "--tools" => tools.base = Some(split_list(&value)),
            "--max-turns" => session.max_turns = Some(parse_positive(name, &value)?),
            "--max-budget-usd" => session.max_usd = Some(parse_amount(name, &value)?),
            "--resume" | "-r" if value.is_empty() => session.continues = true,
            "--resume" | "-r" => session.resume = Some(value),
            "--session-id" => session.id = Some(value),
            "--add-dir" => session.folders.push(value.into()),
            "--mcp-config" => session.servers.push(value),
            "--agents" => session.agents = Some(value),
            "--json-schema" => session.schema = Some(value),
            name if VALUES_WITHOUT_EFFECT.contains(&name) => (),
            name => {
                let why = UNHEARD.iter().find(|(flag, _)| *flag == name).map(|(_, why)| *why);
                let why = why.unwrap_or("gnoma does not know it");
                self.unheard.push(format!("`{name}` has no effect: {why}"));
            }
        }
        Ok(())
    }
}

/// A flag, and the value behind its equals sign.
fn split_flag(word: String) -> (String, Option<String>) {
    match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word, None),
    }
}

fn parse_output_form(value: &str) -> Result<OutputForm, DriverError> {
    match value {
        "text" => Ok(OutputForm::Text),
        "json" => Ok(OutputForm::Json),
        "stream-json" => Ok(OutputForm::Stream),
        _ => Err(DriverError::UnknownFormat { value: value.to_owned() }),
    }
}

fn parse_positive(flag: &str, value: &str) -> Result<u32, DriverError> {
    let parsed = value.parse::<u32>().ok().filter(|number| *number > 0);
    parsed.ok_or_else(|| DriverError::InvalidNumber { flag: flag.into(), value: value.into() })
}

fn parse_amount(flag: &str, value: &str) -> Result<f64, DriverError> {
    let usd = value.parse::<f64>().ok().filter(|usd| usd.is_finite() && *usd > 0.0);
    usd.ok_or_else(|| DriverError::InvalidAmount { flag: flag.into(), value: value.into() })
}

/// Reads the file that the value of a flag names.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read_named_file(flag: &str, path: &str) -> Result<String, DriverError> {
    std::fs::read_to_string(path).map_err(|source| DriverError::UnreadableFile {
        flag: flag.into(),
        path: path.into(),
        source,
    })
}

/// The entries of a list with commas or blanks; those in brackets belong to an entry.
pub(super) fn split_list(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Flags {
        Flags::parse_words(words.iter().map(|word| (*word).to_owned())).unwrap()
    }

    #[test]
    fn python_sdk_flags_are_parsed() {
        let flags = read(&[
            "--output-format",
            "stream-json",
            "--verbose",
            "--system-prompt",
            "",
            "--allowedTools",
            "Bash(git add:*),mcp__calc__add",
            "--max-turns",
            "2",
            "--permission-prompt-tool",
            "stdio",
            "--resume=-x",
            "--include-partial-messages",
            "--setting-sources=",
            "--input-format",
            "stream-json",
        ]);
        assert!(flags.streams_in && flags.output == OutputForm::Stream && flags.tells.partial);
        assert_eq!(flags.tools.allowed, ["Bash(git add:*)", "mcp__calc__add"]);
        assert!(flags.tools.asks);
        assert_eq!(flags.session.system.as_deref(), Some(""));
        assert_eq!(flags.session.resume.as_deref(), Some("-x"));
        assert_eq!(flags.session.max_turns, Some(2));
        assert_eq!(flags.unheard.len(), 1, "{:?}", flags.unheard);
    }

    #[test]
    fn npm_sdk_flags_are_parsed() {
        let flags = read(&[
            "--output-format",
            "stream-json",
            "--verbose",
            "--input-format",
            "stream-json",
            "--thinking=adaptive",
            "--permission-prompt-tool=stdio",
            "--tools=",
            "--model=m1",
            "--allow-dangerously-skip-permissions",
            "--permission-mode=bypassPermissions",
        ]);
        assert_eq!(flags.tools.base, Some(Vec::new()));
        assert_eq!(flags.session.model.as_deref(), Some("m1"));
        assert!(flags.session.skips_permissions && flags.tools.asks);
        assert_eq!(flags.unheard.len(), 1, "{:?}", flags.unheard);
    }

    #[test]
    fn debug_flag_asks_for_a_log() {
        let flags = read(&["--debug", "hi"]);
        assert!(flags.tells.debug && flags.unheard.is_empty(), "{:?}", flags.unheard);
        assert_eq!(flags.words, ["hi"]);
    }

    #[test]
    fn lists_of_tools_go_on_to_the_next_flag() {
        let flags = read(&["--disallowedTools", "Bash", "Edit", "--allowedTools=Read", "hi"]);
        assert_eq!(flags.tools.disallowed, ["Bash", "Edit"]);
        assert_eq!((flags.tools.allowed, flags.words), (vec!["Read".into()], vec!["hi".into()]));
    }

    #[test]
    fn unknown_flags_are_reported() {
        let flags = read(&["--from-the-future", "1", "hi"]);
        assert!(flags.unheard[0].contains("--from-the-future"), "{flags:?}");
        assert_eq!(flags.words, ["hi"]);
        assert!(Flags::parse_words(["--max-turns".to_owned(), "0".to_owned()]).is_err());
        assert!(Flags::parse_words(["--model".to_owned()]).is_err());
    }

    #[test]
    fn boolean_flag_set_to_false_is_off() {
        let name = "--dangerously-skip-permissions";
        let off = read(&["--dangerously-skip-permissions=false", "hi"]);
        assert!(!off.session.skips_permissions && off.session.mode.is_none());
        assert!(read(&["--dangerously-skip-permissions=true"]).session.skips_permissions);
        assert!(Flags::parse_words([format!("{name}=no")]).is_err());
    }
}
