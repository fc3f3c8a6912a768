//! The `job` tool: looks after commands that run in the background.

use std::sync::Arc;

use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec, duration,
    tool::{Access, BoxFuture, Tier, ToolOutput, TouchedResource},
};
use serde::Deserialize;

use super::{
    full_screen::describe_screen,
    jobs::{JobError, JobId, JobPoll, JobState, Jobs},
    shared::ShellTools,
    unattended_environment::suggest_remedy,
};
use crate::args;

/// The tool for background jobs.
pub(super) struct JobTool {
    spec: ToolSpec,
    shared: Arc<ShellTools>,
}

impl JobTool {
    pub(super) fn new(shared: Arc<ShellTools>) -> Self {
        Self { spec: job_spec(), shared }
    }
}

impl Tool for JobTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn background_jobs(&self) -> usize {
        self.shared.jobs.count_running()
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let arguments = match args::read_arguments::<JobArguments>(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            tokio::select! {
                biased;
                () = cx.stop.cancelled() => ToolOutcome::Interrupted(String::new()),
                acted = run_action(&shared.jobs, arguments) => match acted {
                    Ok(output) => ToolOutcome::Done(output),
                    Err(error) => ToolOutcome::failure_text(error.to_string()),
                },
            }
        })
    }
}

fn job_spec() -> ToolSpec {
    args::tool_spec(
        "job",
        Access::Execute,
        // Ending what it has started itself harms nobody.
        [TouchedResource::action("action", ["list", "poll", "kill"])],
        Tier::Full,
        "Background jobs of bash: list them, poll for new output and state, send a line of input, kill.",
        r#"{"type":"object","properties":{"action":{"type":"string","enum":["list","poll","send","kill"]},"id":{"type":"integer"},"input":{"type":"string"}},"required":["action"]}"#,
    )
}

#[derive(Deserialize)]
struct JobArguments {
    action: JobAction,
    id: Option<JobId>,
    input: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JobAction {
    List,
    Poll,
    Send,
    Kill,
}

/// Arguments that make sense together.
enum JobRequest {
    List,
    Poll(JobId),
    Send(JobId, String),
    Kill(JobId),
}

impl JobArguments {
    fn into_request(self) -> Result<JobRequest, JobError> {
        let id = self.id.ok_or(JobError::NoId);
        Ok(match self.action {
            JobAction::List => JobRequest::List,
            JobAction::Poll => JobRequest::Poll(id?),
            JobAction::Send => {
                let line = self.input.ok_or(JobError::NoLine)?;
                JobRequest::Send(id?, line)
            }
            JobAction::Kill => JobRequest::Kill(id?),
        })
    }
}

async fn run_action(jobs: &Jobs, arguments: JobArguments) -> Result<ToolOutput, JobError> {
    match arguments.into_request()? {
        JobRequest::List => Ok(list_jobs(jobs)),
        JobRequest::Poll(id) => Ok(describe_poll(id, jobs.poll(id)?)),
        JobRequest::Send(id, line) => {
            jobs.send_line(id, &line).await?;
            Ok(ToolOutput::from_text(format!("sent to job {id}")))
        }
        JobRequest::Kill(id) => {
            jobs.kill(id).await?;
            Ok(describe_poll(id, jobs.poll(id)?))
        }
    }
}

fn list_jobs(jobs: &Jobs) -> ToolOutput {
    let lines: Vec<String> = jobs
        .list()
        .into_iter()
        .map(|(id, command, state)| {
            let command = command.lines().next().unwrap_or_default();
            format!("job {id}: {state}: {command}")
        })
        .collect();
    ToolOutput::from_text(if lines.is_empty() { "no jobs".to_owned() } else { lines.join("\n") })
}

fn describe_poll(id: JobId, news: JobPoll) -> ToolOutput {
    let JobPoll { command, state, age, output, wants_person, warning } = news;
    // The age makes each poll's answer a new one: waiting is no loop.
    let age = if state == JobState::Running {
        format!(" for {}", duration::format_precise_duration(age))
    } else {
        String::new()
    };
    let remedy = suggest_remedy(&output).map(|remedy| format!("\n{remedy}")).unwrap_or_default();
    let output = if output.is_empty() { "(no new output)".to_owned() } else { output };
    let output = if wants_person { describe_screen("`kill` it", &output) } else { output };
    let warning = if warning.is_empty() { warning } else { format!("\n{warning}") };
    ToolOutput {
        report: match state {
            JobState::Ended(ending) => Some(ending.into_report(command)),
            JobState::Running | JobState::Killed => None,
        },
        ..ToolOutput::from_text(format!("job {id}: {state}{age}\n{output}{warning}{remedy}"))
    }
}
