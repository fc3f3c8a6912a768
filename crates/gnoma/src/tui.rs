//! The front end with a screen: a window on one session after the other, on the person's terminal.
//!
//! What there is to see and what keys mean is `gnoma-tui`'s part, and sessions are the host's. Here the
//! first session is opened, and what needs the person's own terminal, files and programs is done.

mod effects;
mod files;

use std::time::Instant;

use anyhow::Result;
use gnoma_core::protocol::SessionSpec;
use gnoma_host::{
    Folders as _, Notices, Project, Shared, clock, facts, live::Host, opening::Projects,
};
use gnoma_tui::{
    app::{AppOptions as View, State},
    charset::Charset,
    keymap::Keymap,
    run::{self, Ending, Link, Stage},
    screen::{self, Layout},
    status::Facts,
    terminal::{self, tell::Notifier},
    theme::{self, Depth},
};
use rustix::process::Signal;

use self::{
    effects::{EffectHandler, Shells},
    files::Files,
};
use crate::{
    args::{OutputFormat, TurnArgs},
    continuing,
    environment::ProcessEnvironment,
    lowering::Asked,
    report::{self, Exit},
    server,
};

/// A person's own table of keys, in the configuration folder.
const KEYS_FILE: &str = "keys.toml";
/// Most bytes of that file.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// Whether a command line without words asks for this front end.
pub(crate) fn is_meant(args: &TurnArgs, words: &[String], around: &ProcessEnvironment) -> bool {
    let is_plain = args.output_format == OutputFormat::Text && !args.print;
    is_plain && words.is_empty() && around.stdin_is_terminal && around.stdout_is_terminal
}

/// Runs sessions on the terminal until the person leaves.
pub(crate) async fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let Asked { spec, chooses, .. } = Asked::of(args, around);
    let mut spec = SessionSpec { interactive: true, ..spec };
    let project = Project::open(spec.clone(), Notices::unheard(), Shared::default())?;
    if chooses {
        spec.start = continuing::chosen(&project, around).await?;
    }
    let window =
        |is_served| SessionWindow { project: &project, full_screen: args.full_screen, is_served };
    match server::find(around).await {
        Ok(Some(mut client)) => {
            let session = continuing::open(&mut client, &mut spec, around).await?;
            let connector = server::connector(around);
            let link = Link::new(client, session, Some(Box::new(spec)), Some(connector));
            return window(true).show(link, around, std::future::ready(())).await;
        }
        Ok(None) => (),
        Err(error) => {
            report::say(format_args!("note: running without the server: {error}"));
        }
    }
    let host = Host::new(Projects::default());
    let mut client = host.connect("terminal");
    let session = continuing::open(&mut client, &mut spec, around).await?;
    let link = Link::new(client, session, Some(Box::new(spec)), None);
    window(false).show(link, around, host.shut_down()).await
}

/// A window on a session.
pub(crate) struct SessionWindow<'a> {
    /// Where the session works, with the settings of the person who looks.
    pub project: &'a Project,
    /// The conversation has a screen of its own.
    pub full_screen: bool,
    /// The session lives in a server, so that it can go on without the window.
    pub is_served: bool,
}

impl SessionWindow<'_> {
    /// Shows it until the person leaves. `last` is done then, before the terminal is given back.
    pub(crate) async fn show<T>(
        self,
        mut link: Link,
        around: &ProcessEnvironment,
        last: impl Future<Output = T>,
    ) -> Result<Exit> {
        let Self { project, full_screen, is_served } = self;
        let files = Files::new(around, &project.places.project.display().to_string());
        let mut state = face(project, &files, is_served, around);
        let shells = Shells::default();
        let mut stage = Stage::open(options(project, full_screen, around))?;
        let mut effects = EffectHandler::new(project, full_screen, around, files, &shells);
        if effects.has_status_script() {
            state.use_status_script();
        }
        // A line in between would tear the picture.
        report::hold();
        let ended = stage.play(&mut link, &mut state, &mut effects).await;
        let layout = layout(full_screen, around);
        // A window that is killed or whose terminal is closed leaves its session where it is.
        match &ended {
            Ok(ending) if is_served && is_wanted(*ending, layout) => link.leave().await,
            Ok(_) | Err(_) => drop(link),
        }
        last.await;
        shells.end_lent();
        drop(stage);
        farewell(&state);
        Ok(exit(ended?, layout))
    }
}

/// Whether it was the person at the window who ended it.
fn is_wanted(ending: Ending, layout: Layout) -> bool {
    match ending {
        Ending::Quit => true,
        // The end of the input, which a terminal that was closed has as well.
        Ending::InputEnded => layout == Layout::Plain && terminal::takes_words(),
        Ending::Signal(_) => false,
    }
}

fn exit(ending: Ending, layout: Layout) -> Exit {
    match ending {
        Ending::Quit => Exit::Done,
        // Where the terminal reads whole lines, Ctrl+D is the end of the input.
        Ending::InputEnded if layout == Layout::Plain => Exit::Done,
        Ending::Signal(number) => Exit::Signalled(number),
        Ending::InputEnded => Exit::Signalled(Signal::HUP.as_raw()),
    }
}

fn face(project: &Project, files: &Files, is_served: bool, around: &ProcessEnvironment) -> State {
    let (keymap, complaint) = keymap(around);
    let options = View {
        now: Instant::now(),
        now_ms: clock::now_ms(),
        facts: shown(project),
        keymap,
        history: files.history(),
        theme: theme_of(project),
        vim: project.explain("tui.vim").is_some_and(|set| set.value == "true"),
        accessible: layout(false, around) == Layout::Plain,
        drafts: if keeps_words(project) { files.drafts() } else { Vec::new() },
        is_served,
    };
    let mut state = State::new(options);
    if let Some(complaint) = complaint {
        state.warn(&complaint);
    }
    state
}

/// The facts of a project, as the status line takes them until the session tells its own.
fn shown(project: &Project) -> Facts {
    let facts::Facts { folder, branch, profile, incognito, model, window, mode } =
        facts::of(project);
    Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folder,
        branch,
        profile,
        incognito,
        model,
        window,
        mode,
        ..Facts::default()
    }
}

/// Whether anything may be kept.
fn keeps_words(project: &Project) -> bool {
    !project.is_incognito()
}

/// The theme that the settings choose, else the usual one.
fn theme_of(project: &Project) -> String {
    let name = project.explain("tui.theme").map_or("", |set| set.value.as_str());
    theme::names().find(|known| *known == name.trim_matches('"')).unwrap_or("gnoma").to_owned()
}

/// The keys, and what is wrong with the person's own table.
fn keymap(around: &ProcessEnvironment) -> (Keymap, Option<String>) {
    let file = around.environment.config_dir().join(KEYS_FILE);
    let text = match gnoma_host::files::read(&file, MAX_KEYS_BYTES) {
        Ok(None) => return (Keymap::built_in(), None),
        Ok(Some(text)) => text,
        Err(error) => return (Keymap::built_in(), Some(format!("{}: {error}", file.display()))),
    };
    match Keymap::with_own(&text) {
        Ok((keymap, _)) => (keymap, None),
        Err(error) => {
            let text = format!("{} is not used: {error}", file.display());
            (Keymap::built_in(), Some(text))
        }
    }
}

fn layout(full_screen: bool, around: &ProcessEnvironment) -> Layout {
    Layout::of(full_screen, around.var("ACCESSIBLE").is_some(), around.var("TERM"))
}

fn options(project: &Project, full_screen: bool, around: &ProcessEnvironment) -> run::RunOptions {
    let term = around.var("TERM");
    let has = |name: &str| around.var(name).is_some();
    let (is_xterm, in_screen, in_tmux) = (has("XTERM_VERSION"), has("STY"), has("TMUX"));
    run::RunOptions {
        layout: layout(full_screen, around),
        theme: theme_of(project),
        shade: None,
        depth: Depth::of(around.var("NO_COLOR").is_some(), around.var("COLORTERM"), term),
        charset: charset(around),
        reflows: screen::reflows(term, is_xterm, in_screen, in_tmux),
        tells_size_late: in_tmux || in_screen,
        notifier: Notifier::of(around.var("TERM_PROGRAM"), term),
        crash_note: String::new(),
    }
}

fn charset(around: &ProcessEnvironment) -> Charset {
    Charset::of(around.var("LC_ALL"), around.var("LC_CTYPE"), around.var("LANG"))
}

/// Not said to a terminal that takes nothing any more: that would hold up the end.
fn farewell(state: &State) {
    if !terminal::takes_words() {
        return;
    }
    report::release();
    match (state.is_detached(), state.session(), state.stored()) {
        (true, Some(id), _) => report::say(format_args!("To return: gnoma attach {id}")),
        (_, _, Some(id)) => {
            // Apart from the conversation.
            report::say("");
            report::say(format_args!("To continue: gnoma --resume {id}"));
        }
        _ => (),
    }
}
