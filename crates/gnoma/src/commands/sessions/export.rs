//! `gnoma sessions export`: a session as a file for people or for another gnoma.
//!
//! Written piece by piece, so that a long session is never in memory as a whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use gnoma_core::store::{ResultId, SessionFacts, SessionId, SessionStore as _, Shelf as _};
use gnoma_store::export::Format;

use super::Ground;
use crate::{
    args::ExportFormat,
    commands::print,
    past::Past,
    report::{self, Exit, Misuse},
};

/// Bytes of a large result that are read at once.
const STRETCH_BYTES: usize = 1 << 20;

pub(super) async fn run(
    ground: &Ground<'_>,
    id: Option<&str>,
    format: ExportFormat,
    output: Option<&Path>,
) -> Result<Exit> {
    let format = match format {
        ExportFormat::Markdown => Format::Markdown,
        ExportFormat::Html => Format::Html,
        ExportFormat::Jsonl => Format::Lines,
    };
    let past = ground.past()?;
    let facts = past.session(id).await?;
    match output {
        Some(file) if file != Path::new("-") => {
            let file = ground.around.cwd.join(file);
            let mut out = Out::file(&file)?;
            if let Err(error) = export(&past, &facts, format, &mut out).await {
                // Half a session is no export, and would be in the way of the next.
                fs::remove_file(&file).ok();
                return Err(error);
            }
            report::say(format_args!("{} is in {}", facts.id, file.display()));
            Ok(Exit::Done)
        }
        Some(_) | None => export(&past, &facts, format, &mut Out::Standard).await,
    }
}

/// Where an export goes.
enum Out {
    Standard,
    File(BufWriter<File>, PathBuf),
}

impl Out {
    /// A file that was not there, readable by nobody else.
    fn file(path: &Path) -> Result<Self> {
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let shown = path.display();
                let text = format!("`{shown}` is there already; name another file, or remove it");
                anyhow::Error::new(Misuse(text))
            }
            _ => anyhow::Error::new(error).context(unwritten(path)),
        })?;
        Ok(Self::File(BufWriter::new(file), path.to_owned()))
    }

    /// Writes a piece. Anything but [`Exit::Done`]: nobody reads any more.
    fn add(&mut self, piece: &str) -> Result<Exit> {
        match self {
            Self::Standard => print(piece),
            Self::File(out, path) => {
                out.write_all(piece.as_bytes()).with_context(|| unwritten(path))?;
                Ok(Exit::Done)
            }
        }
    }

    fn end(&mut self) -> Result<Exit> {
        if let Self::File(out, path) = self {
            out.flush().with_context(|| unwritten(path))?;
        }
        Ok(Exit::Done)
    }
}

fn unwritten(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}

async fn export(past: &Past, facts: &SessionFacts, format: Format, out: &mut Out) -> Result<Exit> {
    let mut exit = out.add(&format.head(facts))?;
    for page in past.pages(&facts.id).await? {
        if exit != Exit::Done {
            return Ok(exit);
        }
        let entries = past.store.load(facts.id.clone(), page).await?.entries;
        let text: String = entries.iter().map(|entry| format.entry(entry)).collect();
        exit = out.add(&text)?;
    }
    if format == Format::Lines {
        for result in past.store.results(facts.id.clone()).await? {
            if exit != Exit::Done {
                return Ok(exit);
            }
            let text = whole(past, &facts.id, &result).await?;
            exit = out.add(&format.result(&result, &text))?;
        }
    }
    if exit != Exit::Done {
        return Ok(exit);
    }
    out.add(format.tail())?;
    out.end()
}

/// All of a large result.
async fn whole(past: &Past, session: &SessionId, result: &ResultId) -> Result<String> {
    let shelf = past.store.shelf(session.clone());
    let (mut text, mut from) = (String::new(), Some(0));
    while let Some(at) = from {
        let stretch = shelf.read(result.clone(), at, STRETCH_BYTES).await?;
        text.push_str(&stretch.text);
        // It ends with the result: each stretch begins after the one before.
        from = stretch.next.filter(|next| *next > at);
    }
    Ok(text)
}
