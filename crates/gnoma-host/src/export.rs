//! A session as a file for people or for another gnoma.
//!
//! Written piece by piece, so that a long session is never in memory as a whole.

use std::path::Path;

use gnoma_core::store::{ResultId, ResultStore as _, SessionFacts, SessionId, SessionStore as _};
pub use gnoma_store::export::Format;

use crate::{HostError, Project, Result, clock, files::NewFile, project_history::ProjectHistory};

/// Bytes of a large result that are read at once.
const SLICE_BYTES: usize = 1 << 20;

/// Gives a session to `write`, piece by piece, as long as that gives true. The session is named by a
/// beginning of its id; the newest by default.
///
/// # Errors
/// There is no such session, it cannot be read, or what `write` fails with.
pub async fn export_session<E: From<HostError>>(
    project: &Project,
    session: Option<&str>,
    format: Format,
    mut write: impl FnMut(&str) -> Result<bool, E>,
) -> Result<(), E> {
    let past = ProjectHistory::open(project)?;
    let facts = past.find_session(session).await?;
    write_pieces(&past, &facts, format, &mut write).await
}

/// The format that the ending of a file's name stands for; Markdown if it has none.
///
/// # Errors
/// The ending is none of those.
pub fn format_of(file: &Path) -> Result<Format> {
    let Some(ending) = file.extension() else { return Ok(Format::Markdown) };
    match ending.to_str().map(str::to_ascii_lowercase).as_deref() {
        Some("md" | "markdown") => Ok(Format::Markdown),
        Some("html" | "htm") => Ok(Format::Html),
        Some("jsonl") => Ok(Format::Lines),
        _ => Err(HostError::usage(format!(
            "`{}` was not written: sessions are exported to files that end in .md, .html or .jsonl",
            file.display()
        ))),
    }
}

/// Writes a session to a new file that only its owner can read; returns the session's id.
///
/// # Errors
/// There is no such session, the file already exists, or it cannot be written.
pub async fn export_to_file(
    project: &Project,
    session: Option<&str>,
    format: Format,
    file: &Path,
) -> Result<SessionId> {
    let past = ProjectHistory::open(project)?;
    let facts = past.find_session(session).await?;
    let mut out = NewFile::create(file)?;
    let mut write = |piece: &str| out.write(piece.as_bytes()).map(|()| true);
    write_pieces(&past, &facts, format, &mut write).await?;
    out.finish()?;
    Ok(facts.id)
}

async fn write_pieces<E: From<HostError>>(
    past: &ProjectHistory,
    facts: &SessionFacts,
    format: Format,
    write: &mut impl FnMut(&str) -> Result<bool, E>,
) -> Result<(), E> {
    let mut goes_on = write(&format.render_head(facts, clock::local_time_zone))?;
    for page in past.page_requests(&facts.id).await? {
        if !goes_on {
            return Ok(());
        }
        let loaded = past.store.load(facts.id.clone(), page).await.map_err(HostError::from)?;
        let text: String = loaded.entries.iter().map(|entry| format.render_entry(entry)).collect();
        goes_on = write(&text)?;
    }
    if format == Format::Lines {
        let results = past.store.list_results(facts.id.clone()).await;
        for result in results.map_err(HostError::from)? {
            if !goes_on {
                return Ok(());
            }
            let text = read_whole_result(past, &facts.id, &result).await?;
            goes_on = write(&format.render_result(&result, &text))?;
        }
    }
    if goes_on {
        write(format.render_tail())?;
    }
    Ok(())
}

/// All of a large result.
async fn read_whole_result(
    past: &ProjectHistory,
    session: &SessionId,
    result: &ResultId,
) -> Result<String> {
    let results = past.store.result_store(session.clone());
    let (mut text, mut from) = (String::new(), Some(0));
    while let Some(at) = from {
        let slice = results.read_slice(result.clone(), at, SLICE_BYTES).await?;
        text.push_str(&slice.text);
        // It ends with the result: each slice begins after the one before.
        from = slice.next.filter(|next| *next > at);
    }
    Ok(text)
}
