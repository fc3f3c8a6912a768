//! Changes a configuration file's text: text in, text out. What is not touched stays byte for byte,
//! comments, order, indentation and line ends included.
//!
//! The text is parsed only to find the place; the change is then put there as text. Writing a parsed
//! document anew would tidy line ends and keys that stand apart.

use std::ops::Range;

use toml_edit::{Array, Document, InlineTable, Item, Key, Table, TableLike, Value};

/// The list of exceptions from the permission mode.
const RULES: [&str; 2] = ["permission", "rules"];

/// One change of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Sets a key to a value, whether it is there or not.
    Set {
        /// The names that lead to it, from the top of the file.
        path: Vec<String>,
        /// The new value of the key.
        value: toml::Value,
    },
    /// Removes a key with its value, if it is there.
    Remove {
        /// The names that lead to it, from the top of the file.
        path: Vec<String>,
    },
    /// Adds a permission rule that allows something, if it is not there.
    Allow(String),
}

impl Change {
    /// Sets a key as TOML writes it, such as `tui.theme` or `provider.models."my.server"`.
    ///
    /// # Errors
    /// When it is not a key.
    pub fn set_key(key: &str, value: impl Into<toml::Value>) -> Result<Self, EditError> {
        let names = Key::parse(key).map_err(|_| EditError::NoKey)?;
        let path = names.iter().map(|name| name.get().to_owned()).collect();
        Ok(Self::Set { path, value: value.into() })
    }

    /// Sets the key under these names.
    #[must_use]
    pub fn set_path(path: &[&str], value: impl Into<toml::Value>) -> Self {
        Self::Set { path: path.iter().map(|&name| name.to_owned()).collect(), value: value.into() }
    }

    /// Removes the key under these names.
    #[must_use]
    pub fn remove(path: &[&str]) -> Self {
        Self::Remove { path: path.iter().map(|&name| name.to_owned()).collect() }
    }
}

/// The reason why a text was not changed. Its text form is a sentence with the cause and what to do.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not valid TOML.
    #[error("line {line} is not valid TOML: {message}; fix it first")]
    NotToml {
        /// The line, from one.
        line: usize,
        /// The message of the TOML parser.
        message: String,
    },
    /// There is no such way to write a key.
    #[error("that is not a key; keys look like `tui.theme`")]
    NoKey,
    /// The key leads through something that holds no keys.
    #[error("`{key}` is set to a value, so nothing can be set below it; make it a table first")]
    NotATable {
        /// The key that is in the way.
        key: String,
    },
    /// The key leads through a list of tables, and does not say which of them is meant.
    #[error(
        "`{key}` is a list, and it is not clear which entry you mean; change the entry in the file"
    )]
    IsList {
        /// The key of the list.
        key: String,
    },
    /// The key names a table, which one value cannot replace.
    #[error("`{key}` is a table of settings; name one of them")]
    IsTable {
        /// The key of the table.
        key: String,
    },
    /// The permission rules are something else than a list of tables.
    #[error("`permission.rules` is not a list of rules; make it one first")]
    NotAList,
}

gnoma_core::debug_as_display!(EditError);

/// The text with all changes in it, in their order. It is the same text where nothing has to change.
///
/// # Errors
/// Why one of them cannot be made. None is made then.
pub fn apply_changes(text: &str, changes: &[Change]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for change in changes {
        text = match change {
            Change::Set { path, value } => set_value(&text, path, &value.to_string())?,
            Change::Remove { path } => remove_key(&text, path)?,
            Change::Allow(rule) => add_allow_rule(&text, rule)?,
        };
    }
    Ok(text)
}

/// The innermost table on the way to a key that new lines or fields can be put into.
enum EnclosingTable<'a> {
    Body(&'a Table),
    Inline(&'a InlineTable),
}

fn set_value(text: &str, path: &[String], value: &str) -> Result<String, EditError> {
    let document = parse_document(text)?;
    let mut at: &dyn TableLike = document.as_table();
    let mut host = (EnclosingTable::Body(document.as_table()), 0);
    for (depth, name) in path.iter().enumerate() {
        let is_last = depth + 1 == path.len();
        match at.get(name) {
            None | Some(Item::None) => return Ok(insert_key(text, path, depth, at, &host, value)),
            Some(Item::Value(Value::InlineTable(table))) if !is_last || table.is_dotted() => {
                at = table;
                if !table.is_dotted() {
                    host = (EnclosingTable::Inline(table), depth + 1);
                }
            }
            Some(Item::Value(old)) if is_last => {
                return Ok(splice_text(text, old.span().unwrap_or_default(), value));
            }
            Some(Item::Table(table)) => {
                at = table;
                if !table.is_dotted() {
                    host = (EnclosingTable::Body(table), depth + 1);
                }
            }
            Some(Item::Value(_)) => {
                return Err(EditError::NotATable { key: dotted_prefix(path, depth) });
            }
            Some(Item::ArrayOfTables(_)) => {
                return Err(EditError::IsList { key: dotted_prefix(path, depth) });
            }
        }
    }
    Err(match path.len().checked_sub(1) {
        None => EditError::NoKey,
        Some(last) => EditError::IsTable { key: dotted_prefix(path, last) },
    })
}

/// The text without a key and its value; a line that held nothing else goes with it.
fn remove_key(text: &str, path: &[String]) -> Result<String, EditError> {
    let document = parse_document(text)?;
    let Some((name, way)) = path.split_last() else { return Err(EditError::NoKey) };
    let mut at: &dyn TableLike = document.as_table();
    let mut is_inline = false;
    for step in way {
        match at.get(step) {
            Some(Item::Value(Value::InlineTable(table))) => {
                is_inline |= !table.is_dotted();
                at = table;
            }
            Some(Item::Table(table)) => at = table,
            _ => return Ok(text.to_owned()),
        }
    }
    let Some((key, Item::Value(value))) = at.get_key_value(name) else {
        return Ok(text.to_owned());
    };
    let (Some(key), Some(value)) = (key.span(), value.span()) else { return Ok(text.to_owned()) };
    Ok(match is_inline {
        true => splice_text(text, field_of(text, key.start..value.end), ""),
        false => splice_text(text, lines_of(text, key.start..value.end), ""),
    })
}

/// The whole lines around a place.
fn lines_of(text: &str, place: Range<usize>) -> Range<usize> {
    let before = text.get(..place.start).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let top = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let after = text.get(place.end..).unwrap_or_default();
    start.max(top)..after.find('\n').map_or(text.len(), |length| place.end + length + 1)
}

/// A field of an inline table with the comma that parts it from its neighbour.
fn field_of(text: &str, field: Range<usize>) -> Range<usize> {
    let before = text.get(..field.start).unwrap_or_default();
    // A dotted key begins before its last name.
    let start = before.rfind(['{', ',']).map_or(field.start, |at| at + 1);
    let after = text.get(field.end..).unwrap_or_default();
    let comma = after.trim_start().starts_with(',').then(|| after.find(',')).flatten();
    match comma {
        Some(length) => start..field.end + length + 1,
        None if before.get(start - 1..start) == Some(",") => start - 1..field.end,
        None => start..field.end,
    }
}

/// Puts in a key that is not there. `at` is the table that would hold the name at `depth`, and `host`
/// the one around it with the number of names that lead there.
fn insert_key(
    text: &str,
    path: &[String],
    depth: usize,
    at: &dyn TableLike,
    (host, host_depth): &(EnclosingTable<'_>, usize),
    value: &str,
) -> String {
    let line = format!("{} = {value}", join_path(path.get(*host_depth..).unwrap_or_default()));
    match host {
        EnclosingTable::Inline(table) => match end_of_last(*table) {
            Some(end) => splice_text(text, end..end, &format!(", {line}")),
            None => splice_text(text, table.span().unwrap_or_default(), &format!("{{ {line} }}")),
        },
        EnclosingTable::Body(table)
            if at.is_dotted() || (depth + 1 == path.len() && !table.is_implicit()) =>
        {
            let after = end_of_last(at).or_else(|| Some(table.span()?.end));
            insert_line(text, after.filter(|_| *host_depth > 0 || end_of_last(at).is_some()), &line)
        }
        EnclosingTable::Body(_) => {
            let (name, section) =
                path.split_last().map_or(("", path), |(name, section)| (name.as_str(), section));
            append_lines(
                text,
                &[&format!("[{}]", join_path(section)), &format!("{} = {value}", quote_name(name))],
            )
        }
    }
}

/// Returns the end of the last value that stands in the body of a table, not in a section of its own.
fn end_of_last(table: &dyn TableLike) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(Value::InlineTable(inner)) if inner.is_dotted() => end_of_last(inner),
        Item::Value(value) => Some(value.span()?.end),
        Item::Table(inner) if inner.is_dotted() => end_of_last(inner),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => None,
    });
    ends.max()
}

/// Puts a line under the one with the byte before `after`, or at the top of the file.
fn insert_line(text: &str, after: Option<usize>, line: &str) -> String {
    let end = line_end(text);
    let Some(after) = after else {
        let top = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        let gap = if text.len() > top { end } else { "" };
        return splice_text(text, top..top, &format!("{line}{end}{gap}"));
    };
    let rest = text.get(after..).unwrap_or_default();
    match rest.find('\n') {
        Some(length) => {
            let at = after + length + 1;
            splice_text(text, at..at, &format!("{line}{end}"))
        }
        None => format!("{text}{end}{line}{end}"),
    }
}

fn add_allow_rule(text: &str, rule: &str) -> Result<String, EditError> {
    let document = parse_document(text)?;
    let rule = Value::from(rule).to_string();
    let entry = format!("{{ rule = {rule}, action = \"allow\" }}");
    let lines = ["[[permission.rules]]", &format!("rule = {rule}"), "action = \"allow\""];
    let [section, list] = RULES;
    let Some(section) = document.get(section) else { return Ok(append_lines(text, &lines)) };
    let Some(table) = section.as_table_like() else {
        return Err(EditError::NotATable { key: RULES[0].to_owned() });
    };
    match table.get(list) {
        None | Some(Item::None) if section.is_table() && !table.is_dotted() => {
            Ok(append_lines(text, &lines))
        }
        None | Some(Item::None) => {
            set_value(text, &RULES.map(str::to_owned), &format!("[{entry}]"))
        }
        Some(Item::ArrayOfTables(rules)) => {
            let is_there = rules.iter().any(|known| is_allow_rule(known, &rule));
            Ok(if is_there { text.to_owned() } else { append_lines(text, &lines) })
        }
        Some(Item::Value(Value::Array(rules))) => {
            let tables = rules.iter().map(Value::as_inline_table);
            let tables = tables.collect::<Option<Vec<_>>>().ok_or(EditError::NotAList)?;
            let is_there = tables.into_iter().any(|known| is_allow_rule(known, &rule));
            Ok(if is_there { text.to_owned() } else { add_item(text, rules, &entry) })
        }
        Some(Item::Value(_) | Item::Table(_)) => Err(EditError::NotAList),
    }
}

/// Reports whether an entry allows exactly the rule that `rule`, a value as TOML writes it, stands for.
fn is_allow_rule(entry: &dyn TableLike, rule: &str) -> bool {
    let text = |name| entry.get(name).and_then(Item::as_str);
    let is_it = text("rule").is_some_and(|known| Value::from(known).to_string() == rule);
    is_it && text("action") == Some("allow") && entry.len() == 2
}

/// Adds an item to an array, on a line of its own where the items before it have one.
fn add_item(text: &str, array: &Array, item: &str) -> String {
    let span = array.span().unwrap_or_default();
    let Some(last) = array.iter().last().and_then(Value::span) else {
        return splice_text(text, span, &format!("[{item}]"));
    };
    let before = text.get(span.start..last.start).unwrap_or_default();
    let gap = match before.rsplit_once('\n') {
        Some((_, indent)) if indent.trim().is_empty() => format!(",{}{indent}", line_end(text)),
        Some(_) | None => ", ".to_owned(),
    };
    splice_text(text, last.end..last.end, &format!("{gap}{item}"))
}

/// Adds lines to the end, parted from what is there by an empty one.
fn append_lines(text: &str, lines: &[&str]) -> String {
    let end = line_end(text);
    let mut new = text.to_owned();
    if !text.trim_start_matches(BYTE_ORDER_MARK).is_empty() {
        new.push_str(if text.ends_with('\n') { "" } else { end });
        new.push_str(end);
    }
    lines.iter().for_each(|line| new.extend([line, end]));
    new
}

/// A mark that some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

fn line_end(text: &str) -> &'static str {
    let first = text.split_once('\n');
    if first.is_some_and(|(line, _)| line.ends_with('\r')) { "\r\n" } else { "\n" }
}

fn parse_document(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        EditError::NotToml {
            line: before.matches('\n').count() + 1,
            message: error.message().to_owned(),
        }
    })
}

fn splice_text(text: &str, place: Range<usize>, new: &str) -> String {
    let before = text.get(..place.start).unwrap_or_default();
    let after = text.get(place.end..).unwrap_or_default();
    [before, new, after].concat()
}

fn quote_name(name: &str) -> String {
    Key::new(name).to_string()
}

fn join_path(path: &[String]) -> String {
    path.iter().map(|name| quote_name(name)).collect::<Vec<_>>().join(".")
}

/// The key of the first `last + 1` names.
fn dotted_prefix(path: &[String], last: usize) -> String {
    join_path(path.get(..=last).unwrap_or_default())
}

#[cfg(test)]
mod tests;
