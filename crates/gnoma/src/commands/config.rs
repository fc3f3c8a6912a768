//! `gnoma config`: what is set, what it means, and changes of the person's own file.

mod explain;
mod schema;

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _};

use anyhow::Result;
use gnoma_config::{
    LoadedConfig,
    describe::{KeyDescription, describe_key},
    finding::Origin,
    paths, toml,
};
use gnoma_host::{
    Folders as _, HostError, Notices, ProcessResources, Project, crate_options, extensions, setting,
};

use super::common::{load_settings, open_project, print_safe_text};
use crate::{
    args::{ConfigSub, TurnArgs},
    environment::ProcessEnvironment,
    launch_request,
    report::{self, Exit},
};

/// A file that may come to hold keys is its owner's alone.
const PRIVATE: u32 = 0o600;
/// Shows every setting where the person has a file already.
const EXAMPLE_FILE: &str = "config.example.toml";

pub(crate) fn run(what: &ConfigSub, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    match what {
        ConfigSub::Show { origin } => {
            let (spec, loaded) = load_settings(args, around)?;
            let idle =
                crate_options::ignored_controls(&spec).into_iter().chain(idle_hooks(args, around));
            let idle = idle.map(|said| format!("# {said}\n"));
            print_safe_text(&(idle.collect::<String>() + &loaded.render_values(*origin)))
        }
        ConfigSub::Path => print_safe_text(&describe_files(args, around)?),
        ConfigSub::Get { key } => print_value(key, &load_settings(args, around)?.1),
        ConfigSub::Set { key, value } => set_value(key, value, args, around),
        ConfigSub::Explain { key } => {
            let described =
                describe_key(key).map_err(|error| HostError::usage(error.to_string()))?;
            let (spec, loaded) = load_settings(args, around)?;
            print_safe_text(&explain::explain_key(
                key,
                &described,
                &loaded,
                &crate_options::setting_sources(&spec),
            ))
        }
        ConfigSub::Schema => print_safe_text(&schema::render_schema()),
        ConfigSub::Init => write_initial_files(around),
    }
}

/// Returns the configured hooks that do not run, a sentence each. Other problems of the project are reported when
/// its settings are read.
fn idle_hooks(args: &TurnArgs, around: &ProcessEnvironment) -> Vec<String> {
    let silent = Notices::without_sink();
    let project = Project::open(
        launch_request::spec_from_args(args, around),
        silent,
        ProcessResources::default(),
    );
    project.map(|project| extensions::found_hooks(&project).1).unwrap_or_default()
}

fn describe_files(args: &TurnArgs, around: &ProcessEnvironment) -> Result<String> {
    let sources = crate_options::setting_sources(&crate_options::resolve_folders(
        launch_request::spec_from_args(args, around),
    )?);
    let mut files = vec![paths::user_file(&sources.config_dir)];
    files.extend(sources.profile.map(|name| paths::profile_file(&sources.config_dir, &name)));
    files.extend(sources.project_root.map(|root| paths::project_file(&root)));
    let line = |file: std::path::PathBuf| {
        let absent = if file.exists() { "" } else { "  (not there)" };
        format!("{}{absent}\n", file.display())
    };
    Ok(files.into_iter().map(line).collect())
}

fn print_value(key: &str, loaded: &LoadedConfig) -> Result<Exit> {
    let described = describe_key(key).map_err(|error| HostError::usage(error.to_string()))?;
    if let KeyDescription::Section(_) = described {
        let inside =
            |name: &str| name.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', '[']));
        let set = loaded.values.iter().filter(|value| inside(&value.key));
        return print_safe_text(
            &set.map(|value| format!("{} = {}\n", value.key, value.value)).collect::<String>(),
        );
    }
    match loaded.explain_key(key) {
        Some(set) => print_safe_text(&format!("{}\n", plain_value(&set.value))),
        None => {
            report::print_line(format_args!(
                "`{key}` is not set; `gnoma config explain {key}` says what it does"
            ));
            Ok(Exit::Failed)
        }
    }
}

/// A value as programs take it: a text without its quotes, everything else as TOML has it.
fn plain_value(value: &str) -> String {
    let read = toml::from_str::<toml::Table>(&format!("value = {value}"));
    match read.ok().and_then(|mut table| table.remove("value")) {
        Some(toml::Value::String(text)) => text,
        Some(_) | None => value.to_owned(),
    }
}

/// Reports whether the person's own file can be used, so that what is wrong is elsewhere.
fn is_own_file_sound(around: &ProcessEnvironment) -> bool {
    let file = gnoma_config::paths::user_file(&around.environment.config_dir());
    let text = std::fs::read_to_string(file).unwrap_or_default();
    gnoma_config::load::check_user_file(&text).is_ok()
}

fn set_value(key: &str, value: &str, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let done = match open_project(args, around) {
        Ok(project) => setting::set_setting(&project, key, value)?,
        Err(error) if is_own_file_sound(around) => return Err(error.into()),
        // The person's own file cannot be used, and this change may repair it.
        Err(_) => setting::set_in_file(&around.environment.config_dir(), key, value)
            .map_err(HostError::from)?,
    };
    let loaded = match load_settings(args, around) {
        Ok((_, loaded)) => Some(loaded),
        Err(error) => {
            report::print_line(format_args!("note: {error}"));
            None
        }
    };
    // What goes over it here would otherwise make the change look void.
    let over = loaded.as_ref().and_then(|loaded| loaded.explain_key(key));
    if let Some(over) = over.filter(|set| set.origin > Origin::User) {
        let (value, layer, place) = (&over.value, over.origin, &over.place);
        report::print_line(format_args!(
            "note: here `{key}` is {value}: {layer} ({place}) overrides your file"
        ));
    }
    print_safe_text(&format!("{done}\n"))
}

fn write_initial_files(around: &ProcessEnvironment) -> Result<Exit> {
    let folder = around.environment.config_dir();
    let file = paths::user_file(&folder);
    let cannot = |error: std::io::Error| {
        HostError::failure(format!("{} cannot be written: {error}", folder.display()))
    };
    std::fs::create_dir_all(&folder).map_err(cannot)?;
    std::fs::write(folder.join(schema::FILE), schema::render_schema()).map_err(cannot)?;
    if file.exists() {
        // It may be there because a provider was added.
        let example = folder.join(EXAMPLE_FILE);
        std::fs::write(&example, schema::render_template()).map_err(cannot)?;
        return print_safe_text(&format!(
            "{} is there and was not changed; {} has every setting, as a comment\n",
            file.display(),
            example.display()
        ));
    }
    let mut new = OpenOptions::new();
    let opened = new.write(true).create_new(true).mode(PRIVATE).open(&file);
    opened
        .and_then(|mut new| new.write_all(schema::render_template().as_bytes()))
        .map_err(cannot)?;
    print_safe_text(&format!("{} is written: every setting, as a comment\n", file.display()))
}
