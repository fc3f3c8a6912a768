//! `gnoma task run`: runs a task without a window, or shows what a run would do.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use gnoma_core::{
    duration,
    json_value::json,
    price::format_usd,
    protocol::{SessionSpec, Start, TaskRequest, TaskResumeChoice},
    quantity::describe_count,
    session::PermissionMode,
    sort,
    store::SessionId,
};
use gnoma_extend::tasks::TaskPlan;
use gnoma_host::{
    HostError, ProcessResources, Project, guard_setup,
    live::Host,
    project_history::ProjectHistory,
    session,
    session_opening::Projects,
    tasks::{
        ExpectedCost, Tasks, check_models, describe_step, expected_cost, quoted_line,
        restricted_mode, resumable_run, run_store, step_command,
    },
};

use super::{
    common::{open_project, print_raw_data, print_safe_text, refuse_closed_stdout},
    task_detach,
    task_words::name_and_arguments,
};
use crate::{
    args::{OutputFormat, TaskResumeArgs, TaskRunArgs, TurnArgs},
    environment::ProcessEnvironment,
    front::{Asker, AttachedSession, Front, json},
    launch_request::LaunchRequest,
    report::{self, Exit},
};

/// Continues an interrupted task run.
pub(super) async fn resume(
    how: &TaskResumeArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let TaskResumeArgs { name, again, stronger, skip } = how.clone();
    let words = name.into_iter().collect();
    let (dry_run, detach, resume) = (false, false, true);
    let how = TaskRunArgs { words, dry_run, detach, resume, again, stronger, skip };
    run(&how, args, around).await
}

pub(super) async fn run(
    how: &TaskRunArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let ran = if how.dry_run {
        dry_run(how, args, around).await
    } else if how.detach {
        task_detach::run(&how.words, args, around).await
    } else {
        run_steps(how, args, around).await
    };
    if let Err(error) = &ran
        && args.output_format != OutputFormat::Text
    {
        // Who reads JSON gets an object at the end, also if nothing could begin.
        print_raw_data(&json::failure_result(error))?;
    }
    ran
}

async fn run_steps(
    how: &TaskRunArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    refuse_closed_stdout()?;
    let LaunchRequest { mut spec, chooses, .. } = LaunchRequest::from_args(args, around);
    // `--resume` without an id is an option of gnoma's own, too: before the command, it means the run as well.
    let resumes = how.resume || chooses;
    if chooses {
        spec.start = Start::New;
    }
    let asker = (args.output_format == OutputFormat::Text).then(|| Asker::of_terminal(around));
    let asker = asker.flatten();
    spec.interactive = asker.is_some();
    let project = Project::open(spec, report::stderr_notices(), ProcessResources::default())?;
    project.refuse_whole_system()?;
    let mut spec = project.spec.clone();
    let request = if resumes {
        let (start, request) = resume_request(how, &project).await?;
        spec.start = start;
        request
    } else {
        // What cannot run is refused before a session begins.
        let (name, arguments) = name_and_arguments(&how.words)?;
        Tasks::find(&project).plan(name, arguments)?;
        TaskRequest::Run { line: quoted_line(&how.words) }
    };
    let front = Front::new(args.output_format.into(), around, Arc::clone(&project.firewall), None);
    let host = Host::new(Projects::for_one_turn(project));
    let session = open_session(&host, &mut spec, around).await?;
    let exit = front.run_task(session, request, asker, args.output_format.into()).await;
    host.shut_down().await;
    exit
}

async fn open_session(
    host: &Host,
    spec: &mut SessionSpec,
    around: &ProcessEnvironment,
) -> Result<AttachedSession> {
    AttachedSession::open(host, spec, around).await
}

/// The session of the run that continues, and the request that continues it.
async fn resume_request(how: &TaskRunArgs, project: &Project) -> Result<(Start, TaskRequest)> {
    let nothing =
        || HostError::usage("nothing is recorded in incognito, so there is no run to resume");
    let store = run_store(project).ok_or_else(nothing)?;
    let wanted = how.words.first().map(String::as_str).unwrap_or_default();
    let run = resumable_run(&store, wanted, None)?;
    let choice = match (how.again, how.stronger, how.skip) {
        (true, ..) => Some(TaskResumeChoice::Again),
        (_, true, _) => Some(TaskResumeChoice::Stronger),
        (_, _, true) => Some(TaskResumeChoice::Skip),
        (false, false, false) => None,
    };
    let session = SessionId::new(run.session.as_str());
    // A process that was killed early may have stored nothing of its session.
    let is_stored = match ProjectHistory::open(project) {
        Ok(past) => past.find_session(Some(session.as_str())).await.is_ok(),
        Err(_) => false,
    };
    let start = if is_stored {
        Start::Stored { id: session.to_string(), fork: false }
    } else {
        report::print_line("note: the session of the run was not saved; it continues in a new one");
        Start::New
    };
    Ok((start, TaskRequest::Resume { run: run.id, choice }))
}

/// Shows the steps of a run, and what the guard says of each command. Runs nothing.
async fn dry_run(how: &TaskRunArgs, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let project = open_project(args, around)?;
    let (name, arguments) = name_and_arguments(&how.words)?;
    let plan = Tasks::find(&project).plan(name, arguments)?;
    check_models(&project, &plan).await?;
    let mode = restricted_mode(project.guard.permission.mode, &plan.modes);
    let verdicts = step_verdicts(&plan, mode, &project)?;
    let expected = expected_cost(&project, &plan);
    let steps = plan.steps.iter().zip(verdicts);
    if args.output_format != OutputFormat::Text {
        let steps = steps.map(|(step, verdict)| {
            json!({"title": step.title, "kind": step.kind().name(), "model": step.model,
                "role": step.role, "group": step.group.map(|first| first + 1),
                "text": describe_step(step), "verdict": verdict})
        });
        let steps: Vec<_> = steps.collect();
        let micro_usd = expected.and_then(|it| it.micro_usd);
        let value = json!({"type": "task_plan", "task": name, "mode": mode,
            "expected_micro_usd": micro_usd, "expected_ms": expected.map(|it| it.took_ms),
            "arguments": sort::to_map(plan.arguments.iter().cloned()),
            "steps": steps});
        return print_raw_data(&format!("{}\n", json::redact_value(&value, &project.firewall)));
    }
    let count = describe_count(plan.steps.len(), "step");
    let mut text = format!("{name}: {count}, mode {mode}; nothing is run\n");
    text.push_str(&expected.map_or_else(String::new, describe_expected));
    for (number, (step, verdict)) in (1..).zip(steps) {
        let model = step.model.as_ref().or(step.role.as_ref());
        let model = model.map_or_else(String::new, |model| format!(", {model}"));
        let beside = step.group.filter(|first| first + 1 < number);
        let beside =
            beside.map_or_else(String::new, |first| format!(", beside step {}", first + 1));
        let kind = step.kind().name();
        text.push_str(&format!("\n{number}. {} ({kind}{model}{beside})\n", step.title));
        text.extend(describe_step(step).lines().map(|line| format!("   {line}\n")));
        text.extend(verdict.map(|verdict| format!("   → {verdict}\n")));
    }
    print_safe_text(&text)
}

/// Returns what would be decided about each step of a plan; `None` for one that is no command.
fn step_verdicts(
    plan: &TaskPlan,
    mode: PermissionMode,
    project: &Project,
) -> Result<Vec<Option<String>>> {
    let Project { guard, places, spec, .. } = project;
    let trials = session::session_trials(project);
    let place = guard_setup::gate_place(guard, places, spec, trials, None);
    let permissions = session::session_permissions(project)?;
    let (world, can_try) = (place.judgement_context(), (place.can_try)());
    let verdict = |step| {
        let command = step_command(step)?;
        Some(permissions.describe_verdict(mode, &world, &command, can_try))
    };
    Ok(plan.steps.iter().map(verdict).collect())
}

/// Says what a run is likely to take.
fn describe_expected(expected: ExpectedCost) -> String {
    let took = duration::format_duration(Duration::from_millis(expected.took_ms));
    let runs = describe_count(expected.runs, "recorded run");
    let cost = expected.micro_usd.map_or_else(|| "an unknown cost".to_owned(), format_usd);
    format!("expected: {cost} and {took}, from {runs}\n")
}
