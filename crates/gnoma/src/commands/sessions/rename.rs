//! `gnoma sessions rename`: a title of one's own.

use anyhow::Result;
use gnoma_core::store::SessionStore as _;

use super::Ground;
use crate::{
    clock,
    commands::show,
    report::{Exit, Misuse},
    screen,
};

/// Longest title.
const MAX_TITLE_COLUMNS: usize = 200;

pub(super) async fn run(ground: &Ground<'_>, id: &str, title: String) -> Result<Exit> {
    let title = screen::fit(screen::plain(&title).trim(), MAX_TITLE_COLUMNS);
    if title.is_empty() {
        return Err(Misuse("a title needs a word".to_owned()).into());
    }
    let past = ground.past()?;
    let id = past.session(Some(id)).await?.id;
    past.store.rename(id.clone(), title, clock::now_ms()).await?;
    let title = past.store.facts(id.clone()).await?.title;
    show(&format!("{id} is now `{title}`\n"))
}
