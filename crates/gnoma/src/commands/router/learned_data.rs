//! `gnoma router reset|export|import`: what was learned, as a whole.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use anyhow::{Context as _, Result};
use gnoma_core::json_value::json;
use gnoma_host::{
    HostError, Project,
    project_history::refuse_in_incognito,
    routing::{
        self,
        memory::{self, ScoreStore},
        quality::Quality,
        state_file::{self, MAX_BYTES, SavedScores, StateFileError},
    },
};

use crate::{
    commands::common::{print_json, print_raw_data, print_stored_text},
    environment::ProcessEnvironment,
    report::Exit,
    terminal,
};

pub(super) async fn reset_state(
    project: &Project,
    yes: bool,
    json: bool,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    refuse_in_incognito(project, "router reset")?;
    let book = routing::score_book(project);
    if !yes {
        let Some(terminal) = terminal::open_terminal(around) else {
            let text = "cannot ask for confirmation without a terminal; add --yes";
            return Err(HostError::usage(text).into());
        };
        if !terminal::is_yes(&terminal, "Delete everything learned about models? [y]es, [n]o: ") {
            return print_stored_text("nothing was deleted\n");
        }
    }
    if book.path().exists() || book.has_scores() {
        book.reset().with_context(|| cannot_change(&book))?;
    }
    routing::profile_ledger(project).forget_arms().await?;
    let text = "deleted what was learned about models: scores, speeds, rests and limits reported by providers; spending stays\n";
    print_done(json, text)
}

pub(super) fn export_state(project: &Project) -> Result<Exit> {
    let book = routing::score_book(project);
    let kept = book.read().with_context(|| format!("cannot read `{}`", book.path().display()))?;
    print_raw_data(&String::from_utf8_lossy(&state_file::encode_state(&kept)?))
}

pub(super) fn import_state(
    project: &Project,
    file: &Path,
    replace: bool,
    json: bool,
) -> Result<Exit> {
    refuse_in_incognito(project, "router import")?;
    let book = routing::score_book(project);
    let bytes = read_bounded(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let here = book.read().with_context(|| cannot_change(&book))?;
    let is_empty = here.state.is_none();
    match state_file::decode_state(&bytes) {
        Ok(kept) if is_empty || replace => {
            book.replace(kept).with_context(|| cannot_change(&book))?;
            print_done(json, "imported\n")
        }
        Ok(_) => {
            let text = "routing data exists already; --replace overwrites it";
            Err(HostError::usage(text).into())
        }
        Err(StateFileError::Newer) => {
            let text = format!("`{}` was written by a newer gnoma", file.display());
            Err(HostError::usage(text).into())
        }
        Err(StateFileError::Damaged | StateFileError::Unreadable(_)) => {
            import_go_scores(project, &book, file, &bytes, (here, replace), json)
        }
    }
}

/// Takes over the Go version's scores, once.
fn import_go_scores(
    project: &Project,
    book: &ScoreStore,
    file: &Path,
    bytes: &[u8],
    (here, replace): (SavedScores, bool),
    json: bool,
) -> Result<Exit> {
    let text = String::from_utf8_lossy(bytes);
    let Ok(quality) = Quality::read(&text) else {
        let text = format!(
            "`{}` is not an export of `gnoma router export` or a `quality.json`, or it is damaged",
            file.display()
        );
        return Err(HostError::usage(text).into());
    };
    if here.imported && here.state.is_some() && !replace {
        let text = "these scores were imported before; --replace starts over with them";
        return Err(HostError::usage(text).into());
    }
    if replace {
        book.replace(SavedScores::NONE).with_context(|| cannot_change(book))?;
    }
    let known = routing::published_arms(project, quality.arms());
    book.teach_scores(&quality, &known).with_context(|| cannot_change(book))?;
    print_done(json, &format!("{}\n", memory::taken_over(&quality, file)))
}

fn cannot_change(book: &ScoreStore) -> String {
    format!("cannot change `{}`", book.path().display())
}

fn read_bounded(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(file)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

fn print_done(json: bool, text: &str) -> Result<Exit> {
    if json { print_json(&json!({ "done": text.trim_end() })) } else { print_stored_text(text) }
}
