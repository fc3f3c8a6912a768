//! Syntax highlighting: a scanner that knows comments, texts, numbers and words, and one short table for each
//! language. It reads a line at a time, so that code can be shown while it is written; it does not parse, and what it
//! does not know stays plain.

mod languages;

use crate::text::{Span, Style, TextRole};
use languages::{Language, Quote, Shape};

/// A line longer than this is shown plain.
const MAX_LINE_BYTES: usize = 2_000;
/// Comments within comments that are followed.
const MAX_DEPTH: usize = 100;

/// Reads the lines of one text in one language.
#[derive(Clone, Debug)]
pub struct Highlighter {
    language: &'static Language,
    inside: OpenConstruct,
}

/// The construct that the end of the line before left open.
#[derive(Clone, Copy, Debug)]
enum OpenConstruct {
    Nothing,
    Comment { depth: usize },
    Text(&'static Quote),
}

impl Highlighter {
    /// For the language of this name, of files that end like this, or of the file of this name.
    #[must_use]
    pub fn for_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        let ending = name.rsplit(['.', '/']).next().unwrap_or(&name);
        let language =
            languages::find_language(&name).or_else(|| languages::find_language(ending))?;
        Some(Self { language, inside: OpenConstruct::Nothing })
    }

    /// The next line, without its end, in colours.
    pub fn highlight_line(&mut self, line: &str) -> Vec<Span> {
        if line.len() > MAX_LINE_BYTES {
            return vec![Span::new(line.to_owned(), Style::default())];
        }
        match self.language.shape {
            Shape::Diff => vec![Span::new(line.to_owned(), diff_style(line))],
            Shape::Code | Shape::Markup => self.scan(line),
        }
    }

    fn scan(&mut self, line: &str) -> Vec<Span> {
        let mut scan = Scan { line, at: 0, spans: Vec::new() };
        while scan.at < line.len() {
            match self.inside {
                OpenConstruct::Comment { depth } => self.scan_comment(&mut scan, depth),
                OpenConstruct::Text(quote) => self.scan_string(&mut scan, quote),
                OpenConstruct::Nothing => self.scan_token(&mut scan),
            }
        }
        if let OpenConstruct::Text(quote) = self.inside
            && !quote.spans_lines
        {
            self.inside = OpenConstruct::Nothing;
        }
        scan.spans
    }

    /// To the end of a comment, or of the line.
    fn scan_comment(&mut self, scan: &mut Scan<'_>, depth: usize) {
        let Some((open, close)) = self.language.block_comment else {
            self.inside = OpenConstruct::Nothing;
            return;
        };
        let rest = scan.remaining_text();
        let closing = rest.find(close);
        let opening = if self.language.comments_nest { rest.find(open) } else { None };
        match (opening, closing) {
            (Some(opening), closing) if closing.is_none_or(|closing| opening < closing) => {
                scan.push(opening + open.len(), TextRole::Comment);
                self.inside = OpenConstruct::Comment { depth: (depth + 1).min(MAX_DEPTH) };
            }
            (_, Some(closing)) => {
                scan.push(closing + close.len(), TextRole::Comment);
                self.inside = match depth {
                    0 | 1 => OpenConstruct::Nothing,
                    depth => OpenConstruct::Comment { depth: depth - 1 },
                };
            }
            (_, None) => scan.push(rest.len(), TextRole::Comment),
        }
    }

    /// To the end of a text, or of the line.
    fn scan_string(&mut self, scan: &mut Scan<'_>, quote: &'static Quote) {
        let rest = scan.remaining_text();
        match end_of_text(rest, quote) {
            Some(end) => {
                self.inside = OpenConstruct::Nothing;
                scan.push(end, self.text_ink(&rest[end..]));
            }
            None => scan.push(rest.len(), TextRole::String),
        }
    }

    /// A text before a colon is a key, where there are keys.
    fn text_ink(&self, after: &str) -> TextRole {
        match self.language.key_end {
            Some(end) if after.trim_start().starts_with(end) => TextRole::Type,
            Some(_) | None => TextRole::String,
        }
    }

    fn scan_token(&mut self, scan: &mut Scan<'_>) {
        let rest = scan.remaining_text();
        let Some(first) = rest.chars().next() else { return };
        if first.is_whitespace() {
            let end = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
            return scan.push(end, TextRole::Text);
        }
        if let Some((open, _)) = self.language.block_comment
            && rest.starts_with(open)
        {
            self.inside = OpenConstruct::Comment { depth: 1 };
            return scan.push(open.len(), TextRole::Comment);
        }
        if self.begins_line_comment(scan) {
            return scan.push(rest.len(), TextRole::Comment);
        }
        if let Some(quote) = self.language.quote_at(rest) {
            return self.begin_text(scan, quote);
        }
        if first.is_ascii_digit() {
            return scan.push(number_length(rest), TextRole::Number);
        }
        if self.language.begins_word(first) {
            return self.scan_word(scan);
        }
        if self.language.shape == Shape::Markup && first == '<' {
            return scan.push(tag_length(rest), TextRole::Keyword);
        }
        let ink = if first.is_ascii_punctuation() { TextRole::Operator } else { TextRole::Text };
        scan.push(first.len_utf8(), ink);
    }

    /// A `#` begins a comment only where a word could begin: it has other uses inside.
    fn begins_line_comment(&self, scan: &Scan<'_>) -> bool {
        let rest = scan.remaining_text();
        let begins = |mark: &&&str| rest.starts_with(**mark);
        let Some(mark) = self.language.line_comments.iter().find(begins) else { return false };
        *mark != "#" || scan.line[..scan.at].chars().next_back().is_none_or(char::is_whitespace)
    }

    fn begin_text(&mut self, scan: &mut Scan<'_>, quote: &'static Quote) {
        let rest = scan.remaining_text();
        if quote.single_character {
            let length = character_length(rest);
            let ink = if length > 1 { TextRole::String } else { TextRole::Operator };
            return scan.push(length, ink);
        }
        let body = &rest[quote.open.len()..];
        match end_of_text(body, quote) {
            Some(end) => {
                let end = quote.open.len() + end;
                scan.push(end, self.text_ink(&rest[end..]));
            }
            None => {
                self.inside = OpenConstruct::Text(quote);
                scan.push(rest.len(), TextRole::String);
            }
        }
    }

    fn scan_word(&self, scan: &mut Scan<'_>) {
        let rest = scan.remaining_text();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let inner = |c: char| !self.language.continues_word(c);
        let end = rest[first..].find(inner).map_or(rest.len(), |at| first + at);
        let ink = self.language.ink(&rest[..end], &rest[end..]);
        scan.push(end, ink);
    }
}

/// A line that is being read.
struct Scan<'a> {
    line: &'a str,
    at: usize,
    spans: Vec<Span>,
}

impl<'a> Scan<'a> {
    fn remaining_text(&self) -> &'a str {
        &self.line[self.at..]
    }

    /// The next `bytes` mean this.
    fn push(&mut self, bytes: usize, ink: TextRole) {
        let text = &self.remaining_text()[..bytes];
        self.at += bytes;
        let span = Span::new(text.to_owned(), Style::with_ink(ink));
        match self.spans.last_mut() {
            // Spaces have no colour, so that they need no change of it.
            Some(last) if last.style == span.style || text.trim().is_empty() => {
                last.text.to_mut().push_str(&span.text);
            }
            _ => self.spans.push(span),
        }
    }
}

/// Bytes up to and with the end of a text.
fn end_of_text(text: &str, quote: &Quote) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = &text[from..];
        let close = rest.find(quote.close)?;
        let escape = if quote.escapes { rest.find('\\') } else { None };
        match escape {
            Some(escape) if escape < close => {
                let escaped = rest[escape + 1..].chars().next().map_or(0, char::len_utf8);
                from += escape + 1 + escaped;
            }
            Some(_) | None => return Some(from + close + quote.close.len()),
        }
    }
}

/// Bytes of a character between quotes; one if it is none, such as a lifetime.
fn character_length(text: &str) -> usize {
    let inner = &text[1..];
    let body = match inner.chars().next() {
        Some('\\') => inner[1..].find('\'').map(|at| at + 1),
        Some('\'') | None => None,
        Some(c) => Some(c.len_utf8()),
    };
    match body {
        Some(body) if inner[body..].starts_with('\'') => body + 2,
        Some(_) | None => 1,
    }
}

fn number_length(text: &str) -> usize {
    let mut end = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].chars().next();
        let goes_on = c.is_ascii_alphanumeric()
            || c == '_'
            || (c == '.' && after.is_some_and(|after| after.is_ascii_digit()))
            || (matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !text.starts_with("0x"));
        if !goes_on {
            break;
        }
        end = at + c.len_utf8();
        before = c;
    }
    end
}

/// `<`, `</` or `<!` with the name that follows.
fn tag_length(text: &str) -> usize {
    let mark = text.find(|c: char| !matches!(c, '<' | '/' | '!' | '?')).unwrap_or(text.len());
    let name = |c: char| !c.is_alphanumeric() && !matches!(c, '-' | ':' | '_');
    text[mark..].find(name).map_or(text.len(), |at| mark + at)
}

fn diff_style(line: &str) -> Style {
    let ink = match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => return Style::default().bold(),
        [b'+', ..] => TextRole::Good,
        [b'-', ..] => TextRole::Bad,
        [b'@', b'@', ..] => TextRole::Accent,
        _ => TextRole::Text,
    };
    Style::with_ink(ink)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every line with what is coloured marked, one letter for each ink.
    fn marked(language: &str, text: &str) -> String {
        let mut highlighter = Highlighter::for_name(language).unwrap();
        let mut marked = String::new();
        for line in text.lines() {
            for span in highlighter.highlight_line(line) {
                let letter = match span.style.ink {
                    TextRole::Keyword => 'k',
                    TextRole::Type => 't',
                    TextRole::Function => 'f',
                    TextRole::String => 's',
                    TextRole::Number => 'n',
                    TextRole::Comment => 'c',
                    _ => ' ',
                };
                let word = span.text.trim_end();
                if letter == ' ' {
                    marked.push_str(&span.text);
                } else {
                    let spaces = &span.text[word.len()..];
                    marked.push_str(&format!("{letter}⟨{word}⟩{spaces}"));
                }
            }
            marked.push('\n');
        }
        marked
    }

    #[test]
    fn rust() {
        let code = "fn main<'a>(x: &'a str) { // hi\n    let c = 'x'; let v = vec![1_000, 0x1f, 2.5e-3];\n    /* a /* b */\n c */ print(r#\"a\"b\"#, Some(Vec::new()));\n}";
        insta::assert_snapshot!(marked("rust", code), @r##"
        k⟨fn⟩ main<'a>(x: &'a t⟨str⟩) { c⟨// hi⟩
            k⟨let⟩ c = s⟨'x'⟩; k⟨let⟩ v = f⟨vec⟩![n⟨1_000⟩, n⟨0x1f⟩, n⟨2.5e-3⟩];
            c⟨/* a /* b */⟩
        c⟨ c */⟩ f⟨print⟩(s⟨r#"a"b"#⟩, t⟨Some⟩(t⟨Vec⟩::f⟨new⟩()));
        }
        "##);
    }

    #[test]
    fn python_and_shell() {
        let code = "@cache\ndef run(x): # why\n    \"\"\"Doc\n    more\"\"\"\n    return f\"{x}\" if x else None";
        insta::assert_snapshot!(marked("py", code), @r#"
        f⟨@cache⟩
        k⟨def⟩ f⟨run⟩(x): c⟨# why⟩
            s⟨"""Doc⟩
        s⟨    more"""⟩
            k⟨return⟩ fs⟨"{x}"⟩ k⟨if⟩ x k⟨else⟩ n⟨None⟩
        "#);
        let code = "for f in *.rs; do echo \"$f # no\" | wc -l; done # yes $# ${x#y}";
        insta::assert_snapshot!(marked("bash", code), @r#"k⟨for⟩ f k⟨in⟩ *.rs; k⟨do⟩ f⟨echo⟩ s⟨"$f # no"⟩ | f⟨wc⟩ -l; k⟨done⟩ c⟨# yes $# ${x#y}⟩"#);
    }

    #[test]
    fn data_has_keys() {
        insta::assert_snapshot!(marked("json", "{\"a\": \"b\", \"c\": [true, -1.5]}"), @r#"{t⟨"a"⟩: s⟨"b"⟩, t⟨"c"⟩: [n⟨true⟩, -n⟨1.5⟩]}"#);
        insta::assert_snapshot!(marked("Cargo.toml", "[package]\nname = \"x\" # c"), @r#"
        [package]
        t⟨name⟩ = s⟨"x"⟩ c⟨# c⟩
        "#);
        insta::assert_snapshot!(marked("html", "<a href=\"x\">text</a> <!-- c -->"), @r#"k⟨<a⟩ t⟨href⟩=s⟨"x"⟩>textk⟨</a⟩> c⟨<!-- c -->⟩"#);
    }

    proptest! {
        #[test]
        fn no_letter_is_lost_in_any_language(
            lines in prop::collection::vec("[a-z0-9 '\"`/*#<>!\\-{}()\\\\漢é.=$@:+\\[\\]]{0,40}", 0..6),
        ) {
            for name in languages::language_names() {
                let mut highlighter = Highlighter::for_name(name).unwrap();
                for line in &lines {
                    let spans = highlighter.highlight_line(line);
                    let text: String = spans.iter().map(|span| &*span.text).collect();
                    prop_assert_eq!(&text, line, "{}", name);
                }
            }
        }
    }
}
