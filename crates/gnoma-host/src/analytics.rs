//! Statistics of the features that a person uses, for that person alone: counts in one readable file, which nothing
//! sends. On only with `analytics.local`. The file has no texts, paths, models or names of extensions, and sessions in
//! incognito are not counted.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Event, bounded_file, private_file, protocol::Environment, tool::tool_label,
};

use crate::{Folders as _, HostError, ProcessResources, Project, Result};

/// The file in the state folder.
const FILE: &str = "analytics.json";
/// Held while the file is changed.
const LOCK: &str = "analytics.lock";
/// Most bytes of the file that are read.
const MAX_BYTES: u64 = 1 << 20;
/// Most counts in it.
const MAX_COUNTS: usize = 1_000;
/// Most open questions that are remembered.
const MAX_OPEN: usize = 100;
/// The time after which the counts of a session that goes on are saved.
const PERIOD: Duration = Duration::from_secs(60);
/// The time for which the lock of another process is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

/// Counts by name, such as `turns.complete`.
pub type Counts = BTreeMap<String, u64>;

/// Counts what happens in one session.
pub(crate) struct SessionCounts {
    shared: ProcessResources,
    path: PathBuf,
    counts: Counts,
    asked: BTreeSet<CallId>,
    saved_at: Instant,
}

impl SessionCounts {
    /// Begins to count, if the person wants that.
    pub(crate) fn open(project: &Project, is_elf: bool) -> Option<Self> {
        if !project.personal.counts_features || project.is_incognito() {
            return None;
        }
        let mut counts = Self {
            shared: project.shared.clone(),
            path: path(project.environment()),
            counts: Counts::new(),
            asked: BTreeSet::new(),
            saved_at: Instant::now(),
        };
        counts.add(if is_elf { "sessions.elf" } else { "sessions.own" });
        Some(counts)
    }

    /// Counts an event. Tools that are not gnoma's own are counted together: their names come from servers and models.
    pub(crate) fn observe(&mut self, event: &Event) {
        match event {
            Event::TurnEnded { outcome, .. } => {
                self.add(&format!("turns.{}", outcome.name()));
                if self.saved_at.elapsed() >= PERIOD {
                    self.save_in_background();
                }
            }
            Event::ToolEnded { call, result, .. } => {
                let label = tool_label(&call.name);
                let is_own = matches!(label, Cow::Borrowed(label) if label != call.name);
                let name = if is_own { call.name.as_str() } else { "others" };
                let end = if result.is_error { "failed" } else { "ok" };
                self.add(&format!("tools.{name}.{end}"));
            }
            Event::PermissionAsked { call, .. } if self.asked.len() < MAX_OPEN => {
                self.asked.insert(call.id.clone());
            }
            Event::PermissionDecided { call, allowed, .. } if self.asked.remove(call) => {
                self.add(if *allowed { "questions.approved" } else { "questions.denied" });
            }
            Event::ModeChanged { mode } => self.add(&format!("modes.{}", mode.name())),
            Event::ArmChanged { .. } => self.add("failovers"),
            Event::Conferred { .. } => self.add("answers_of_several_models"),
            Event::Checked { passed, .. } => {
                self.add(if *passed { "checks.passed" } else { "checks.failed" });
            }
            Event::Compacted { .. } => self.add("compactions"),
            _ => (),
        }
    }

    fn add(&mut self, name: &str) {
        if self.counts.len() < MAX_COUNTS || self.counts.contains_key(name) {
            *self.counts.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Writes the counts down on a thread of its own: only the end of the process waits for the disk.
    fn save_in_background(&mut self) {
        self.saved_at = Instant::now();
        let (path, counts) = (self.path.clone(), std::mem::take(&mut self.counts));
        if counts.is_empty() {
            return;
        }
        // Statistics are not worth a word where the disk is full.
        let merging = move || merge(&path, &counts).unwrap_or_default();
        let saved = async { tokio::task::spawn_blocking(merging).await.unwrap_or_default() };
        self.shared.run_in_background(saved);
    }
}

impl Drop for SessionCounts {
    fn drop(&mut self) {
        self.save_in_background();
    }
}

/// Returns the file of the counts.
#[must_use]
pub fn path(environment: &Environment) -> PathBuf {
    environment.state_dir().join(FILE)
}

/// Reads the counts so far; none without a file.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read(path: &Path) -> Result<Counts> {
    let shown = path.display();
    let cannot = |why: String| HostError::failure(format!("`{shown}` cannot be read: {why}"));
    let bytes = bounded_file::read(path, MAX_BYTES).map_err(|error| cannot(error.to_string()))?;
    let Some(bytes) = bytes else { return Ok(Counts::new()) };
    gnoma_core::json::from_bytes(&bytes).map_err(|error| {
        let remedy = Some("`gnoma analytics clear` removes it".to_owned());
        HostError { remedy, ..cannot(error.to_string()) }
    })
}

/// Removes the counts; returns whether there were any.
///
/// # Errors
/// The file cannot be removed.
pub fn clear(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            let shown = path.display();
            Err(HostError::failure(format!("`{shown}` cannot be removed: {error}")))
        }
    }
}

/// Adds counts to those in the file. What is no longer readable is left alone.
fn merge(path: &Path, new: &Counts) -> io::Result<()> {
    private_file::create_folder(path.parent().unwrap_or(Path::new(".")))?;
    let _lock = lock(&path.with_file_name(LOCK))?;
    let mut all = read(path).map_err(|error| io::Error::other(error.to_string()))?;
    for (name, count) in new {
        if all.len() < MAX_COUNTS || all.contains_key(name) {
            let sum = all.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let lines = all
        .iter()
        .map(|(name, count)| format!("  {}: {count}", serde_json::Value::String(name.clone())));
    let lines: Vec<String> = lines.collect();
    private_file::replace(path, format!("{{\n{}\n}}\n", lines.join(",\n")).as_bytes())
}

/// Holds the lock until the file is dropped.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    let until = Instant::now() + PATIENCE;
    while file.try_lock().is_err() {
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(PAUSE);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn analytics_counts_of_several_processes_add_up_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/analytics.json");
        let counts = Counts::from([("turns.complete".to_owned(), 2), ("a\"b".to_owned(), 1)]);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| merge(&path, &counts).unwrap());
            }
        });
        assert_eq!(read(&path).unwrap()["turns.complete"], 16);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("\n  \"turns.complete\": 16\n"), "{text}");
        fs::write(&path, "broken").unwrap();
        assert!(merge(&path, &counts).is_err() && read(&path).is_err());
        assert!(clear(&path).unwrap() && !clear(&path).unwrap());
        assert!(read(&path).unwrap().is_empty());
    }
}
