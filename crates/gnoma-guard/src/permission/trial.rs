//! When running a command on trial answers what would be asked or refused about it.

use gnoma_core::{
    session::PermissionMode,
    tool::{Grant, ON_TRIAL, Trial},
};
use gnoma_shell::{Analysis, Effect, Invocation};

use super::{
    JudgementContext,
    effects::{self, CommandEffect},
    opinion::{Decision, Opinion},
    rule::Rule,
};
use crate::places::{FileAccess, Severity};

/// Programs that list variables and settings as they are.
const LISTING: [&str; 12] = [
    "declare", "env", "export", "git", "npm", "pip", "pip3", "pnpm", "printenv", "readonly", "set",
    "yarn",
];
/// Programs that leave lines as they are, and letters of options with which they do.
const KEEPING: [(&str, &str); 6] = [
    ("cat", ""),
    ("grep", "EFcinvwx"),
    ("head", "n0123456789"),
    ("sort", "fnru"),
    ("tail", "n0123456789"),
    ("wc", "clmw"),
];

/// A run on trial in place of a question or a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialRun {
    /// The reason why the command runs, in one line.
    pub reason: String,
    /// The things that the command may reach, and what happens to its changes.
    pub grant: Grant,
    /// The rules that would always keep its changes; empty if one answer must not cover later calls.
    pub always: Vec<Rule>,
}

/// The trial for a call, where one answers everything that is open about it.
pub(super) fn trial_for_call(
    modes: impl Iterator<Item = PermissionMode>,
    world: &JudgementContext<'_>,
    opinion: &Opinion,
    grant: &Grant,
) -> Option<TrialRun> {
    if opinion.decision == Decision::Allow || !opinion.can_be_tried || !world.sandboxed {
        return None;
    }
    let strictest = modes.map(trial_for_mode).reduce(|one, other| match (one?, other?) {
        (Trial::Discard, _) | (_, Trial::Discard) => Some(Trial::Discard),
        (Trial::Ask, _) | (_, Trial::Ask) => Some(Trial::Ask),
        (Trial::KeepEdits, Trial::KeepEdits) => Some(Trial::KeepEdits),
    });
    let trial = strictest.flatten()?;
    // On trial nothing outside is written and no network is there.
    let (network, outside, writable) = (false, false, Vec::new());
    let grant = Grant { network, outside, writable, trial: Some(trial), ..grant.clone() };
    let reason = format!("{ON_TRIAL}: {}", opinion.reason);
    Some(TrialRun { reason, grant, always: opinion.always.clone().unwrap_or_default() })
}

/// Returns what happens to the changes of a trial in a mode; `None` where the mode tries nothing.
pub(super) fn trial_for_mode(mode: PermissionMode) -> Option<Trial> {
    match mode {
        PermissionMode::Plan => Some(Trial::Discard),
        PermissionMode::Auto => Some(Trial::Ask),
        PermissionMode::AcceptEdits => Some(Trial::KeepEdits),
        PermissionMode::Default | PermissionMode::Bypass | PermissionMode::Deny => None,
    }
}

/// Reports whether variables and settings that a line lists are shown as they are: in another spelling (`env |
/// rev`) the firewall would not know the secrets among them.
pub(super) fn hands_no_settings_on(analysis: &Analysis) -> bool {
    let lists = |command: &Invocation| {
        command.effects.iter().any(|effect| matches!(effect, Effect::Settings(_)))
    };
    let keeps = |command: &Invocation| {
        let program = effects::program_of(command);
        let writes = |effect: &Effect| matches!(effect, Effect::Write(_) | Effect::Delete(_));
        let is_kept = if lists(command) {
            LISTING.contains(&program)
        } else {
            KEEPING.iter().any(|(name, letters)| {
                *name == program
                    && command.words.iter().skip(1).all(|word| is_one_of(word.as_ref(), letters))
            })
        };
        is_kept && !command.effects.iter().any(writes)
    };
    !analysis.commands.iter().any(lists) || analysis.commands.iter().all(keeps)
}

/// Reports whether a word is no option, or an option made of these letters only.
fn is_one_of(word: Option<&String>, letters: &str) -> bool {
    word.is_some_and(|word| {
        word.strip_prefix('-').is_none_or(|own| own.chars().all(|letter| letters.contains(letter)))
    })
}

/// Reports whether everything that a command's effect does here would be seen in a trial and stay in it. An effect
/// that talks to others, acts on the system, writes what git keeps or shows secrets is asked about before.
pub(super) fn stays_in_trial(effect: &CommandEffect, world: &JudgementContext<'_>) -> bool {
    if effect.worry.gravity != Severity::Plain {
        return false;
    }
    let is_inside = || {
        effect.touched_path().is_none_or(|(touch, spot)| {
            let place = spot.folder_or_path();
            touch == FileAccess::Read
                || effect.is_harmless()
                || world.roots.iter().any(|root| place.starts_with(root))
        })
    };
    match effect.effect {
        Effect::Read(_) | Effect::Look(_) | Effect::Write(_) | Effect::Delete(_) => is_inside(),
        // Whatever runs on trial could list them, too: nothing is in them that it must not see.
        Effect::Runs(_) | Effect::Environment(_) | Effect::Settings(_) | Effect::Unknown(_) => true,
        Effect::Secret(_) | Effect::Network(_) | Effect::System(_) | Effect::Repository(_) => false,
    }
}
