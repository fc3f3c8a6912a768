//! `gnoma "prompt"`: one turn, and out.

use std::sync::Arc;

use anyhow::Result;
use clap::CommandFactory as _;
use gnoma_config::settings::Sandbox;

use super::cwd;
use crate::{
    args::{Args, OutputFormat, TurnArgs},
    front::{self, Front, json},
    guarding, prompt,
    report::{self, Exit, Misuse},
    surroundings::Surroundings,
    wire::{self, Start},
};

pub(crate) async fn run(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let answered = answer(args, around).await;
    if let Err(error) = &answered
        && args.output_format != OutputFormat::Text
    {
        // Whoever reads JSON gets an object at the end, also of a turn that could not begin.
        super::print(&json::failure(error))?;
    }
    answered
}

async fn answer(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let Some(content) = prompt::content(&args.words)? else {
        report::say(Args::command().render_help());
        return Err(Misuse("nothing was asked; give a prompt, or pipe one in".to_owned()).into());
    };
    let cwd = cwd(args, around)?;
    let loaded = wire::configuration(args, around, &cwd)?;
    if cwd.parent().is_none() && loaded.settings.sandbox.mode != Sandbox::Off {
        let text =
            "the whole system is no workspace: go to the project's folder, or name it with --cwd";
        return Err(Misuse(text.to_owned()).into());
    }
    let http = wire::http(&loaded.settings);
    let firewall = guarding::firewall(&loaded.settings, around)?;
    let arm = wire::arm(&loaded.settings, &http, &firewall).await?;
    let model = arm.name();
    let start = Start {
        cwd: &cwd,
        folders: super::folders(args, around)?,
        arm,
        firewall: Arc::clone(&firewall),
        system: args.system.clone(),
    };
    let mut options = wire::session(&loaded, around, start)?;
    let asker = (args.output_format == OutputFormat::Text)
        .then(|| front::Asker::of_terminal(around))
        .flatten();
    options.interactive = asker.is_some();
    Front::new(args.output_format, around, model, firewall).turn(options, content, asker).await
}
