//! `gnoma sessions repair`: reads everything, mends what can be mended, and says what was done.

use anyhow::Result;
use gnoma_core::{
    json_value::json,
    store::{SessionStore as _, StoreErrorKind},
};
use gnoma_host::{
    Project, clock,
    project_history::{ProjectHistory, nothing_kept},
};
use gnoma_store::{OpenedStore, RescueReport, Store};

use crate::{
    commands::common::{print_json, print_stored_text},
    report::Exit,
};

pub(super) async fn run(project: &Project, json: bool) -> Result<Exit> {
    if !project.places.has_sessions() {
        return Err(nothing_kept(&project.places).into());
    }
    let (past, rescued) = open_and_check(project).await?;
    let done = repair_sessions(&past, rescued).await?;
    if json { print_json(&done.to_json()) } else { print_stored_text(&done.render_report()) }
}

/// The findings and the changes of a repair.
#[derive(Default)]
struct RepairReport {
    rescued: Option<RescueReport>,
    sessions: usize,
    entries: usize,
    /// Calls that got a result saying that they were interrupted.
    closed: usize,
    in_use: Vec<String>,
}

impl RepairReport {
    fn to_json(&self) -> serde_json::Value {
        let rescued = self.rescued.as_ref().map(|rescued| {
            json!({"aside": rescued.aside, "sessions": rescued.sessions,
                "entries": rescued.entries, "lost": rescued.lost,
                "unknown": rescued.unknown})
        });
        json!({"rescued": rescued, "sessions": self.sessions, "entries": self.entries,
            "interrupted_calls": self.closed, "in_use": self.in_use})
    }

    fn render_report(&self) -> String {
        let mut text = match &self.rescued {
            Some(rescued) => format!("{rescued}\n"),
            None => "the database is intact\n".to_owned(),
        };
        text.push_str(&format!(
            "checked {} sessions with {} entries\n",
            self.sessions, self.entries
        ));
        match self.closed {
            0 => text.push_str("every call has a result\n"),
            count => text.push_str(&format!("marked {count} interrupted calls\n")),
        }
        for id in &self.in_use {
            text.push_str(&format!("skipped {id}: open in another process\n"));
        }
        text
    }
}

/// Opens the store and reads all of the file; a damaged one is set aside and opened anew.
async fn open_and_check(project: &Project) -> Result<(ProjectHistory, Option<RescueReport>)> {
    let options = project.places.store_options(&project.firewall, &project.notices);
    let OpenedStore { store, rescued } = Store::open(options.clone())?;
    let (store, rescued) = match store.check_integrity().await {
        Err(error) if error.kind == StoreErrorKind::Damaged && rescued.is_none() => {
            drop(store);
            let again = Store::open(options)?;
            (again.store, again.rescued)
        }
        checked => {
            checked?;
            (store, rescued)
        }
    };
    Ok((
        ProjectHistory {
            store: store.into(),
            places: project.places.clone(),
            clock: project.shared.clock().clone(),
        },
        rescued,
    ))
}

async fn repair_sessions(
    past: &ProjectHistory,
    rescued: Option<RescueReport>,
) -> Result<RepairReport> {
    let mut done = RepairReport { rescued, ..RepairReport::default() };
    for facts in past.list_sessions().await? {
        match past.store.hold_session(facts.id.clone(), clock::now_ms()).await {
            Ok(taken) => {
                done.closed += taken.interrupted.len() + taken.unapproved.len();
                done.entries += past.load_path(&facts.id, None).await?.len();
                done.sessions += 1;
                past.store.release_session(facts.id).await?;
            }
            Err(error) if matches!(error.kind, StoreErrorKind::Held { .. }) => {
                done.in_use.push(facts.id.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}
