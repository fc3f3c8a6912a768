//! What a judged shell command may reach if it runs: its grant.

use gnoma_core::{
    session::PermissionMode,
    tool::{Grant, MachineView},
};
use gnoma_shell::{Analysis, Effect, Invocation};

use super::{
    Judgement,
    command::JudgedPart,
    effects::{self, CommandEffect},
    git_lookups, machine,
    opinion::{Decision, Opinion},
    trial,
};
use crate::places;

impl Judgement<'_> {
    /// Returns what the command may reach beyond the workspace if it runs.
    pub(super) fn collect_grant(
        &self,
        analysis: &Analysis,
        parts: &[JudgedPart],
        whole: &Opinion,
    ) -> Grant {
        let mut grant = Grant::default();
        let is_unasked = whole.decision == Decision::Allow && self.mode != PermissionMode::Bypass;
        for command in &analysis.commands {
            if effects::program_of(command) == "git" {
                grant.writable.extend(git_lookups::changed_work_tree(command, self.world));
            }
        }
        for effect in parts.iter().flat_map(|part| &part.effects) {
            self.grant_effect(effect, is_unasked, &mut grant);
        }
        let changes_nothing =
            parts.iter().flat_map(|part| &part.effects).all(CommandEffect::is_harmless);
        for paths in [&mut grant.paths, &mut grant.readable_by_all, &mut grant.writable] {
            gnoma_core::sort::sort_items(paths);
            paths.dedup();
        }
        grant.reads_only = (analysis.is_read_only()
            || (is_unasked && changes_nothing && analysis.unparsed.is_none()))
            && !self.runs_with_unknown_places(parts, whole);
        // git compares the files that are there with those that it knows.
        grant.can_repeat = analysis.is_read_only()
            && !analysis.commands.iter().any(|command| effects::program_of(command) == "git");
        grant.machine = machine::of_line(analysis, self.world);
        grant.can_repeat &= matches!(grant.machine, MachineView::None | MachineView::Absent);
        // Only a person lets a command outside: with the answer to a question that says so, see `command::RUNS_OUTSIDE`.
        grant.outside = grant.machine == MachineView::Outside
            && whole.decision == Decision::Ask
            && !whole.can_be_tried
            && !matches!(self.mode, PermissionMode::Plan | PermissionMode::Deny)
            && machine::may_run_outside(analysis, self.world);
        self.grant_work_tree(analysis, parts, whole, &mut grant);
        grant.network |= grant.outside;
        grant.network |= self.mode == PermissionMode::Bypass && !grant.reads_only;
        grant
    }

    /// Reports whether a command runs because a person or a mode lets it, and some of its places are only known then:
    /// none of them could be granted, so the sandbox of reading commands would hide what it may read.
    fn runs_with_unknown_places(&self, parts: &[JudgedPart], whole: &Opinion) -> bool {
        // A trial tells what it missed.
        let is_tried = whole.can_be_tried && trial::trial_for_mode(self.mode).is_some();
        let is_asked = whole.decision == Decision::Ask && !is_tried;
        let mut effects = parts.iter().flat_map(|part| &part.effects);
        (is_asked || self.mode == PermissionMode::Bypass)
            && effects.any(CommandEffect::is_unknown_place)
    }

    /// Grants what one effect needs. With `is_unasked`, nobody was asked about the command.
    fn grant_effect(&self, effect: &CommandEffect, is_unasked: bool, grant: &mut Grant) {
        grant.network |= matches!(effect.effect, Effect::Network(_));
        let is_plain = is_unasked && effect.is_reading() && effect.is_harmless();
        match effect.touched_path().filter(|(_, spot)| !spot.is_sink()) {
            Some((touch, spot)) if is_plain && !self.is_limited(touch, spot) => {
                grant.readable_by_all.extend(places::readable_by_all(spot, self.world));
            }
            Some((touch, spot)) => self.grant_place(touch, spot, &effect.worry, grant),
            None => {}
        }
    }

    /// Grants git commands the work tree and the settings that they change.
    fn grant_work_tree(
        &self,
        analysis: &Analysis,
        parts: &[JudgedPart],
        whole: &Opinion,
        grant: &mut Grant,
    ) {
        // Only with an answer to a question that says so, see `command::WRITES_TREE`: a patch or a commit can bring any file.
        let is_asked = self.confirmed || whole.decision == Decision::Ask;
        let may_run = is_asked || whole.decision == Decision::Allow;
        let is_limited = |(command, part): (&Invocation, &JudgedPart)| {
            git_lookups::writes_tree(command)
                || git_lookups::writes_settings(command)
                || part.effects.iter().all(CommandEffect::is_reading)
        };
        let mut commands = analysis.commands.iter().zip(parts);
        if !may_run || analysis.unparsed.is_some() || !commands.all(is_limited) {
            return;
        }
        grant.writes_tree = is_asked && analysis.commands.iter().any(git_lookups::writes_tree);
        // What git itself notes in them runs nothing; a program that a variable has it run notes what it likes.
        let may_run_more = |effect: &CommandEffect| {
            matches!(effect.effect, Effect::Environment(_)) || !is_asked && effect.runs_code()
        };
        if !parts.iter().flat_map(|part| &part.effects).any(may_run_more) {
            let settings = analysis.commands.iter();
            let settings =
                settings.flat_map(|it| git_lookups::changed_settings(it, is_asked, self.world));
            grant.writable.extend(settings);
        }
    }
}
