//! Expands a custom command's text with its arguments.
//!
//! Pure except for the files that the text mentions, which the caller provides. The words after a name never become
//! commands or mentions themselves: only the file's own text is searched for those.

use gnoma_core::lifecycle::PromptPart;

use crate::places::TextFileError;

/// The reason why a file that a text mentions is not included, as what follows its name.
#[derive(thiserror::Error)]
pub enum IncludeError {
    /// There is no such file, so the text did not mean one.
    #[error("there is no such file")]
    NoFile,
    /// The file is not in the folders of the session.
    #[error("it is outside the session's folders")]
    Outside,
    /// The file holds secrets, by its name.
    #[error("it may contain secrets")]
    Secret,
    /// The file has no text that can be read.
    #[error(transparent)]
    Text(#[from] TextFileError),
}

gnoma_core::debug_as_display!(IncludeError);

/// Reads a file that a text mentions.
type IncludeReader<'a> = dyn FnMut(&str) -> Result<String, IncludeError> + 'a;

/// Splits arguments into words. Quotes keep words together and are removed, a backslash takes the meaning from a blank,
/// quote or backslash. As people write texts, an apostrophe within a word, a quote without an end and other
/// backslashes stay: `it's 5" C:\dir`.
#[must_use]
pub fn split_words(arguments: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = arguments.chars();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let behind = chars.as_str();
        match c {
            '\\' if quote != Some('\'') && behind.starts_with(has_meaning) => {
                word.get_or_insert_default().extend(chars.next());
            }
            '"' | '\'' if quote.is_none() && opens_quote(c, before, behind) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            _ if quote == Some(c) => quote = None,
            c if c.is_whitespace() && quote.is_none() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
        before = c;
    }
    words.extend(word);
    words
}

/// Returns whether a sign means something between words.
fn has_meaning(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '\\')
}

/// Returns whether a quote keeps words together: it is no apostrophe, and it has an end.
fn opens_quote(quote: char, before: char, behind: &str) -> bool {
    let is_apostrophe = quote == '\'' && before.is_alphanumeric();
    !is_apostrophe && behind.contains(quote)
}

/// The replacements to insert into a text, besides the words of its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpansionValues<'a> {
    /// The text after the name of the command.
    pub arguments: &'a str,
    /// Names of its words, in their order: `$name` is replaced by one.
    pub names: &'a [String],
    /// Variables by name: `${NAME}` is replaced by one.
    pub variables: &'a [(&'static str, String)],
}

/// The text that replaces the command. Faults are for people.
pub fn expand_body(
    body: &str,
    with: ExpansionValues<'_>,
    include: &mut IncludeReader<'_>,
) -> (Vec<PromptPart>, Vec<String>) {
    let arguments = with.arguments;
    let mut filling = BodyExpander { with, words: split_words(arguments), is_used: false };
    let (mut parts, mut faults, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let mut text = String::new();
    let mut rest = body;
    while let Some((before, piece, after)) = next_piece(rest) {
        text.push_str(&filling.fill_text(before));
        match piece {
            BodyPiece::Command(command) => {
                parts.push(PromptPart::Text(std::mem::take(&mut text)));
                parts.push(PromptPart::Command(filling.fill_text(command)));
            }
            BodyPiece::File(path) => {
                let path = filling.fill_text(path);
                text.push('@');
                text.push_str(&path);
                match include(&path) {
                    Ok(content) => files.push((path, content)),
                    Err(IncludeError::NoFile) => (),
                    Err(error) => faults.push(format!("`@{path}` was not included: {error}")),
                }
            }
        }
        rest = after;
    }
    text.push_str(&filling.fill_text(rest));
    if !filling.is_used && !arguments.is_empty() {
        text.truncate(text.trim_end().len());
        text.push_str("\n\nARGUMENTS: ");
        text.push_str(arguments);
    }
    for (path, content) in files {
        text.truncate(text.trim_end().len());
        text.push_str(&format!("\n\n<file path=\"{path}\">\n{}\n</file>", content.trim_end()));
    }
    parts.push(PromptPart::Text(text));
    parts.retain(|part| !matches!(part, PromptPart::Text(text) if text.is_empty()));
    (parts, faults)
}

enum BodyPiece<'t> {
    Command(&'t str),
    File(&'t str),
}

/// The shell commands that a text has run when it is filled in.
#[must_use]
pub fn inline_commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut rest = text;
    while let Some((_, piece, after)) = next_piece(rest) {
        if let BodyPiece::Command(command) = piece {
            commands.push(command.to_owned());
        }
        rest = after;
    }
    commands
}

/// The next shell command or mention: what stands before it, it, and what stands behind it.
fn next_piece(text: &str) -> Option<(&str, BodyPiece<'_>, &str)> {
    for (at, c) in text.char_indices() {
        let (before, here) = text.split_at(at);
        if !before.chars().next_back().is_none_or(char::is_whitespace) {
            continue;
        }
        if c == '`'
            && let Some((command, after)) = parse_command_block(before, here)
        {
            return Some((before, BodyPiece::Command(command), after));
        }
        if c == '!'
            && let Some(command) = here.strip_prefix("!`")
            && let Some(end) = command.find('`').filter(|end| *end > 0)
        {
            let (command, after) = command.split_at(end);
            return Some((before, BodyPiece::Command(command), after.get(1..).unwrap_or_default()));
        }
        if c == '@'
            && let Some(path) = parse_mention(here)
        {
            return Some((before, BodyPiece::File(path), here.get(1 + path.len()..)?));
        }
    }
    None
}

/// The commands of a block that opens with three backticks and `!` at the start of a line, and what stands
/// behind the line that closes it.
fn parse_command_block<'t>(before: &str, here: &'t str) -> Option<(&'t str, &'t str)> {
    let begins_line = before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
    let (opening, inside) = here.split_once('\n')?;
    let is_block = begins_line && opening.trim_end() == "```!";
    let end = inside.match_indices("```").map(|(at, _)| at).find(|at| {
        let line = inside.get(..*at).unwrap_or_default().rsplit('\n').next();
        line.is_none_or(|line| line.trim().is_empty())
    });
    let (commands, after) = inside.split_at(end.filter(|_| is_block)?);
    let commands = Some(commands.trim()).filter(|commands| !commands.is_empty())?;
    Some((commands, after.get("```".len()..).unwrap_or_default()))
}

/// The path of a mention, without the sign that ends a sentence.
fn parse_mention(here: &str) -> Option<&str> {
    let rest = here.strip_prefix('@')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let path = rest.get(..end)?.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '`']);
    // A word with neither a dot nor a slash is more likely the name of a person.
    let is_path = path.contains(['.', '/', '$']) && !path.contains(['@', '`', '"']);
    is_path.then_some(path)
}

struct BodyExpander<'a> {
    with: ExpansionValues<'a>,
    words: Vec<String>,
    is_used: bool,
}

impl BodyExpander<'_> {
    /// The text with what was written in the places of its placeholders. Positions count from zero;
    /// one without a value stays as it is.
    fn fill_text(&mut self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, here) = rest.split_at(at);
            result.push_str(before);
            let (value, length) = self.replace_placeholder(here);
            result.push_str(value.as_deref().unwrap_or_else(|| here.get(..length).unwrap_or("$")));
            rest = here.get(length..).unwrap_or_default();
        }
        result.push_str(rest);
        result
    }

    /// The replacement for the placeholder at the beginning of a text, and how long that is.
    fn replace_placeholder(&mut self, here: &str) -> (Option<String>, usize) {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let after = here.get(1..).unwrap_or_default();
        if let Some(rest) = after.strip_prefix("ARGUMENTS") {
            let length = here.len() - rest.len();
            if let Some(inside) = rest.strip_prefix('[') {
                let count = digits(inside);
                let number = inside.get(..count).unwrap_or_default();
                if count > 0 && inside.get(count..).is_some_and(|end| end.starts_with(']')) {
                    return (self.numbered_word(number), length + count + 2);
                }
            }
            self.is_used = true;
            return (Some(self.with.arguments.to_owned()), length);
        }
        if let Some((name, _)) = after.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            let value = self.with.variables.iter().find(|(known, _)| *known == name);
            return (value.map(|(_, value)| value.clone()), name.len() + "${}".len());
        }
        match digits(after) {
            0 => self.replace_named(after),
            count => (self.numbered_word(after.get(..count).unwrap_or_default()), 1 + count),
        }
    }

    /// The word of the argument that the text behind `$` names.
    fn replace_named(&mut self, after: &str) -> (Option<String>, usize) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let is_meant = |name: &String| {
            let rest = after.strip_prefix(name.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|c| is_part(c) || c == '['))
        };
        let named = self.with.names.iter().enumerate().filter(|(_, name)| is_meant(name));
        let Some((at, name)) = named.max_by_key(|(_, name)| name.len()) else { return (None, 1) };
        self.is_used = true;
        (self.words.get(at).cloned(), 1 + name.len())
    }

    fn numbered_word(&mut self, number: &str) -> Option<String> {
        self.is_used = true;
        number.parse::<usize>().ok().and_then(|at| self.words.get(at)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str, arguments: &str) -> Vec<PromptPart> {
        said_with(body, ExpansionValues { arguments, ..ExpansionValues::default() })
    }

    fn said_with(body: &str, with: ExpansionValues<'_>) -> Vec<PromptPart> {
        let mut include = |path: &str| match path {
            "a.txt" => Ok("inside\n".to_owned()),
            _ => Err(IncludeError::Outside),
        };
        expand_body(body, with, &mut include).0
    }

    fn text(body: &str, arguments: &str) -> String {
        match &*said(body, arguments) {
            [PromptPart::Text(text)] => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn slash_command_arguments_replace_positional_placeholders() {
        assert_eq!(text("all: $ARGUMENTS.", "a b"), "all: a b.");
        assert_eq!(text("$0 then $1", "'a b' c"), "a b then c");
        assert_eq!(text("$ARGUMENTS[0], $ARGUMENTS[1]", "x y"), "x, y");
        assert_eq!(text("$0 $2 $ARGUMENTS[9]", "x"), "x $2 $ARGUMENTS[9]");
        assert_eq!(text("costs $ here", ""), "costs $ here");
        assert_eq!(text("do it\n", "now please"), "do it\n\nARGUMENTS: now please");
        assert_eq!(text("do it\n", ""), "do it\n");
        assert_eq!(text("$ARGUMENTS", "$0 !`x` @a.txt"), "$0 !`x` @a.txt");
    }

    #[test]
    fn slash_command_arguments_are_split_at_quotes_but_not_apostrophes() {
        for (line, words) in [
            ("l'été d'un 'a b' it's", &["l'été", "d'un", "a b", "it's"][..]),
            (r#"say "a  b" name='x y' '' "it's""#, &["say", "a  b", "name=x y", "", "it's"]),
            (r#"5" pipe"#, &["5\"", "pipe"]),
            ("don't 'leave", &["don't", "'leave"]),
            (r#"C:\dir a\ b \"q \\ "\n\"""#, &["C:\\dir", "a b", "\"q", "\\", "\\n\""]),
            (r#"'it'"'"'s'"#, &["it's"]),
        ] {
            assert_eq!(split_words(line), words, "{line}");
        }
    }

    #[test]
    fn slash_command_named_arguments_and_variables_are_expanded() {
        let names = ["issue".to_owned(), "by".to_owned()];
        let variables = [("CLAUDE_SESSION_ID", "s-1".to_owned())];
        let filled = |body: &str, arguments: &str| {
            let with = ExpansionValues { arguments, names: &names, variables: &variables };
            match &*said_with(body, with) {
                [PromptPart::Text(text)] => text.clone(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(filled("fix $issue for $by.", "42 'a b'"), "fix 42 for a b.");
        assert_eq!(filled("$issue $by $issues $bye $by_", "42"), "42 $by $issues $bye $by_");
        assert_eq!(filled("$0 is $issue", "42"), "42 is 42");
        assert_eq!(filled("in ${CLAUDE_SESSION_ID} ${OTHER} $", ""), "in s-1 ${OTHER} $");
        assert_eq!(filled("${CLAUDE_SESSION_ID}", "x"), "s-1\n\nARGUMENTS: x");
    }

    #[test]
    fn slash_command_shell_block_runs_as_one_command() {
        let command = |text: &str| PromptPart::Command(text.to_owned());
        let words = |text: &str| PromptPart::Text(text.to_owned());
        let wanted = [words("now:\n"), command("date\nls x"), words("\nthen")];
        assert_eq!(said("now:\n```!\ndate\nls $0\n```\nthen", "x"), wanted);
        for plain in ["```\n!ls\n```", "```!\nno end", "text ```!\nls\n```", "```!\n```"] {
            assert_eq!(text(plain, ""), plain);
        }
    }

    #[test]
    fn slash_command_inline_shell_runs_only_at_a_word_start() {
        let command = |text: &str| PromptPart::Command(text.to_owned());
        let words = |text: &str| PromptPart::Text(text.to_owned());
        assert_eq!(said("!`date`", ""), [command("date")]);
        assert_eq!(said("a !`ls $0` b", "x"), [words("a "), command("ls x"), words(" b")]);
        assert_eq!(text("out=!`date`", ""), "out=!`date`");
        assert_eq!(text("wow! `date` !``", ""), "wow! `date` !``");
    }

    #[test]
    fn slash_command_at_mentions_include_files() {
        let said = text("look at @a.txt, me@a.txt and @nobody.", "");
        assert_eq!(
            said,
            "look at @a.txt, me@a.txt and @nobody.\n\n<file path=\"a.txt\">\ninside\n</file>"
        );
        let mut refuse = |_: &str| Err(IncludeError::Secret);
        let (_, faults) = expand_body("@b.txt", ExpansionValues::default(), &mut refuse);
        assert_eq!(faults, ["`@b.txt` was not included: it may contain secrets"]);
    }

    proptest::proptest! {
        #[test]
        fn slash_command_arguments_never_become_shell_commands(
            body in "[a-z !`$0@.\n]{0,40}", arguments in "[a-z!`@$ ]{0,20}",
        ) {
            let plain = said(&body, "").iter().filter(|it| matches!(it, PromptPart::Command(_))).count();
            let with = said(&body, &arguments);
            let with = with.iter().filter(|it| matches!(it, PromptPart::Command(_))).count();
            proptest::prop_assert_eq!(plain, with);
        }
    }
}
