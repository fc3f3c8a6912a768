//! `gnoma demo`: the real engine, tools and permission path, driven by a bundled script.
//!
//! Nothing is faked but the model: a small project with a failing test is copied to a temporary
//! folder, and the turn ends with the test passing there.

use std::{
    future::ready,
    path::Path,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use gnoma_core::{
    Content,
    info::SessionInfo,
    protocol::{Reply, Request, RequestError, RequestErrorKind, SessionSpec},
    store::SessionId,
    tool::BoxFuture,
};
use gnoma_engine::{Routes, Session, connect_arm};
use gnoma_guard::firewall::Connection;
use gnoma_host::{
    ProcessResources, Project, clock,
    live::{
        Change, ChildOpening, Host, OpenedSession, Opener, PreparedSession, Services,
        SessionChangeResult, SessionOpening,
    },
    session,
};
use gnoma_llm::replay::Replay;

use crate::{
    environment::ProcessEnvironment,
    front::{Asker, AttachedSession, Front, OutputFormat},
    report::{self, Exit},
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

pub(crate) async fn run(around: &ProcessEnvironment) -> anyhow::Result<Exit> {
    let folder = tempfile::Builder::new()
        .prefix("gnoma-demo-")
        .tempdir()
        .context("cannot make a folder for the demo; TMPDIR says where one may be made")?;
    let project = folder.path().canonicalize().context("cannot find the demo's folder")?;
    for (name, content) in PROJECT {
        std::fs::write(project.join(name), content).context("cannot copy the demo project")?;
    }
    report::print_line(format_args!(
        "demo: the model is a bundled script (provider `replay`); engine, tools and permissions are real\n\
         demo: working in a copy at {}\n\n> {PROMPT}\n",
        project.display()
    ));
    match run_scripted_turn(around, &project).await? {
        Exit::Done
        | Exit::Failed
        | Exit::Misused
        | Exit::NotAuthorised
        | Exit::NotApproved
        | Exit::OverBudget
        | Exit::OverLimit
        | Exit::NoModel
        | Exit::Unfit
        | Exit::Found => (),
        stopped @ (Exit::Unread | Exit::Interrupted | Exit::Signalled(_)) => return Ok(stopped),
    }
    let test = Command::new("sh").arg("test.sh").current_dir(&project).output();
    let code = test.context("cannot run the demo's test")?.status.code();
    let (verdict, exit) = match code {
        Some(0) => ("passes", Exit::Done),
        Some(_) => ("still fails", Exit::Failed),
        None => ("was interrupted", Exit::Interrupted),
    };
    report::print_line(format_args!("\ndemo: the project's test {verdict}"));
    Ok(exit)
}

async fn run_scripted_turn(around: &ProcessEnvironment, project: &Path) -> anyhow::Result<Exit> {
    let mut script = Replay::from_script("replay", SCRIPT)?;
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
    let loaded =
        gnoma_config::load_settings(&sources).context("the built-in configuration is broken")?;
    let spec = SessionSpec {
        folder: project.to_owned(),
        environment: around.environment.clone(),
        umask: around.umask,
        interactive: true,
        ..SessionSpec::default()
    };
    let project = Project::with_settings(
        spec,
        loaded.into(),
        report::stderr_notices(),
        ProcessResources::default(),
    )?;
    let arm = connect_arm(Connection::new(Arc::new(script), true), "script");
    let options = session::session_options(
        &project,
        gnoma_host::clock::session_id(),
        Arc::new(Routes::with_single_arm(arm)),
    )?;
    let front = Front::new(OutputFormat::Text, around, Arc::clone(&project.firewall), None);
    let host = Host::new(DemoOpener(Mutex::new(Some(options))));
    let session = AttachedSession::open(&host, &mut project.spec.clone(), around).await?;
    front.run_turn(session, vec![Content::from_text(PROMPT)], Some(Asker::of_demo())).await
}

/// Opens the demo's one session.
struct DemoOpener(Mutex<Option<gnoma_engine::session::Options>>);

impl Opener for DemoOpener {
    fn open(&self, _: SessionOpening) -> BoxFuture<'static, Result<PreparedSession, RequestError>> {
        let options = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            let options = options.ok_or_else(conversation_only)?;
            let id = SessionId::new(options.id.clone());
            let opened = OpenedSession {
                engine: Session::spawn(options),
                beside: Box::new(()),
                models: Box::new(Vec::new),
                jobs: Arc::new(|| 0),
            };
            Ok(PreparedSession {
                id,
                info: SessionInfo::default(),
                messages: Vec::new(),
                notes: Vec::new(),
                opening: Box::pin(ready(Ok(opened))),
                services: Arc::new(DemoServices),
            })
        })
    }

    fn now_ms(&self) -> i64 {
        clock::now_ms()
    }

    fn new_id(&self) -> SessionId {
        SessionId::new(clock::session_id())
    }
}

/// Knows nothing beside the conversation.
struct DemoServices;

impl Services for DemoServices {
    fn answer_request(&self, _: Request) -> BoxFuture<'static, Result<Reply, RequestError>> {
        Box::pin(ready(Err(conversation_only())))
    }

    fn apply_change(
        &self,
        _: Change,
    ) -> BoxFuture<'static, Result<SessionChangeResult, RequestError>> {
        Box::pin(ready(Err(conversation_only())))
    }

    fn prepare_child(
        &self,
        _: ChildOpening,
    ) -> BoxFuture<'static, Result<(SessionSpec, PreparedSession), RequestError>> {
        Box::pin(ready(Err(conversation_only())))
    }

    fn unchanged_spec(&self, spec: SessionSpec) -> SessionSpec {
        spec
    }

    fn remove_old_data(&self) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

fn conversation_only() -> RequestError {
    RequestError::new(RequestErrorKind::Refused, "the demo is one session and its conversation")
}
