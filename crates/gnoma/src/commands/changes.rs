//! `gnoma changes`: what happened to the files since a checkpoint, by whomever.

use anyhow::Result;
use gnoma_host::changes::{self, CheckpointRow};

use super::common::{open_project, print_stored_text};
use crate::{
    args::{ChangesArgs, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
    table,
};

pub(super) async fn run(
    what: &ChangesArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = open_project(args, around)?;
    let session = what.which.session.as_deref();
    if !what.list {
        let changes =
            changes::changes_since_checkpoint(&project, session, what.id.as_deref(), what.diff)
                .await?;
        changes.about.iter().for_each(report::print_line);
        return print_stored_text(&changes.text);
    }
    let (rows, left_out) = changes::list_checkpoints(&project, session).await?;
    if rows.is_empty() {
        report::print_line("there are no checkpoints");
    }
    let row = |CheckpointRow { id, entry, taken, label }| [id, entry, taken, label];
    let table =
        table::render_table(["checkpoint", "entry", "taken", "before"], rows.into_iter().map(row));
    print_stored_text(&format!("{table}{left_out}"))
}
