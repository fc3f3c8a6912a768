//! Suggests tasks: finds chores that were done several times, offers one of them at the end of a turn, and makes a task
//! of one that the person wants. No model is asked, and nothing is sent.

use std::{collections::HashSet, fs, path::PathBuf};

use gnoma_core::{bounded_file, private_file, quantity::describe_count, store::SessionId};
use gnoma_extend::{
    ExtensionSource,
    commands::load_commands,
    skills::load_skills,
    tasks::{
        is_task_name,
        repetition::{
            ExistingRecipe, FoundChores, PastSession, RepeatedAction, RepeatedStep, Repetition,
            draft_from_repetition, find_chores, find_repetition_of,
        },
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    catalog::Tasks,
    draft::{DraftedTask, describe_new_file, new_file},
    past_log::{delete_read_sessions, read_history, suggestion_file},
};
use crate::{HostError, Project, Result, clock, extensions};

/// Least time between two offers, in milliseconds.
const OFFER_EVERY_MS: i64 = 24 * 60 * 60 * 1000;
/// The ending of the name of the file that says what was offered and declined in a project.
const OFFERS_ENDING: &str = "offers.json";
/// Most declined chores that are remembered.
const MAX_DECLINED: usize = 1_000;
/// Longest text of a recipe that is compared, in bytes.
const MAX_RECIPE_BYTES: u64 = 256 << 10;
/// Values of an argument that are listed.
const MAX_VALUES: usize = 8;

/// The record of what was offered, and what is never to be offered again.
#[derive(Default, Serialize, Deserialize)]
struct OfferRecord {
    /// The time of the last offer.
    #[serde(default)]
    last_ms: i64,
    /// The session of the last offer.
    #[serde(default)]
    session: String,
    /// The key of the chore that was offered.
    #[serde(default)]
    key: String,
    /// Keys of chores that the person declined.
    #[serde(default)]
    declined: Vec<String>,
}

impl OfferRecord {
    fn path(project: &Project) -> PathBuf {
        suggestion_file(project, OFFERS_ENDING)
    }

    fn load(project: &Project) -> Self {
        let text = fs::read_to_string(Self::path(project)).unwrap_or_default();
        gnoma_core::json::from_str(&text).unwrap_or_default()
    }

    fn save(&self, project: &Project) -> std::io::Result<()> {
        private_file::replace(&Self::path(project), &serde_json::to_vec(self)?)
    }
}

/// The chores that could become tasks.
pub struct Suggestions {
    history: Vec<PastSession>,
    /// The chores, the most particular first. No two have one name.
    pub found: Vec<Repetition>,
    /// Chores that are not suggested, each with the command, skill or task that does it.
    existing: Vec<(Repetition, String)>,
    now_ms: i64,
}

impl Suggestions {
    /// Finds the chores in the stored sessions of a project.
    ///
    /// # Errors
    /// Nothing is read in incognito, or the store cannot be read.
    pub async fn find(project: &Project) -> Result<Self> {
        if project.is_incognito() {
            return Err(HostError::usage("sessions are not read in incognito"));
        }
        let history = read_history(project).await?;
        // With the setting off, nothing of what was read stays.
        if !project.personal.suggests_tasks {
            delete_read_sessions(project);
        }
        let FoundChores { new: mut found, existing } =
            find_chores(&history, &existing_recipes(project));
        let mut names = HashSet::new();
        for repetition in &mut found {
            repetition.name = free_name(&repetition.name, |it| !names.contains(it));
            names.insert(repetition.name.clone());
        }
        Ok(Self { history, found, existing, now_ms: project.now_ms() })
    }

    /// Describes the chores with their evidence.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = if self.found.is_empty() {
            "no new chore was done three times in two sessions\n".to_owned()
        } else {
            self.found.iter().map(|it| self.describe_one(it)).collect::<Vec<_>>().join("\n")
        };
        for (repetition, name) in &self.existing {
            text.push_str(&format!("left out: {}: `{name}` does that\n", repetition.summary()));
        }
        text
    }

    fn describe_one(&self, repetition: &Repetition) -> String {
        let mut text = format!(
            "{}: {}, in {}\n",
            repetition.summary(),
            describe_count(repetition.occurrences.len(), "time"),
            describe_count(self.sessions_of(repetition).len(), "session"),
        );
        for argument in &repetition.arguments {
            let mut values: Vec<&str> = Vec::new();
            for value in argument.values.iter().rev().filter(|it| !it.is_empty()) {
                if !values.contains(&value.as_str()) {
                    values.push(value);
                }
            }
            let more = if values.len() > MAX_VALUES { ", …" } else { "" };
            values.truncate(MAX_VALUES);
            let name = argument.name.to_uppercase();
            text.push_str(&format!("  {name}: {}{more}\n", values.join(", ")));
        }
        for step in &repetition.steps {
            text.push_str(&format!("  - {}\n", line_of(step)));
        }
        for step in &repetition.optional_steps {
            let times = describe_count(step.count, "time");
            text.push_str(&format!("  - {times}: {}\n", line_of(step)));
        }
        for (session, turn) in repetition.occurrences.iter().rev().take(MAX_VALUES) {
            let Some(past) = self.history.get(*session) else { continue };
            let when = clock::describe_age(past.at_ms, self.now_ms);
            let number = past.turns.get(*turn).map_or(0, |it| it.index + 1);
            text.push_str(&format!("  {} turn {number}, {when}\n", past.id));
        }
        text
    }

    /// Returns the chores with their evidence as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let steps = |steps: &[RepeatedStep]| -> Vec<Value> {
            let step = |it: &RepeatedStep| json!({"action": action_word(it.action), "shape": it.shape, "occurrences": it.count});
            steps.iter().map(step).collect()
        };
        let place = |(session, turn): &(usize, usize)| {
            let past = self.history.get(*session)?;
            let index = past.turns.get(*turn)?.index;
            Some(json!({"session": past.id, "turn": index, "changed_ms": past.at_ms}))
        };
        let one = |it: &Repetition| {
            let arguments = it.arguments.iter();
            json!({
                "name": it.name,
                "summary": it.summary(),
                "arguments": arguments
                    .map(|it| json!({"name": it.name, "values": it.values}))
                    .collect::<Vec<_>>(),
                "steps": steps(&it.steps),
                "optional_steps": steps(&it.optional_steps),
                "occurrences": it.occurrences.iter().filter_map(place).collect::<Vec<_>>(),
            })
        };
        let left_out = |(repetition, name): &(Repetition, String)| json!({"summary": repetition.summary(), "done_by": name});
        json!({
            "suggestions": self.found.iter().map(one).collect::<Vec<_>>(),
            "left_out": self.existing.iter().map(left_out).collect::<Vec<_>>(),
        })
    }

    /// Drafts a task of a chore. Saves nothing.
    ///
    /// # Errors
    /// There is no such suggestion, or the name is taken or none.
    pub fn draft(&self, project: &Project, suggestion: &str, name: &str) -> Result<DraftedTask> {
        let Some(repetition) = self.found.iter().find(|it| it.name == suggestion) else {
            let cause = format!("there is no suggestion `{}`", suggestion.escape_debug());
            let remedy = Some("`gnoma task suggestions` lists them".to_owned());
            return Err(HostError { remedy, ..HostError::usage(cause) });
        };
        draft_repetition(project, repetition, &self.history, name)
    }

    fn sessions_of(&self, repetition: &Repetition) -> HashSet<&str> {
        let session = |it: &(usize, usize)| Some(self.history.get(it.0)?.id.as_str());
        repetition.occurrences.iter().filter_map(session).collect()
    }
}

fn draft_repetition(
    project: &Project,
    repetition: &Repetition,
    history: &[PastSession],
    name: &str,
) -> Result<DraftedTask> {
    let path = new_file(project, name)?;
    let text = draft_from_repetition(name, repetition, history)
        .map_err(|fault| HostError::failure(format!("cannot make a task: {}", fault.error)))?;
    let text = project.firewall.redact_text(&text).into_owned();
    let diff = describe_new_file(project, &path, &text);
    Ok(DraftedTask { name: name.to_owned(), text, diff, replaces: None })
}

fn line_of(step: &RepeatedStep) -> String {
    match step.action {
        RepeatedAction::Command => step.shape.clone(),
        RepeatedAction::Edit | RepeatedAction::Write => {
            format!("{} {}", action_word(step.action), step.shape)
        }
    }
}

fn action_word(action: RepeatedAction) -> &'static str {
    match action {
        RepeatedAction::Command => "command",
        RepeatedAction::Edit => "edit",
        RepeatedAction::Write => "write",
    }
}

/// A name of a task that is free, made of another one.
fn free_name(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let base = if is_task_name(name) { name } else { "chore" };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.to_owned()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or_default()
}

/// Returns the commands, skills and tasks of a person and a project that may run. Bundled skills do no particular chore.
fn existing_recipes(project: &Project) -> Vec<ExistingRecipe> {
    let places = extensions::extension_places(project);
    let read = |path: &PathBuf| {
        bounded_file::read_text(path, MAX_RECIPE_BYTES).ok().flatten().unwrap_or_default()
    };
    let tasks = Tasks::find(project);
    let files = tasks.files.iter().filter(|it| !tasks.waits_for_trust(it));
    let files = files.map(|it| (it.by, it.task.name.clone(), read(&it.path)));
    let skills = load_skills(&places).0.into_iter().filter(|it| it.by != ExtensionSource::Bundled);
    let skills = skills.map(|it| (it.by, it.name, it.body));
    let commands = load_commands(&places).0.into_iter().map(|it| (it.by, it.name, it.body));
    let all = files.chain(skills).chain(commands);
    all.filter(|(by, ..)| !tasks.places().waits_for_trust(*by))
        .map(|(_, name, text)| ExistingRecipe { name, text })
        .collect()
}

/// Returns the line that offers a task for what the last turn of a session did again, at most once a day.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn offer_task(project: &Project, session: &SessionId) -> Result<Option<String>> {
    let is_off = !project.personal.suggests_tasks;
    if is_off && !project.is_incognito() {
        delete_read_sessions(project);
    }
    if is_off || project.is_incognito() {
        return Ok(None);
    }
    let mut offers = OfferRecord::load(project);
    let now_ms = project.now_ms();
    // A clock that was set back does not stop offers for longer than a day.
    if (now_ms - offers.last_ms).abs() < OFFER_EVERY_MS {
        return Ok(None);
    }
    let history = read_history(project).await?;
    let recipes = existing_recipes(project);
    let Some(found) = find_repetition_of(&history, session.as_str(), &recipes) else {
        return Ok(None);
    };
    let key = found.key();
    if offers.declined.contains(&key) {
        return Ok(None);
    }
    // Another window may have declined a chore meanwhile.
    offers = OfferRecord {
        last_ms: now_ms,
        session: session.to_string(),
        key,
        ..OfferRecord::load(project)
    };
    // An offer that cannot be recorded would be made after each turn.
    if offers.save(project).is_err() {
        return Ok(None);
    }
    let taken = |name: &str| recipes.iter().any(|it| it.name == name);
    let name = free_name(&found.name, |name| !taken(name));
    let times = found.occurrences.len();
    let summary = project.firewall.redact_text(&found.summary()).into_owned();
    Ok(Some(format!(
        "You have done this {times} times: {summary}. Save it as a task? /task save {name} · /task never"
    )))
}

/// Drafts a task of the chore that was offered in a session, if its last turn is still that chore.
///
/// # Errors
/// The name is taken or none.
pub(super) async fn draft_offered(
    project: &Project,
    session: &SessionId,
    name: &str,
) -> Result<Option<DraftedTask>> {
    let offers = OfferRecord::load(project);
    if project.is_incognito() || offers.session != session.as_str() {
        return Ok(None);
    }
    let history = read_history(project).await?;
    match find_repetition_of(&history, session.as_str(), &existing_recipes(project)) {
        Some(found) if found.key() == offers.key => {
            draft_repetition(project, &found, &history, name).map(Some)
        }
        Some(_) | None => Ok(None),
    }
}

/// Never offers the chore again that was offered last in this project. Returns a sentence for the person.
///
/// # Errors
/// Nothing was offered, or it cannot be recorded.
pub(super) fn decline_offer(project: &Project) -> Result<String> {
    let mut offers = OfferRecord::load(project);
    if project.is_incognito() || offers.key.is_empty() {
        let remedy = Some("`gnoma config set tasks.suggest off` stops all offers".to_owned());
        return Err(HostError {
            remedy,
            ..HostError::usage("no task was offered in this project")
        });
    }
    let key = std::mem::take(&mut offers.key);
    offers.session.clear();
    if !offers.declined.contains(&key) {
        offers.declined.push(key);
        let excess = offers.declined.len().saturating_sub(MAX_DECLINED);
        offers.declined.drain(..excess);
    }
    offers
        .save(project)
        .map_err(|error| HostError::failure(format!("cannot record that: {error}")))?;
    Ok("This is not offered again. `gnoma config set tasks.suggest off` stops all offers"
        .to_owned())
}
