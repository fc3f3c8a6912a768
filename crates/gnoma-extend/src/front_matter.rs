//! The fields in YAML before a Markdown text: its name, its purpose.
//!
//! A YAML parser reads them, within limits. People write what is no YAML: values with colons, brackets or tabs. Where the
//! whole cannot be read, each field is read by itself, a value that needs quotes gets them, and what is still wrong is
//! named and left out.

use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::HashMap;

/// What follows a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue {
    /// One text.
    Text(String),
    /// Several.
    List(Vec<String>),
    /// Texts with names of their own.
    Map(Vec<(String, String)>),
}

/// The fields before a text, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    /// Names and values.
    pub(crate) fields: Vec<(String, FieldValue)>,
    /// What could not be read, a sentence each.
    pub(crate) faults: Vec<String>,
    /// What is read here and is no YAML, or not the plain kind of it that skills have.
    pub(crate) lenient: Vec<String>,
}

/// Most lines that are read as fields.
const MAX_LINES: usize = 500;
/// Most bytes of them.
const MAX_BYTES: usize = 256 << 10;
/// Most texts, lists and maps in the fields, those that aliases repeat included.
const MAX_NODES: usize = 2000;
/// Most lists and maps inside each other.
const MAX_DEPTH: usize = 16;
/// Most references to other parts of the fields.
const MAX_ALIASES: usize = 20;

impl FrontMatter {
    /// Splits a text into its fields and the rest. `None` where no fields stand before it.
    #[must_use]
    pub(crate) fn split(text: &str) -> Option<(Self, &str)> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let text = text.trim_start_matches(['\n', '\r']);
        if text.lines().next()?.trim_end() != "---" {
            return None;
        }
        let begin = next_line(text, 0);
        let mut at = begin;
        while at < text.len() {
            let end = next_line(text, at);
            if matches!(text.get(at..end)?.trim_end(), "---" | "...") {
                return Some((Self::read(text.get(begin..at)?), text.get(end..)?));
            }
            at = end;
        }
        Self::split_without_end(text, begin)
    }

    /// The fields up to the first line that is none, where no line ends them.
    fn split_without_end(text: &str, begin: usize) -> Option<(Self, &str)> {
        let mut at = begin;
        while let Some(line) = text.get(at..).and_then(|rest| rest.lines().next()) {
            if line.trim().is_empty() || !(is_below(line) || named(line).is_some()) {
                break;
            }
            at = next_line(text, at);
        }
        let mut fields = Self::read(text.get(begin..at)?);
        if fields.fields.is_empty() {
            return None;
        }
        fields.faults.push("the line `---` behind its fields is missing".to_owned());
        Some((fields, text.get(at..)?))
    }

    fn read(text: &str) -> Self {
        let mut all = Self::default();
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > MAX_LINES || text.len() > MAX_BYTES {
            all.faults.push(format!(
                "its fields are longer than {MAX_LINES} lines or {} KiB; the rest is left out",
                MAX_BYTES >> 10
            ));
        }
        let mut bytes = 0;
        let lines: Vec<&str> = lines
            .into_iter()
            .take(MAX_LINES)
            .take_while(|line| {
                bytes += line.len() + 1;
                bytes <= MAX_BYTES
            })
            .collect();
        match parse(&lines.join("\n")) {
            Ok(fields) => all.add(fields),
            Err(_) => all.read_one_by_one(&lines),
        }
        all
    }

    /// Reads each field by itself.
    fn read_one_by_one(&mut self, lines: &[&str]) {
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let count = lines.iter().skip(at + 1).take_while(|line| is_below(line)).count();
            let field = lines.get(at..at + 1 + count).unwrap_or_default();
            // The fields begin on the second line of the file.
            let number = at + 2;
            at += 1 + count;
            match parse(&field.join("\n")) {
                Ok(fields) => self.add(fields),
                Err(error) => match named(line) {
                    Some((name, _)) => self.repair(&name, field, number, &error),
                    None => self
                        .faults
                        .push(format!("`{}` is not a field: it needs `name: value`", line.trim())),
                },
            }
        }
    }

    /// Reads a field that is no YAML with quotes where its values need them.
    fn repair(&mut self, name: &str, field: &[&str], line: usize, error: &Fault) {
        let repaired = Repaired::of(name, field);
        match parse(&repaired.text) {
            Ok(fields) => {
                self.lenient.extend(repaired.lenient);
                self.faults.extend(repaired.faults);
                self.add(fields);
            }
            Err(_) => {
                let line = line + error.line;
                self.faults.push(format!("`{name}` is left out: line {line}: {}", error.why));
            }
        }
    }

    fn add(&mut self, parsed: Parsed) {
        self.lenient.extend(parsed.lenient);
        for (name, node) in parsed.fields {
            if self.get(&name).is_some() {
                self.lenient.push(format!("`{name}` occurs twice"));
                self.faults.push(format!("`{name}` occurs twice; the first one counts"));
            } else {
                self.fields.push((name, node.into_field()));
            }
        }
    }

    /// The value of a field.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&FieldValue> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// A field that is one text; a list becomes one.
    #[must_use]
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            FieldValue::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            FieldValue::List(items) => Some(items.join(", ")),
            FieldValue::Map(_) => None,
        }
    }

    /// A field that is a list, as a text with commas. Spaces may separate, too.
    ///
    /// # Errors
    /// It is neither a text nor a list, so that nobody knows what it would hold to.
    pub(crate) fn list(&self, name: &str) -> Result<Option<String>, String> {
        match self.get(name) {
            Some(FieldValue::Map(_)) => {
                Err(format!("its `{name}` must be a list of names, not names with values"))
            }
            _ => Ok(self.text(name)),
        }
    }

    /// The names of fields that are not among `known`.
    pub(crate) fn others(&self, known: &[&str]) -> Vec<String> {
        let names = self.fields.iter().map(|(name, _)| name);
        names.filter(|name| !known.contains(&name.as_str())).cloned().collect()
    }

    /// Whether a field says yes.
    #[must_use]
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| matches!(&*text.to_lowercase(), "true" | "yes" | "on"))
    }
}

/// The names that a text gives to its arguments.
pub(crate) fn argument_names(fields: &FrontMatter) -> Vec<String> {
    let text = fields.text("arguments").unwrap_or_default();
    let names = text.split(|c: char| c.is_whitespace() || c == ',');
    // A number already names a position.
    let is_name = |name: &&str| name.contains(|c: char| !c.is_ascii_digit());
    names.filter(|name| !name.is_empty()).filter(is_name).map(str::to_owned).collect()
}

/// A part of the fields.
#[derive(Clone, Debug)]
enum Node {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn into_field(self) -> FieldValue {
        match self {
            Self::Text(text) => FieldValue::Text(text),
            Self::List(items) => FieldValue::List(items.into_iter().map(Self::into_text).collect()),
            Self::Map(fields) => FieldValue::Map(
                fields.into_iter().map(|(name, value)| (name, value.into_text())).collect(),
            ),
        }
    }

    /// On one line: what is nested deeper than fields are read.
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::List(items) => {
                items.into_iter().map(Self::into_text).collect::<Vec<_>>().join(", ")
            }
            Self::Map(fields) => {
                let field = |(name, value): (String, Self)| format!("{name}: {}", value.into_text());
                fields.into_iter().map(field).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// How many parts it has, itself included.
    fn size(&self) -> usize {
        1 + match self {
            Self::Text(_) => 0,
            Self::List(items) => items.iter().map(Self::size).sum::<usize>(),
            Self::Map(fields) => fields.iter().map(|(_, value)| value.size()).sum(),
        }
    }
}

/// Fields that were read.
#[derive(Debug, Default)]
struct Parsed {
    fields: Vec<(String, Node)>,
    lenient: Vec<String>,
}

/// Why a text is no fields.
#[derive(Debug)]
struct Fault {
    /// From 0.
    line: usize,
    why: String,
}

/// A list or map that is being read.
#[derive(Debug)]
enum Open {
    List(Vec<Node>),
    Map(Vec<(String, Node)>, Option<String>),
}

/// Reads a map of fields.
fn parse(text: &str) -> Result<Parsed, Fault> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Fault {
            line: error.marker().line().saturating_sub(1),
            why: error.info().to_owned(),
        })?;
        let is_flow = matches!(letters.get(span.start.index()), Some('[' | '{'));
        reader.take(event, is_flow).map_err(|why| Fault {
            line: span.start.line().saturating_sub(1),
            why: why.to_owned(),
        })?;
    }
    match reader.root {
        Some(Node::Map(fields)) => Ok(Parsed { fields, lenient: reader.lenient }),
        // Only comments.
        None => Ok(Parsed::default()),
        Some(Node::Text(_) | Node::List(_)) => {
            Err(Fault { line: 0, why: "it needs `name: value`".to_owned() })
        }
    }
}

/// Builds fields from a parser's events.
#[derive(Debug, Default)]
struct Reader {
    open: Vec<(Open, usize)>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    aliases: usize,
    lenient: Vec<String>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, is_flow: bool) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.note(anchor > 0 || tag.is_some());
                let is_nothing =
                    style == ScalarStyle::Plain && matches!(&*text, "~" | "null" | "Null" | "NULL");
                // A text on several lines ends with a line break that nobody means.
                let text = if is_nothing { "" } else { text.trim_end() };
                self.put(Node::Text(text.to_owned()), anchor)
            }
            Event::Alias(anchor) => {
                self.note(true);
                self.aliases += 1;
                if self.aliases > MAX_ALIASES {
                    return Err("it has too many references");
                }
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err("it refers to something that is not there");
                };
                self.nodes += node.size();
                self.put(node, 0)
            }
            Event::SequenceStart(anchor, tag) => {
                self.note(is_flow || anchor > 0 || tag.is_some());
                self.begin(Open::List(Vec::new()), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.note(is_flow || anchor > 0 || tag.is_some());
                self.begin(Open::Map(Vec::new(), None), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::List(items), anchor)) => self.put(Node::List(items), anchor),
                Some((Open::Map(fields, _), anchor)) => self.put(Node::Map(fields), anchor),
                None => Ok(()),
            },
            Event::DocumentStart(_) if self.root.is_some() => Err("it has a second document"),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, open: Open, anchor: usize) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH {
            return Err("it is nested too deep");
        }
        self.open.push((open, anchor));
        Ok(())
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), &'static str> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err("it has too many parts");
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((Open::List(items), _)) => items.push(node),
            Some((Open::Map(fields, name), _)) => match (name.take(), node) {
                (Some(name), node) => fields.push((name, node)),
                (None, Node::Text(text)) => *name = Some(text),
                (None, Node::List(_) | Node::Map(_)) => return Err("a list or map is no name"),
            },
        }
        Ok(())
    }

    /// Notes what is YAML and not of the plain kind.
    fn note(&mut self, is_odd: bool) {
        let field = self.open.iter().find_map(|(open, _)| match open {
            Open::Map(_, name) => name.as_deref(),
            Open::List(_) => None,
        });
        if let Some(name) = field.filter(|_| is_odd) {
            self.lenient.push(needs_quotes(name));
        }
    }
}

fn needs_quotes(name: &str) -> String {
    format!("the value of `{name}` begins with a character that needs quotes")
}

/// A field with quotes around what needs them.
#[derive(Debug, Default)]
struct Repaired {
    text: String,
    lenient: Vec<String>,
    faults: Vec<String>,
}

impl Repaired {
    fn of(name: &str, field: &[&str]) -> Self {
        let mut repaired = Self::default();
        let (first, below) = field.split_first().unwrap_or((&"", &[]));
        let value = named(first).map_or("", |(_, value)| value.trim());
        if !value.is_empty() && !is_block(value) {
            // One text, perhaps on several lines.
            let rest = below.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
            let whole = std::iter::once(value).chain(rest).collect::<Vec<_>>().join(" ");
            repaired.text = format!("{}: {}", quote(name), repaired.quoted(name, &whole));
            return repaired;
        }
        repaired.text = format!("{}:{}", quote(name), if value.is_empty() { "" } else { " " });
        repaired.text.push_str(value);
        for line in below {
            let body = line.trim_start();
            let tabs = line.get(..line.len() - body.len()).unwrap_or_default();
            if tabs.contains('\t') {
                repaired.lenient.push(format!("lines of `{name}` begin with tabs"));
            }
            repaired.text.push('\n');
            repaired.text.push_str(&tabs.replace('\t', "  "));
            let line = if is_block(value) { body.to_owned() } else { repaired.line(name, body) };
            repaired.text.push_str(&line);
        }
        repaired
    }

    /// A line below a name: an item, a name with a value, or the rest of a text.
    fn line(&mut self, name: &str, body: &str) -> String {
        let (dash, rest) = match body.strip_prefix("- ") {
            Some(rest) => ("- ", rest.trim()),
            None => ("", body.trim_end()),
        };
        match named(rest).filter(|(_, value)| !value.trim().is_empty()) {
            Some((key, value)) => {
                format!("{dash}{}: {}", quote(&key), self.quoted(name, value.trim()))
            }
            None if dash.is_empty() || rest.is_empty() => body.to_owned(),
            None => format!("{dash}{}", self.quoted(name, rest)),
        }
    }

    /// A value as it is where that is YAML, else in quotes.
    fn quoted(&mut self, name: &str, value: &str) -> String {
        if is_block(value) || parse(&format!("value: {value}")).is_ok() {
            return value.to_owned();
        }
        let mut inside = value;
        for mark in ['"', '\''] {
            let Some(rest) = value.strip_prefix(mark) else { continue };
            inside = rest.strip_suffix(mark).unwrap_or(rest);
            if !rest.contains(mark) {
                self.faults.push(format!("the text of `{name}` has no closing quote"));
            }
        }
        if value.starts_with('[') && !value.contains(']') {
            self.faults.push(format!("the list of `{name}` has no end"));
        }
        let plain = inside.find(" #").and_then(|at| inside.get(..at)).unwrap_or(inside).trim_end();
        self.lenient.push(if plain.contains(": ") || plain.ends_with(':') {
            format!("the value of `{name}` contains a colon and needs quotes")
        } else {
            needs_quotes(name)
        });
        quote(plain)
    }
}

/// `text` in the quotes of YAML.
fn quote(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// Whether the lines below are one text.
fn is_block(value: &str) -> bool {
    let mut letters = value.chars();
    matches!(letters.next(), Some('|' | '>'))
        && letters.all(|letter| matches!(letter, '-' | '+' | '0'..='9'))
}

fn next_line(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |at| from + at + 1)
}

/// Whether a line belongs to the field above it.
fn is_below(line: &str) -> bool {
    line.starts_with([' ', '\t', '#']) || line.trim().is_empty() || line == "-" || line.starts_with("- ")
}

/// A line's name and what follows it.
fn named(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().trim_matches(['"', '\'']);
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '$'));
    let is_apart = value.is_empty() || value.starts_with(char::is_whitespace);
    (is_name && is_apart).then(|| (name.to_owned(), value))
}

fn bare(text: &str) -> String {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text).to_owned()
}

/// The parts of a text between commas that stand in no brackets and no quotes.
#[must_use]
pub(crate) fn listed(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quote, mut begin) = (Vec::new(), 0_usize, None, 0);
    for (at, c) in text.char_indices() {
        match c {
            '"' | '\'' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            '(' | '[' | '{' if quote.is_none() => depth += 1,
            ')' | ']' | '}' if quote.is_none() => depth = depth.saturating_sub(1),
            ',' if depth == 0 && quote.is_none() => {
                parts.push(text.get(begin..at).unwrap_or_default());
                begin = at + 1;
            }
            _ => (),
        }
    }
    parts.push(text.get(begin..).unwrap_or_default());
    let parts = parts.into_iter().map(|part| bare(part.trim()));
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (FrontMatter, String) {
        let (fields, rest) = FrontMatter::split(text).unwrap();
        (fields, rest.to_owned())
    }

    #[test]
    fn what_people_write_is_read() {
        let (fields, rest) = read(
            "---\nname: pdf\ndescription: Reads: a PDF # yes\nallowed-tools: Bash(git add:*, x), Read\n\
             list:\n  - one\n  - \"two\"\nmetadata:\n  author: me\n  version: '1.0'\n\
             long: >\n  one\n  two\nflow: [a, b]\n---\nbody\n",
        );
        assert_eq!(fields.text("description").unwrap(), "Reads: a PDF");
        assert_eq!(listed(&fields.text("allowed-tools").unwrap()), ["Bash(git add:*, x)", "Read"]);
        assert_eq!(fields.get("list"), Some(&FieldValue::List(vec!["one".into(), "two".into()])));
        let metadata = vec![("author".into(), "me".into()), ("version".into(), "1.0".into())];
        assert_eq!(fields.get("metadata"), Some(&FieldValue::Map(metadata)));
        assert_eq!(fields.text("long").unwrap(), "one two");
        assert_eq!(fields.get("flow"), Some(&FieldValue::List(vec!["a".into(), "b".into()])));
        assert_eq!((rest.as_str(), fields.faults.len()), ("body\n", 0));
    }

    #[test]
    fn what_is_broken_is_told_and_the_rest_is_read() {
        let (fields, _) = read("---\nname: \"a\n: [\nname: b\nlist: [a\n---\n");
        assert_eq!(fields.faults.len(), 4, "{:?}", fields.faults);
        assert_eq!(fields.text("name").unwrap(), "a");
        assert!(FrontMatter::split("# name: a\n").is_none());
        let (fields, _) = read("---\nname: a\nother:\n  a: b\n c: [\ndescription: d\n---\n");
        assert_eq!((fields.text("name").unwrap(), fields.text("description").unwrap()), ("a".into(), "d".into()));
        assert!(fields.faults[0].starts_with("`other` is left out: line "), "{:?}", fields.faults);
    }

    #[test]
    fn fields_without_an_end_are_read_up_to_the_first_line_that_is_none() {
        let (fields, rest) = read("---\nname: a\nlist:\n  - b\n\n# Title\nText: x\n");
        assert_eq!((fields.text("name").unwrap(), fields.text("list").unwrap()), ("a".into(), "b".into()));
        assert_eq!(rest, "\n# Title\nText: x\n");
        assert_eq!(fields.faults, ["the line `---` behind its fields is missing"]);
        for rule in ["---\n\nText\n", "---\n# Title\n", "---\nno field\n"] {
            assert!(FrontMatter::split(rule).is_none(), "{rule}");
        }
        let (fields, rest) = read("\u{feff}\r\n---\r\nname: a\r\ntext: |\r\n  b\r\n  c\r\n...\r\nbody");
        assert_eq!((fields.text("text").unwrap().as_str(), rest.as_str()), ("b\nc", "body"));
    }

    #[test]
    fn values_that_need_quotes_are_read_as_they_are_meant() {
        for (value, text) in [
            ("Use when: the user asks. Examples: a, b", "Use when: the user asks. Examples: a, b"),
            ("Use when: x\n  and y: z", "Use when: x and y: z"),
            ("\n  Begins on the next line\n  and goes on.", "Begins on the next line and goes on."),
            ("|\n  L1\n  L2", "L1\nL2"),
            (">-\n  F1\n  F2", "F1 F2"),
            ("|2-\n    L1\n  L2", "  L1\nL2"),
            ("[pr-number] [priority]", "[pr-number] [priority]"),
            ("**/*.rs", "**/*.rs"),
            ("@team owns `x`", "@team owns `x`"),
            ("\"a \\d b\"", "a \\d b"),
            ("'it's'", "it's"),
            ("\"a\" and b", "a\" and b"),
            ("{{x}} y", "{{x}} y"),
            ("\n\ttabs\n\tand more", "tabs and more"),
            ("~", ""),
            ("yes", "yes"),
            ("1.10", "1.10"),
        ] {
            let (fields, _) = read(&format!("---\nname: n\nfield: {value}\nlast: l\n---\n"));
            assert_eq!(fields.get("field"), Some(&FieldValue::Text(text.to_owned())), "{value}");
            assert_eq!(fields.text("last").as_deref(), Some("l"), "{value}");
            assert_eq!(fields.faults, [""; 0], "{value}");
        }
        for (value, items) in [
            ("\n  - **/*.ts\n  - a: b: c", vec!["**/*.ts", "a: b: c"]),
            ("\n- a\n- b", vec!["a", "b"]),
            ("[a, \"b, c\"]", vec!["a", "b, c"]),
            ("&x [a]\ncopy: *x", vec!["a"]),
        ] {
            let (fields, _) = read(&format!("---\nfield: {value}\n---\n"));
            let items = items.into_iter().map(str::to_owned).collect();
            assert_eq!(fields.get("field"), Some(&FieldValue::List(items)), "{value}");
        }
    }

    #[test]
    fn fields_that_would_grow_are_left_out() {
        let deep = "[".repeat(MAX_DEPTH + 2) + &"]".repeat(MAX_DEPTH + 2);
        let wide = format!("[{}]", "a, ".repeat(MAX_NODES));
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for at in 1..9 {
            let before = at - 1;
            laughs.push_str(&format!("a{at}: &a{at} [*a{before}, *a{before}, *a{before}, *a{before}]\n"));
        }
        for text in [format!("x: {deep}"), format!("x: {wide}"), laughs, "x: *y".to_owned()] {
            let (fields, _) = read(&format!("---\nname: n\n{text}\n---\n"));
            assert_eq!(fields.text("name").as_deref(), Some("n"), "{}", text.len());
            assert!(format!("{fields:?}").len() < 20_000);
        }
        let (fields, _) = read(&format!("---\nname: n\n{}---\n", "k: v\n".repeat(MAX_LINES)));
        assert!(fields.faults[0].contains("longer than"), "{:?}", fields.faults);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(---\n)?[-a:\\[\\]\"'|> \n#é]{0,60}(\n---\n)?.{0,9}") {
            if let Some((_, rest)) = FrontMatter::split(&text) {
                proptest::prop_assert!(text.ends_with(rest));
            }
        }
    }
}
