//! `gnoma guard run`: what the program does with shell commands when a model wants them and nobody is there
//! to ask, without a model.
//!
//! Each command goes through a session of its own over the real gate, tools, walls and firewall; only
//! the model is scripted: it calls the tool once, and what it is sent next is the answer. The tools, and
//! with them the temporary files of the session, are shared by all commands.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::{BufRead, Write as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::Arc,
};

use anyhow::Result;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use gnoma_core::{
    CallId, RawJson, Tool, ToolCall,
    json_value::json,
    message::Content,
    session::{Command, Event, PermissionMode},
};
use gnoma_engine::{GatePlace, Routes, Session, connect_arm};
use gnoma_guard::{firewall::Connection, permission::Verdict};
use gnoma_host::{HostError, Project, guard_setup, session};
use gnoma_tools::Trials;
use serde::Deserialize;
use serde_json::Value;

use super::{
    common::open_input,
    scripted::{CALL, ScriptedModel},
};
use crate::{
    args::GuardInput,
    report::{self, Exit},
};

/// The tool that the scripted model calls.
const TOOL: &str = "bash";
/// Most files of the workspace that are watched for changes.
const MAX_FILES: usize = 200_000;

/// A command in a JSON line.
#[derive(Deserialize)]
struct CommandLine {
    id: Value,
    command: String,
}

/// Answers each command with what became of it. Exit code 1 unless all ran.
pub(super) async fn run(
    input: &GuardInput,
    mode: PermissionMode,
    mut project: Project,
) -> Result<Exit> {
    project.refuse_whole_system()?;
    project.spec.interactive = false;
    let bench = GuardRunContext::new(project, mode)?;
    let mut all_ran = true;
    for (number, line) in (1..).zip(open_input(input)?.split(b'\n')) {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let CommandLine { id, command } = if input.jsonl {
            gnoma_core::json::from_bytes(&line).map_err(|error| {
                HostError::usage(format!("line {number} is not a valid request: {error}"))
            })?
        } else {
            let command = String::from_utf8_lossy(&line).into_owned();
            CommandLine { id: number.into(), command }
        };
        let ran = bench.run_command(&command).await?;
        all_ran &= ran.ran;
        let text = if input.jsonl { ran.to_json(&id) } else { ran.to_text(&command) };
        let mut out = std::io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            return report::exit_after_write_error(error);
        }
    }
    Ok(if all_ran { Exit::Done } else { Exit::Failed })
}

/// The result of judging and running one command.
struct CommandRun {
    /// `allow`, `trial`, `ask` or `refuse`.
    verdict: &'static str,
    ran: bool,
    /// The workspace files that the command changed, and those of them that are still changed (`kept`).
    changed: Vec<String>,
    kept: Vec<String>,
    /// The output that the model receives.
    output: String,
}

impl CommandRun {
    fn to_json(&self, id: &Value) -> String {
        let line = json!({
            "id": id, "verdict": self.verdict, "ran": self.ran, "changed": self.changed,
            "kept": self.kept, "output_b64": BASE64_STANDARD.encode(&self.output),
        });
        format!("{line}\n")
    }

    fn to_text(&self, command: &str) -> String {
        let changed: String =
            self.kept.iter().map(|name| format!("       changed {name}\n")).collect();
        format!("{:<6} {command}\n{changed}{}\n", self.verdict, self.output.trim_end())
    }
}

/// The setup that all commands share.
struct GuardRunContext {
    project: Project,
    mode: PermissionMode,
    tools: Vec<Arc<dyn Tool>>,
    trials: Option<Arc<Trials>>,
}

impl GuardRunContext {
    fn new(project: Project, mode: PermissionMode) -> Result<Self> {
        let unused = Arc::new(Routes::with_single_arm(connect_arm(
            Connection::new(Arc::new(ScriptedModel::default()), false),
            "none",
        )));
        let trials = session::session_trials(&project);
        let id = gnoma_host::clock::session_id();
        let tools = session::options_with(&project, id, unused, trials.clone())?.tools;
        Ok(Self { project, mode, tools, trials })
    }

    async fn run_command(&self, command: &str) -> Result<CommandRun> {
        // By what the command will see, and not by what it leaves.
        let verdict = self.judge_command(command)?;
        let before = self.workspace_files();
        let model = Arc::new(ScriptedModel::with_tool_call(
            TOOL,
            json!({ "command": command }).to_string(),
        ));
        let arm = connect_arm(Connection::new(Arc::clone(&model) as _, false), "scripted");
        let mut options = session::session_options(
            &self.project,
            gnoma_host::clock::session_id(),
            Arc::new(Routes::with_single_arm(arm)),
        )?;
        options.tools.clone_from(&self.tools);
        options.place = self.gate_place();
        options.mode = self.mode;
        let mut session = Session::spawn(options);
        session.send_command(Command::Send { content: vec![Content::from_text("run it")] });
        let mut ran = false;
        while let Some(event) = session.next().await {
            match event {
                Event::ToolStarted { .. } => ran = true,
                Event::TurnEnded { .. } => break,
                _ => {}
            }
        }
        let kept = changed_paths(&before, &self.workspace_files());
        let (output, _) = model.last_tool_results();
        let mut changed = trial_changes(&output);
        changed.extend(kept.iter().cloned());
        Ok(CommandRun { verdict, ran, kept, changed, output })
    }

    fn gate_place(&self) -> GatePlace {
        let Project { guard, places, spec, .. } = &self.project;
        guard_setup::gate_place(guard, places, spec, self.trials.clone(), None)
    }

    /// Returns the verdict about the command before anybody is asked for approval.
    fn judge_command(&self, command: &str) -> Result<&'static str> {
        let place = self.gate_place();
        let permissions = session::session_permissions(&self.project)?;
        let Some(tool) = self.tools.iter().find(|tool| *tool.spec().name == *TOOL) else {
            return Ok("refuse");
        };
        let call = bash_call(command)?;
        let (verdict, trial) =
            permissions.judge_or_try(self.mode, &place.judgement_context(), tool.spec(), &call);
        Ok(match verdict {
            _ if trial.is_some() && (place.can_try)() => "trial",
            Verdict::Allow { .. } => "allow",
            Verdict::Ask { .. } => "ask",
            Verdict::Deny { .. } => "refuse",
        })
    }

    /// The files of the workspace, each with what tells whether it has changed.
    fn workspace_files(&self) -> BTreeMap<PathBuf, (u64, i64, i64)> {
        let spec = &self.project.spec;
        let mut folders: VecDeque<PathBuf> =
            std::iter::once(&spec.folder).chain(&spec.more_folders).cloned().collect();
        let mut found = BTreeMap::new();
        while let Some(folder) = folders.pop_front() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, Ok(facts)) = (entry.path(), entry.metadata()) else { continue };
                if found.len() >= MAX_FILES {
                    return found;
                }
                if facts.is_dir() {
                    folders.push_back(path.clone());
                }
                // The time of a folder tells nothing that its entries do not.
                let times =
                    if facts.is_dir() { (0, 0) } else { (facts.ctime(), facts.ctime_nsec()) };
                found.insert(path, (facts.ino(), times.0, times.1));
            }
        }
        found
    }
}

/// Names of what is new, gone or different.
fn changed_paths<V: PartialEq>(
    before: &BTreeMap<PathBuf, V>,
    after: &BTreeMap<PathBuf, V>,
) -> Vec<String> {
    let new = after.iter().filter(|(path, facts)| before.get(*path) != Some(facts));
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    new.map(|(path, _)| path).chain(gone).map(|path| path.display().to_string()).collect()
}

/// The names that the model is told of what a command changed on trial and what was dropped.
fn trial_changes(output: &str) -> Vec<String> {
    let told = output.lines().rev().find_map(|line| line.strip_prefix("[ran on trial; "));
    let told = told.filter(|told| !told.contains(" kept (")).and_then(|told| told.rsplit_once('('));
    let names = told.and_then(|(_, names)| names.strip_suffix(")]")).unwrap_or_default();
    names.split(", ").filter(|name| !name.is_empty() && *name != "…").map(str::to_owned).collect()
}

fn bash_call(command: &str) -> Result<ToolCall> {
    let arguments = RawJson::from_value(&json!({ "command": command }))?;
    Ok(ToolCall::new(CallId::new(CALL), TOOL, arguments))
}
