//! The memory of a project: lines that the person has stated, which later sessions give to models.

use gnoma_core::{protocol::MemoryRequest, store::SessionId};
use gnoma_extend::memory::{MemoryChange, MemoryError, MemoryFile, text_of_line};

use crate::{
    Folders as _, HostError, Project, Result, clock, crate_options, extensions,
    project_settings::ProjectSettings,
};

/// The folder within the state folder.
const FOLDER: &str = "memory";
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

fn memory_file(project: &Project) -> MemoryFile {
    let key = gnoma_store::project_key(&project.places.project.display().to_string());
    let folder = project.environment().state_dir().join(FOLDER);
    MemoryFile::new(folder.join(format!("{key}.md")))
}

/// Reports whether the next session has a memory: what is written now is for that one, so a setting that was changed
/// since this session began counts.
fn will_be_enabled(project: &Project) -> bool {
    let loaded = gnoma_config::load_settings(&crate_options::setting_sources(&project.spec));
    loaded.map_or_else(
        |_| project.personal.uses_memory,
        |loaded| ProjectSettings::from(loaded).personal.uses_memory,
    )
}

/// Returns what is added to the instructions of models; empty if there is nothing or it is off.
pub(crate) fn instructions(project: &Project) -> String {
    if !project.personal.uses_memory {
        return String::new();
    }
    let lines = memory_file(project).lines().unwrap_or_else(|error| {
        project.notices.warning(format!("the memory of this project is left out: {error}"));
        Vec::new()
    });
    let lines = lines.iter().map(|line| format!("- {}\n", text_of_line(line)));
    let text: String = lines.collect();
    if text.is_empty() {
        return text;
    }
    format!("--- stated by the user for all sessions\n{}", project.firewall.redact_text(&text))
}

/// Does what a person asks about the memory. `session`: where they said it.
pub(crate) fn answer_request(
    project: &Project,
    session: Option<&SessionId>,
    request: &MemoryRequest,
) -> Result<String> {
    let change = match request {
        MemoryRequest::Show => return render_memory(project),
        MemoryRequest::Add { text } => MemoryChange::Add(text),
        MemoryRequest::Edit { line, text } => MemoryChange::Edit(*line, text),
        MemoryRequest::Delete { line: Some(line) } => MemoryChange::Delete(*line),
        MemoryRequest::Delete { line: None } => MemoryChange::Clear,
    };
    if project.is_incognito() {
        return Err(HostError::usage("nothing is remembered or forgotten in incognito"));
    }
    if let MemoryChange::Add(text) | MemoryChange::Edit(_, text) = change {
        refuse_to_write(project, text)?;
    }
    let day = clock::utc_day(i32::try_from(project.now_ms() / DAY_MS).unwrap_or_default());
    let source = match session {
        Some(session) => format!("{day} in session {session}"),
        None => day,
    };
    memory_file(project).apply_change(change, &source).map_err(|error| memory_error(&error))?;
    let said = match change {
        MemoryChange::Add(_) => "Remembered",
        MemoryChange::Edit(..) => "Changed",
        MemoryChange::Delete(_) => "Deleted",
        MemoryChange::Clear => "Deleted all lines",
    };
    Ok(format!("{said}. It holds from the next session on"))
}

fn refuse_to_write(project: &Project, text: &str) -> Result<()> {
    let refused = |cause: &str, remedy: Option<&str>| {
        Err(HostError { remedy: remedy.map(str::to_owned), ..HostError::usage(cause) })
    };
    if !will_be_enabled(project) {
        let remedy = "`gnoma config set memory.enabled true` turns it on";
        return refused("the memory is off", Some(remedy));
    }
    if project.firewall.redact_text(text) != text {
        return refused("this contains a secret, which is never remembered", None);
    }
    Ok(())
}

fn render_memory(project: &Project) -> Result<String> {
    let file = memory_file(project);
    let lines = file.lines().map_err(|error| memory_error(&error))?;
    let numbered: String =
        (1..).zip(&lines).map(|(number, line)| format!("{number}. {line}\n")).collect();
    let files = extensions::describe_context(project);
    let path = project.environment().shorten_home(file.path());
    let state = match (will_be_enabled(project), lines.is_empty()) {
        (false, _) => {
            "The memory is off, so no model is told of it: `gnoma config set memory.enabled true` turns it on"
                .to_owned()
        }
        (true, true) => "Nothing is remembered. `/memory add TEXT` adds a line".to_owned(),
        (true, false) => format!(
            "Models are told these lines in every session of this project. They are in {path}; `/memory edit N TEXT` \
             and `/memory delete N` change them"
        ),
    };
    Ok(project.firewall.redact_text(&format!("{files}\n{numbered}{state}")).into_owned())
}

fn memory_error(error: &MemoryError) -> HostError {
    match error {
        MemoryError::Io(..) => HostError::failure(error.to_string()),
        MemoryError::Full | MemoryError::NoLine(_) => HostError {
            remedy: Some("`/memory` shows the lines, `/memory delete N` deletes one".to_owned()),
            ..HostError::usage(error.to_string())
        },
        MemoryError::Empty | MemoryError::TooLong | MemoryError::ByHand(_) => {
            HostError::usage(error.to_string())
        }
    }
}
