//! `gnoma sessions export`: a session as a file for people or for another gnoma.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use anyhow::{Context as _, Result};
use gnoma_core::store::{Entry, SessionFacts};
use gnoma_store::export::Format;

use super::Ground;
use crate::{
    args::ExportFormat,
    commands::print,
    report::{self, Exit, Misuse},
};

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
    let entries = past.path(&facts.id, None).await?;
    match output {
        Some(file) if file != Path::new("-") => {
            let file = ground.around.cwd.join(file);
            write(&file, format, &facts, &entries)?;
            report::say(format_args!("{} is in {}", facts.id, file.display()));
            Ok(Exit::Done)
        }
        Some(_) | None => {
            let body: String = entries.iter().map(|entry| format.entry(entry)).collect();
            print(&format!("{}{body}{}", format.head(&facts), format.tail()))
        }
    }
}

/// Writes a file that was not there, readable by nobody else.
fn write(path: &Path, format: Format, facts: &SessionFacts, entries: &[Entry]) -> Result<()> {
    let shown = path.display();
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let text = format!("`{shown}` is there already; name another file, or remove it");
            anyhow::Error::new(Misuse(text))
        }
        _ => anyhow::Error::new(error).context(format!("cannot write `{shown}`")),
    })?;
    let mut out = io::BufWriter::new(file);
    let mut write = || -> io::Result<()> {
        out.write_all(format.head(facts).as_bytes())?;
        for entry in entries {
            out.write_all(format.entry(entry).as_bytes())?;
        }
        out.write_all(format.tail().as_bytes())?;
        out.flush()
    };
    write().with_context(|| format!("cannot write `{shown}`"))
}
