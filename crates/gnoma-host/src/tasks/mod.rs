//! The tasks of a project: which there are, which may run, and what is recorded of their runs.
//!
//! The live session drives a run (`live::task_run`); this module reads files and writes records for it.

mod catalog;
mod draft;
mod failure_choice;
mod history;
mod import;
mod past_log;
mod past_turns;
mod repair;
mod run;
mod step_end;
mod step_models;
mod suggestions;

use std::sync::Arc;

use gnoma_core::{
    info::Choice,
    protocol::{Reply, RequestError, TaskRequest},
    store::SessionId,
};
use gnoma_extend::commands::split_words;

pub use self::{
    catalog::{Tasks, check_file, describe_step, quoted_line, step_command},
    draft::{DraftedTask, refuse_shared_folder, save_draft, task_name_error, write_task},
    history::{ExpectedCost, describe_history, describe_unused, expected_cost, run_store},
    import::{CommandImport, CommandOrigin, find_commands, write_import},
    past_log::delete_read_sessions,
    repair::draft_repair,
    run::{PreparedRun, restricted_mode, resumable_run},
    step_models::check_models,
    suggestions::Suggestions,
};

pub(crate) use self::{failure_choice::STRONGER, run::redact_argument, step_models::unknown_model};

use self::{draft::draft_task, run::prepare_run};
use crate::{HostError, Project, Result, blocking_work::off_loop};

/// Words behind `/task` that the name of a task follows, and nothing else that is known.
const BEFORE_NAME: [&str; 4] = ["show", "history", "resume", "repair"];

/// The tasks of the project of a live session.
#[derive(Clone)]
pub struct SessionTaskFiles {
    project: Arc<Project>,
    /// The session's id in the store, once it has one.
    stored: Option<SessionId>,
}

impl SessionTaskFiles {
    pub(crate) fn new(project: Arc<Project>, stored: Option<SessionId>) -> Self {
        Self { project, stored }
    }

    /// Prepares a run of a task in the session, or the continuation of one. Runs nothing.
    ///
    /// # Errors
    /// The task cannot run, or nothing can continue.
    pub(crate) async fn prepare_run(
        self,
        session: SessionId,
        request: TaskRequest,
    ) -> Result<PreparedRun, RequestError> {
        let session = self.stored.unwrap_or(session);
        let project = self.project;
        Ok(off_loop(|| async move { prepare_run(&project, &session, request) }).await?)
    }

    /// Makes a task of what the person has said in the session, the oldest message first.
    ///
    /// # Errors
    /// The name is taken or none, or nothing was said that can be a step.
    pub(crate) async fn draft(
        self,
        session: SessionId,
        name: String,
        messages: Vec<String>,
    ) -> Result<DraftedTask, RequestError> {
        let session = self.stored.unwrap_or(session);
        let project = self.project;
        let drafted = || async move {
            match suggestions::draft_offered(&project, &session, &name).await? {
                Some(offered) => Ok(offered),
                None => draft_task(&project, &session, &name, &messages),
            }
        };
        Ok(off_loop(drafted).await?)
    }

    /// Drafts a change of a task whose last runs failed at the same step.
    ///
    /// # Errors
    /// There is no such task, or nothing can be proposed.
    pub(crate) async fn repair(self, name: String) -> Result<DraftedTask, RequestError> {
        let project = self.project;
        Ok(off_loop(|| async move { draft_repair(&project, &name).await }).await?)
    }

    /// Returns the line that offers a task for what the session's last turn did again, if there is one.
    ///
    /// # Errors
    /// The stored sessions cannot be read.
    pub(crate) async fn offer_task(self, session: SessionId) -> Result<Option<String>> {
        let session = self.stored.unwrap_or(session);
        let project = self.project;
        off_loop(|| async move { suggestions::offer_task(&project, &session).await }).await
    }

    /// Returns the project.
    pub(crate) fn project(&self) -> Arc<Project> {
        Arc::clone(&self.project)
    }

    /// Returns the id under which the session is stored, or else this one.
    pub(crate) fn stored_id(&self, session: &SessionId) -> SessionId {
        self.stored.as_ref().unwrap_or(session).clone()
    }

    /// Writes a task that was drafted as a new file. Says where.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub(crate) async fn save(self, drafted: DraftedTask) -> Result<String, RequestError> {
        let project = self.project;
        Ok(off_loop(|| async move { save_draft(&project, &drafted) }).await?)
    }
}

/// Answers what is asked about tasks and runs nothing.
pub(crate) fn answer_request(project: &Project, request: &TaskRequest) -> Result<Reply> {
    Ok(match request {
        TaskRequest::List => Reply::Choices(Tasks::find(project).choices()),
        TaskRequest::Show { name } => Reply::Text(Tasks::find(project).describe(name)?),
        TaskRequest::Complete { words } => {
            let words = split_words(words);
            let next = Tasks::find(project).next_words(task_words(&words));
            let choice = |name| Choice { name, ..Choice::default() };
            Reply::Choices(next.into_iter().map(choice).collect())
        }
        TaskRequest::History { name } => Reply::Text(describe_history(project, name)),
        TaskRequest::DeclineOffer => Reply::Text(suggestions::decline_offer(project)?),
        TaskRequest::Run { .. }
        | TaskRequest::Resume { .. }
        | TaskRequest::Draft { .. }
        | TaskRequest::Repair { .. }
        | TaskRequest::Schedules
        | TaskRequest::Save { .. } => return Err(HostError::usage("the session itself does this")),
    })
}

/// Returns the name and the arguments that the words behind `/task` have so far.
fn task_words(words: &[String]) -> &[String] {
    match words.split_first() {
        Some((first, rest)) if first == "run" => rest,
        Some((first, [])) if BEFORE_NAME.contains(&first.as_str()) => &[],
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_name_is_parsed_after_subcommand_words() {
        for (line, expected) in [
            ("", ""),
            ("run", ""),
            ("run release v1", "release v1"),
            ("show", ""),
            ("resume", ""),
            ("resume release", "resume release"),
            ("release v1", "release v1"),
        ] {
            assert_eq!(task_words(&split_words(line)).join(" "), expected, "{line}");
        }
    }
}
