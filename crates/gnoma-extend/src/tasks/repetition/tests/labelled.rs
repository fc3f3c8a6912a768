//! Reads the labelled histories, and compares what was found with their labels.

use std::{fs, path::Path};

use serde_json::Value;

use crate::tasks::repetition::{
    ExistingRecipe, PastCall, PastSession, PastTurn, RepeatedAction, Repetition,
};

/// One history with its labels.
pub(super) struct LabelledHistory {
    pub(super) id: String,
    pub(super) sessions: Vec<PastSession>,
    pub(super) existing: Vec<ExistingRecipe>,
    pub(super) labels: Vec<Label>,
    is_about_existing: bool,
}

impl LabelledHistory {
    /// Whether the history is in the half that one may look at: decided by a hash of its id. The hash puts all of
    /// `ordinary.jsonl` into one half, so their numbers decide.
    pub(super) fn is_for_tuning(&self) -> bool {
        if self.id.starts_with("ordinary") {
            return self.id.ends_with(['0', '2', '4', '6', '8']);
        }
        let hash = self.id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 32) & 1 == 0
    }

    /// Whether all that is repeated in the history exists already.
    pub(super) fn all_exist(&self) -> bool {
        self.is_about_existing && self.labels.is_empty()
    }
}

/// A chore that is to be offered.
pub(super) struct Label {
    turns: Vec<(String, u64)>,
    slots: Vec<Vec<String>>,
    steps: Vec<String>,
}

impl Label {
    /// Whether a repetition agrees with the label by the rule in the data's README.
    pub(super) fn agrees(&self, found: &Repetition, sessions: &[PastSession]) -> bool {
        let places: Vec<(String, u64)> = found
            .occurrences
            .iter()
            .map(|(session, turn)| {
                let session = &sessions[*session];
                (session.id.clone(), u64::from(session.turns[*turn].index))
            })
            .collect();
        let covered = places.iter().filter(|it| self.turns.contains(it)).count();
        covered >= 3
            && places.len() - covered <= 1
            && self.has_steps(found)
            && self.slots.iter().all(|slot| self.has_slot(slot, &places, found))
    }

    fn has_steps(&self, found: &Repetition) -> bool {
        let shapes: Vec<(bool, Vec<String>)> = found
            .steps
            .iter()
            .map(|it| (it.action == RepeatedAction::Command, words(&it.shape)))
            .collect();
        let is_found = |step: &&String| {
            let (kind, text) = step.split_once(": ").unwrap();
            let wanted = words(text);
            shapes.iter().any(|(is_command, shape)| {
                let common = wanted.iter().filter(|word| shape.contains(word)).count();
                *is_command == (kind == "bash") && common * 2 >= wanted.len()
            })
        };
        self.steps.iter().filter(is_found).count() * 2 > self.steps.len()
    }

    fn has_slot(&self, slot: &[String], places: &[(String, u64)], found: &Repetition) -> bool {
        places.iter().enumerate().all(|(at, place)| {
            let Some(label_at) = self.turns.iter().position(|it| it == place) else { return true };
            let wanted = letters(&slot[label_at]);
            found.arguments.iter().any(|argument| {
                let value = letters(&argument.values[at]);
                !value.is_empty() && (value.contains(&wanted) || wanted.contains(&value))
            })
        })
    }
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Reads all histories.
pub(super) fn read_histories() -> Vec<LabelledHistory> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gnoma-host/tests/data/repetition");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    let mut histories = Vec::new();
    for file in files {
        let is_about_existing = file.ends_with("existing.jsonl");
        for line in fs::read_to_string(&file).unwrap().lines() {
            histories.push(history(&serde_json::from_str(line).unwrap(), is_about_existing));
        }
    }
    histories
}

fn history(value: &Value, is_about_existing: bool) -> LabelledHistory {
    let root = text(&value["root"]);
    let sessions = list(&value["sessions"]);
    LabelledHistory {
        id: text(&value["id"]),
        sessions: sessions.iter().map(|it| session(it, sessions, &root)).collect(),
        existing: list(&value["existing"])
            .iter()
            .map(|it| ExistingRecipe { name: text(&it["name"]), text: text(&it["text"]) })
            .collect(),
        labels: list(&value["expect"]).iter().map(label).collect(),
        is_about_existing,
    }
}

fn label(value: &Value) -> Label {
    Label {
        turns: list(&value["turns"])
            .iter()
            .map(|it| (text(&it[0]), it[1].as_u64().unwrap()))
            .collect(),
        slots: list(&value["slots"]).iter().map(|it| list(it).iter().map(text).collect()).collect(),
        steps: list(&value["steps"]).iter().map(text).collect(),
    }
}

fn session(value: &Value, all: &[Value], root: &str) -> PastSession {
    let mut first = value;
    while let Some(parent) = first["forked_from"]["session"].as_str() {
        first = all.iter().find(|it| it["id"] == parent).unwrap();
    }
    let copied = value["forked_from"]["turns"].as_u64().unwrap_or(0);
    let turns = list(&value["turns"]).iter().zip(0_u32..).filter(|it| u64::from(it.1) >= copied);
    PastSession {
        id: text(&value["id"]),
        family: text(&first["id"]),
        at_ms: value["day"].as_i64().unwrap() * 86_400_000,
        turns: turns
            .map(|(turn, index)| PastTurn {
                index,
                message: text(&turn["message"]),
                calls: list(&turn["calls"]).iter().filter_map(|it| call(it, root)).collect(),
                ended_well: turn["outcome"] == "complete"
                    && turn["checks"] != "failed"
                    && turn["rewound"] == false,
            })
            .collect(),
    }
}

/// A call that can be a step, as the host reads it from its store.
fn call(value: &Value, root: &str) -> Option<PastCall> {
    let path = value["path"].as_str().map(|path| {
        path.strip_prefix(root).map_or(path, |path| path.trim_start_matches('/')).to_owned()
    });
    match (&value["command"], path) {
        (Value::String(command), _) => changing_command(command, root),
        (Value::Array(words), Some(path)) if words[0] == "apply_patch" => {
            let is_new = words[1].as_str().is_some_and(|it| it.contains("*** Add File"));
            Some(if is_new { PastCall::Write(path) } else { PastCall::Edit(path) })
        }
        (Value::Array(words), _) => changing_command(words.last()?.as_str()?, root),
        (_, Some(path)) => {
            let tool = text(&value["tool"]).to_lowercase();
            if tool.contains("write") {
                Some(PastCall::Write(path))
            } else {
                (tool.contains("edit") || tool.contains("patch")).then_some(PastCall::Edit(path))
            }
        }
        _ => None,
    }
}

fn changing_command(command: &str, root: &str) -> Option<PastCall> {
    let start = gnoma_shell::StartContext { cwd: root.into(), home: None };
    let only_reads = gnoma_shell::analyse_command(command, &start).is_read_only();
    (!only_reads).then(|| PastCall::Command(command.to_owned()))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}
