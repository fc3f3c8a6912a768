//! Our own JSON lines. Entries keep their times, order and records; ids only tie them together.

use std::path::Path;

use gnoma_core::{
    Role,
    store::{Entry, Record},
};

use super::{
    bounded::{BoundedLine, each_line},
    imported::{ImportedTranscript, MAX_ENTRIES, import_error},
};
use crate::{
    error::Result,
    export::{LINES_VERSION, LinesHead, ResultLine},
    pairs,
};

/// Reads a file of JSON lines.
pub(super) fn read_json_lines(path: &Path) -> Result<ImportedTranscript> {
    let mut imported = ImportedTranscript::default();
    let mut head = None;
    each_line(path, |line| {
        let BoundedLine::Text(line) = line else {
            imported.count_skipped("lines that are too long");
            return Ok(());
        };
        if head.is_none() {
            head = Some(read_head(path, &line)?);
            return Ok(());
        }
        if imported.entries.len() + imported.results.len() >= MAX_ENTRIES {
            return Err(import_error(format_args!("it has more than {MAX_ENTRIES} entries")));
        }
        match gnoma_core::json::from_bytes::<Entry>(&line) {
            Ok(entry) => imported.entries.push(entry),
            Err(_) => match gnoma_core::json::from_bytes::<ResultLine<'_>>(&line) {
                Ok(kept) => imported.results.push((kept.result, kept.text.into_owned())),
                Err(_) => imported.count_skipped("unreadable lines"),
            },
        }
        Ok(())
    })?;
    if let Some(head) = head {
        imported.title = Some(head.facts.title).filter(|title| !title.is_empty());
        imported.project = Some(head.facts.project);
        imported.origin = Some(head.facts.id.to_string());
    }
    make_legal(&mut imported);
    Ok(imported)
}

fn read_head(path: &Path, line: &[u8]) -> Result<LinesHead> {
    let head = gnoma_core::json::from_bytes::<LinesHead>(line).map_err(|error| {
        import_error(format_args!(
            "`{}` does not begin like a file of `gnoma sessions export --format jsonl` ({error})",
            path.display()
        ))
    })?;
    if head.gnoma_session != LINES_VERSION {
        return Err(import_error(format_args!(
            "`{}` has version {}, this gnoma knows {LINES_VERSION}",
            path.display(),
            head.gnoma_session
        )));
    }
    Ok(head)
}

/// A file that was edited or cut may have lost halves of pairs.
fn make_legal(imported: &mut ImportedTranscript) {
    let entries = std::mem::take(&mut imported.entries);
    let path: Vec<(i64, Record)> =
        (0..).zip(&entries).map(|(at, entry)| (at, entry.record.clone())).collect();
    let mut mended = pairs::repair_pairs(&path);
    gnoma_core::sort::by_key(&mut mended, |(at, _)| *at);
    let mut mended = mended.into_iter().peekable();
    for (at, mut entry) in (0..).zip(entries) {
        if let Some((_, record)) = mended.next_if(|(next, _)| *next == at) {
            let is_result =
                matches!(&entry.record, Record::Message(message) if message.role() == Role::Tool);
            imported.count_skipped(if is_result {
                "results without a call"
            } else {
                "calls without a result"
            });
            entry.record = record;
        }
        imported.entries.push(entry);
    }
}
