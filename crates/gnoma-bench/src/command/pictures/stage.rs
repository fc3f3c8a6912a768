//! A scene is played: a home and a project of its own, a server that says what the script says, a
//! shell at a terminal, and somebody who types.

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    process::Command,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use gnoma_testkit::{Reply, Server, Terminal, TerminalWindow};
use vt100::Screen;

use super::scenes::{PROJECT, Scene, Step};

/// The folders in which programs are looked for, besides gnoma's own folder.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The models that the server says it has.
const MODELS: &str = r#"{"object":"list","data":[]}"#;

/// The screen at the end of the scene.
pub(super) fn record_scene(scene: &Scene, program: &Path) -> Result<Screen> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = runtime.block_on(async { start_model_server(scene) })?;
    let home = tempfile::tempdir()?;
    let project = home.path().join("shop");
    set_up(home.path(), &project, &server.url(), scene)?;
    let programs = program.parent().context("the program lies in no folder")?;
    let window = TerminalWindow { size: scene.size, ground: scene.shade.background_colour() };
    let prepare = |command: &mut Command| {
        command
            .current_dir(&project)
            .env_clear()
            .env("PATH", format!("{}:{PATH}", programs.display()))
            .env("HOME", home.path())
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env("LANG", "C.UTF-8")
            .env("PS1", "\x1b[2m~/shop $\x1b[m ");
        command.envs(scene.key);
    };
    let terminal = Terminal::start(&["sh", "-i"], window, prepare)?;
    let mut screen = terminal.wait_until("shell", |screen| screen.contents().contains("$ "))?;
    for step in &scene.steps {
        match step {
            Step::Type(keys) => terminal.type_keys(keys)?,
            Step::See(wanted) => {
                let has_all = |screen: &Screen| {
                    let seen = screen.contents();
                    wanted.iter().all(|wanted| seen.contains(wanted))
                };
                screen = terminal.wait_until(&format!("{wanted:?}"), has_all)?;
            }
        }
    }
    Ok(screen)
}

/// Questions about models are answered at once, all others in the order of the script.
fn start_model_server(scene: &Scene) -> Result<Server> {
    let replies = Mutex::new(VecDeque::from(scene.replies.clone()));
    let server = Server::start(move |request| {
        if request.path().ends_with("/models") {
            return Reply::json(200, MODELS);
        }
        let next = replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or_else(|| Reply::text(500, "the scene has no answer left"))
    });
    Ok(server?)
}

fn set_up(home: &Path, project: &Path, url: &str, scene: &Scene) -> Result<()> {
    let settings = home.join(".config/gnoma");
    fs::create_dir_all(&settings)?;
    fs::create_dir_all(project.join(".git"))?;
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/coupons\n")?;
    let text = scene.settings.replace("URL", url);
    fs::write(settings.join("config.toml"), text)?;
    for (name, text) in scene.tasks {
        let folder = settings.join("tasks");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name).with_extension("md"), text)?;
    }
    for (name, text) in PROJECT {
        let file = project.join(name);
        fs::create_dir_all(file.parent().unwrap_or(project))?;
        fs::write(file, text)?;
    }
    Ok(())
}
