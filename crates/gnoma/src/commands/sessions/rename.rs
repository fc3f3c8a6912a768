//! `gnoma sessions rename`: a title of one's own.

use anyhow::Result;
use gnoma_host::{Project, sessions};

use crate::{commands::common::print_stored_text, report::Exit};

pub(super) async fn run(project: &Project, id: &str, title: String) -> Result<Exit> {
    let (id, title) = sessions::rename(project, id, &title).await?;
    print_stored_text(&format!("renamed {id} to `{title}`\n"))
}
