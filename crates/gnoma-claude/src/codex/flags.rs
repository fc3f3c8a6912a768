//! The command line of `codex exec` as the SDK and people write it. Pure.

use std::path::PathBuf;

use gnoma_core::{ThinkingMode, session::PermissionMode};

use crate::error::DriverError;

/// The options that a program passes on the command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flags {
    /// The words of the prompt.
    pub words: Vec<String>,
    pub json: bool,
    pub help: bool,
    pub version: bool,
    pub model: Option<String>,
    pub mode: PermissionMode,
    pub folder: Option<PathBuf>,
    pub folders: Vec<PathBuf>,
    /// The file with the JSON schema for answers.
    pub schema: Option<String>,
    pub images: Vec<PathBuf>,
    pub thinking: Option<ThinkingMode>,
    pub keeps_nothing: bool,
    /// The session that goes on.
    pub resume: Option<String>,
    /// The newest one goes on.
    pub last: bool,
    /// The options that the program asks for and gnoma does not carry out, a sentence each.
    pub unheard: Vec<String>,
}

/// Flags that say nothing here: questions are never asked, and a folder may be no repository.
const WITHOUT_EFFECT: [&str; 2] = ["--skip-git-repo-check", "--color=never"];
/// Flags with a value that say nothing here.
const VALUES_WITHOUT_EFFECT: [&str; 2] = ["--thread-source", "--color"];
/// Flags with a value.
const VALUED: [&str; 18] = [
    "--model",
    "-m",
    "--sandbox",
    "-s",
    "--cd",
    "-C",
    "--add-dir",
    "--output-schema",
    "--image",
    "-i",
    "--config",
    "-c",
    "--profile",
    "-p",
    "--output-last-message",
    "-o",
    "--cyber-access-program",
    "--enable",
];

impl Flags {
    /// The options of a command line without any.
    fn new() -> Self {
        Self {
            words: Vec::new(),
            json: false,
            help: false,
            version: false,
            model: None,
            // What that program does where nothing is said.
            mode: PermissionMode::Plan,
            folder: None,
            folders: Vec::new(),
            schema: None,
            images: Vec::new(),
            thinking: None,
            keeps_nothing: false,
            resume: None,
            last: false,
            unheard: Vec::new(),
        }
    }

    /// Reads the words behind `exec`.
    ///
    /// # Errors
    /// A value is missing or wrong.
    pub(super) fn read(words: impl IntoIterator<Item = String>) -> Result<Self, DriverError> {
        let mut flags = Self::new();
        let mut resumes = false;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => {
                    (name.to_owned(), Some(value.to_owned()))
                }
                _ => (word.clone(), None),
            };
            let takes_value = |names: &[&str]| names.contains(&name.as_str());
            if takes_value(&VALUED) || takes_value(&VALUES_WITHOUT_EFFECT) {
                let value = joined.or_else(|| words.next());
                let value =
                    value.ok_or_else(|| DriverError::MissingValue { flag: name.clone() })?;
                flags.valued(&name, value)?;
            } else if word == "--" {
                flags.words.extend(words);
                break;
            } else if word.starts_with('-') && word != "-" {
                flags.plain(&word);
            } else if resumes && flags.resume.is_none() && !flags.last {
                flags.resume = Some(word);
            } else if word == "resume" && !resumes && flags.words.is_empty() {
                resumes = true;
            } else if word != "-" {
                flags.words.push(word);
            }
        }
        if resumes && flags.resume.is_none() && !flags.last {
            return Err(DriverError::MissingSession);
        }
        Ok(flags)
    }

    /// A flag without a value.
    fn plain(&mut self, name: &str) {
        match name {
            "--json" | "--experimental-json" => self.json = true,
            "--help" | "-h" => self.help = true,
            "--version" | "-V" => self.version = true,
            "--ephemeral" | "--incognito" => self.keeps_nothing = true,
            "--last" => self.last = true,
            "--full-auto" => self.mode = PermissionMode::AcceptEdits,
            "--dangerously-bypass-approvals-and-sandbox" | "--yolo" => {
                self.mode = PermissionMode::Bypass;
            }
            name if WITHOUT_EFFECT.contains(&name) => (),
            name => self.unheard.push(format!("{name} has no effect")),
        }
    }

    fn valued(&mut self, name: &str, value: String) -> Result<(), DriverError> {
        match name {
            "--model" | "-m" => self.model = Some(value),
            "--sandbox" | "-s" => self.mode = mode_for_sandbox(&value)?,
            "--cd" | "-C" => self.folder = Some(value.into()),
            "--add-dir" => self.folders.push(value.into()),
            "--output-schema" => self.schema = Some(value),
            "--image" | "-i" => self.images.extend(value.split(',').map(PathBuf::from)),
            "--config" | "-c" => self.set_config(&value),
            name if VALUES_WITHOUT_EFFECT.contains(&name) => (),
            name => self.unheard.push(format!("{name} has no effect")),
        }
        Ok(())
    }

    /// A setting of that program.
    fn set_config(&mut self, setting: &str) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        match (key, value.trim_matches('"')) {
            ("model_reasoning_effort", "none" | "minimal") => {
                self.thinking = Some(ThinkingMode::Off);
            }
            ("model_reasoning_effort", _) => self.thinking = Some(ThinkingMode::Adaptive),
            // Nobody is asked, tools have no network, and there is no search, whatever is said.
            ("approval_policy", _)
            | ("web_search", "disabled")
            | ("sandbox_workspace_write.network_access", "false") => (),
            (key, _) => self.unheard.push(format!("the setting {key} has no effect")),
        }
    }
}

/// The mode with the rights of a sandbox of that program.
fn mode_for_sandbox(name: &str) -> Result<PermissionMode, DriverError> {
    match name {
        "read-only" => Ok(PermissionMode::Plan),
        "workspace-write" => Ok(PermissionMode::AcceptEdits),
        "danger-full-access" => Ok(PermissionMode::Bypass),
        _ => Err(DriverError::UnknownSandbox { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Flags {
        Flags::read(line.split(' ').map(str::to_owned)).unwrap()
    }

    #[test]
    fn codex_sdk_flags_are_parsed() {
        let flags = read(
            "--experimental-json --config a.b=\"c\" --config model_reasoning_effort=\"minimal\" --model m --thread-source x \
             --sandbox workspace-write --cd /w --add-dir /x --add-dir /y --skip-git-repo-check --output-schema /s.json \
             --config approval_policy=\"never\" resume 2026 --image /i.png",
        );
        assert!(flags.json && flags.words.is_empty());
        assert_eq!(flags.resume.as_deref(), Some("2026"));
        assert_eq!((flags.mode, flags.folders.len()), (PermissionMode::AcceptEdits, 2));
        assert_eq!(flags.thinking, Some(ThinkingMode::Off));
        assert_eq!(flags.images, [PathBuf::from("/i.png")]);
        assert_eq!(flags.unheard, ["the setting a.b has no effect"]);
    }

    #[test]
    fn codex_flags_written_by_people_are_parsed() {
        let flags = read("--json why is resume slow -");
        assert_eq!(flags.words.join(" "), "why is resume slow");
        assert_eq!((flags.mode, flags.resume), (PermissionMode::Plan, None));
        assert!(read("resume --last go on").last);
        assert_eq!(read("--sandbox=read-only -- --json").words, ["--json"]);
        for wrong in ["--model", "resume", "--sandbox none"] {
            assert!(Flags::read(wrong.split(' ').map(str::to_owned)).is_err(), "{wrong}");
        }
        assert_eq!(read("--new-thing hi").unheard, ["--new-thing has no effect"]);
    }
}
