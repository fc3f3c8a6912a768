//! `gnoma "prompt"`: one turn, and out.

use anyhow::Result;
use clap::CommandFactory as _;

use super::cwd;
use crate::{
    args::{Args, OutputFormat, TurnArgs},
    front::{self, Front},
    prompt,
    report::Exit,
    surroundings::Surroundings,
    wire,
};

pub(crate) async fn run(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let Some(content) = prompt::content(&args.words)? else {
        super::print(&Args::command().render_help().to_string())?;
        return Ok(Exit::Misused);
    };
    let cwd = cwd(args, around)?;
    let loaded = wire::configuration(args, around, &cwd)?;
    let http = wire::http(&loaded.settings);
    let arm = wire::arm(&loaded.settings, &http).await?;
    let model = arm.name();
    let mut options = wire::session(&loaded.settings, around, &cwd, arm, args.system.clone());
    let asker = (args.output_format == OutputFormat::Text)
        .then(|| front::Asker::of_terminal(around))
        .flatten();
    options.interactive = asker.is_some();
    Front::new(args.output_format, around, model).turn(options, content, asker).await
}
