//! Escapes text of models and repositories for Markdown and HTML reports.

use serde_json::Value;

use crate::screen;

/// Stands where two characters must not meet, and shows nothing.
const APART: &str = "&#8203;";

/// Text in one line of Markdown: no HTML, links, pictures, mentions, references to issues, commands of a CI or of
/// a chat.
pub(super) fn markdown(text: &str) -> String {
    let clean = screen::mark_unsafe_chars(text.trim());
    let mut out = String::with_capacity(clean.len() + clean.len() / 8);
    let mut chars = clean.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push_str("<br>"),
            '\r' => (),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '$' | '(' | ')' => out.extend(['\\', c]),
            '@' | '#' | '!' | '~' => {
                out.push(c);
                out.push_str(APART);
            }
            ':' if matches!(chars.peek(), Some(':' | '/')) => {
                out.push(c);
                out.push_str(APART);
            }
            '.' if ends_with_www(&out) => {
                out.push_str(APART);
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn ends_with_www(text: &str) -> bool {
    text.len()
        .checked_sub(3)
        .and_then(|at| text.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case("www"))
}

/// Text without what hides in it, and in which nothing is a link.
pub(super) fn plain_text(text: &str) -> String {
    screen::mark_unsafe_chars(text.trim()).replace("](", "]\u{200b}(")
}

/// Renders a value as one line that is no command of a CI, which may stand anywhere in a line.
pub fn json_line(value: &Value) -> String {
    format!("{}\n", value.to_string().replace("##[", "#\\u0023["))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markdown_escaping_disarms_html_mentions_links_and_ci_commands() {
        let hostile = "<img src=x onerror=y>\n::set-output name=a::b\n/merge\n@team #12 !7 ![p](http://e.org/?q) www.e.org \
            ##[add-mask]x `code` | a\u{202e}b";
        let text = markdown(hostile);
        for (what, why) in [
            ("<img", "HTML"),
            ("\n", "a line of its own, where commands begin"),
            ("::", "a command of a CI"),
            ("##", "a command of a CI"),
            ("@team", "a mention"),
            ("#12", "a reference"),
            ("](", "a link"),
            ("://", "an address"),
            ("www.e", "an address"),
            ("\u{202e}", "a hidden character"),
        ] {
            assert!(!text.contains(what), "{why}: {text}");
        }
        assert!(text.contains("&lt;img src=x onerror=y&gt;<br>:&#8203;:set-output"), "{text}");
        assert!(text.contains("\\`code\\` \\|"), "{text}");
    }

    #[test]
    fn json_line_has_no_ci_command_and_parses_to_the_same_value() {
        let value = json!({ "a": "x ##[set-output name=a]b\n::c" });
        let text = json_line(&value);
        assert!(!text.contains("##[") && text.lines().count() == 1);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
