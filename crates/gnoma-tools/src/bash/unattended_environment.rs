//! The environment of unattended commands: no editor, no pager, no terminal prompts.
//!
//! Editors, pagers and questions would wait until the time is up. An editor that does not exist ends at once in every
//! program, and its name says why.

use std::collections::BTreeMap;

/// Stands for an editor; there is no such program.
const NO_EDITOR: &str = "gnoma-has-no-editor";

/// The variables that commands find in their environment besides those that gnoma inherited. They tell who runs a
/// command, and that no person is there to read page by page, to write in an editor, or to answer.
const VARIABLES: [(&str, &str); 49] = [
    ("GNOMA", "1"),
    ("AGENT", "gnoma"),
    ("AI_AGENT", "gnoma"),
    ("TERM", "dumb"),
    ("EDITOR", NO_EDITOR),
    ("VISUAL", NO_EDITOR),
    ("SUDO_EDITOR", NO_EDITOR),
    ("KUBE_EDITOR", NO_EDITOR),
    ("HGEDITOR", NO_EDITOR),
    ("SVN_EDITOR", NO_EDITOR),
    ("JJ_EDITOR", NO_EDITOR),
    ("GH_EDITOR", NO_EDITOR),
    ("GLAB_EDITOR", NO_EDITOR),
    ("PSQL_EDITOR", NO_EDITOR),
    ("FCEDIT", NO_EDITOR),
    ("SYSTEMD_EDITOR", NO_EDITOR),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("AWS_PAGER", "cat"),
    ("PSQL_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    // A look at a repository must not write to it.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // A layer over a part of a work tree is a file system of its own.
    ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("NEEDRESTART_MODE", "l"),
    ("PIP_NO_INPUT", "1"),
    ("POETRY_NO_INTERACTION", "1"),
    ("COMPOSER_NO_INTERACTION", "1"),
    ("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0"),
    ("GH_PROMPT_DISABLED", "1"),
    ("TF_INPUT", "0"),
    ("NONINTERACTIVE", "1"),
    // A look for a newer release, or a report of what was used, is a call to the network that no command asked for.
    ("NO_UPDATE_NOTIFIER", "1"),
    ("npm_config_update_notifier", "false"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("CHECKPOINT_DISABLE", "1"),
    ("DO_NOT_TRACK", "1"),
    ("ASTRO_TELEMETRY_DISABLED", "1"),
    ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"),
    ("NEXT_TELEMETRY_DISABLED", "1"),
    ("NG_CLI_ANALYTICS", "false"),
];

/// Variables that would go before the settings of git that name its editors, those by which a shell enters other folders,
/// and finds other names, than a command says, and those that say where gnoma was started: a shell looks there before it
/// does anything else.
const REMOVED: [&str; 6] =
    ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "CDPATH", "GLOBIGNORE", "OLDPWD", "PWD"];

/// The variable in which git finds the number of settings that come by the environment.
const GIT_COUNT: &str = "GIT_CONFIG_COUNT";

/// Settings of git. Unlike `GIT_EDITOR`, they let a command choose: with `git -c core.editor=true`, or that variable.
const GIT_SETTINGS: [(&str, &str); 2] =
    [("core.editor", NO_EDITOR), ("sequence.editor", NO_EDITOR)];

/// The environment of commands that nobody attends.
#[derive(Clone, Debug)]
pub struct UnattendedEnvironment {
    /// Variables that are set.
    pub set: Vec<(String, String)>,
    /// Variables that are removed.
    pub removed: &'static [&'static str],
}

impl UnattendedEnvironment {
    /// For commands that inherit these variables.
    #[must_use]
    pub fn new(inherited: &BTreeMap<String, String>) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        // A program that has the password asks nobody.
        let is_kept = |name: &str| name == "GIT_ASKPASS" && inherited.contains_key(name);
        let mut set: Vec<_> =
            VARIABLES.into_iter().filter(|(name, _)| !is_kept(name)).map(owned).collect();
        let count = inherited.get(GIT_COUNT).and_then(|count| count.parse::<u16>().ok());
        let first = count.map_or(0, usize::from);
        for (at, (key, value)) in (first..).zip(GIT_SETTINGS) {
            set.push((format!("GIT_CONFIG_KEY_{at}"), key.to_owned()));
            set.push((format!("GIT_CONFIG_VALUE_{at}"), value.to_owned()));
        }
        set.push((GIT_COUNT.to_owned(), (first + GIT_SETTINGS.len()).to_string()));
        Self { set, removed: &REMOVED }
    }
}

/// Returns advice on what to do instead, if the output shows that a command wanted a person to write or to answer.
#[must_use]
pub fn suggest_remedy(output: &str) -> Option<&'static str> {
    let says = |words: &[&str]| words.iter().any(|words| output.contains(words));
    if output.lines().any(tells_of_editor) {
        Some(
            "[It wanted an editor, and none opens here. Give the text as an argument, for git with `-m` or `-F FILE`; \
             to keep what is there, `git -c core.editor=true …`; for a list of commits to rebase, \
             `git -c sequence.editor='sed -i …' rebase -i`]",
        )
    } else if says(&[
        "terminal prompts disabled",
        "could not read Username",
        "could not read Password",
    ]) {
        Some(
            "[git wanted a name or password, and nobody can type one here; ask the user to log in]",
        )
    } else if says(&["a terminal is required to read the password", "sudo: a password is required"])
    {
        Some(
            "[sudo wanted a password, and nobody can type one here; ask the user to run the command]",
        )
    } else {
        None
    }
}

/// The ends of a line in which a program asks for input and waits behind it.
const QUESTION_ENDS: [&str; 5] = ["? ", ": ", "> ", ") ", "] "];

/// The advice for a command that stopped at a question because it had nothing to read.
pub(super) const NO_INPUT: &str = "[It asks for input, and nobody can type here. Give the answers as arguments or through a pipe; to answer one \
     by one, start it with `background` and use `send` of `job`]";

/// Returns the advice for a command whose last line has no end, if that line asks for input and nothing else is
/// advised.
pub(super) fn suggest_answers(output: &str) -> Option<&'static str> {
    let asks = QUESTION_ENDS.iter().any(|end| output.ends_with(end));
    (asks && suggest_remedy(output).is_none()).then_some(NO_INPUT)
}

/// Reports whether a program says in this line that the editor is not there. Where nothing follows the name it is
/// the value of a variable or a setting that was asked for.
fn tells_of_editor(line: &str) -> bool {
    line.split(NO_EDITOR).skip(1).any(|after| after.chars().any(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editor_variable_in_output_is_not_mistaken_for_a_failed_editor() {
        for output in [
            "EDITOR=gnoma-has-no-editor\nPAGER=cat",
            "declare -x EDITOR=\"gnoma-has-no-editor\"",
            "{ \"EDITOR\": \"gnoma-has-no-editor\", }",
            "gnoma-has-no-editor",
        ] {
            assert_eq!(suggest_remedy(output), None, "{output}");
        }
        for output in [
            "error: cannot run gnoma-has-no-editor: No such file or directory",
            "sh: 1: gnoma-has-no-editor: not found",
            "exec: \"gnoma-has-no-editor\": executable file not found in $PATH",
        ] {
            assert!(suggest_remedy(output).is_some(), "{output}");
        }
    }

    #[test]
    fn command_that_stops_at_a_prompt_gets_a_hint_to_pass_input() {
        for output in
            ["(1/1) Stage this hunk [y,n,q,?]? ", "Password: ", ">>> ", "(gdb) ", "a\n[y/N] "]
        {
            assert_eq!(suggest_answers(output), Some(NO_INPUT), "{output}");
            assert_eq!(suggest_remedy(output), None, "{output}");
        }
        for output in ["", "done", "a: \nb", "name: x", "Continue? y"] {
            assert_eq!(suggest_answers(output), None, "{output}");
        }
    }

    #[test]
    fn git_editor_settings_are_added_to_existing_git_config_variables() {
        let value = |inherited: &[(&str, &str)], name: &str| {
            let inherited =
                inherited.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let set = UnattendedEnvironment::new(&inherited.collect()).set;
            set.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
        };
        assert_eq!(value(&[], "GIT_CONFIG_KEY_0").as_deref(), Some("core.editor"));
        assert_eq!(value(&[], "GIT_CONFIG_COUNT").as_deref(), Some("2"));
        assert_eq!(value(&[], "GIT_ASKPASS").as_deref(), Some(""));
        assert_eq!(value(&[("GIT_ASKPASS", "/editor/askpass.sh")], "GIT_ASKPASS"), None);
        let inherited = [("GIT_CONFIG_COUNT", "3")];
        assert_eq!(value(&inherited, "GIT_CONFIG_KEY_3").as_deref(), Some("core.editor"));
        assert_eq!(value(&inherited, "GIT_CONFIG_COUNT").as_deref(), Some("5"));
    }
}
