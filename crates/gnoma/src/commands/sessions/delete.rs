//! `gnoma sessions delete`: forgets sessions, after a question.

use anyhow::{Context as _, Result};
use gnoma_core::store::SessionStore as _;

use super::list;
use gnoma_host::{
    HostError, Project, clock, project_history::ProjectHistory, tasks::delete_read_sessions,
};

use crate::{
    commands::common::print_stored_text, environment::ProcessEnvironment, report::Exit, screen,
    terminal,
};

pub(super) async fn run(
    project: &Project,
    ids: &[String],
    yes: bool,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let past = ProjectHistory::open(project)?;
    let mut doomed = Vec::new();
    for id in ids {
        let facts = past.find_session(Some(id)).await?;
        if !doomed.contains(&facts) {
            doomed.push(facts);
        }
    }
    if !yes {
        let Some(terminal) = terminal::open_terminal(around) else {
            let text = "cannot ask for confirmation without a terminal; add --yes";
            return Err(HostError::usage(text).into());
        };
        let rows = list::session_rows(&doomed, clock::now_ms());
        let question = format!("{rows}Delete permanently? [y]es, [n]o: ");
        if !terminal::is_yes(&terminal, &screen::mark_unsafe_chars(&question)) {
            return print_stored_text("nothing was deleted\n");
        }
    }
    let mut told = String::new();
    for facts in doomed {
        let deleted = past.store.delete(facts.id.clone()).await;
        deleted.with_context(|| format!("cannot delete `{}`", facts.id))?;
        delete_read_sessions(project);
        told.push_str(&format!("deleted {}\n", facts.id));
    }
    print_stored_text(&told)
}
