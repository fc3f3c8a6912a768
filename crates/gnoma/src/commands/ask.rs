//! `gnoma "prompt"`: one turn, and out.

use std::sync::Arc;

use anyhow::Result;
use gnoma_core::{
    Content,
    protocol::{SessionSpec, Start},
    session::PermissionMode,
    store::SessionFacts,
};
use gnoma_extend::commands::{parse_invocation, split_words};
use gnoma_host::{
    HostError, ProcessResources, Project, clock, extensions, live::Host, session_opening::Projects,
    sessions, tasks::Tasks,
};

use super::common::open_project_without_keys;
use crate::{
    answer_schema,
    args::{
        OutputFormat, TASK, TaskRunArgs, TurnArgs, mistaken_prompt_advice, slash_advice,
        task_prompt_advice,
    },
    environment::ProcessEnvironment,
    front::{Asker, AttachedSession, Front, json},
    launch_request::LaunchRequest,
    prompt,
    report::{self, Exit},
    session_resume, terminal, tui,
};

/// Sessions that are named where several have the title that was asked for.
const MAX_NAMED_SESSIONS: usize = 5;

pub(crate) async fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    if let Some(words) = task_of_prompt(args, around) {
        let how = TaskRunArgs { words, ..TaskRunArgs::default() };
        return super::task_run::run(&how, args, around).await;
    }
    let answered = run_prompt(args, around).await;
    if let Err(error) = &answered
        && args.output_format != OutputFormat::Text
    {
        // Programs that read JSON get an object at the end, also of a turn that could not begin.
        super::common::print_raw_data(&json::failure_result(error))?;
    }
    answered
}

async fn run_prompt(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    refuse_mistaken_prompt(args, around)?;
    let LaunchRequest { mut spec, mut words, mut chooses } = LaunchRequest::from_args(args, around);
    refuse_lone_fork(args, &spec.start)?;
    let form = args.json_schema.as_deref().map(|given| answer_schema::read_schema(given, around));
    let form = form.transpose()?;
    if tui::is_meant(args, &words, around) {
        if form.is_some() {
            return Err(HostError::usage("--json-schema needs a prompt").into());
        }
        return tui::run(args, around).await;
    }
    // Before anything is asked and paid for.
    super::common::refuse_closed_stdout()?;
    spec.answer_schema = form.as_ref().map(|form| form.text.clone());
    refuse_slash_command(args, &spec, around)?;
    chooses = chooses && !is_resumed_by_title(args, &mut spec, &mut words).await?;
    let content = read_prompt_content(&spec.start, &words, around)?;
    refuse_piped_command(args, content.as_deref(), &spec, around)?;
    let asker =
        (args.output_format == OutputFormat::Text).then(|| Asker::of_terminal(around)).flatten();
    spec.interactive = asker.is_some();
    let project = Project::open(spec, report::stderr_notices(), ProcessResources::default())?;
    project.refuse_whole_system()?;
    note_idle_options(args, &project);
    let mut spec = project.spec.clone();
    if chooses {
        spec.start = session_resume::choose_stored_session(&project, around).await?;
    }
    let (schema, firewall) = (form.map(|form| form.schema), Arc::clone(&project.firewall));
    let front = Front::new(args.output_format.into(), around, firewall, schema);
    let host = Host::new(Projects::for_one_turn(project));
    let session = AttachedSession::open(&host, &mut spec, around).await?;
    let content = match content {
        Some(content) => content,
        None => vec![Content::from_text(ask_prompt(around)?)],
    };
    let front = match args.output_format {
        OutputFormat::StreamJson => front.with_children(&host, &session),
        OutputFormat::Text | OutputFormat::Json => front,
    };
    let exit = front.run_turn(session, content, asker).await;
    host.shut_down().await;
    exit
}

/// Refuses words that were meant as a command of gnoma.
fn refuse_mistaken_prompt(args: &TurnArgs, around: &ProcessEnvironment) -> Result<(), HostError> {
    let is_about_task = args.words.first().is_some_and(|word| word == TASK);
    let about_task = || task_prompt_advice(args, &around.line, |name| has_task(name, args, around));
    let advice = mistaken_prompt_advice(args, &around.line, &around.cwd)
        .or_else(|| is_about_task.then(about_task).flatten());
    advice.map_or(Ok(()), |advice| Err(HostError::usage(advice)))
}

/// Returns the name and the arguments of the task that a prompt `/task NAME ARGUMENTS` runs, if there is such a task.
fn task_of_prompt(args: &TurnArgs, around: &ProcessEnvironment) -> Option<Vec<String>> {
    let (first, rest) = args.words.split_first()?;
    let (_, arguments) = parse_invocation(first).filter(|(name, _)| *name == TASK)?;
    let is_literal = around.line.iter().any(|word| word == "--") || args.resume == Some(None);
    let words = [split_words(arguments), rest.to_vec()].concat();
    let is_task = !is_literal && has_task(words.first()?, args, around);
    is_task.then_some(words)
}

/// Reports whether a project has a task of that name, also one that cannot be used.
fn has_task(name: &str, args: &TurnArgs, around: &ProcessEnvironment) -> bool {
    open_project_without_keys(LaunchRequest::from_args(args, around).spec)
        .is_ok_and(|project| Tasks::find(&project).has_name(name))
}

/// Checks whether the text behind `--resume` is the title of a saved session, which is then the one to continue. If
/// it is no title, it is a part of the prompt, except if a prompt follows: that would go to another session than
/// the one that was named.
async fn is_resumed_by_title(
    args: &TurnArgs,
    spec: &mut SessionSpec,
    words: &mut Vec<String>,
) -> Result<bool> {
    let Some(Some(title)) = &args.resume else { return Ok(false) };
    let project = open_project_without_keys(spec.clone())?;
    let all = sessions::list_sessions(&project).await?;
    let is_meant =
        |known: &&SessionFacts| known.child.is_none() && known.title.trim() == title.trim();
    let meant: Vec<&SessionFacts> = all.iter().filter(is_meant).collect();
    match &meant[..] {
        [session] => {
            spec.start = Start::Stored { id: session.id.to_string(), fork: args.fork };
            words.remove(0);
            Ok(true)
        }
        [] if words.len() > 1 => Err(HostError::usage(format!(
            "there is no session with the title `{title}`; `gnoma sessions list` lists them, and `gnoma --continue \
             \"…\"` continues the newest"
        ))
        .into()),
        [] => Ok(false),
        several => Err(shared_title_error(title, several).into()),
    }
}

/// Returns the error about a title that several sessions have, with their ids.
fn shared_title_error(title: &str, sessions: &[&SessionFacts]) -> HostError {
    let now_ms = clock::now_ms();
    let name = |facts: &&SessionFacts| {
        format!("{} ({})", facts.id, clock::describe_age(facts.changed_ms, now_ms))
    };
    let names: Vec<String> = sessions.iter().take(MAX_NAMED_SESSIONS).map(name).collect();
    let more = if sessions.len() > MAX_NAMED_SESSIONS { ", …" } else { "" };
    HostError::usage(format!(
        "{} sessions have the title `{title}`; continue one by its id, as in `gnoma --resume ID \"…\"`: {}{more}",
        sessions.len(),
        names.join(", ")
    ))
}

/// Returns the content of the prompt; `None` if it must still be asked for, once a session has been chosen.
fn read_prompt_content(
    start: &Start,
    words: &[String],
    around: &ProcessEnvironment,
) -> Result<Option<Vec<Content>>> {
    let content = prompt::read_user_content(words)?;
    let can_ask = *start != Start::New && terminal::open_terminal(around).is_some();
    match (&content, start) {
        // Ids begin with the date.
        (_, Start::Stored { id, .. }) if !id.starts_with(char::is_numeric) => {
            let prompt = [std::slice::from_ref(id), words].concat().join(" ");
            let text = format!(
                "`{id}` was taken as the id of a session, and there is none; to continue the newest: \
                 `gnoma --continue \"{prompt}\"`"
            );
            Err(HostError::usage(text).into())
        }
        (None, _) if !can_ask => Err(nothing_asked().into()),
        _ => Ok(content),
    }
}

/// Refuses a prompt that begins with a command that is for the conversation or does not exist, or with one of a project
/// that is not trusted: nothing would be sent, and a script would take that for success.
fn refuse_slash_command(
    args: &TurnArgs,
    spec: &SessionSpec,
    around: &ProcessEnvironment,
) -> Result<()> {
    if !args.words.first().is_some_and(|word| word.starts_with('/')) {
        return Ok(());
    }
    let project = open_project_without_keys(spec.clone())?;
    let prompt = args.words.join(" ");
    let refusal = extensions::trust_refusal(&project, &prompt);
    if let Some(why) = refusal.or_else(|| extensions::left_out(&project, &prompt)) {
        return Err(HostError::usage(why).into());
    }
    let own = extensions::command_names(&project);
    match slash_advice(args, &around.line, &own) {
        Some(advice) => Err(HostError::usage(advice).into()),
        None => Ok(()),
    }
}

/// Refuses a command of the conversation that standard input has in place of a prompt.
fn refuse_piped_command(
    args: &TurnArgs,
    content: Option<&[Content]>,
    spec: &SessionSpec,
    around: &ProcessEnvironment,
) -> Result<()> {
    let Some([Content::Text(said), ..]) = content.filter(|_| args.words.is_empty()) else {
        return Ok(());
    };
    let words = vec![said.text.trim().to_owned()];
    refuse_slash_command(&TurnArgs { words, ..args.clone() }, spec, around)
}

/// Prints a note about each option that changes nothing about one prompt.
fn note_idle_options(args: &TurnArgs, project: &Project) {
    if args.full_screen {
        report::print_line("note: --full-screen has no effect: it is for `gnoma` without a prompt");
    }
    let mode = project.guard.permission.mode;
    if args.confirm_bypass && mode != PermissionMode::Bypass {
        report::print_line(format_args!(
            "note: --confirm-bypass has no effect in mode {mode}; add `--permission bypass`"
        ));
    }
}

fn refuse_lone_fork(args: &TurnArgs, start: &Start) -> Result<(), HostError> {
    if !args.fork || *start != Start::New {
        return Ok(());
    }
    let text = "--fork needs a session: add --resume ID or --continue";
    Err(HostError::usage(text))
}

fn nothing_asked() -> HostError {
    HostError::usage(
        "no prompt given; add one, as in `gnoma \"why does the build fail?\"`, or pipe one in. \
         `gnoma --help` lists the commands",
    )
}

/// Asks the person for a prompt when a session was chosen without words to go on with.
fn ask_prompt(around: &ProcessEnvironment) -> Result<String, HostError> {
    let said =
        terminal::open_terminal(around).and_then(|terminal| terminal::ask_line(&terminal, "> "));
    said.filter(|said| !said.is_empty()).ok_or_else(nothing_asked)
}
