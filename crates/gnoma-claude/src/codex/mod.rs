//! `gnoma codex exec`: the command line and the events of `codex exec --json`, for programs that drive it, such as
//! those built on the Codex SDK. Whose models answer is gnoma's matter.

mod events;
mod flags;

use std::{ffi::OsString, path::Path, sync::Arc};

use anyhow::Result;
use gnoma_core::{
    Content,
    json_value::json,
    protocol::{Overrides, SessionSpec, Start},
};
use gnoma_front::{
    AttachedSession, Front, OutputFormat, ProcessEnvironment, answer_schema, prompt,
    report::{self, Exit},
    stdout::{print_raw_data, print_safe_text},
};
use gnoma_host::{HostError, ProcessResources, Project, live::Host, session_opening::Projects};

use self::{events::Codex, flags::Flags};
use crate::error::DriverError;

/// The name under which this program is that one, and its one command that there is.
const NAME: &str = "codex";
const EXEC: &str = "exec";
/// Providers that have models with the names that programs of OpenAI's write.
const OF_OPENAI: [&str; 3] = ["openai", "azure", "openrouter"];

const HELP: &str = "\
Act as `codex exec --json`, for programs that drive it

Usage: gnoma codex exec [OPTIONS] [PROMPT]
       gnoma codex exec [OPTIONS] resume ID [PROMPT]
       codex exec …        where `codex` is a link to gnoma

The official SDK starts it when `codexPathOverride` is set to gnoma. Without a prompt, or with `-`, it is
read from standard input.

Options:
  --json, --experimental-json   an event per line on standard output
  -m, --model MODEL             a model of gnoma's; `gpt-…` leaves the choice to gnoma
  -s, --sandbox MODE            read-only, workspace-write or danger-full-access
  -C, --cd DIR                  working folder; --add-dir DIR adds one
  --output-schema FILE          the answer is JSON that fits this JSON Schema
  -i, --image FILE              send a picture along
  --ephemeral                   save nothing
  resume ID, resume --last      continue a session

Other options of `codex` are named on standard error and have no effect. See docs/codex.md.
";

/// Returns the words behind the command where `line`, the whole command line, starts `gnoma codex`: by that name, through
/// a link named `codex`, or as the SDK writes it.
pub fn command_words(line: &[OsString]) -> Option<Vec<String>> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let program = Path::new(line.first()?).file_stem()?;
    let rest: Vec<String> = line.get(1..)?.iter().map(text).collect();
    if program == NAME {
        return Some(rest);
    }
    match rest.first().map(String::as_str) {
        Some(NAME) => Some(rest.into_iter().skip(1).collect()),
        // The SDK starts whatever it is given as that program.
        Some(EXEC) if rest.get(1).is_some_and(|word| word == "--experimental-json") => Some(rest),
        _ => None,
    }
}

/// Runs the `gnoma codex` command with the words of [`command_words`].
///
/// # Errors
/// The line is wrong, or the session cannot be opened.
pub async fn run(words: Vec<String>, around: &ProcessEnvironment) -> Result<Exit> {
    let is_exec = words.first().is_some_and(|word| word == EXEC);
    let flags = Flags::read(words.into_iter().skip(usize::from(is_exec)))
        .map_err(DriverError::into_usage_error)?;
    if flags.help {
        return print_safe_text(HELP);
    }
    if flags.version {
        return print_safe_text(&format!("gnoma {}\n", env!("CARGO_PKG_VERSION")));
    }
    if !is_exec {
        let text = "only `exec` of `codex` is supported; see `gnoma codex --help`";
        return Err(HostError::usage(text).into());
    }
    for said in &flags.unheard {
        report::print_line(format_args!("gnoma: {said}"));
    }
    let is_json = flags.json;
    let exit = run_turn(flags, around).await;
    if let (Err(error), true) = (&exit, is_json) {
        // Whoever reads events gets one, also of a turn that could not begin.
        print_raw_data(&format!(
            "{}\n",
            json!({ "type": "error", "message": format!("{error:#}") })
        ))?;
    }
    // What was denied the model was told, and it answered.
    exit.map(|exit| if exit == Exit::NotApproved { Exit::Done } else { exit })
}

async fn run_turn(flags: Flags, around: &ProcessEnvironment) -> Result<Exit> {
    let form =
        flags.schema.as_deref().map(|file| answer_schema::read_schema(file, around)).transpose()?;
    let mut content = prompt::read_user_content(&flags.words)?
        .ok_or_else(|| HostError::usage("no prompt given; add one, or pipe one in"))?;
    for file in &flags.images {
        content.push(prompt::load_image(&around.cwd.join(file))?);
    }
    let mut spec = session_spec(&flags, around);
    spec.answer_schema = form.as_ref().map(|form| form.text.clone());
    let mut project = Project::open(spec, report::stderr_notices(), ProcessResources::default())?;
    project.refuse_whole_system()?;
    let vendor = project.routing.provider.default.as_deref();
    if vendor.is_none_or(|vendor| !OF_OPENAI.contains(&vendor)) {
        let is_foreign = |model: &String| model.starts_with("gpt-") || model.starts_with("codex");
        if project.spec.overrides.model.as_ref().is_some_and(is_foreign) {
            let spec = SessionSpec {
                overrides: Overrides { model: None, ..project.spec.overrides.clone() },
                ..project.spec.clone()
            };
            project = Project::open(spec, report::stderr_notices(), ProcessResources::default())?;
        }
    }
    run_in_session(project, flags.json, form.map(|form| form.schema), content, around).await
}

async fn run_in_session(
    project: Project,
    is_json: bool,
    schema: Option<gnoma_schema::Schema>,
    content: Vec<Content>,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let mut spec = project.spec.clone();
    let firewall = Arc::clone(&project.firewall);
    let front = if is_json {
        let view = Box::new(Codex::new(Arc::clone(&firewall)));
        Front::with_view(view, around, firewall, schema)
    } else {
        Front::new(OutputFormat::Text, around, firewall, schema)
    };
    let host = Host::new(Projects::for_one_turn(project));
    let session = AttachedSession::open(&host, &mut spec, around).await?;
    let exit = front.run_turn(session, content, None).await;
    host.shut_down().await;
    exit
}

/// Returns the specification with which the session is opened.
fn session_spec(flags: &Flags, around: &ProcessEnvironment) -> SessionSpec {
    let fork = false;
    SessionSpec {
        folder: flags.folder.as_ref().map_or_else(|| around.cwd.clone(), |it| around.cwd.join(it)),
        more_folders: flags.folders.iter().map(|folder| around.cwd.join(folder)).collect(),
        environment: around.environment.clone(),
        umask: around.umask,
        overrides: Overrides {
            model: flags.model.clone(),
            mode: Some(flags.mode),
            incognito: flags.keeps_nothing.then_some(true),
            thinking: flags.thinking,
            ..Overrides::default()
        },
        start: match &flags.resume {
            Some(id) => Start::Stored { id: id.clone(), fork },
            None if flags.last => Start::Newest { fork },
            None => Start::New,
        },
        ..SessionSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_mode_is_detected_by_program_name_command_or_sdk_flags() {
        let words_of = |line: &str| {
            let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            command_words(&line).map(|words| words.join(" "))
        };
        assert_eq!(words_of("/x/codex exec hi").as_deref(), Some("exec hi"));
        assert_eq!(words_of("gnoma codex exec -").as_deref(), Some("exec -"));
        let sdk = "exec --experimental-json --model m";
        assert_eq!(words_of(&format!("/x/gnoma {sdk}")).as_deref(), Some(sdk));
        assert_eq!(words_of("gnoma exec this plan"), None);
        assert_eq!(words_of("gnoma"), None);
    }
}
