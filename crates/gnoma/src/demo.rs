//! `gnoma demo`: the real engine, tools and permission path, driven by a bundled script.
//!
//! Nothing is faked but the model: a small project with a failing test is copied to a temporary
//! folder, and the turn ends with the test passing there.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use gnoma_core::{Content, protocol::SessionSpec};
use gnoma_engine::Arm;
use gnoma_guard::firewall::Connection;
use gnoma_host::{Project, keeping::Begun, routing, session};
use gnoma_llm::replay::Replay;

use crate::{
    args::OutputFormat,
    front::{Asker, Front},
    report::{self, Exit},
    surroundings::Surroundings,
};

const PROJECT: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/README.md")),
    ("slug.sh", include_str!("../demo/slug.sh")),
    ("test.sh", include_str!("../demo/test.sh")),
];
const SCRIPT: &str = include_str!("../demo/script.jsonl");
const PROMPT: &str = "The test of this project fails. Find out why and fix it.";

/// Time between two words, so that a person can follow.
const PACE: Duration = Duration::from_millis(15);

pub(crate) async fn run(around: &Surroundings) -> Result<Exit> {
    let folder = tempfile::Builder::new()
        .prefix("gnoma-demo-")
        .tempdir()
        .context("cannot make a folder for the demo; TMPDIR says where one may be made")?;
    let project = folder.path().canonicalize().context("cannot find the demo's folder")?;
    for (name, content) in PROJECT {
        std::fs::write(project.join(name), content).context("cannot copy the demo project")?;
    }
    report::say(format_args!(
        "demo: the model is a bundled script (provider `replay`); engine, tools and permissions are real\n\
         demo: working in a copy at {}\n\n> {PROMPT}\n",
        project.display()
    ));
    match turn(around, &project).await? {
        Exit::Done | Exit::Failed | Exit::Misused => (),
        stopped @ (Exit::Unread | Exit::Interrupted | Exit::Signalled(_)) => return Ok(stopped),
    }
    let test = Command::new("sh").arg("test.sh").current_dir(&project).output();
    let code = test.context("cannot run the demo's test")?.status.code();
    let (verdict, exit) = match code {
        Some(0) => ("passes", Exit::Done),
        Some(_) => ("still fails", Exit::Failed),
        None => ("was interrupted", Exit::Interrupted),
    };
    report::say(format_args!("\ndemo: the project's test {verdict}"));
    Ok(exit)
}

async fn turn(around: &Surroundings, project: &Path) -> Result<Exit> {
    let mut script = Replay::from_script("replay", SCRIPT).map_err(anyhow::Error::msg)?;
    if around.stdout_is_terminal {
        script = script.with_pace(PACE);
    }
    // The user's own settings must not change what the demo shows: none are in its folder.
    let nowhere = project.join("no-settings");
    let sources = gnoma_config::Sources {
        config_dir: nowhere.clone(),
        state_dir: nowhere,
        ..Default::default()
    };
    let loaded = gnoma_config::load(&sources).context("the built-in configuration is broken")?;
    let spec = SessionSpec {
        folder: project.to_owned(),
        environment: around.environment.clone(),
        umask: around.umask,
        interactive: true,
        ..SessionSpec::default()
    };
    let project = Project::with(spec, loaded, report::notices())?;
    let firewall = Arc::clone(&project.firewall);
    let arm = Arm::new(Connection::new(Arc::new(script), true), "script");
    let model = arm.name();
    let options = session::options(&project, routing::single(arm))?;
    let front = Front::new(OutputFormat::Text, around, model, firewall, Begun::default());
    front.turn(options, vec![Content::text(PROMPT)], Some(Asker::of_demo())).await
}
