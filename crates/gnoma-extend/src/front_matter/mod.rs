//! YAML front matter: the fields before a Markdown text, such as its name and description.
//!
//! A YAML parser reads them, within limits. People write what is no YAML: values with colons, brackets or tabs. Where the
//! whole cannot be read, each field is read by itself, a value that needs quotes gets them, and what is still wrong is
//! named and left out. Fields in TOML, between lines `+++`, are read as well.

mod hashes;
mod repair;
mod yaml;

use repair::{RepairedField, split_field};
use yaml::{ParsedFields, YamlFault, YamlNode, parse_fields};

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue {
    /// A value of one text.
    Text(String),
    /// A list of several texts.
    List(Vec<String>),
    /// Texts with names of their own.
    Map(Vec<(String, String)>),
}

/// The fields before a text, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    /// The names of the fields with their values.
    pub(crate) fields: Vec<(String, FieldValue)>,
    /// The parts that could not be read, a sentence each.
    pub(crate) faults: Vec<String>,
    /// The parts that are read here although they are not YAML, or not the plain kind of it that skills have.
    pub(crate) lenient: Vec<String>,
}

/// Most lines that are read as fields.
const MAX_LINES: usize = 500;
/// Most bytes of them.
const MAX_BYTES: usize = 256 << 10;

/// A field that must be a list, but has names with values.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("its `{field}` must be a list of names, not names with values")]
pub(crate) struct NotAListError {
    field: String,
}

gnoma_core::debug_as_display!(NotAListError);

impl FieldValue {
    fn of_toml(value: toml::Value) -> Self {
        match value {
            toml::Value::Array(items) => Self::List(items.into_iter().map(toml_text).collect()),
            toml::Value::Table(fields) => {
                Self::Map(fields.into_iter().map(|(name, it)| (name, toml_text(it))).collect())
            }
            other => Self::Text(toml_text(other)),
        }
    }

    fn from_node(node: YamlNode) -> Self {
        match node {
            YamlNode::Text(text) => Self::Text(text),
            YamlNode::List(items) => {
                Self::List(items.into_iter().map(YamlNode::into_text).collect())
            }
            YamlNode::Map(fields) => {
                let field = |(name, value): (String, YamlNode)| (name, value.into_text());
                Self::Map(fields.into_iter().map(field).collect())
            }
        }
    }
}

/// A text of TOML without its quotes.
fn toml_text(value: toml::Value) -> String {
    match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    }
}

impl FrontMatter {
    /// Splits a text into its fields and the rest. `None` where no fields stand before it.
    #[must_use]
    pub(crate) fn split(text: &str) -> Option<(Self, &str)> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let text = behind_comments(text.trim_start_matches(['\n', '\r']));
        let (read, ends): (fn(&str) -> Self, &[&str]) = match text.lines().next()?.trim_end() {
            "---" => (Self::from_yaml, &["---", "..."]),
            "+++" => (Self::read_toml, &["+++"]),
            _ => return None,
        };
        let begin = next_line(text, 0);
        let mut at = begin;
        while at < text.len() {
            let end = next_line(text, at);
            if ends.contains(&text.get(at..end)?.trim_end()) {
                return Some((read(text.get(begin..at)?), text.get(end..)?));
            }
            at = end;
        }
        if ends.contains(&"---") { Self::split_without_end(text, begin) } else { None }
    }

    /// Fields as other programs have them, in TOML.
    fn read_toml(text: &str) -> Self {
        let mut all = Self::default();
        if text.len() > MAX_BYTES {
            all.faults.push(format!("its fields are longer than {} KiB", MAX_BYTES >> 10));
            return all;
        }
        match text.parse::<toml::Table>() {
            Ok(fields) => {
                all.lenient.push("its fields are TOML (`+++`), not YAML (`---`)".to_owned());
                all.fields =
                    fields.into_iter().map(|(name, it)| (name, FieldValue::of_toml(it))).collect();
            }
            Err(error) => all.faults.push(format!("its fields are no TOML: {}", error.message())),
        }
        all
    }

    /// The fields up to the first line that is none, where no line ends them.
    fn split_without_end(text: &str, begin: usize) -> Option<(Self, &str)> {
        let mut at = begin;
        while let Some(line) = text.get(at..).and_then(|rest| rest.lines().next()) {
            if line.trim().is_empty() || !(is_below(line) || split_field(line).is_some()) {
                break;
            }
            at = next_line(text, at);
        }
        let mut fields = Self::from_yaml(text.get(begin..at)?);
        if fields.fields.is_empty() {
            return None;
        }
        fields.faults.push("the line `---` behind its fields is missing".to_owned());
        Some((fields, text.get(at..)?))
    }

    fn from_yaml(text: &str) -> Self {
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
        let (lines, quoted) = hashes::quote_hash_values(&lines);
        all.lenient.extend(quoted);
        match parse_fields(&lines.join("\n")) {
            Ok(fields) => all.add_fields(fields),
            Err(_) => {
                let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
                all.read_one_by_one(&lines);
            }
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
            match parse_fields(&field.join("\n")) {
                Ok(fields) => self.add_fields(fields),
                Err(error) => match split_field(line) {
                    Some((name, _)) => self.repair_field(&name, field, number, &error),
                    None => self
                        .faults
                        .push(format!("`{}` is not a field: it needs `name: value`", line.trim())),
                },
            }
        }
    }

    /// Reads a field that is no YAML with quotes where its values need them.
    fn repair_field(&mut self, name: &str, field: &[&str], line: usize, fault: &YamlFault) {
        let repaired = RepairedField::from_field(name, field);
        match parse_fields(&repaired.text) {
            Ok(fields) => {
                self.lenient.extend(repaired.lenient);
                self.faults.extend(repaired.faults);
                self.add_fields(fields);
            }
            Err(_) => {
                let line = line + fault.line;
                self.faults.push(format!("`{name}` is left out: line {line}: {}", fault.error));
            }
        }
    }

    fn add_fields(&mut self, parsed: ParsedFields) {
        self.lenient.extend(parsed.lenient);
        for (name, node) in parsed.fields {
            if self.fields.iter().any(|(key, _)| *key == name) {
                self.lenient.push(format!("`{name}` occurs twice"));
                self.faults.push(format!("`{name}` occurs twice; the first one counts"));
            } else {
                self.fields.push((name, FieldValue::from_node(node)));
            }
        }
    }

    /// The value of a field. A name in other capitals counts where there is none with these.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&FieldValue> {
        let exact = self.fields.iter().find(|(key, _)| key == name);
        let found =
            exact.or_else(|| self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
        found.map(|(_, value)| value)
    }

    /// A field that is one text; a list becomes one.
    #[must_use]
    pub(crate) fn text_field(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            FieldValue::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            FieldValue::List(items) => Some(items.join(", ")),
            // A sentence with a colon on a line of its own is a field to YAML.
            FieldValue::Map(fields) => {
                let lines: Vec<_> =
                    fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                Some(lines.join(" ")).filter(|text| !text.is_empty())
            }
        }
    }

    /// A field that is a list, as a text with commas. Spaces may separate, too.
    ///
    /// # Errors
    /// The field is neither a text nor a list, so that its meaning is unknown.
    pub(crate) fn list_field(&self, name: &str) -> Result<Option<String>, NotAListError> {
        match self.get(name) {
            Some(FieldValue::Map(_)) => Err(NotAListError { field: name.to_owned() }),
            _ => Ok(self.text_field(name)),
        }
    }

    /// The names of fields that are not among `known`.
    pub(crate) fn unknown_fields(&self, known: &[&str]) -> Vec<String> {
        let names = self.fields.iter().map(|(name, _)| name);
        let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        names.filter(|name| !is_known(name)).cloned().collect()
    }

    /// Reports whether a field has a value that means yes.
    #[must_use]
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.text_field(name)
            .is_some_and(|text| matches!(&*text.to_lowercase(), "true" | "yes" | "on"))
    }
}

/// The names that a text gives to its arguments.
pub(crate) fn argument_names(fields: &FrontMatter) -> Vec<String> {
    let text = fields.text_field("arguments").unwrap_or_default();
    let names = text.split(|c: char| c.is_whitespace() || c == ',');
    // A number already names a position.
    let is_name = |name: &&str| name.contains(|c: char| !c.is_ascii_digit());
    names.filter(|name| !name.is_empty()).filter(is_name).map(str::to_owned).collect()
}

/// `text` without the comments of HTML before its fields, a licence for instance.
fn behind_comments(text: &str) -> &str {
    let mut rest = text;
    while let Some(comment) = rest.strip_prefix("<!--") {
        let Some((_, behind)) = comment.split_once("-->") else { break };
        rest = behind.trim_start();
    }
    rest
}

fn next_line(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |at| from + at + 1)
}

/// Reports whether a line belongs to the field above it.
fn is_below(line: &str) -> bool {
    line.starts_with([' ', '\t', '#'])
        || line.trim().is_empty()
        || line == "-"
        || line.starts_with("- ")
}

fn strip_quotes(text: &str) -> String {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text).to_owned()
}

/// The parts of a text between commas that stand in no brackets and no quotes.
#[must_use]
pub(crate) fn split_list(text: &str) -> Vec<String> {
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
    let parts = parts.into_iter().map(|part| strip_quotes(part.trim()));
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
    fn front_matter_scalars_lists_and_maps_are_parsed() {
        let (fields, rest) = read(
            "---\nname: pdf\ndescription: Reads: a PDF # yes\nallowed-tools: Bash(git add:*, x), Read\n\
             list:\n  - one\n  - \"two\"\nmetadata:\n  author: me\n  version: '1.0'\n\
             long: >\n  one\n  two\nflow: [a, b]\n---\nbody\n",
        );
        assert_eq!(fields.text_field("description").unwrap(), "Reads: a PDF");
        assert_eq!(
            split_list(&fields.text_field("allowed-tools").unwrap()),
            ["Bash(git add:*, x)", "Read"]
        );
        assert_eq!(fields.get("list"), Some(&FieldValue::List(vec!["one".into(), "two".into()])));
        let metadata = vec![("author".into(), "me".into()), ("version".into(), "1.0".into())];
        assert_eq!(fields.get("metadata"), Some(&FieldValue::Map(metadata)));
        assert_eq!(fields.text_field("long").unwrap(), "one two");
        assert_eq!(fields.get("flow"), Some(&FieldValue::List(vec!["a".into(), "b".into()])));
        assert_eq!((rest.as_str(), fields.faults.len()), ("body\n", 0));
    }

    #[test]
    fn front_matter_faults_are_reported_and_other_fields_are_parsed() {
        let (fields, _) = read("---\nname: \"a\n: [\nname: b\nlist: [a\n---\n");
        assert_eq!(fields.faults.len(), 4, "{:?}", fields.faults);
        assert_eq!(fields.text_field("name").unwrap(), "a");
        assert!(FrontMatter::split("# name: a\n").is_none());
        let (fields, _) = read("---\nname: a\nother:\n  a: b\n c: [\ndescription: d\n---\n");
        assert_eq!(
            (fields.text_field("name").unwrap(), fields.text_field("description").unwrap()),
            ("a".into(), "d".into())
        );
        assert!(fields.faults[0].starts_with("`other` is left out: line "), "{:?}", fields.faults);
    }

    #[test]
    fn front_matter_field_indented_by_a_tab_is_reported() {
        let (fields, _) = read("---\nname: k\n\tdescription: tab\n---\n");
        assert!(fields.text_field("description").is_none(), "{fields:?}");
        assert!(fields.faults[0].starts_with("`description` begins with a tab"), "{fields:?}");
    }

    #[test]
    fn front_matter_in_toml_list_or_after_html_comments_is_parsed() {
        for text in [
            "---\nDescription: d\n---\nbody",
            "<!-- licence -->\n<!-- of\nmany lines -->\n\n---\ndescription: d\n---\nbody",
            "---\n- name: n\n- description: d\n---\nbody",
            "+++\ndescription = \"d\"\nlist = [\"a\"]\n+++\nbody",
        ] {
            let (fields, rest) = read(text);
            assert_eq!(
                (fields.text_field("description").as_deref(), &*rest),
                (Some("d"), "body"),
                "{text}"
            );
            assert_eq!(fields.faults, [""; 0], "{text}");
            assert!(
                fields.unknown_fields(&["description", "name", "list"]).is_empty(),
                "{fields:?}"
            );
        }
        let (fields, _) = read("+++\ndescription = \n+++\n");
        assert_eq!(fields.faults.len(), 1, "{fields:?}");
        let (fields, _) = read("---\ndescription: a\nDescription: b\n---\n");
        assert_eq!(fields.text_field("description").as_deref(), Some("a"));
        for text in ["<!-- a -->\ntext", "<!-- open\n---\na: b\n---\n", "+++\na = 1\n"] {
            assert!(FrontMatter::split(text).is_none(), "{text}");
        }
    }

    #[test]
    fn front_matter_hash_without_preceding_blank_is_no_comment() {
        for (value, text) in [
            ("Use #1: x", "Use #1: x"),
            ("see #123 and C#", "see #123 and C#"),
            ("a PDF # yes", "a PDF"),
            ("\"q\" #1", "q"),
            ("> #1\n  x", "x"),
        ] {
            let (fields, _) = read(&format!("---\ndescription: {value}\nlast: l #1\n---\n"));
            assert_eq!(fields.text_field("description").as_deref(), Some(text), "{value}");
            assert_eq!(fields.text_field("last").as_deref(), Some("l"), "{value}");
        }
    }

    #[test]
    fn unterminated_front_matter_ends_at_the_first_line_that_is_no_field() {
        let (fields, rest) = read("---\nname: a\nlist:\n  - b\n\n# Title\nText: x\n");
        assert_eq!(
            (fields.text_field("name").unwrap(), fields.text_field("list").unwrap()),
            ("a".into(), "b".into())
        );
        assert_eq!(rest, "\n# Title\nText: x\n");
        assert_eq!(fields.faults, ["the line `---` behind its fields is missing"]);
        for rule in ["---\n\nText\n", "---\n# Title\n", "---\nno field\n"] {
            assert!(FrontMatter::split(rule).is_none(), "{rule}");
        }
        let (fields, rest) =
            read("\u{feff}\r\n---\r\nname: a\r\ntext: |\r\n  b\r\n  c\r\n...\r\nbody");
        assert_eq!((fields.text_field("text").unwrap().as_str(), rest.as_str()), ("b\nc", "body"));
    }

    #[test]
    fn front_matter_unquoted_values_with_colons_are_parsed_as_text() {
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
            ("!DESC here", "!DESC here"),
            ("!!str 5", "5"),
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
            assert_eq!(fields.text_field("last").as_deref(), Some("l"), "{value}");
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
    fn front_matter_yaml_bombs_are_omitted() {
        use super::yaml::{MAX_DEPTH, MAX_NODES};
        let deep = "[".repeat(MAX_DEPTH + 2) + &"]".repeat(MAX_DEPTH + 2);
        let wide = format!("[{}]", "a, ".repeat(MAX_NODES));
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for at in 1..9 {
            let before = at - 1;
            laughs.push_str(&format!(
                "a{at}: &a{at} [*a{before}, *a{before}, *a{before}, *a{before}]\n"
            ));
        }
        for text in [format!("x: {deep}"), format!("x: {wide}"), laughs, "x: *y".to_owned()] {
            let (fields, _) = read(&format!("---\nname: n\n{text}\n---\n"));
            assert_eq!(fields.text_field("name").as_deref(), Some("n"), "{}", text.len());
            assert!(format!("{fields:?}").len() < 20_000);
        }
        let (fields, _) = read(&format!("---\nname: n\n{}---\n", "k: v\n".repeat(MAX_LINES)));
        assert!(fields.faults[0].contains("longer than"), "{:?}", fields.faults);
    }

    proptest::proptest! {
        #[test]
        fn front_matter_split_accepts_any_text(text in "(---\n)?[-a:\\[\\]\"'|> \n#é]{0,60}(\n---\n)?.{0,9}") {
            if let Some((_, rest)) = FrontMatter::split(&text) {
                proptest::prop_assert!(text.ends_with(rest));
            }
        }
    }
}
