//! Shell lines that a person runs beside the conversation, as the next message contains them.

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
    fn shell_lines_are_found_at_the_beginning_of_a_message() {
        let one = describe_shell_line("git tag v1", "");
        let two = describe_shell_line("ls", "a\nb");
        let message = format!("{one}\n{two}\nPush it.\n{one}");
        let rest = format!("Push it.\n{one}");
        assert_eq!(split_shell_lines(&message), (vec!["git tag v1", "ls"], rest.as_str()));
        assert_eq!(split_shell_lines("I ran this:\n```\n$ ls"), (vec![], "I ran this:\n```\n$ ls"));
    }
}
