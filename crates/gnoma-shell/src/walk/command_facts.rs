//! Effects of one command as they are gathered, with the risk they carry.

use crate::expand::place::normalize_path;
use crate::expand::{Field, Folders};
use crate::facts::{Effect, FilePlace, Risk};

/// Below it all is the machine's, however the place is named.
const PROCESSES: &str = "/proc/";

/// The effects of one command, and its risk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandFacts {
    pub(super) effects: Vec<Effect>,
    pub(super) risk: Risk,
}

impl CommandFacts {
    /// Creates facts with one effect.
    pub(super) fn from_effect(effect: Effect) -> Self {
        let mut facts = Self::default();
        facts.add(effect);
        facts
    }

    /// Creates facts for a command whose effects cannot be known.
    pub(super) fn unknown_effect(why: impl Into<String>) -> Self {
        Self::from_effect(Effect::Unknown(why.into()))
    }

    /// Adds an effect with its usual risk; one that is known already adds nothing.
    pub(super) fn add(&mut self, effect: Effect) {
        self.at_least(usual_risk(&effect));
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }

    /// Adds the same effect at each place.
    pub(super) fn add_at_places(
        &mut self,
        effect: fn(FilePlace) -> Effect,
        places: Vec<FilePlace>,
    ) {
        for place in places {
            self.add(effect(place));
        }
    }

    /// Adds looks at the places that a word points to. A place that only running shows is one, too: without it the
    /// sandbox would say that nothing is there.
    pub(super) fn add_looks(&mut self, folders: &Folders, word: &Field) {
        let mut places = folders.resolve_places(word);
        if word.known_start().starts_with(PROCESSES) {
            places.retain(|place| !matches!(place, FilePlace::Unknown(_)));
        }
        self.add_at_places(Effect::Look, places);
    }

    /// Removes looks at places that another of the effects is about.
    pub(super) fn remove_covered_looks(&mut self) {
        let place_of = |effect: &Effect| match effect {
            Effect::Read(place) | Effect::Write(place) | Effect::Delete(place) => {
                Some(place.clone())
            }
            _ => None,
        };
        let others: Vec<FilePlace> = self.effects.iter().filter_map(place_of).collect();
        self.effects
            .retain(|effect| !matches!(effect, Effect::Look(place) if others.contains(place)));
    }

    pub(super) fn at_least(&mut self, risk: Risk) {
        self.risk = self.risk.max(risk);
    }

    /// Adds all of another.
    pub(super) fn merge_with(&mut self, other: Self) {
        self.at_least(other.risk);
        for effect in other.effects {
            self.add(effect);
        }
    }

    /// These facts, with at least this risk.
    pub(super) fn with_risk(mut self, risk: Risk) -> Self {
        self.at_least(risk);
        self
    }
}

fn usual_risk(effect: &Effect) -> Risk {
    match effect {
        Effect::Read(_) | Effect::Look(_) => Risk::None,
        Effect::Write(place) if is_device(place) => Risk::Critical,
        Effect::Write(place) => system_place(place).max(Risk::Low),
        Effect::Repository(_) => Risk::Low,
        Effect::Delete(place) => system_place(place).max(Risk::Medium),
        Effect::Network(_)
        | Effect::Runs(_)
        | Effect::Environment(_)
        | Effect::Settings(_)
        | Effect::System(_)
        | Effect::Unknown(_) => Risk::Medium,
        Effect::Secret(_) => Risk::High,
    }
}

/// Files that give the system, or the account, away.
fn system_place(place: &FilePlace) -> Risk {
    const CRITICAL: [&str; 5] =
        ["/etc/passwd", "/etc/shadow", "/etc/sudoers", "/boot", "/etc/ld.so.preload"];
    const HIGH: [&str; 9] =
        ["/etc", "/usr", "/bin", "/sbin", "/lib", "/proc", "/sys", "/dev", "/var"];
    let (FilePlace::Path(path) | FilePlace::Pattern { base: path, .. }) = place else {
        return Risk::None;
    };
    let path = normalize_path(path);
    if CRITICAL.iter().any(|critical| path.starts_with(critical)) {
        Risk::Critical
    } else if HIGH.iter().any(|high| path.starts_with(high)) && !path.starts_with("/var/tmp") {
        Risk::High
    } else {
        Risk::None
    }
}

/// A disk or its like: writing there destroys what is on it.
fn is_device(place: &FilePlace) -> bool {
    const HARMLESS: [&str; 3] = ["/dev/shm", "/dev/pts", "/dev/fd"];
    let (FilePlace::Path(path) | FilePlace::Pattern { base: path, .. }) = place else {
        return false;
    };
    let path = normalize_path(path);
    path.starts_with("/dev") && !HARMLESS.iter().any(|harmless| path.starts_with(harmless))
}

/// Devices that keep nothing: reading and writing them is no effect.
pub(super) fn is_nowhere(text: &str) -> bool {
    matches!(
        text,
        "/dev/null"
            | "/dev/zero"
            | "/dev/full"
            | "/dev/random"
            | "/dev/urandom"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/tty"
            | "-"
    ) || text
        .strip_prefix("/dev/fd/")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}
