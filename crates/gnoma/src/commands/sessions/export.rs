//! `gnoma sessions export`: a session as a file for people or for another gnoma.

use std::path::Path;

use anyhow::Result;
use gnoma_host::{
    HostError, Project,
    export::{self, Format},
};

use crate::{
    args::ExportFormat,
    commands::common::{print_raw_data, print_safe_text},
    environment::ProcessEnvironment,
    report::{self, Exit},
};

pub(super) async fn run(
    project: &Project,
    id: Option<&str>,
    format: Option<ExportFormat>,
    output: Option<&Path>,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let output = output.filter(|file| *file != Path::new("-"));
    let format = match (format, output) {
        (Some(ExportFormat::Markdown), _) | (None, None) => Format::Markdown,
        (Some(ExportFormat::Html), _) => Format::Html,
        (Some(ExportFormat::Jsonl), _) => Format::Lines,
        (None, Some(file)) => export::format_of(file).map_err(|error| HostError {
            remedy: Some("`--format FORMAT` writes to a file of any name".to_owned()),
            ..error
        })?,
    };
    if let Some(file) = output {
        let file = around.cwd.join(file);
        let id = export::export_to_file(project, id, format, &file).await?;
        report::print_line(format_args!("exported {id} to {}", file.display()));
        return Ok(Exit::Done);
    }
    let (mut exit, is_data) = (Exit::Done, format == Format::Lines);
    export::export_session(project, id, format, |piece| {
        exit = if is_data { print_raw_data(piece) } else { print_safe_text(piece) }?;
        anyhow::Ok(exit == Exit::Done)
    })
    .await?;
    Ok(exit)
}
