//! `gnoma usage`: what models cost, for people, programs and spreadsheets.

mod calendar;
mod csv;
mod forget;
mod html;
mod json;
mod notes;
mod table;
mod tools;
mod view;

use std::{
    io::{self, BufWriter, IsTerminal as _, Write as _},
    path::Path,
};

use anyhow::Result;
use gnoma_core::protocol::SessionSpec;
use gnoma_host::{
    HostError,
    files::NewFile,
    usage::{self, Dimension, MAX_DEPTH, Period, UsageQuery, UsageStart},
};

use self::view::{Currency, UsageView};
use super::{
    common::{
        open_project, open_project_without_keys, print_raw_data, print_stored_text,
        refuse_closed_stdout,
    },
    router::stats::read_quality,
};
use crate::{
    args::{TurnArgs, UsageArgs, UsageBy, UsageSub},
    environment::ProcessEnvironment,
    report::{self, Exit},
    screen::Size,
};

pub(super) async fn run(
    wanted: &UsageArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = open_project(args, around)?;
    if let Some(UsageSub::Forget { older_than, yes, json }) = &wanted.what {
        return forget::run(&project, *older_than, *yes, *json, around).await;
    }
    if wanted.by.contains(&UsageBy::Tool) {
        refuse_beside_tools(wanted)?;
        return tools::run(&project, wanted.since, wanted.json).await;
    }
    let by = call_dimensions(&wanted.by)?;
    let query = UsageQuery { since: wanted.since, by, repriced_as: wanted.repriced_as.clone() };
    let report = usage::read_report(&project, &query).await?;
    let mut view = UsageView::new(&query, &report, project.now_ms());
    view.currency = Currency::from_project(&project);
    if query.by == [Dimension::Model] {
        let (believed, verifier) = read_quality(&project);
        view.quality = Some(believed);
        view.verifier = verifier;
    }
    if wanted.json {
        return print_json(&view);
    }
    if wanted.csv {
        if report.lacks_money {
            report::print_warning(notes::INCOMPLETE);
        }
        return print_raw_data(&csv::render(&view));
    }
    if let Some(file) = &wanted.html {
        return write_page(&mut view, &around.cwd.join(file));
    }
    let stdout = io::stdout();
    // A screen reader would read bars and the calendar character by character.
    let has_drawings = stdout.is_terminal() && around.var("ACCESSIBLE").is_none();
    let columns = has_drawings.then(|| Size::of_terminal(&stdout).columns);
    print_stored_text(&table::render(&view, columns))
}

/// The days of the report for the page.
const PAGE_DAYS: u32 = 30;

/// Reads the usage of the last 30 days by day, as `gnoma usage --json` prints it.
///
/// # Errors
/// The settings or the ledger cannot be read.
pub(crate) async fn read_json(spec: SessionSpec) -> Result<String> {
    let project = open_project_without_keys(spec)?;
    let by = vec![Dimension::Period(Period::Day)];
    let query = UsageQuery { since: UsageStart::Days(PAGE_DAYS), by, repriced_as: None };
    let report = usage::read_report(&project, &query).await?;
    let mut text = Vec::new();
    json::write_report(&UsageView::new(&query, &report, project.now_ms()), &mut text)?;
    Ok(String::from_utf8(text)?)
}

/// Refuses what goes with dimensions of calls but not with `--by tool`.
fn refuse_beside_tools(wanted: &UsageArgs) -> Result<(), HostError> {
    let is_alone = wanted.by.len() == 1 && wanted.repriced_as.is_none();
    if is_alone && !wanted.csv && wanted.html.is_none() {
        return Ok(());
    }
    let text = "--by tool stands alone, as a table or with --json: the ledger does not record for which tool a model was called";
    Err(HostError::usage(text))
}

/// Returns the dimensions of calls, each once.
fn call_dimensions(groups: &[UsageBy]) -> Result<Vec<Dimension>, HostError> {
    let mut by = Vec::new();
    for group in groups {
        match group {
            UsageBy::Calls(dimension) if !by.contains(dimension) => by.push(*dimension),
            UsageBy::Calls(_) | UsageBy::Tool => (),
        }
    }
    if by.len() > MAX_DEPTH {
        let text = format!("--by takes at most {MAX_DEPTH} names that nest");
        return Err(HostError::usage(text));
    }
    Ok(by)
}

/// Writes the report as a page into a new file. A page has amounts in dollars.
fn write_page(view: &mut UsageView<'_>, file: &Path) -> Result<Exit> {
    let mut page = NewFile::create(file)?;
    view.currency = None;
    page.write(html::render_page(view).as_bytes())?;
    page.finish()?;
    report::print_line(format_args!("wrote {}", file.display()));
    Ok(Exit::Done)
}

/// Writes the report to standard output, piece by piece. A terminal gets it like text.
fn print_json(view: &UsageView<'_>) -> Result<Exit> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        let mut text = Vec::new();
        json::write_report(view, &mut text)?;
        return print_raw_data(&String::from_utf8_lossy(&text));
    }
    refuse_closed_stdout()?;
    let mut out = BufWriter::new(stdout.lock());
    match json::write_report(view, &mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => report::exit_after_write_error(error),
    }
}
