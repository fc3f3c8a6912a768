//! A configuration file's text: where a byte stands, and the line around it for people to see.
//!
//! What is shown is safe to print: control characters are gone, and what may be a key is masked.

use std::{ops::Range, path::Path, sync::Arc};

/// Longest line that is shown.
const MAX_LINE_BYTES: usize = 200;
/// A word of a value that is at least this long may be a secret.
const SECRET_CHARS: usize = 20;
/// A line with a word that ends in one of these shows no value at all.
const SECRET_ENDINGS: [&str; 7] = ["key", "keys", "token", "secret", "password", "auth", "env"];

/// A place in a file; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The number of the line, from 1.
    pub line: usize,
    /// The number of the column, from 1, in characters.
    pub column: usize,
}

/// One line of a file with a part of it marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    line: usize,
    text: String,
    before: usize,
    marked: usize,
}

impl Snippet {
    /// The line with its number, and carets under the marked part; three lines without a final break.
    pub(crate) fn render(&self) -> String {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let carets = "^".repeat(self.marked);
        format!(
            "{gutter} |\n{number} | {}\n{gutter} | {}{carets}",
            self.text,
            " ".repeat(self.before)
        )
    }
}

/// A file's content under its name.
pub(crate) struct SourceText {
    /// The path of the file that was read.
    pub(crate) path: Arc<Path>,
    /// The text of the file.
    pub(crate) text: String,
    /// The byte offset at which each line starts, stored because a position is looked up for every value.
    line_starts: Vec<usize>,
}

impl SourceText {
    /// The content of a file.
    pub(crate) fn new(path: Arc<Path>, text: String) -> Self {
        let after_breaks = text.match_indices('\n').map(|(newline, _)| newline + 1);
        let line_starts = std::iter::once(0).chain(after_breaks).collect();
        Self { path, text, line_starts }
    }

    /// Returns the position of the byte `offset`.
    pub(crate) fn position_at(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position { line, column: before.chars().count() + 1 }
    }

    /// The line at the start of `span`, with the span marked as far as it is on that line. `None`
    /// when the line is too long to be read by anybody.
    pub(crate) fn snippet_at(&self, span: &Range<usize>) -> Option<Snippet> {
        let Position { line, column } = self.position_at(span.start);
        let text = self.line_text(line);
        if text.len() > MAX_LINE_BYTES {
            return None;
        }
        let marked = self.text.get(span.clone()).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default().chars().count();
        Some(Snippet {
            line,
            text: self.sanitize_line(text, line),
            before: column - 1,
            marked: marked.max(1),
        })
    }

    fn line_text(&self, line: usize) -> &str {
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let rest = self.text.get(start..).unwrap_or_default();
        rest.split('\n').next().unwrap_or_default().trim_end_matches('\r')
    }

    /// `text`, which is line `line`, without control characters and secrets.
    fn sanitize_line(&self, text: &str, line: usize) -> String {
        let plain: String = text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
        let is_secret =
            speaks_of_secrets(text) || self.section_of(line).is_some_and(speaks_of_secrets);
        mask_values(&mask_logins(&plain), is_secret)
    }

    /// The table header that line `line` stands under.
    fn section_of(&self, line: usize) -> Option<&str> {
        let above = self.text.lines().take(line);
        above.filter(|text| text.trim_start().starts_with('[')).last()
    }
}

fn speaks_of_secrets(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

/// Puts stars, as many as characters, over user names and passwords in the addresses of `line`.
fn mask_logins(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(scheme) = rest.find("://") {
        let (before, address) = rest.split_at(scheme + "://".len());
        let end = address.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
        let (address, behind) = address.split_at(end.unwrap_or(address.len()));
        let (login, host) = address.split_at(address.rfind('@').unwrap_or(0));
        shown.push_str(before);
        shown.extend(std::iter::repeat_n('*', login.chars().count()));
        shown.push_str(host);
        rest = behind;
    }
    shown + rest
}

/// Puts stars, as many as characters, over what may be a secret in the values of `line`. Names of variables, as in
/// `${WORK_KEY}`, are none.
fn mask_values(line: &str, is_secret: bool) -> String {
    let (name, value) = match line.find('=') {
        Some(equals) => line.split_at(equals + 1),
        None if line.trim_start().starts_with('[') => (line, ""),
        None => ("", line),
    };
    let mut shown = name.to_owned();
    let mut word = String::new();
    for c in value.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' || c == '-' {
            word.push(c);
            continue;
        }
        let length = word.chars().count();
        let is_variable = shown.ends_with("${") && matches!(c, '}' | ':');
        if !is_variable && (is_secret || length >= SECRET_CHARS) {
            shown.extend(std::iter::repeat_n('*', length));
        } else {
            shown.push_str(&word);
        }
        word.clear();
        shown.push(c);
    }
    // The blank that ended the last word.
    shown.pop();
    shown
}

/// Reports whether a terminal shows `c` as a character and does nothing more: no control, no change of direction.
fn is_printable(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns
}

/// `text` as a TOML string on one line.
pub(crate) fn quote_toml(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_printable(c) => quoted.push(c),
            c => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> SourceText {
        SourceText::new(Path::new("/c/config.toml").into(), text.to_owned())
    }

    #[test]
    fn positions_count_characters_from_one() {
        let source = source("a = 1\nä = \"ö\" # x\n");
        let offset = source.text.find('#').unwrap();
        assert_eq!(source.position_at(offset), Position { line: 2, column: 9 });
        assert_eq!(source.position_at(0), Position { line: 1, column: 1 });
        assert_eq!(source.position_at(99), Position { line: 3, column: 1 });
    }

    #[test]
    fn error_snippet_hides_api_keys_and_control_characters() {
        let secret = "sk-ant-0123";
        let text = format!("[provider.api_keys]\nmistral = \"{secret}\nx = \"\u{1b}[2J\"\n");
        let shown = source(&text);
        let at = shown.text.find("mistral").unwrap();
        assert!(!shown.snippet_at(&(at..at + 7)).unwrap().render().contains("0123"));
        let at = shown.text.find("x =").unwrap();
        assert!(!shown.snippet_at(&(at..at + 1)).unwrap().render().contains('\u{1b}'));

        let long = source("model = \"abcdefghijklmnopqrstuvwxyz\"\n");
        insta::assert_snapshot!(long.snippet_at(&(8..36)).unwrap().render(), @r#"
          |
        1 | model = "**************************"
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
    }

    #[test]
    fn error_snippet_hides_url_passwords_but_shows_variable_names() {
        for (line, shown) in [
            ("own = \"http://joe:p/w@host:9/v1\"", "own = \"http://*******@host:9/v1\""),
            ("own = \"https://host/v1\" # @home", "own = \"https://host/v1\" # @home"),
            ("api_key = \"${WORK_KEY}\"", "api_key = \"${WORK_KEY}\""),
            ("api_key = \"${WORK_KEY:-sesame}\"", "api_key = \"${WORK_KEY:*******}\""),
            ("api_key = \"${sesame\"", "api_key = \"${******\""),
        ] {
            assert_eq!(source(line).sanitize_line(line, 1), shown);
        }
    }

    #[test]
    fn error_snippet_omits_a_very_long_line() {
        let source = source(&format!("a = \"{}\"", "- ".repeat(200)));
        assert_eq!(source.snippet_at(&(4..404)), None);
    }
}
