//! The front end with a screen: a window on one session after the other, on the person's terminal.
//!
//! What there is to see and what keys mean is `gnoma-tui`'s part, and sessions are the host's. Here the
//! first session is opened, and what needs the person's own terminal, files and programs is done.

mod effects;
mod files;
mod themes;

use std::{sync::Arc, time::Instant};

use anyhow::Result;
use gnoma_core::protocol::SessionSpec;
use gnoma_host::{
    Folders as _, Notices, ProcessResources, Project, clock, debug_log, facts, live::Host,
    session_opening::Projects,
};
use gnoma_tui::{
    app::{AppOptions as View, State},
    charset::Charset,
    keymap::Keymap,
    own_themes::ThemeSet,
    run::{self, Ending, Link, Stage},
    screen::{self, Layout},
    status::StartFacts,
    terminal::{self, tell::Notifier},
    theme::Depth,
};
use rustix::process::Signal;

use self::{
    effects::{EffectHandler, RunningShells},
    files::ViewFiles,
    themes::load_themes,
};
use crate::{
    args::{OutputFormat, TurnArgs},
    environment::ProcessEnvironment,
    launch_request::LaunchRequest,
    report::{self, Exit},
    server, session_resume,
};

/// A person's own table of keys, in the configuration folder.
const KEYS_FILE: &str = "keys.toml";
/// Most bytes of that file.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// True if a command line without words asks for this front end.
pub(crate) fn is_meant(args: &TurnArgs, words: &[String], around: &ProcessEnvironment) -> bool {
    let is_plain = args.output_format == OutputFormat::Text && !args.print;
    is_plain && words.is_empty() && around.stdin_is_terminal && around.stdout_is_terminal
}

/// Runs sessions on the terminal until the person leaves.
pub(crate) async fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let LaunchRequest { spec, chooses, .. } = LaunchRequest::from_args(args, around);
    let mut spec = SessionSpec { interactive: true, ..spec };
    let project =
        Project::open(spec.clone(), Notices::without_sink(), ProcessResources::default())?;
    if chooses {
        spec.start = session_resume::choose_stored_session(&project, around).await?;
    }
    let window =
        |is_served| SessionWindow { project: &project, full_screen: args.full_screen, is_served };
    match server::connect_if_running(around).await {
        Ok(Some(mut client)) => {
            let session = session_resume::open_or_copy(&mut client, &mut spec, around).await?;
            let connector = server::build_reconnector(around);
            let link = Link::new(client, session, Some(Box::new(spec)), Some(connector));
            return window(true).run_window(link, around, std::future::ready(())).await;
        }
        Ok(None) => (),
        Err(error) => {
            report::print_line(format_args!("note: running without the server: {error}"));
        }
    }
    let host = Host::new(Projects::default());
    let mut client = host.connect("terminal");
    let session = session_resume::open_or_copy(&mut client, &mut spec, around).await?;
    let link = Link::new(client, session, Some(Box::new(spec)), None);
    window(false).run_window(link, around, host.shut_down()).await
}

/// A window on a session.
pub(crate) struct SessionWindow<'a> {
    /// The project that the session works in, with the settings of the person who looks at the window.
    pub project: &'a Project,
    /// The conversation has a screen of its own.
    pub full_screen: bool,
    /// The session lives in a server, so that it can go on without the window.
    pub is_served: bool,
}

impl SessionWindow<'_> {
    /// Shows it until the person leaves. `last` is done then, before the terminal is given back.
    pub(crate) async fn run_window<T>(
        self,
        mut link: Link,
        around: &ProcessEnvironment,
        last: impl Future<Output = T>,
    ) -> Result<Exit> {
        let Self { project, full_screen, is_served } = self;
        let files = ViewFiles::new(around, &project.places.project.display().to_string());
        let themes = Arc::new(load_themes(project));
        let mut state = initial_state(project, &files, is_served, around);
        state.use_themes(Arc::clone(&themes));
        let shells = RunningShells::default();
        let mut stage = Stage::open(run::RunOptions {
            theme: usable_theme(&themes, &project.personal.theme).to_owned(),
            themes: Arc::clone(&themes),
            ..run_options(full_screen, around)
        })?;
        let mut effects = EffectHandler::new(project, full_screen, around, files, &shells);
        let (has_script, has_spending) = effects.status_sources();
        state.use_status_sources(has_script, has_spending);
        // A line in between would tear the picture.
        report::hold_lines();
        let ended = stage.run_view(&mut link, &mut state, &mut effects).await;
        let layout = choose_layout(full_screen, around);
        // A window that is killed or whose terminal is closed leaves its session where it is.
        match &ended {
            Ok(ending) if is_served && is_wanted(*ending, layout) => link.leave_session().await,
            Ok(_) | Err(_) => drop(link),
        }
        last.await;
        shells.end_lent();
        drop(stage);
        print_farewell(&state);
        Ok(exit_for_ending(ended?, layout))
    }
}

/// True if the person at the window caused its ending.
fn is_wanted(ending: Ending, layout: Layout) -> bool {
    match ending {
        Ending::Quit => true,
        // The end of the input, which a terminal that was closed has as well.
        Ending::InputEnded => layout == Layout::Plain && terminal::can_write_without_waiting(),
        Ending::Signal(_) => false,
    }
}

fn exit_for_ending(ending: Ending, layout: Layout) -> Exit {
    match ending {
        Ending::Quit => Exit::Done,
        // Where the terminal reads whole lines, Ctrl+D is the end of the input.
        Ending::InputEnded if layout == Layout::Plain => Exit::Done,
        Ending::Signal(number) => Exit::Signalled(number),
        Ending::InputEnded => Exit::Signalled(Signal::HUP.as_raw()),
    }
}

fn initial_state(
    project: &Project,
    files: &ViewFiles,
    is_served: bool,
    around: &ProcessEnvironment,
) -> State {
    let (keymap, complaint) = load_keymap(around);
    let options = View {
        now: Instant::now(),
        now_ms: clock::now_ms(),
        facts: project_facts(project),
        keymap,
        history: files.load_history(),
        theme: project.personal.theme.clone(),
        vim: project.personal.vim,
        accessible: choose_layout(false, around) == Layout::Plain,
        drafts: if keeps_words(project) { files.load_drafts() } else { Vec::new() },
        is_served,
        debug_log: debug_log::path().map(|path| path.display().to_string()),
    };
    let mut state = State::new(options);
    if let Some(complaint) = complaint {
        state.show_warning(&complaint);
    }
    state
}

/// The facts of a project, as the status line takes them until the session tells its own.
fn project_facts(project: &Project) -> StartFacts {
    let facts::StatusFacts { folder, branch, profile, incognito, model, window, mode } =
        facts::collect_facts(project);
    StartFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folder,
        branch,
        profile,
        incognito,
        model,
        window,
        mode,
        ..StartFacts::default()
    }
}

/// True if prompts and drafts of this project may be saved.
fn keeps_words(project: &Project) -> bool {
    !project.is_incognito()
}

/// The theme that the settings choose, else the usual one.
fn usable_theme<'t>(themes: &'t ThemeSet, wanted: &str) -> &'t str {
    themes.names().find(|known| *known == wanted).unwrap_or("gnoma")
}

/// The keys, and what is wrong with the person's own table.
fn load_keymap(around: &ProcessEnvironment) -> (Keymap, Option<String>) {
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

fn choose_layout(full_screen: bool, around: &ProcessEnvironment) -> Layout {
    Layout::for_terminal(full_screen, around.var("ACCESSIBLE").is_some(), around.var("TERM"))
}

fn run_options(full_screen: bool, around: &ProcessEnvironment) -> run::RunOptions {
    let term = around.var("TERM");
    let has = |name: &str| around.var(name).is_some();
    let (is_xterm, in_screen, in_tmux) = (has("XTERM_VERSION"), has("STY"), has("TMUX"));
    run::RunOptions {
        layout: choose_layout(full_screen, around),
        shade: None,
        depth: Depth::from_environment(
            around.var("NO_COLOR").is_some(),
            around.var("COLORTERM"),
            term,
        ),
        charset: detect_charset(around),
        reflows: screen::terminal_reflows(term, is_xterm, in_screen, in_tmux),
        tells_size_late: in_tmux || in_screen,
        notifier: Notifier::for_terminal(around.var("TERM_PROGRAM"), term),
        ..run::RunOptions::default()
    }
}

fn detect_charset(around: &ProcessEnvironment) -> Charset {
    Charset::from_locale(around.var("LC_ALL"), around.var("LC_CTYPE"), around.var("LANG"))
}

/// Not said to a terminal that takes nothing any more: that would hold up the end.
fn print_farewell(state: &State) {
    if !terminal::can_write_without_waiting() {
        return;
    }
    report::release_lines();
    match (state.is_detached(), state.session_id(), state.stored_session()) {
        (true, Some(id), _) => report::print_line(format_args!("To return: gnoma attach {id}")),
        (_, _, Some(id)) => {
            // Apart from the conversation.
            report::print_line("");
            report::print_line(format_args!("To continue: gnoma --resume {id}"));
        }
        _ => (),
    }
}
