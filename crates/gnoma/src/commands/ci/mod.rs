//! `gnoma ci`: reviews of changes where nobody watches, and templates that start them.
//!
//! The change and the model's answer are hostile. Git runs no program of the repository, the model reads and
//! changes nothing, its comments count only on lines of the change, and each form of the report lets nothing of
//! its text act where the report is shown.

mod change;
mod diff;
mod escape;
mod init;
mod markdown;
mod report_forms;
mod review;

use std::{fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result};
use gnoma_core::{Content, RawJson, protocol::SessionSpec, session::PermissionMode};
use gnoma_host::{HostError, Project, Shared, live::Host, opening::Projects};
use gnoma_schema::Schema;
use serde_json::Value;

use self::review::{Review, SCHEMA};
use super::common::{print, print_data};
use crate::{
    args::{CiSub, ReportFormat, ReviewArgs, TurnArgs},
    environment::ProcessEnvironment,
    front::{Attached, Front},
    lowering,
    report::{self, Exit},
};

/// Names the file of a job's page at GitHub.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Does what `what` says.
///
/// # Errors
/// There is no change to be seen, no model that reviews it, or no place for the report.
pub(crate) async fn run(
    what: &CiSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    match what {
        CiSub::Init(template) => init::run(template, args, around),
        CiSub::Review(how) => review(how, args, around).await,
    }
}

async fn review(how: &ReviewArgs, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let spec = SessionSpec {
        answer_schema: Some(RawJson::parse(SCHEMA)?),
        ..lowering::spec(args, around)
    };
    let change = change::of(&spec.folder, how.base.as_deref(), around).await?;
    let files = diff::parse(&change.diff);
    let (shown, left_out) = diff::shown(&files);
    let mut review = Review {
        base: change.base,
        commit: change.commit,
        files: files.len() - left_out.len(),
        left_out,
        ..Review::default()
    };
    let exit = if shown.is_empty() {
        "There is nothing to review.".clone_into(&mut review.summary);
        Exit::Done
    } else {
        report::say(format_args!("reviewing {}", review.scope()));
        let (exit, answer) = ask(spec, review.prompt(&shown), around).await?;
        let Some(answer) = answer else { return Ok(exit) };
        review.take(&answer, &files);
        exit
    };
    write(&review, how, around)?;
    let is_too_much = how.fail_on.is_some_and(|level| review.worst() >= Some(level));
    Ok(match exit {
        // What was denied was not needed for an answer.
        Exit::Done | Exit::NotApproved if is_too_much => Exit::Found,
        Exit::Done | Exit::NotApproved => Exit::Done,
        other => other,
    })
}

/// Has a model answer in a session that changes nothing and asks nobody.
async fn ask(
    mut spec: SessionSpec,
    prompt: String,
    around: &ProcessEnvironment,
) -> Result<(Exit, Option<Value>)> {
    spec.overrides.mode.get_or_insert(PermissionMode::Plan);
    let project = Project::open(spec, report::notices(), Shared::default())?;
    project.refuse_whole_system()?;
    let mut spec = project.spec.clone();
    let schema = Schema::parse(SCHEMA).context("the form of reviews is broken")?;
    let front = Front::silent(around, std::sync::Arc::clone(&project.firewall), schema);
    let host = Host::new(Projects::for_one_turn(project));
    let session = Attached::open(&host, &mut spec, around).await?;
    let answered = front.answer(session, vec![Content::text(prompt)]).await;
    host.shut_down().await;
    let (exit, answer) = answered?;
    Ok((exit, answer.map(|answer| answer.read()).transpose()?))
}

/// Writes the report where it is wanted.
fn write(review: &Review, how: &ReviewArgs, around: &ProcessEnvironment) -> Result<()> {
    let text = match how.format {
        ReportFormat::Markdown => markdown::report(review),
        ReportFormat::Json => escape::line(&report_forms::json(review)),
        ReportFormat::Sarif => escape::line(&report_forms::sarif(review)),
        ReportFormat::Codequality => escape::line(&report_forms::code_quality(review)),
        ReportFormat::Github => escape::line(&report_forms::github(review)),
    };
    if let Some(file) = around.var(SUMMARY_VARIABLE) {
        // The report itself is more than its place on a page.
        if let Err(error) = append(Path::new(file), &markdown::report(review)) {
            report::say(format_args!("warning: cannot write the summary to {file}: {error}"));
        }
    }
    let Some(file) = &how.output else {
        match how.format {
            ReportFormat::Markdown => print(&text)?,
            ReportFormat::Json
            | ReportFormat::Sarif
            | ReportFormat::Codequality
            | ReportFormat::Github => print_data(&text)?,
        };
        return Ok(());
    };
    let path = around.cwd.join(file);
    fs::write(&path, text)
        .map_err(|error| HostError::usage(format!("cannot write {}: {error}", path.display())))?;
    report::say(format_args!("{}", review.counted()));
    Ok(())
}

fn append(file: &Path, text: &str) -> std::io::Result<()> {
    fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(text.as_bytes())
}
