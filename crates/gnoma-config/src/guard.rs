//! Settings that an untrusted project may not change, and the few that no project may change.
//!
//! A cloned repository must not make a key travel to another host, run a program, read a variable
//! into what is sent, weaken a protection or permit more than its user does. Whatever else it sets
//! holds without trust. A limit of spending holds against every project: trust in code is no money.

use std::collections::BTreeSet;

use gnoma_core::session::PermissionMode;

use crate::{
    finding::{Finding, Place, Report, Severity},
    key::KeyPath,
    layer::{Entry, Layer, MergedLayers},
    schema::{self, Guard},
    value::Value,
};

/// The trust that the user has given to a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTrust {
    /// The file may set everything.
    Trusted,
    /// The folder of the file was never trusted.
    Unknown,
    /// The folder was trusted, but the file has changed since then.
    Changed,
}

/// Says that a key of a project file does not hold.
pub(crate) fn ignored_key_finding(
    key: &KeyPath,
    why: &str,
    standing: FileTrust,
    place: Place,
) -> Finding {
    let folder = match standing {
        FileTrust::Changed => "this file has changed since its folder was trusted",
        FileTrust::Unknown | FileTrust::Trusted => "this folder is not trusted",
    };
    Finding::new(Severity::Warning, place, format!("is ignored {why}: {folder}"))
        .with_key(key)
        .with_hint("read the file; if you trust it, run `gnoma trust` in that folder")
}

/// Takes out of a project's `layer` what it may not set over `below`, and says so.
pub(crate) fn filter_project_layer(
    layer: Layer,
    below: &MergedLayers,
    standing: FileTrust,
    report: &mut Report,
) -> Layer {
    let refused = refused_keys(&layer, below, standing);
    let mut told = BTreeSet::new();
    let mut kept = Layer::new();
    let mut entries: Vec<_> = layer.into_iter().collect();
    gnoma_core::sort::by_key(&mut entries, |(_, entry)| entry.place.position());
    for (path, entry) in entries {
        // The entries of a list fall whole and are told of once.
        let subject = enclosing_entry(&path);
        if !refused.contains(&subject) {
            kept.insert(path, entry);
        } else if told.insert(subject.clone()) {
            report.add(refusal_finding(&subject, &path, standing, entry.place));
        }
    }
    kept
}

fn refused_keys(layer: &Layer, below: &MergedLayers, standing: FileTrust) -> BTreeSet<KeyPath> {
    let is_trusted = standing == FileTrust::Trusted;
    let refused = layer.iter().filter(|(path, entry)| {
        let may_be_trusted =
            is_trusted && !matches!(guard_of(path), Guard::NeverMore | Guard::Personal);
        !may_be_trusted && !is_allowed(path, entry, layer, below)
    });
    refused.map(|(path, _)| enclosing_entry(path)).collect()
}

fn refusal_finding(
    subject: &KeyPath,
    path: &KeyPath,
    standing: FileTrust,
    place: Place,
) -> Finding {
    let message = match guard_of(path) {
        Guard::NeverMore => {
            "is ignored because it is more than you allow: a project can only lower it"
        }
        Guard::Personal => "is ignored because it is yours to decide: a project cannot set it",
        Guard::Open | Guard::Trusted | Guard::NotLooser | Guard::OnlyDeny => {
            return ignored_key_finding(subject, refusal_reason(path), standing, place);
        }
    };
    let finding = Finding::new(Severity::Warning, place, message).with_key(subject);
    finding.with_hint("set it in your own config.toml")
}

/// Reports whether an entry sets a higher limit than the one `below`; no limit below counts as the highest.
fn is_more(path: &KeyPath, entry: &Entry, below: &MergedLayers) -> bool {
    // What cannot be compared, for want of a rate, is more.
    let before = below.value_at(path).map(|value| below.to_dollars(&value).unwrap_or(0.0));
    let after = below.to_dollars(&entry.value).unwrap_or(f64::INFINITY);
    before.is_some_and(|before| after > before)
}

fn is_allowed(path: &KeyPath, entry: &Entry, layer: &Layer, below: &MergedLayers) -> bool {
    match guard_of(path) {
        Guard::Open => true,
        Guard::Trusted | Guard::Personal => false,
        Guard::NeverMore => !is_more(path, entry, below),
        Guard::NotLooser => {
            let before = below.value_at(path).as_ref().and_then(parse_mode);
            let after = parse_mode(&entry.value);
            before.zip(after).is_some_and(|(before, after)| !is_looser(after, before))
        }
        Guard::OnlyDeny => {
            let action = layer.get(&enclosing_entry(path).with_name("action"));
            let tightens = |value: &Value| matches!(value, Value::Text(action) if matches!(action.as_ref(), "deny" | "ask"));
            action.is_some_and(|action| tightens(&action.value))
        }
    }
}

fn refusal_reason(path: &KeyPath) -> &'static str {
    match guard_of(path) {
        Guard::Open | Guard::Trusted | Guard::Personal => {
            "because it could run a program, redirect traffic, spend money or weaken a protection"
        }
        Guard::NotLooser | Guard::NeverMore | Guard::OnlyDeny => {
            "because it allows more than you do"
        }
    }
}

fn guard_of(path: &KeyPath) -> Guard {
    schema::find_row(path).map_or(Guard::Trusted, |row| row.guard)
}

/// The entry of a list that `path` belongs to, or `path` itself.
fn enclosing_entry(path: &KeyPath) -> KeyPath {
    schema::entry_length(path).map_or_else(|| path.clone(), |length| path.prefix(length))
}

fn parse_mode(value: &Value) -> Option<PermissionMode> {
    match value {
        Value::Text(name) => name.parse().ok(),
        _ => None,
    }
}

/// Reports whether `after` allows anything with fewer questions than `before`.
fn is_looser(after: PermissionMode, before: PermissionMode) -> bool {
    let (after, before) = (mode_freedoms(after), mode_freedoms(before));
    after.into_iter().zip(before).any(|(after, before)| after > before)
}

/// Returns how a mode treats reading, editing and everything else.
fn mode_freedoms(mode: PermissionMode) -> [HookFreedom; 3] {
    use HookFreedom::{Asks, Refuses, Runs};
    match mode {
        PermissionMode::Default => [Asks, Asks, Asks],
        PermissionMode::AcceptEdits => [Runs, Runs, Asks],
        PermissionMode::Auto => [Runs, Asks, Asks],
        PermissionMode::Plan => [Runs, Refuses, Refuses],
        PermissionMode::Deny => [Refuses, Refuses, Refuses],
        PermissionMode::Bypass => [Runs, Runs, Runs],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HookFreedom {
    Refuses,
    Asks,
    Runs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looser_permission_mode_asks_fewer_questions() {
        use PermissionMode::{AcceptEdits, Auto, Bypass, Default, Deny, Plan};
        for mode in PermissionMode::ALL {
            assert!(!is_looser(mode, mode));
            assert!(!is_looser(mode, Bypass));
            assert!(!is_looser(Deny, mode));
        }
        for (after, before) in
            [(Bypass, AcceptEdits), (AcceptEdits, Auto), (Auto, Default), (Auto, Plan)]
        {
            assert!(is_looser(after, before));
            assert!(!is_looser(before, after));
        }
        assert!(is_looser(Plan, Default) && is_looser(Default, Plan));
    }
}
