//! `gnoma doctor`: what holds on this machine. Asks no network and changes nothing.

use std::{fmt::Write as _, path::Path};

use anyhow::Result;
use gnoma_config::settings::Sandbox;
use gnoma_core::protocol::{Environment, SessionSpec};
use gnoma_host::{
    Folders as _, Places, Project, Shared,
    lowering::{KeepingSettings, Lowered},
};
use gnoma_sandbox::{Strength, Support};

use super::{
    common::{print, settings},
    extend,
};
use crate::{
    args::TurnArgs,
    environment::ProcessEnvironment,
    report::{self, Exit},
};

/// Programs that tools use when they are there, and what for.
const PROGRAMS: [(&str, &str); 2] =
    [("bash", "runs commands; `sh` is used instead"), ("git", "most projects use it")];

pub(crate) fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let (spec, loaded) = settings(args, around)?;
    let unbuilt = gnoma_host::wire::idle(&spec);
    let lowered = Lowered::from(loaded);
    let project =
        Project::with(spec.clone(), lowered.clone(), report::notices(), Shared::default())?;
    let Lowered { guard, keeping, .. } = lowered;
    let trials = gnoma_host::guarding::trials(&guard, &spec, Vec::new());
    let SessionSpec { folder, environment, .. } = spec;
    let mut text = format!("gnoma {}\n", env!("CARGO_PKG_VERSION"));
    let sound = sandbox(guard.sandbox.mode, &mut text);
    if let Some(trials) = trials {
        let why = trials
            .hindrance()
            .map(|why| format!("not available here, so such commands need approval: {why}"));
        let note = "commands that may change files run in a separate layer first, and their changes are kept or discarded";
        line(&mut text, why.is_none(), "trials", why.as_deref().unwrap_or(note));
    }
    added(&project, &mut text);
    idle(&unbuilt, &mut text);
    privacy(keeping.privacy.incognito, &mut text);
    kept(&keeping, &environment, &folder, &mut text);
    folders(&environment, &folder, &mut text);
    programs(&environment, &mut text);
    agents(&project, &mut text);
    print(&text)?;
    Ok(if sound { Exit::Done } else { Exit::Failed })
}

fn line(text: &mut String, holds: bool, name: &str, note: &str) {
    let mark = if holds { "✓" } else { "✗" };
    let _infallible = writeln!(text, "  {mark} {name}: {note}");
}

/// Says which walls there are; whether they are as strong as the settings want them.
fn sandbox(mode: Sandbox, text: &mut String) -> bool {
    if mode == Sandbox::Off {
        text.push_str("\nsandbox: turned off by `sandbox.mode`\n");
        return true;
    }
    let support = Support::detect();
    let _infallible = writeln!(text, "\nsandbox: {}", support.strength);
    for part in &support.parts {
        line(text, part.holds, part.name, &part.note);
    }
    let (held, note) = unasked(support.strength);
    line(text, held, "commands that only read", note);
    match (mode, support.strength) {
        (Sandbox::Required, Strength::Partial | Strength::None) => {
            text.push_str("  `sandbox.mode` is `required`: no command will run here\n");
            false
        }
        (_, Strength::None) => {
            text.push_str("  commands run without a sandbox; permissions still apply\n");
            false
        }
        (_, Strength::Partial | Strength::Full) => true,
    }
}

/// Whether a command that runs unasked is held to reading, and to which places.
fn unasked(strength: Strength) -> (bool, &'static str) {
    match strength {
        Strength::Full => (
            true,
            "see the workspace, programs and tool chains; open no secret file, change nothing that lasts, \
             reach no network",
        ),
        Strength::Partial => (
            false,
            "are only partly contained: one that is misjudged can do what is missing above; \
             `sandbox.mode = \"required\"` refuses to run commands here",
        ),
        Strength::None => (
            false,
            "are not contained, only judged one by one; `--permission default` asks before every command",
        ),
    }
}

/// Says what people added.
fn added(project: &Project, text: &mut String) {
    let (found, faults) = extend::summary(project);
    let _infallible = writeln!(text, "\nextensions\n  ✓ {found}");
    for fault in faults {
        let _infallible = writeln!(text, "  ✗ {fault}");
    }
}

/// Names what is configured and does nothing.
fn idle(unbuilt: &[String], text: &mut String) {
    if unbuilt.is_empty() {
        return;
    }
    text.push_str("\nconfigured, but without effect\n");
    for said in unbuilt {
        let _infallible = writeln!(text, "  ✗ {said}");
    }
}

fn privacy(is_incognito: bool, text: &mut String) {
    let said = if is_incognito { "incognito: nothing is saved" } else { "normal" };
    let _infallible = writeln!(text, "\nprivacy: {said}");
}

/// Says what is kept of sessions and files, and where.
fn kept(settings: &KeepingSettings, environment: &Environment, cwd: &Path, text: &mut String) {
    if settings.privacy.incognito {
        return;
    }
    let places = Places::of(settings, environment, cwd);
    text.push_str("\nsaved\n");
    let sessions = if settings.session.keep {
        places.database().display().to_string()
    } else {
        "no: `session.keep` is off".to_owned()
    };
    line(text, settings.session.keep, "sessions", &sessions);
    let files = match &places.workspace {
        _ if !settings.checkpoints.enabled => "no: `checkpoints.enabled` is off".to_owned(),
        Some(root) => format!("of {}, in {}", root.display(), places.vault.display()),
        None => "no: this folder contains a home folder; work in a project's folder".to_owned(),
    };
    let holds = settings.checkpoints.enabled && places.workspace.is_some();
    line(text, holds, "files, for `gnoma rewind`", &files);
}

fn folders(environment: &Environment, cwd: &Path, text: &mut String) {
    let (config, state) = (environment.config_dir(), environment.state_dir());
    text.push_str("\nfolders\n");
    for (name, folder) in [("workspace", cwd), ("configuration", &*config), ("state", &*state)] {
        let missing = if folder.exists() { "" } else { " (not created yet)" };
        line(text, true, name, &format!("{}{missing}", folder.display()));
    }
}

/// Says which other programs' agents are configured, and whether they are there. Starts none.
fn agents(project: &Project, text: &mut String) {
    let paths = project.environment().get("PATH").unwrap_or_default();
    let mut agents = project.routing.agents.programs(paths).peekable();
    if agents.peek().is_some() {
        text.push_str("\nagents\n");
    }
    for (name, program) in agents {
        match program {
            Ok(file) => line(text, true, name, &file.display().to_string()),
            Err(why) => line(text, false, name, &why),
        }
    }
}

fn programs(environment: &Environment, text: &mut String) {
    text.push_str("\nprograms\n");
    let path = environment.get("PATH").unwrap_or_default();
    for (program, what_for) in PROGRAMS {
        let found = path.split(':').map(|folder| Path::new(folder).join(program));
        match found.into_iter().find(|file| file.is_file()) {
            Some(file) => line(text, true, program, &file.display().to_string()),
            None => line(text, false, program, &format!("not found ({what_for})")),
        }
    }
}
