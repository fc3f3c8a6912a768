//! Remedies as they are done in the window. Messages are made for every front end and name commands of the shell and
//! options of the command line; here each becomes the command behind a slash that does the same, or a line for the
//! shell that the window runs.

use std::borrow::Cow;

/// Commands of the shell, whole, and what does the same in the window.
const WHOLE: [(&str, &str); 18] = [
    ("gnoma trust", "/trust"),
    ("gnoma doctor", "/doctor"),
    ("gnoma models", "/model"),
    ("gnoma providers", "/provider"),
    ("gnoma providers add", "/login"),
    ("gnoma providers remove", "/login remove"),
    ("gnoma rewind", "/rewind"),
    ("gnoma redo", "/redo"),
    ("gnoma changes", "/diff"),
    ("gnoma route", "/route"),
    ("gnoma sessions", "/resume"),
    ("gnoma sessions list", "/resume"),
    ("gnoma --continue", "/resume last"),
    ("gnoma --resume", "/resume"),
    ("gnoma config show", "/config"),
    ("gnoma plugin list", "/plugins"),
    ("gnoma task list", "/task list"),
    ("gnoma task history", "/task history"),
];
/// Beginnings before an argument, and what stands for them.
const WITH_ARGUMENT: [(&str, &str); 9] = [
    ("gnoma config set ", "/config set "),
    ("gnoma task new ", "/shell gnoma task new "),
    ("gnoma providers remove ", "/login remove "),
    ("gnoma --resume ", "/resume "),
    ("--model ", "/model "),
    ("-m ", "/model "),
    ("--provider ", "/provider "),
    ("--permission ", "/permission "),
    ("gnoma --model ", "/model "),
];
/// Commands of the shell that work while a window is open, and have none of their own there.
const OF_SHELL: [&str; 12] = [
    "agents",
    "changes",
    "config",
    "guard",
    "import",
    "mcp",
    "plugin",
    "providers",
    "router",
    "sessions",
    "skills",
    "trust",
];

/// Options that sentences name without backticks, and what stands for them.
const IN_SENTENCES: [(&str, &str); 2] =
    [(" with --model", " with /model"), (" with --provider", " with /provider")];

/// Replaces commands and options of gnoma's: those between backticks, and options that a sentence names as a means.
pub(crate) fn in_window(text: &str) -> Cow<'_, str> {
    if !text.contains("`gnoma ") && !text.contains("`-") && !text.contains(" with --") {
        return Cow::Borrowed(text);
    }
    let mut parts: Vec<Cow<'_, str>> = text.split('`').map(Cow::Borrowed).collect();
    let count = parts.len();
    for part in parts.iter_mut().step_by(2) {
        for (option, command) in IN_SENTENCES {
            if part.contains(option) {
                *part = Cow::Owned(part.replace(option, command));
            }
        }
    }
    // Without a second backtick the last part is not quoted.
    for part in parts.iter_mut().take(count - 1).skip(1).step_by(2) {
        if let Some(command) = window_command(part) {
            *part = Cow::Owned(command);
        }
    }
    Cow::Owned(parts.join("`"))
}

fn window_command(quoted: &str) -> Option<String> {
    if let Some((_, command)) = WHOLE.iter().find(|(shell, _)| *shell == quoted) {
        return Some((*command).to_owned());
    }
    let with_argument = WITH_ARGUMENT
        .iter()
        .find_map(|(shell, command)| Some(format!("{command}{}", quoted.strip_prefix(shell)?)));
    if let Some(command) = with_argument.filter(|command| !command.contains(" -")) {
        return Some(command);
    }
    let name = quoted.strip_prefix("gnoma ")?.split(' ').next()?;
    OF_SHELL.contains(&name).then(|| format!("/shell {quoted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_remedies_are_rewritten_as_slash_commands() {
        for (told, shown) in [
            ("`gnoma trust` shows what that would allow", "`/trust` shows what that would allow"),
            ("or with `--model a/b`", "or with `/model a/b`"),
            ("run `gnoma config set router.caps.day 2`", "run `/config set router.caps.day 2`"),
            ("`gnoma plugin trust fmt` approves it", "`/shell gnoma plugin trust fmt` approves it"),
            ("start `gnoma serve` first", "start `gnoma serve` first"),
            ("`gnoma task list` lists them", "`/task list` lists them"),
            ("`gnoma task new NAME` makes one", "`/shell gnoma task new NAME` makes one"),
            ("`gnoma trust` and `gnoma doctor`", "`/trust` and `/doctor`"),
            ("gnoma trust is not quoted", "gnoma trust is not quoted"),
            ("or use another provider with --provider.", "or use another provider with /provider."),
            (
                "trust it with `gnoma config set network.ca_file FILE`",
                "trust it with `/config set network.ca_file FILE`",
            ),
            ("one ` alone, then `gnoma trust", "one ` alone, then `gnoma trust"),
            (
                "`gnoma --model a/b \"x\" --permission auto`",
                "`gnoma --model a/b \"x\" --permission auto`",
            ),
        ] {
            assert_eq!(in_window(told), shown);
        }
    }
}
