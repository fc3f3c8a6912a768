//! `gnoma changes`: what happened to the files since a checkpoint, by whomever.

use anyhow::Result;
use gnoma_host::changes::{self, CheckpointRow};

use super::common::{project, show};
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
    let project = project(args, around)?;
    let session = what.which.session.as_deref();
    if !what.list {
        let changes = changes::changes(&project, session, what.id.as_deref(), what.diff).await?;
        changes.about.iter().for_each(report::say);
        return show(&changes.text);
    }
    let (rows, left_out) = changes::checkpoints(&project, session).await?;
    if rows.is_empty() {
        report::say("there are no checkpoints");
    }
    let row = |CheckpointRow { id, entry, taken, label }| [id, entry, taken, label];
    let table = table::lines(["checkpoint", "entry", "taken", "before"], rows.into_iter().map(row));
    show(&format!("{table}{left_out}"))
}
