//! The few lines of YAML before a Markdown text: its name, its purpose.
//!
//! They are read as people write them: a plain value may contain colons, and an invalid line is reported and left
//! out. No anchors, tags, references or nesting beyond one level of names, so that nothing in such a file can grow
//! when it is read.

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

impl FrontMatter {
    /// Splits a text into its fields and the rest. `None` where no fields stand before it.
    #[must_use]
    pub(crate) fn split(text: &str) -> Option<(Self, &str)> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let first = text.lines().next()?;
        if first.trim_end() != "---" {
            return None;
        }
        let mut at = next_line(text, 0);
        let begin = at;
        while at < text.len() {
            let end = next_line(text, at);
            if text.get(at..end)?.trim_end() == "---" {
                return Some((Self::read(text.get(begin..at)?), text.get(end..)?));
            }
            at = end;
        }
        None
    }

    fn read(text: &str) -> Self {
        let mut all = Self::default();
        let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let Some((name, value)) = named(line).filter(|_| !line.starts_with([' ', '\t'])) else {
                all.faults
                    .push(format!("`{}` is not a field: it needs `name: value`", line.trim()));
                continue;
            };
            let below = lines.get(at..).unwrap_or_default();
            let count = below.iter().take_while(|line| is_below(line)).count();
            let below = below.get(..count).unwrap_or_default();
            at += count;
            let value = all.value(&name, value, below);
            if all.get(&name).is_some() {
                all.lenient.push(format!("`{name}` occurs twice"));
                all.faults.push(format!("`{name}` occurs twice; the first one counts"));
            } else {
                all.fields.push((name, value));
            }
        }
        all
    }

    fn value(&mut self, name: &str, value: &str, below: &[&str]) -> FieldValue {
        let value = value.trim();
        if let Some(folds) = block(value) {
            return FieldValue::Text(joined(below, folds));
        }
        if value.is_empty() {
            let filled: Vec<&str> =
                below.iter().copied().filter(|line| !line.trim().is_empty()).collect();
            if filled.iter().any(|line| item(line).is_some()) {
                return FieldValue::List(filled.iter().filter_map(|line| item(line)).collect());
            }
            if !filled.is_empty() {
                return self.map(name, &filled);
            }
            return FieldValue::Text(String::new());
        }
        self.begins_plainly(name, value);
        if let Some(inside) = value.strip_prefix('[') {
            let Some(inside) = inside.strip_suffix(']') else {
                self.faults.push(format!("the list of `{name}` has no end"));
                return FieldValue::Text(value.to_owned());
            };
            return FieldValue::List(listed(inside));
        }
        let whole = below.iter().fold(value.to_owned(), |text, line| {
            let line = line.trim();
            if line.is_empty() { text } else { format!("{text} {line}") }
        });
        FieldValue::Text(self.scalar(name, &whole))
    }

    fn begins_plainly(&mut self, name: &str, value: &str) {
        if value.starts_with(['[', '{', '&', '*', '!', '%', '@', '`']) {
            self.lenient
                .push(format!("the value of `{name}` begins with a character that needs quotes"));
        }
    }

    fn map(&mut self, name: &str, lines: &[&str]) -> FieldValue {
        let mut fields = Vec::new();
        for line in lines {
            match named(line.trim_start()) {
                Some((key, value)) => {
                    self.begins_plainly(name, value.trim());
                    fields.push((key, self.scalar(name, value.trim())));
                }
                None => self.faults.push(format!("`{}` in `{name}` is not a field", line.trim())),
            }
        }
        FieldValue::Map(fields)
    }

    fn scalar(&mut self, name: &str, text: &str) -> String {
        for quote in ['"', '\''] {
            let Some(inside) = text.strip_prefix(quote) else { continue };
            let Some(end) = closing(inside, quote) else {
                self.faults.push(format!("the text of `{name}` has no closing quote"));
                return inside.to_owned();
            };
            return unquoted(inside.get(..end).unwrap_or_default(), quote);
        }
        if text.contains(": ") || text.ends_with(':') {
            self.lenient.push(format!("the value of `{name}` contains a colon and needs quotes"));
        }
        text.find(" #").and_then(|at| text.get(..at)).unwrap_or(text).trim_end().to_owned()
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

fn next_line(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |at| from + at + 1)
}

fn is_below(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.trim().is_empty() || item(line).is_some()
}

/// A line's name and what follows it.
fn named(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().trim_matches(['"', '\'']);
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '));
    let is_apart = value.is_empty() || value.starts_with([' ', '\t']);
    (is_name && is_apart).then(|| (name.to_owned(), value))
}

fn item(line: &str) -> Option<String> {
    let rest = line.trim().strip_prefix('-')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| bare(rest.trim()))
}

fn bare(text: &str) -> String {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text).to_owned()
}

/// Whether lines below are one text, and then whether line breaks in it are spaces.
fn block(value: &str) -> Option<bool> {
    match value.trim_end_matches(['-', '+']) {
        "|" => Some(false),
        ">" => Some(true),
        _ => None,
    }
}

fn joined(lines: &[&str], folds: bool) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(indent).min().unwrap_or(0);
    let cut: Vec<&str> =
        lines.iter().map(|line| line.get(least..).unwrap_or("").trim_end()).collect();
    cut.join(if folds { " " } else { "\n" }).trim_end().to_owned()
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

fn closing(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' && quote == '"' {
            is_escaped = true;
        } else if c == quote {
            return Some(at);
        }
    }
    None
}

fn unquoted(text: &str, quote: char) -> String {
    if quote == '\'' {
        return text.to_owned();
    }
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => result.push('\n'),
                Some('t') => result.push('\t'),
                other => result.extend(other),
            },
            c => result.push(c),
        }
    }
    result
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
        assert!(FrontMatter::split("---\nname: a\n").is_none());
        assert!(FrontMatter::split("# name: a\n").is_none());
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
