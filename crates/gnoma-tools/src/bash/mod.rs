//! The `bash` tool: runs shell commands, and turns long ones into background jobs.
//!
//! It waits for the shell that it started, never for the pipe that children inherit: a child that still holds the
//! pipe becomes a background job. It has no terminal, and it does not judge commands, which is the guard's task.

#[cfg(target_os = "linux")]
mod absent_names;
mod capture;
#[cfg(target_os = "linux")]
mod chosen_changes;
#[cfg(target_os = "linux")]
mod databases;
mod decode;
mod full_screen;
mod git_hooks;
mod guarded_names;
mod job;
mod jobs;
mod names;
mod outside_names;
mod policy;
mod process;
mod reading_commands;
mod secret_files;
mod shared;
mod shell;
mod spare;
mod start_error;
mod stray_files;
mod survey;
#[cfg(target_os = "linux")]
mod trial;
#[cfg(target_os = "linux")]
mod trial_changes;
#[cfg(target_os = "linux")]
mod trial_facts;
#[cfg(test)]
mod trial_laws;
#[cfg(target_os = "linux")]
mod trial_limits;
#[cfg(target_os = "linux")]
mod trial_outcome;
mod trial_question;
mod unattended_environment;
#[cfg(target_os = "linux")]
mod unreported_trials;
mod watch;
mod writable;
mod write_limits;

use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};

pub use self::unattended_environment::{UnattendedEnvironment, suggest_remedy};
use gnoma_core::{
    CallId, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec, duration,
    tool::{
        Access, BoxFuture, CommandReport, MachineView, Tier, ToolKind, ToolOutput, TouchedResource,
    },
};
use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until};

use self::{
    capture::{Capture, ScreenCapture},
    full_screen::{ScreenWatch, describe_screen},
    job::JobTool,
    jobs::Jobs,
    process::{Process, ProcessEvent, ShellEnd},
    reading_commands::{ReadingRuns, STOP_AT_ERROR},
    shared::{ShellTools, read_time_limit},
    shell::Shell,
    start_error::CommandStartError,
    stray_files::StrayFiles,
    unattended_environment::{NO_INPUT, suggest_answers},
    watch::ProgressWatch,
    write_limits::{NoRoom, Room},
};
use crate::{ToolOptions, args};

/// The shell tools. They share their background jobs, which end with the last of them.
pub(crate) fn shell_tools(options: &ToolOptions) -> Vec<Arc<dyn Tool>> {
    let shared = Arc::new(ShellTools {
        shell: Shell::new(options),
        default_timeout: options.bash_timeout,
        jobs: Jobs::default(),
    });
    vec![Arc::new(Bash::new(Arc::clone(&shared))), Arc::new(JobTool::new(shared))]
}

/// Returns the paths in these folders that a program which runs as long as a session must not change: those that
/// exist and decide over later runs of other programs, in the folders and in repositories below them. Absent names
/// are not among them: to hold one, an empty folder of that name would stand in the workspace, for every program to
/// see.
#[must_use]
pub fn protected_paths(roots: &[std::path::PathBuf]) -> Vec<std::path::PathBuf> {
    let held = roots.iter().flat_map(|root| survey::held_below(root));
    let mut protected: Vec<_> = held.filter(|path| path.symlink_metadata().is_ok()).collect();
    protected.extend(survey::Survey::from_roots(roots, &mut survey::SurveyMemory::default()).held);
    protected
}

/// The tool that runs shell commands.
struct Bash {
    spec: ToolSpec,
    shared: Arc<ShellTools>,
}

impl Bash {
    fn new(shared: Arc<ShellTools>) -> Self {
        Self { spec: bash_spec(shared.default_timeout), shared }
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let arguments = match args::read_arguments::<BashArguments>(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            if cx.stop.is_cancelled() {
                ToolOutcome::Interrupted(String::new())
            } else if arguments.background == Some(true) {
                shared.in_background(&arguments.command, &cx)
            } else {
                shared.in_foreground(arguments, call.id, cx).await
            }
        })
    }
}

fn bash_spec(default_timeout: Duration) -> ToolSpec {
    let parameters = format!(
        concat!(
            r#"{{"type":"object","properties":{{"command":{{"type":"string"}},"#,
            r#""timeout":{{"type":"integer","description":"seconds, default {}"}},"#,
            r#""background":{{"type":"boolean","description":"start a job, for servers and watchers"}}}},"#,
            r#""required":["command"]}}"#,
        ),
        default_timeout.as_secs(),
    );
    let spec = args::tool_spec(
        "bash",
        Access::Execute,
        [TouchedResource::command("command")],
        Tier::Lean,
        "Run a shell command in the working directory. Stdin is empty; returns stdout and stderr, \
         the middle of long output left out.",
        &parameters,
    );
    ToolSpec { kind: ToolKind::Shell, ..spec }
}

#[derive(Deserialize)]
struct BashArguments {
    command: String,
    /// Some models write `30.0`.
    timeout: Option<f64>,
    background: Option<bool>,
    /// Ends the command at its first line that fails. Steps of tasks set it; the schema for models does not have it.
    stop_at_error: Option<bool>,
}

/// The time that a command may take.
#[derive(Clone, Copy)]
struct TimeLimit {
    time: Duration,
    /// True if the command is a step of a task: then a person has written the limit, and no call can ask for more.
    is_of_step: bool,
}

/// The reason why following a process came to an end.
enum FollowEnd {
    Ended(ShellEnd),
    TimedOut,
    /// The program has drawn a screen and waits for a person.
    WantsPerson,
    Cancelled,
    NoRoom(NoRoom),
}

/// A run of a command in the workspace that has ended or must be stopped.
struct ForegroundRun {
    process: Process,
    transcript: Transcript,
    halt: FollowEnd,
    /// All that a command has written which ended by itself.
    output: String,
    strays: StrayFiles,
}

/// Reports whether a command asks about the machine and finds only the sandbox.
fn asks_for_machine(cx: &ToolCx) -> bool {
    match cx.grant.machine {
        MachineView::None | MachineView::Absent => false,
        MachineView::Shown => cx.grant.reads_only && !policy::can_show_machine(),
        MachineView::Outside => true,
    }
}

impl ShellTools {
    fn in_background(&self, command: &str, cx: &ToolCx) -> ToolOutcome {
        if cx.grant.trial.is_some() && !cx.grant.outside {
            return ToolOutcome::failure_text(
                "the command was not run: it may only run on trial, which the background is not",
            );
        }
        match self.jobs.start(&self.shell, command, cx) {
            Ok(id) => {
                let mut text = format!("job {id} started");
                add_line(&mut text, self.shell.describe_reach(cx));
                ToolOutcome::success_text(text)
            }
            Err(error) => ToolOutcome::failure_text(error.to_string()),
        }
    }

    async fn in_foreground(
        &self,
        arguments: BashArguments,
        call: CallId,
        cx: ToolCx,
    ) -> ToolOutcome {
        // Only steps of tasks stop at an error.
        let is_of_step = arguments.stop_at_error == Some(true);
        let time = arguments
            .timeout
            .map_or(self.default_timeout, |timeout| read_time_limit(timeout, is_of_step));
        let limit = TimeLimit { time, is_of_step };
        let command = if is_of_step {
            format!("{STOP_AT_ERROR}{}", arguments.command)
        } else {
            arguments.command
        };
        #[cfg(target_os = "linux")]
        if let Some(trial) = cx.grant.trial.filter(|_| !cx.grant.outside) {
            return self.on_trial(trial, command, limit, call, cx).await;
        }
        self.in_place(command, limit, call, cx).await
    }

    /// Runs a command where it is: what it changes is changed.
    async fn in_place(
        &self,
        command: String,
        limit: TimeLimit,
        call: CallId,
        mut cx: ToolCx,
    ) -> ToolOutcome {
        let is_walled = self.shell.is_walled(&cx);
        let mut runs = ReadingRuns::default();
        let run = loop {
            let mut run = match self.run_once(&command, limit, &call, &cx, &runs.absent).await {
                Ok(run) => run,
                Err(error) => return ToolOutcome::failure_text(error.to_string()),
            };
            let has_ended = matches!(run.halt, FollowEnd::Ended(_));
            let has_met = has_ended && is_walled && cx.grant.reads_only && {
                let tried = run.process.tried_files(&run.output, &cx.cwd);
                let roots = Arc::clone(&cx.roots);
                let can_leave_out = |absent: &[PathBuf]| self.shell.can_leave_out(absent, &roots);
                runs.run_again(&command, tried, &call, &mut cx, can_leave_out).await
            };
            if !has_met {
                break run;
            }
        };
        let ForegroundRun { mut process, mut transcript, halt, mut output, strays } = run;
        let FollowEnd::Ended(ending) = halt else {
            process.terminate(|text| transcript.push(text)).await;
            let mut text = Capture::truncate_text(transcript.take_text());
            add_line(&mut text, &strays.resolve_new_names(&command, &call, &cx).await);
            return stopped_outcome(&halt, command, limit, text);
        };
        let left = strays.resolve_new_names(&command, &call, &cx).await;
        if process.is_open() {
            let room = self.shell.session_room(&cx);
            add_line(&mut output, &self.leave_running(&command, process, room, &cx));
        }
        add_line(&mut output, &left);
        self.add_notes(&mut output, &command, &runs, &cx);
        if is_walled && asks_for_machine(&cx) {
            add_line(&mut output, OF_SANDBOX);
        }
        let repeats = if cx.grant.reads_only { "" } else { REPEATS };
        command_outcome(command, ending, output, is_walled.then_some(repeats))
    }

    /// Runs a command without what is `absent` until it ends or must stop. Of one that ends, all output is read.
    async fn run_once(
        &self,
        command: &str,
        limit: TimeLimit,
        call: &CallId,
        cx: &ToolCx,
        absent: &[PathBuf],
    ) -> Result<ForegroundRun, CommandStartError> {
        let (mut process, strays) = self.shell.start_command(command, cx, absent)?;
        let mut transcript = Transcript::for_call(call.clone(), cx);
        let room = self.shell.session_room(cx).wait_until_full();
        let halt = tokio::select! {
            halt = follow_process(&mut process, &mut transcript, cx, limit.time) => halt,
            why = room => FollowEnd::NoRoom(why),
        };
        let mut output = String::new();
        if matches!(halt, FollowEnd::Ended(_)) {
            process.drain_output(|text| transcript.push(text)).await;
            output = transcript.take_text();
        }
        Ok(ForegroundRun { process, transcript, halt, output, strays })
    }

    /// Adds what the command did not see or run to its output.
    fn add_notes(&self, output: &mut String, command: &str, runs: &ReadingRuns, cx: &ToolCx) {
        add_line(output, &self.shell.describe_unseen_builds(command, cx));
        add_line(output, &runs.describe_skipped(cx));
        add_line(output, &self.shell.describe_skipped_hooks(command, cx));
    }

    /// Finds an owner for what a command left in the background; says who it is.
    fn leave_running(&self, command: &str, process: Process, room: Room, cx: &ToolCx) -> String {
        match self.jobs.adopt_process(command, process, room, &cx.roots) {
            Ok(id) => {
                let mut text = format!("[what it left in the background continues as job {id}]");
                add_line(&mut text, self.shell.describe_reach(cx));
                text
            }
            Err(full) => format!("[what it left in the background was killed: {full}]"),
        }
    }
}

/// Returns the outcome of a command that was stopped, with what it has written.
fn stopped_outcome(
    halt: &FollowEnd,
    command: String,
    limit: TimeLimit,
    text: String,
) -> ToolOutcome {
    match halt {
        FollowEnd::TimedOut => timed_out(command, limit, &text),
        FollowEnd::WantsPerson => screen_outcome(command, &text),
        FollowEnd::NoRoom(why) => {
            let mut why = why.describe();
            add_line(&mut why, &text);
            ToolOutcome::failure_text(why)
        }
        FollowEnd::Cancelled | FollowEnd::Ended(_) => ToolOutcome::Interrupted(text),
    }
}

/// The warning that a command which has run in the workspace would repeat its changes.
const REPEATS: &str = " What it changed until then stays, and would be done again.";
/// The note below the output of a command that only a program outside the sandbox could answer.
const OF_SANDBOX: &str = "[this ran in the sandbox and shows nothing of the machine outside]";

/// The output of a command, for the model and for people who watch.
struct Transcript {
    capture: ScreenCapture,
    watch: ProgressWatch,
    screen: ScreenWatch,
}

impl Transcript {
    fn for_call(call: CallId, cx: &ToolCx) -> Self {
        let capture = if cx.stores_large_results {
            ScreenCapture::for_result_store()
        } else {
            ScreenCapture::new()
        };
        let watch = ProgressWatch::new(call, cx.progress.clone(), Instant::now());
        Self { capture, watch, screen: ScreenWatch::default() }
    }

    fn push(&mut self, text: &str) {
        self.capture.push(text);
        let now = Instant::now();
        self.screen.push(text, now);
        self.watch.push(text, now);
    }

    /// All of it, once; below a question at which it stopped, how to answer.
    fn take_text(&mut self) -> String {
        self.watch.flush(Instant::now());
        let mut text = self.capture.take_text();
        if !self.screen.has_ended_line() {
            let remedy = suggest_answers(&text).unwrap_or_default();
            add_line(&mut text, remedy);
        }
        text
    }
}

/// Records what a process writes until its shell ends, time is up, it waits for a person, or it must stop.
async fn follow_process(
    process: &mut Process,
    transcript: &mut Transcript,
    cx: &ToolCx,
    limit: Duration,
) -> FollowEnd {
    let mut stopped = pin!(cx.stop.cancelled());
    let mut time_is_up = pin!(sleep(limit));
    loop {
        let due = transcript.watch.next_flush();
        let waits_from = transcript.screen.waits_from();
        tokio::select! {
            biased;
            () = &mut stopped => return FollowEnd::Cancelled,
            () = &mut time_is_up => {
                let shows_screen = transcript.screen.shows_screen(Instant::now());
                return if shows_screen { FollowEnd::WantsPerson } else { FollowEnd::TimedOut };
            }
            step = process.next() => match step {
                ProcessEvent::Wrote(text) => transcript.push(text),
                ProcessEvent::Ended(ending) => return FollowEnd::Ended(ending),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                transcript.watch.flush(Instant::now());
            }
            () = sleep_until(waits_from.unwrap_or_else(Instant::now)), if waits_from.is_some() => {
                return FollowEnd::WantsPerson;
            }
        }
    }
}

/// The outcome of a command that ended. In a sandbox, `repeats` says what running it again would mean.
fn command_outcome(
    command: String,
    ending: ShellEnd,
    output: String,
    repeats: Option<&str>,
) -> ToolOutcome {
    let remedy = suggest_remedy(&output).unwrap_or_default();
    if ending == ShellEnd::Code(0) {
        let mut text = if output.is_empty() { "(no output)".to_owned() } else { output };
        add_line(&mut text, remedy);
        return ToolOutcome::Done(output_with_report(text, ending.into_report(command)));
    }
    let mut text = ending.to_string();
    // Only what went well is put aside.
    let output = Capture::truncate_text(output);
    add_line(&mut text, &output);
    add_line(&mut text, remedy);
    let mut report = ending.into_report(command);
    report.walled = repeats.and_then(|repeats| {
        Some(gnoma_sandbox::describe_sandbox_denial(&output, report.exit_code)? + repeats)
    });
    if let Some(why) = &report.walled {
        add_line(&mut text, &format!("[{why}]"));
    }
    ToolOutcome::Failed(output_with_report(text, report))
}

fn timed_out(command: String, limit: TimeLimit, output: &str) -> ToolOutcome {
    let time = duration::format_duration(limit.time);
    let mut text = format!("Stopped after {time}, before it ended");
    // What waits for an answer ends no sooner with more time.
    let remedy = suggest_remedy(output);
    text.push_str(if remedy.is_some() || output.contains(NO_INPUT) {
        "."
    } else if limit.is_of_step {
        "; give its step a longer time limit, as in `## Title {timeout=30m}`."
    } else {
        "; give a longer `timeout`, or set `background`."
    });
    add_line(&mut text, output);
    add_line(&mut text, remedy.unwrap_or_default());
    failure_without_code(command, text)
}

/// The outcome of a command that was stopped because it waits for a person at a terminal.
fn screen_outcome(command: String, output: &str) -> ToolOutcome {
    let mut text = describe_screen("Stopped", output);
    add_line(&mut text, suggest_remedy(output).unwrap_or_default());
    failure_without_code(command, text)
}

fn failure_without_code(command: String, text: String) -> ToolOutcome {
    let report = CommandReport { command, exit_code: None, walled: None, trial: None };
    ToolOutcome::Failed(output_with_report(text, report))
}

fn output_with_report(text: String, report: CommandReport) -> ToolOutput {
    ToolOutput { report: Some(report), ..ToolOutput::from_text(text) }
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}
