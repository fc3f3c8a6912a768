//! Repairs front matter that is no valid YAML, by quoting values.

use super::yaml::{needs_quotes, parse_fields};

/// A field with quotes around what needs them.
#[derive(Debug, Default)]
pub(super) struct RepairedField {
    pub(super) text: String,
    pub(super) lenient: Vec<String>,
    pub(super) faults: Vec<String>,
}

impl RepairedField {
    pub(super) fn from_field(name: &str, field: &[&str]) -> Self {
        let mut repaired = Self::default();
        let (first, below) = field.split_first().unwrap_or((&"", &[]));
        let value = split_field(first).map_or("", |(_, value)| value.trim());
        if !value.is_empty() && !is_block(value) {
            // One text, perhaps on several lines.
            let tabbed = below.iter().filter_map(|line| split_field(line.strip_prefix('\t')?));
            repaired.faults.extend(tabbed.map(|(key, _)| {
                format!(
                    "`{key}` begins with a tab and was read as text of `{name}`: remove the tab"
                )
            }));
            let rest = below.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
            let whole = std::iter::once(value).chain(rest).collect::<Vec<_>>().join(" ");
            repaired.text =
                format!("{}: {}", quote_yaml(name), repaired.quote_if_needed(name, &whole));
            return repaired;
        }
        repaired.text = format!("{}:{}", quote_yaml(name), if value.is_empty() { "" } else { " " });
        repaired.text.push_str(value);
        for line in below {
            let body = line.trim_start();
            let tabs = line.get(..line.len() - body.len()).unwrap_or_default();
            if tabs.contains('\t') {
                repaired.lenient.push(format!("lines of `{name}` begin with tabs"));
            }
            repaired.text.push('\n');
            repaired.text.push_str(&tabs.replace('\t', "  "));
            let line =
                if is_block(value) { body.to_owned() } else { repaired.repair_line(name, body) };
            repaired.text.push_str(&line);
        }
        repaired
    }

    /// A line below a name: an item, a name with a value, or the rest of a text.
    fn repair_line(&mut self, name: &str, body: &str) -> String {
        let (dash, rest) = match body.strip_prefix("- ") {
            Some(rest) => ("- ", rest.trim()),
            None => ("", body.trim_end()),
        };
        match split_field(rest).filter(|(_, value)| !value.trim().is_empty()) {
            Some((key, value)) => {
                format!("{dash}{}: {}", quote_yaml(&key), self.quote_if_needed(name, value.trim()))
            }
            None if dash.is_empty() || rest.is_empty() => body.to_owned(),
            None => format!("{dash}{}", self.quote_if_needed(name, rest)),
        }
    }

    /// A value as it is where that is YAML, else in quotes.
    fn quote_if_needed(&mut self, name: &str, value: &str) -> String {
        if is_block(value) || parse_fields(&format!("value: {value}")).is_ok() {
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
        quote_yaml(plain)
    }
}

/// `text` in the quotes of YAML.
fn quote_yaml(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// Reports whether a value announces that the lines below it are one text.
fn is_block(value: &str) -> bool {
    let mut letters = value.chars();
    matches!(letters.next(), Some('|' | '>'))
        && letters.all(|letter| matches!(letter, '-' | '+' | '0'..='9'))
}

/// A line's name and what follows it.
pub(super) fn split_field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().trim_matches(['"', '\'']);
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '$'));
    let is_apart = value.is_empty() || value.starts_with(char::is_whitespace);
    (is_name && is_apart).then(|| (name.to_owned(), value))
}
