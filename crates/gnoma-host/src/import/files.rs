//! Reading the files of other assistants: small ones, and JSON with comments.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use serde_json::Value;

/// Most bytes of a file.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Most bytes of a file of text that is copied.
const MAX_TEXT_BYTES: u64 = 256 << 10;
/// Most files of a folder.
const MAX_FILES: usize = 500;

/// The text of a file; `None` where there is none.
pub(super) fn read_small(path: &Path) -> Result<Option<String>, String> {
    read(path, MAX_TEXT_BYTES)
}

fn read(path: &Path, most: u64) -> Result<Option<String>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let facts = file.metadata().map_err(|error| error.to_string())?;
    if !facts.is_file() || facts.len() > most {
        return Err("it is no file, or too large".to_owned());
    }
    let mut text = String::new();
    file.take(most).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(Some(text))
}

/// A file of JSON, perhaps with comments; `None` where there is none.
pub(super) fn read_json(path: &Path) -> Result<Option<Value>, String> {
    let Some(text) = read(path, MAX_FILE_BYTES)? else { return Ok(None) };
    let read = serde_json::from_str(&text).or_else(|_| serde_json::from_str(&plain(&text)));
    read.map(Some).map_err(|error| format!("it is no JSON: {error}"))
}

/// JSON without comments and without commas at the end of lists.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_text = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_text => {
                out.push(c);
                out.extend(chars.next());
            }
            '"' => {
                in_text = !in_text;
                out.push(c);
            }
            '/' if !in_text && chars.peek() == Some(&'/') => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            '/' if !in_text && chars.peek() == Some(&'*') => {
                chars.next();
                let mut last = ' ';
                for c in chars.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            ']' | '}' if !in_text => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// The Markdown files of a folder by name, sorted.
pub(super) fn markdown_files(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    let mut all: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_markdown = name.ends_with(".md") && !name.starts_with('.');
            let text = read_small(&entry.path()).ok().flatten().filter(|_| is_markdown)?;
            Some((name, text))
        })
        .collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_comments_is_read() {
        let text = "{ // a\n \"u\": \"http://x\", /* b */ \"l\": [1, 2,],\n}";
        let value: Value = serde_json::from_str(&plain(text)).unwrap();
        assert_eq!(value, serde_json::json!({"u": "http://x", "l": [1, 2]}));
    }
}
