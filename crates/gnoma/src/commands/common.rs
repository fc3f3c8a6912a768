//! What most commands begin and end with: opening the project, writing to standard output.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use anyhow::Result;
use gnoma_config::LoadedConfig;
use gnoma_core::protocol::SessionSpec;
pub(crate) use gnoma_front::stdout::{print_raw_data, print_safe_text, refuse_closed_stdout};
use gnoma_host::{HostError, Notices, ProcessResources, Project, crate_options};

use crate::{
    args::{GuardInput, TurnArgs},
    environment::ProcessEnvironment,
    launch_request,
    report::{self, Exit},
};

/// The project that the command line names.
pub(super) fn open_project(
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Project, HostError> {
    Project::open(
        launch_request::spec_from_args(args, around),
        report::stderr_notices(),
        ProcessResources::default(),
    )
}

/// The project that a command line names, for a look at its files: no command for a key runs, and no notice is printed.
pub(super) fn open_project_without_keys(spec: SessionSpec) -> Result<Project, HostError> {
    let notices = Notices::without_sink();
    let (spec, loaded) = crate_options::load_settings(spec, &notices)?;
    Project::with_settings(spec, loaded.into(), notices, ProcessResources::default())
}

/// The settings that hold there, for a command that needs nothing else of it.
pub(super) fn load_settings(
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<(SessionSpec, LoadedConfig), HostError> {
    crate_options::load_settings(
        launch_request::spec_from_args(args, around),
        &report::stderr_notices(),
    )
}

/// Writes what came out of a store to standard output, for people: it may hold anything.
pub(super) fn print_stored_text(text: &str) -> Result<Exit> {
    print_safe_text(text)
}

/// Writes a JSON value to standard output.
pub(super) fn print_json(value: &serde_json::Value) -> Result<Exit> {
    print_raw_data(&format!("{value}\n"))
}

/// The text that a command looks at.
pub(super) fn open_input(input: &GuardInput) -> Result<Box<dyn BufRead>> {
    match input.file.as_deref().filter(|file| *file != Path::new("-")) {
        None => Ok(Box::new(BufReader::new(io::stdin()))),
        Some(file) if file.is_dir() => Err(HostError::usage(format!(
            "`{}` is a folder; name a file, or pipe text in, as in `git diff | gnoma guard scan`",
            file.display()
        ))
        .into()),
        Some(file) => {
            let opened = File::open(file);
            let opened = opened.map_err(|error| {
                HostError::usage(format!("cannot read `{}`: {error}", file.display()))
            })?;
            Ok(Box::new(BufReader::new(opened)))
        }
    }
}
