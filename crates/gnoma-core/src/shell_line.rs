//! Shell lines that a person runs beside the conversation, as the next message contains them, and what labels show of
//! commands.

/// Begins the text of a shell line.
const HEAD: &str = "I ran this:\n```\n$ ";
/// The end of a shell line's text.
const END: &str = "\n```";

/// Writes a shell line with its output for a message.
#[must_use]
pub fn describe_shell_line(line: &str, output: &str) -> String {
    format!("{HEAD}{line}\n{output}{END}")
}

/// Splits a message into the shell lines at its beginning and the text behind them.
#[must_use]
pub fn split_shell_lines(message: &str) -> (Vec<&str>, &str) {
    let (mut lines, mut rest) = (Vec::new(), message);
    while let Some((line, behind)) = split_first(rest) {
        lines.push(line);
        rest = behind;
    }
    (lines, rest)
}

/// Returns a command without the lines before it that only give quoted values to variables, such as `version='v1'`: the
/// steps of tasks begin with the values of their arguments.
#[must_use]
pub fn skip_assignments(command: &str) -> &str {
    let mut rest = command;
    while let Some(behind) = behind_assignment(rest).filter(|behind| !behind.is_empty()) {
        rest = behind;
    }
    rest
}

fn behind_assignment(command: &str) -> Option<&str> {
    let (name, mut value) = command.split_once("='")?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_name) {
        return None;
    }
    loop {
        let (_, behind) = value.split_once('\'')?;
        match behind.strip_prefix("\\''") {
            // A quote within the value.
            Some(more) => value = more,
            None => return behind.strip_prefix('\n'),
        }
    }
}

fn split_first(message: &str) -> Option<(&str, &str)> {
    let text = message.strip_prefix(HEAD)?;
    let (line, _) = text.split_once('\n')?;
    let (_, behind) = text.split_once(END)?;
    Some((line, behind.trim_start_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_label_skips_leading_variable_assignments() {
        for (command, shown) in [
            ("days='1'\nnote='it'\\''s\na'\ngit log\nls", "git log\nls"),
            ("git log", "git log"),
            ("x='1' git log", "x='1' git log"),
            ("x='1'\n", "x='1'\n"),
            ("PATH='/tmp'\nls", "PATH='/tmp'\nls"),
            ("x='open\nls", "x='open\nls"),
        ] {
            assert_eq!(skip_assignments(command), shown, "{command}");
        }
    }

    #[test]
    fn shell_lines_are_found_at_the_beginning_of_a_message() {
        let one = describe_shell_line("git tag v1", "");
        let two = describe_shell_line("ls", "a\nb");
        let message = format!("{one}\n{two}\nPush it.\n{one}");
        let rest = format!("Push it.\n{one}");
        assert_eq!(split_shell_lines(&message), (vec!["git tag v1", "ls"], rest.as_str()));
        assert_eq!(split_shell_lines("I ran this:\n```\n$ ls"), (vec![], "I ran this:\n```\n$ ls"));
    }
}
