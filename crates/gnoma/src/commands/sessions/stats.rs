//! `gnoma sessions stats`: how much is kept, and what it cost.

use std::{fs, path::Path};

use anyhow::Result;
use gnoma_core::{Usage, json_value::json, store::SessionFacts};
use gnoma_host::{Project, clock, project_history::ProjectHistory};
use gnoma_store::checkpoint::Workspace;

use crate::{
    commands::common::{print_json, print_stored_text},
    report::Exit,
    table,
};

/// Files looked at when the size of a folder is summed up.
const MAX_FILES: usize = 1_000_000;

pub(super) async fn run(project: &Project, json: bool) -> Result<Exit> {
    let past = ProjectHistory::open_existing(project)?;
    let settings = &project.keeping.checkpoints;
    // Opening makes what is missing.
    let has_files = settings.enabled && !project.is_incognito();
    let (sessions, workspace) = match &past {
        Some(past) if has_files => {
            (past.list_sessions().await?, project.places.open(settings).ok())
        }
        Some(past) => (past.list_sessions().await?, None),
        None => (Vec::new(), None),
    };
    let stats = Stats {
        messages: sessions.iter().map(|facts| facts.messages).sum(),
        usage: sessions.iter().fold(Usage::default(), add_usage),
        disk_bytes: database_bytes(&project.places.database_path()),
        checkpoints: workspace.as_ref().map_or(0, count_snapshots),
        vault_bytes: folder_bytes(&project.places.vault, &project.places.sessions),
        sessions,
    };
    if json {
        print_json(&stats.to_json())
    } else {
        print_stored_text(&stats.render_table(project))
    }
}

struct Stats {
    sessions: Vec<SessionFacts>,
    messages: u64,
    usage: Usage,
    disk_bytes: u64,
    checkpoints: usize,
    vault_bytes: u64,
}

impl Stats {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "sessions": self.sessions.len(),
            "messages": self.messages,
            "usage": self.usage,
            "database_bytes": self.disk_bytes,
            "checkpoints": self.checkpoints,
            "checkpoint_bytes_of_all_projects": self.vault_bytes,
        })
    }

    fn render_table(&self, project: &Project) -> String {
        let now_ms = clock::now_ms();
        let (newest, oldest) = (self.sessions.first(), self.sessions.last());
        let when = |facts: Option<&SessionFacts>| {
            facts.map_or_else(
                || "-".to_owned(),
                |facts| clock::describe_age(facts.changed_ms, now_ms),
            )
        };
        let Usage { output, cache_read, .. } = self.usage;
        let rows = [
            ("project", project.places.project.display().to_string()),
            ("sessions", self.sessions.len().to_string()),
            ("newest, oldest", format!("{}, {}", when(newest), when(oldest))),
            ("messages", self.messages.to_string()),
            ("tokens read", format!("{} ({cache_read} from a cache)", self.usage.prompt_tokens())),
            ("tokens written", output.to_string()),
            ("on disk", table::format_size(self.disk_bytes)),
            ("checkpoints", self.checkpoints.to_string()),
            (
                "their files",
                format!("{}, all projects together", table::format_size(self.vault_bytes)),
            ),
            ("database", project.places.database_path().display().to_string()),
        ];
        rows.iter().map(|(name, value)| format!("{name:<15} {value}\n")).collect()
    }
}

fn add_usage(mut sum: Usage, facts: &SessionFacts) -> Usage {
    sum += facts.usage;
    sum
}

fn count_snapshots(workspace: &Workspace) -> usize {
    workspace.snapshots().map_or(0, |snapshots| snapshots.len())
}

/// The database and what belongs to it.
fn database_bytes(database: &Path) -> u64 {
    let beside = |ending: &str| database.with_extension(ending);
    let files = ["db", "db-wal", "db-shm"].map(beside);
    files.iter().map(|file| fs::metadata(file).map_or(0, |facts| facts.len())).sum()
}

/// The files below a folder, but for those below `except`.
fn folder_bytes(folder: &Path, except: &Path) -> u64 {
    let (mut folders, mut bytes, mut seen) = (vec![folder.to_owned()], 0, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_FILES {
                return bytes;
            }
            match entry.metadata() {
                Ok(facts) if facts.is_dir() && !except.starts_with(entry.path()) => {
                    folders.push(entry.path());
                }
                Ok(facts) if facts.is_file() => bytes += facts.len(),
                Ok(_) | Err(_) => (),
            }
        }
    }
    bytes
}
