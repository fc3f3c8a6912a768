//! `gnoma sessions rename`: a title of one's own.

use anyhow::Result;
use gnoma_core::store::SessionStore as _;

use gnoma_host::{HostError, Project, clock};

use crate::{commands::show, report::Exit, screen};

/// Longest title.
const MAX_TITLE_COLUMNS: usize = 200;

pub(super) async fn run(project: &Project, id: &str, title: String) -> Result<Exit> {
    let title = screen::fit(screen::plain(&title).trim(), MAX_TITLE_COLUMNS);
    if title.is_empty() {
        return Err(HostError::usage("a title needs a word").into());
    }
    let past = project.past()?;
    let id = past.session(Some(id)).await?.id;
    past.store.rename(id.clone(), title, clock::now_ms()).await?;
    let title = past.store.facts(id.clone()).await?.title;
    show(&format!("{id} is now `{title}`\n"))
}
