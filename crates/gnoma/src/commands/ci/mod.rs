//! `gnoma ci`: reviews of changes where nobody watches, and templates that start them.
//!
//! The change and the model's answer are hostile. Git runs no program of the repository, the model reads and
//! changes nothing, its comments count only on lines of the change, and each form of the report lets nothing of
//! its text act where the report is shown.

mod change;
mod init;

use std::{fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result};
use gnoma_core::{Content, RawJson, protocol::SessionSpec, session::PermissionMode};
use gnoma_front::code_review::{Review, SCHEMA, diff, escape, markdown, report_forms};
use gnoma_host::{HostError, ProcessResources, Project, live::Host, session_opening::Projects};
use gnoma_schema::Schema;
use serde_json::Value;

use super::common::{print_raw_data, print_safe_text};
use crate::{
    args::{CiSub, ReportFormat, ReviewArgs, TurnArgs},
    environment::ProcessEnvironment,
    front::{AttachedSession, Front},
    launch_request,
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
        CiSub::Review(how) => run_review(how, args, around).await,
    }
}

async fn run_review(
    how: &ReviewArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let spec = SessionSpec {
        answer_schema: Some(RawJson::parse(SCHEMA)?),
        ..launch_request::spec_from_args(args, around)
    };
    let change = change::find_change(&spec.folder, how.base.as_deref(), around).await?;
    let files = diff::parse(&change.diff);
    let (shown, left_out) = diff::render_changes(&files);
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
        report::print_line(format_args!("reviewing {}", review.describe_scope()));
        let (exit, answer) = ask_model(spec, review.build_prompt(&shown), around).await?;
        let Some(answer) = answer else { return Ok(exit) };
        review.apply_answer(&answer, &files);
        exit
    };
    write_report(&review, how, around)?;
    let is_too_much = how.fail_on.is_some_and(|level| review.worst_level() >= Some(level.into()));
    Ok(match exit {
        // What was denied was not needed for an answer.
        Exit::Done | Exit::NotApproved if is_too_much => Exit::Found,
        Exit::Done | Exit::NotApproved => Exit::Done,
        other => other,
    })
}

/// Has a model answer in a session that changes nothing and asks nobody.
async fn ask_model(
    mut spec: SessionSpec,
    prompt: String,
    around: &ProcessEnvironment,
) -> Result<(Exit, Option<Value>)> {
    spec.overrides.mode.get_or_insert(PermissionMode::Plan);
    let project = Project::open(spec, report::stderr_notices(), ProcessResources::default())?;
    project.refuse_whole_system()?;
    let mut spec = project.spec.clone();
    let schema = Schema::parse(SCHEMA).context("the form of reviews is broken")?;
    let front = Front::without_output(around, std::sync::Arc::clone(&project.firewall), schema);
    let host = Host::new(Projects::for_one_turn(project));
    let session = AttachedSession::open(&host, &mut spec, around).await?;
    let answered = front.run_for_answer(session, vec![Content::from_text(prompt)]).await;
    host.shut_down().await;
    let (exit, answer) = answered?;
    Ok((exit, answer.map(|answer| answer.read()).transpose()?))
}

/// Writes the report where it is wanted.
fn write_report(review: &Review, how: &ReviewArgs, around: &ProcessEnvironment) -> Result<()> {
    let text = match how.format {
        ReportFormat::Markdown => markdown::render_report(review),
        ReportFormat::Json => escape::json_line(&report_forms::to_json(review)),
        ReportFormat::Sarif => escape::json_line(&report_forms::to_sarif(review)),
        ReportFormat::Codequality => escape::json_line(&report_forms::code_quality(review)),
        ReportFormat::Github => escape::json_line(&report_forms::to_github(review)),
    };
    if let Some(file) = around.var(SUMMARY_VARIABLE) {
        // The report itself is more than its place on a page.
        if let Err(error) = append_to_file(Path::new(file), &markdown::render_report(review)) {
            report::print_line(format_args!(
                "warning: cannot write the summary to {file}: {error}"
            ));
        }
    }
    let Some(file) = &how.output else {
        match how.format {
            ReportFormat::Markdown => print_safe_text(&text)?,
            ReportFormat::Json
            | ReportFormat::Sarif
            | ReportFormat::Codequality
            | ReportFormat::Github => print_raw_data(&text)?,
        };
        return Ok(());
    };
    let path = around.cwd.join(file);
    fs::write(&path, text)
        .map_err(|error| HostError::usage(format!("cannot write {}: {error}", path.display())))?;
    report::print_line(format_args!("{}", review.describe_counts()));
    Ok(())
}

fn append_to_file(file: &Path, text: &str) -> std::io::Result<()> {
    fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(text.as_bytes())
}
