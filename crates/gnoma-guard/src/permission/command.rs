//! Judges a shell command by rules and permission mode (plan mode, auto and the others): first each of its simple
//! commands, then the whole.
//!
//! The whole is as strict as its strictest part. A rule that allows is about the words of one simple command in the
//! workspace: the redirections and variables before it are judged separately.

use std::{
    cmp::Reverse,
    path::{Path, PathBuf},
};

use gnoma_core::{
    glob::glob_matches,
    session::PermissionMode,
    tool::{Access, Grant, MachineView},
};
use gnoma_shell::{Analysis, Effect, FilePlace, Invocation, Risk, StartContext};
use serde_json::Value;

use super::{
    Judgement, JudgementContext, by_rule,
    command_words::{Match, quote_word},
    effects::{self, CommandEffect},
    file::ask_on_match,
    judgement_context::PathSnapshot,
    machine, one_line,
    opinion::{Decision, Opinion},
    rule::{Rule, RuleAction, Subject},
    suggest, text_of, trial,
};
use crate::places::JudgedPath;

/// Most simple commands that a person can be expected to read, and rules to be held to.
const MAX_PARTS: usize = 50;
/// Most parts whose reasons a question tells.
const MAX_REASONS: usize = 8;
/// Longest command shown in a reason, in characters.
const MAX_SHOWN_CHARS: usize = 60;
/// The tool that rules about commands name.
const TOOL: &str = "bash";
/// The end of the question about a command that leaves the sandbox if the answer is yes.
const RUNS_OUTSIDE: &str = "; with a yes all of it runs outside the sandbox";
/// The end of the question about code that continues in the background.
const REACHES_NETWORK: &str =
    "; with a yes it has the network of this machine, so that its servers can be reached";
const WRITES_TREE: &str =
    "; what git writes may include files that run later, such as those in .vscode and .husky";
/// Programs that make one place lead to another.
const LINKING: &[&str] = &["ln", "link", "mount", "bindfs", "mklink"];
/// Those of them that make a new name, and leave the place that it leads to as it is.
const MAKING_LINKS: &[&str] = &["ln", "link"];

/// The judgement of a whole shell command.
pub(super) struct JudgedCommand {
    pub(super) analysis: Analysis,
    /// Of each simple command.
    pub(super) parts: Vec<JudgedPart>,
    pub(super) whole: Opinion,
    pub(super) grant: Grant,
}

/// The judgement of one simple command, and the effects that it is about. The grant is made of these: another look
/// at the same paths could find other files.
pub(super) struct JudgedPart {
    pub(super) opinion: Opinion,
    pub(super) effects: Vec<CommandEffect>,
}

impl<'a> Judgement<'a> {
    pub(super) fn judge_shell_call(&self, arguments: &Value, name: &str) -> (Opinion, Grant) {
        let Some(text) = text_of(arguments, name) else {
            return (self.by_mode(Access::Execute), Grant::default());
        };
        let judged = self.in_each_view(text);
        // What continues in the background has no end at which its changes could be looked at.
        let background = arguments.get("background");
        let is_job = !matches!(background, None | Some(Value::Null | Value::Bool(false)));
        let can_be_tried = judged.whole.can_be_tried && !is_job;
        let judged = JudgedCommand { whole: judged.whole.unless_tried(can_be_tried), ..judged };
        if is_job || judged.analysis.leaves_jobs {
            return self.grant_network_to_servers(judged);
        }
        (judged.whole, judged.grant)
    }

    /// Adds the network to what a yes grants a command that continues in the background and runs code: this may be a
    /// server, which only its own sandbox would reach.
    fn grant_network_to_servers(&self, judged: JudgedCommand) -> (Opinion, Grant) {
        let JudgedCommand { parts, mut whole, mut grant, .. } = judged;
        let is_asked = whole.decision == Decision::Ask && !whole.can_be_tried;
        let is_walled = self.world.sandboxed && self.world.network_on_grant && !grant.network;
        let may_serve = parts.iter().flat_map(|part| &part.effects).any(CommandEffect::runs_code);
        if is_asked && is_walled && may_serve {
            grant.network = true;
            whole.reason.push_str(REACHES_NETWORK);
            whole.dangers.push(REACHES_NETWORK.trim_start_matches("; ").to_owned());
            // A rule alone does not give the network.
            whole = whole.with_always(None);
        }
        (whole, grant)
    }

    /// Judges a command by what is on the disk, and by what earlier commands on trial have left for it to see: the
    /// stricter result holds, for it may run in either.
    fn in_each_view(&self, text: &str) -> JudgedCommand {
        let on_disk = self.judge_command(text);
        let repositories = self.world.repositories;
        if repositories.seen_by_commands(self.world.cwd).is_none() {
            return on_disk;
        }
        let seen = |path: &Path| {
            repositories.seen_by_commands(path).unwrap_or_else(|| (self.world.resolve)(path))
        };
        let snapshot = PathSnapshot::new(&seen);
        let resolve = |path: &Path| snapshot.resolve(path);
        let world = JudgementContext { resolve: &resolve, ..*self.world };
        let rules = self.rules.clone();
        let inside = Judgement { rules, mode: self.mode, world: &world, confirmed: self.confirmed };
        let judged = inside.judge_command(text);
        let JudgedCommand { analysis, parts, whole, grant } = on_disk;
        // A question that only one of them asks does not say that it leaves the sandbox.
        let outside = grant.outside && judged.grant.outside;
        let grant = Grant { outside, ..grant.union_with(judged.grant) };
        JudgedCommand { analysis, parts, whole: whole.merge_stricter(judged.whole), grant }
    }

    pub(super) fn judge_command(&self, text: &str) -> JudgedCommand {
        let home = self.world.home.map(Path::to_path_buf);
        let start = StartContext { cwd: self.world.cwd.to_path_buf(), home };
        self.judge_analysis(gnoma_shell::analyse_command(text, &start))
    }

    fn judge_analysis(&self, analysis: Analysis) -> JudgedCommand {
        let only_looks = machine::only_looks(&analysis, self.world);
        let parts = analysis.commands.iter().map(|command| self.judge_part(command, only_looks));
        let parts: Vec<_> = parts.collect();
        // Of two equal opinions the first counts, and a value that is only set says least of a line.
        let only_sets = |command: &Invocation| command.words.is_empty();
        let (sets, runs): (Vec<_>, Vec<_>) =
            analysis.commands.iter().zip(&parts).partition(|(command, _)| only_sets(command));
        let opinions = runs.into_iter().chain(sets).map(|(_, part)| part.opinion.clone());
        let whole = opinions.reduce(Opinion::merge_stricter);
        let whole = whole.unwrap_or_else(|| self.judge_harmless("it", None));
        let general = self.as_a_whole(&analysis);
        let mut whole = general.iter().cloned().fold(whole, Opinion::merge_stricter);
        if whole.decision == Decision::Ask {
            whole.reason = self.all_reasons(&analysis, &parts, &general);
        }
        // What it leaves in the background would end with the trial.
        let can_be_tried = whole.can_be_tried
            && !analysis.leaves_jobs
            && trial::hands_no_settings_on(&analysis)
            && !machine::misleads_on_trial(&analysis, self.world);
        let mut whole = whole.unless_tried(can_be_tried);
        let grant = self.collect_grant(&analysis, &parts, &whole);
        if grant.outside {
            whole.reason.push_str(RUNS_OUTSIDE);
            whole.dangers.push(RUNS_OUTSIDE.trim_start_matches("; ").to_owned());
        } else if grant.writes_tree && whole.decision == Decision::Ask {
            whole.reason.push_str(WRITES_TREE);
        }
        JudgedCommand { analysis, parts, whole, grant }
    }

    /// Joins the reasons for everything that is asked about, the worst first, so that a question says all of it.
    fn all_reasons(
        &self,
        analysis: &Analysis,
        parts: &[JudgedPart],
        general: &[Opinion],
    ) -> String {
        let general = general.iter().map(|opinion| (Risk::Critical, opinion));
        let opinions = parts.iter().map(|part| &part.opinion);
        let parts = analysis.commands.iter().map(|command| command.risk).zip(opinions);
        let asks = |(_, opinion): &(Risk, &Opinion)| opinion.decision == Decision::Ask;
        let mut asking: Vec<_> = parts.chain(general).filter(asks).collect();
        gnoma_core::sort::by_key(&mut asking, |(risk, _)| Reverse(*risk));
        let mode = format!("mode {}: ", self.mode);
        let by_mode = asking.iter().any(|(_, opinion)| opinion.reason.starts_with(&mode));
        let mut reasons: Vec<&str> = Vec::new();
        for (_, opinion) in &asking {
            let reason = opinion.reason.strip_prefix(&mode).unwrap_or(&opinion.reason);
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let more = reasons.len().saturating_sub(MAX_REASONS);
        reasons.truncate(MAX_REASONS);
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("{}{}{rest}", if by_mode { mode.as_str() } else { "" }, reasons.join("; "))
    }

    /// Questions that no single part raises.
    fn as_a_whole(&self, analysis: &Analysis) -> Vec<Opinion> {
        let mut questions = Vec::new();
        if let Some(why) = &analysis.unparsed {
            questions.push(
                self.judge_undecidable(&format!("it cannot be read: {}", one_line(why, 200))),
            );
        }
        if analysis.commands.len() > MAX_PARTS {
            let count = analysis.commands.len();
            questions
                .push(self.judge_undecidable(&format!("it has {count} parts, too many to judge")));
        }
        if let Some(path) = self.led_through_new_link(analysis) {
            let path = one_line(&path.display().to_string(), MAX_SHOWN_CHARS);
            questions.push(
                self.judge_undecidable(&format!("it uses `{path}` after making it lead elsewhere")),
            );
        }
        questions.extend(machine::machine_question(analysis, self.world, self.mode));
        if let Some(oddity) = analysis.oddities.first() {
            let why = format!("it is written to mislead: {}", one_line(oddity, 200));
            questions.push(self.unless_everything_runs(&why));
        }
        questions
    }

    /// Returns the opinion on something that cannot be judged: it is asked about in every mode that would run
    /// something; where a rule might deny it, in a confirmed bypass too.
    fn judge_undecidable(&self, why: &str) -> Opinion {
        let may_be_denied = self.rules_with_action(RuleAction::Deny).any(|rule| {
            matches!(rule.subject, Subject::Command(_) | Subject::Path { .. } | Subject::Host(_))
        });
        match self.mode {
            PermissionMode::Plan | PermissionMode::Deny => {
                Opinion::deny(format!("mode {}: {why}", self.mode))
            }
            _ if self.confirmed && !may_be_denied => Opinion::loudly_allow(why),
            _ => Opinion::ask(why).mark_danger(self.mode),
        }
    }

    fn unless_everything_runs(&self, why: &str) -> Opinion {
        if self.mode == PermissionMode::Bypass {
            return Opinion::allow(format!("mode bypass: {why}"));
        }
        self.judge_undecidable(why)
    }

    /// One simple command, of a line that may do nothing but look at the machine.
    fn judge_part(&self, command: &Invocation, only_looks: bool) -> JudgedPart {
        let name = format!("`{}`", one_line(&command.text, MAX_SHOWN_CHARS));
        let mut effects = effects::command_effects(command, self.world);
        if only_looks {
            // The sandbox of reading commands limits what the text does, however it is read.
            effects.retain(|effect| !effect.is_shell_text());
        }
        let (forbidden, by) = self.denying_rule_for_command(command, &effects);
        let opinion = match (forbidden, by) {
            (Match::Yes, Some(rule)) => by_rule(rule, "denies"),
            _ => self
                .not_forbidden(command, &effects, &name)
                .merge_stricter(ask_on_match(forbidden, by)),
        };
        let is_danger = command.risk >= Risk::High || effects.iter().any(CommandEffect::is_danger);
        let opinion = if is_danger { opinion.mark_danger(self.mode) } else { opinion };
        JudgedPart { opinion, effects }
    }

    fn not_forbidden(
        &self,
        command: &Invocation,
        effects: &[CommandEffect],
        name: &str,
    ) -> Opinion {
        let rule = self.find_matching_rule(|rule| self.is_about_words(rule, command));
        let asking = rule.filter(|rule| rule.action != RuleAction::Allow);
        let by_words = asking.map(|rule| by_rule(rule, "asks about"));
        let by_effects = effects.iter().filter_map(|effect| self.effect_question(effect, name));
        if let Some(question) = by_effects.chain(by_words).reduce(Opinion::merge_stricter) {
            return match self.mode {
                PermissionMode::Plan if effects.iter().any(|effect| !effect.is_reading()) => {
                    self.deny_while_planning(name, effects)
                }
                PermissionMode::Deny => self.by_mode(Access::Execute),
                _ => question,
            };
        }
        let own = rule.map(|rule| self.own_effects(rule, command)).unwrap_or_default();
        let open: Vec<_> =
            effects.iter().filter(|effect| !self.is_settled(effect, rule, &own)).collect();
        match (open.first(), rule) {
            (None, Some(rule)) => by_rule(rule, "allows"),
            (None, None) => self.judge_harmless(name, suggest::for_command(command)),
            (Some(first), _) => self.judge_harmful(name, first, &open, command),
        }
    }

    /// A question that this effect is in every mode.
    fn effect_question(&self, effect: &CommandEffect, name: &str) -> Option<Opinion> {
        let rule = self.find_matching_rule(|rule| match effect.touched_path() {
            Some((touch, spot)) => self.is_about(rule, touch, spot, effect.file_tools()),
            None => rule.action == RuleAction::Ask && match_effect(rule, effect) > Match::No,
        });
        match rule {
            Some(rule) if rule.action != RuleAction::Allow => Some(by_rule(rule, "asks about")),
            _ => self.mandatory_question(name, &effect.worry, rule),
        }
    }

    /// Rules that deny by words, by place or by host: how surely, and which.
    fn denying_rule_for_command(
        &self,
        command: &Invocation,
        effects: &[CommandEffect],
    ) -> (Match, Option<&'a Rule>) {
        let by_words = self.rules_with_action(RuleAction::Deny).map(|rule| match &rule.subject {
            Subject::Command(words) => (words.touches_command(&command.words), Some(rule)),
            _ => (Match::No, None),
        });
        let by_place = effects.iter().map(|effect| match effect.touched_path() {
            Some((touch, spot)) => self.denying_rule_for_path(touch, spot, effect.file_tools()),
            None => {
                let found = self
                    .rules_with_action(RuleAction::Deny)
                    .map(|rule| (match_effect(rule, effect), Some(rule)));
                found.max_by_key(|(found, _)| *found).unwrap_or((Match::No, None))
            }
        });
        by_words.chain(by_place).max_by_key(|(found, _)| *found).unwrap_or((Match::No, None))
    }

    /// Reports whether a rule that allows or asks is about these words. A rule that allows was made for the
    /// workspace: elsewhere the same words mean other files.
    fn is_about_words(&self, rule: &Rule, command: &Invocation) -> bool {
        match (&rule.subject, rule.action) {
            (Subject::Tool(glob), _) => glob_matches(glob, TOOL),
            (Subject::Command(words), RuleAction::Allow) => {
                words.covers_command(&command.words) && self.is_in_workspace(command)
            }
            (Subject::Command(words), RuleAction::Ask | RuleAction::Deny) => {
                words.touches_command(&command.words) > Match::No
            }
            _ => false,
        }
    }

    fn is_in_workspace(&self, command: &Invocation) -> bool {
        let inside = |cwd: &PathBuf| {
            let real = (self.world.resolve)(cwd);
            self.world.roots.iter().any(|root| real.starts_with(root))
        };
        command.cwd.as_ref().is_some_and(inside)
    }

    /// Returns what the words of a command do by themselves, without redirections and variables before them. A rule
    /// for the tool as a whole covers everything.
    fn own_effects(&self, rule: &Rule, command: &Invocation) -> Vec<Effect> {
        let effects = |command: &Invocation| {
            effects::command_effects(command, self.world)
                .into_iter()
                .map(|effect| effect.effect)
                .collect()
        };
        let (Subject::Command(_), Some(cwd)) = (&rule.subject, &command.cwd) else {
            return effects(command);
        };
        let words: Option<Vec<_>> =
            command.words.iter().map(|word| word.as_deref().map(quote_word)).collect();
        let home = self.world.home.map(Path::to_path_buf);
        let start = StartContext { cwd: cwd.clone(), home };
        let alone = gnoma_shell::analyse_command(&words.unwrap_or_default().join(" "), &start);
        alone.commands.first().map(effects).unwrap_or_default()
    }

    /// Reports whether nothing is left to ask about an effect. Rules do not lift planning.
    fn is_settled(&self, effect: &CommandEffect, rule: Option<&Rule>, own: &[Effect]) -> bool {
        let by_place = |(touch, spot): (_, &JudgedPath)| {
            let rule = self
                .find_matching_rule(|rule| self.is_about(rule, touch, spot, effect.file_tools()));
            rule.is_some_and(|rule| rule.action == RuleAction::Allow)
        };
        let may_rule = self.mode != PermissionMode::Plan || effect.is_reading();
        let by_words = rule.is_some() && own.contains(&effect.effect);
        effect.is_harmless()
            || (may_rule && (by_words || effect.touched_path().is_some_and(by_place)))
    }

    /// A part that only reads what may be read.
    fn judge_harmless(&self, name: &str, always: Option<Vec<Rule>>) -> Opinion {
        match self.mode {
            PermissionMode::Auto | PermissionMode::AcceptEdits | PermissionMode::Plan => {
                Opinion::allow(format!("mode {}: {name} only reads", self.mode))
            }
            PermissionMode::Default | PermissionMode::Deny | PermissionMode::Bypass => {
                self.by_mode(Access::Execute).with_always(always)
            }
        }
    }

    /// A part with effects that nothing settles; `first` is shown.
    fn judge_harmful(
        &self,
        name: &str,
        first: &CommandEffect,
        open: &[&CommandEffect],
        command: &Invocation,
    ) -> Opinion {
        let what = &first.worry.what;
        let can_be_tried = !machine::acts_as_another(command)
            && open.iter().all(|effect| trial::stays_in_trial(effect, self.world));
        match self.mode {
            PermissionMode::Bypass | PermissionMode::Deny => self.by_mode(Access::Execute),
            PermissionMode::Plan if !open.iter().all(|effect| effect.is_reading()) => {
                Opinion::deny(format!("mode plan: {name} {what}")).unless_tried(can_be_tried)
            }
            mode => {
                let walls =
                    if self.world.sandboxed { "" } else { "; there is no sandbox around it" };
                let always = self.always_rules(command, open);
                Opinion::ask(format!("mode {mode}: {name} {what}{walls}"))
                    .with_always(always)
                    .unless_tried(can_be_tried)
            }
        }
    }

    fn deny_while_planning(&self, name: &str, effects: &[CommandEffect]) -> Opinion {
        let effect = effects.iter().find(|effect| !effect.is_reading());
        let what = effect.map_or("does more than read", |effect| effect.worry.what.as_str());
        Opinion::deny(format!("mode plan: {name} {what}"))
    }

    /// Rules that would have settled everything: the words, and what redirections write.
    fn always_rules(&self, command: &Invocation, open: &[&CommandEffect]) -> Option<Vec<Rule>> {
        // A rule would run it in the sandbox.
        if machine::view_for_command(command, self.world) == MachineView::Outside {
            return None;
        }
        let mut rules = suggest::for_command(command)?;
        let own = self.own_effects(rules.first()?, command);
        for effect in open.iter().filter(|effect| !own.contains(&effect.effect)) {
            let (_, spot) = effect.touched_path()?;
            rules.extend(suggest::for_path(effect.file_tools().first()?, spot, self.world)?);
        }
        self.is_in_workspace(command).then_some(rules)
    }

    /// A place that one part makes lead elsewhere and a later one goes through.
    fn led_through_new_link(&self, analysis: &Analysis) -> Option<PathBuf> {
        let mut new: Vec<&PathBuf> = Vec::new();
        for command in &analysis.commands {
            let mut places = command.effects.iter().filter_map(path_of);
            if let Some(path) = places.find(|path| new.iter().any(|link| path.starts_with(link))) {
                return Some(path.clone());
            }
            let program = effects::program_of(command);
            if LINKING.contains(&program) {
                // `ln` only reads what the new name leads to.
                let is_new = |effect: &&Effect| {
                    !MAKING_LINKS.contains(&program) || matches!(effect, Effect::Write(_))
                };
                new.extend(command.effects.iter().filter(is_new).filter_map(path_of));
            }
        }
        None
    }
}

/// Returns how surely a rule is about an effect without a known place: on the network, or at a place that only
/// running would show.
fn match_effect(rule: &Rule, effect: &CommandEffect) -> Match {
    match (&effect.effect, &rule.subject) {
        (Effect::Network(Some(host)), Subject::Host(pattern)) if pattern.touches_host(host) => {
            Match::Yes
        }
        (Effect::Network(None), Subject::Host(_)) => Match::Maybe,
        (Effect::Read(_) | Effect::Write(_) | Effect::Delete(_), Subject::Path { tool, .. })
            if effect.file_tools().iter().any(|name| glob_matches(tool, name)) =>
        {
            Match::Maybe
        }
        _ => Match::No,
    }
}

fn path_of(effect: &Effect) -> Option<&PathBuf> {
    match effect {
        Effect::Read(place) | Effect::Write(place) | Effect::Delete(place) => match place {
            FilePlace::Path(path) => Some(path),
            FilePlace::Pattern { base, .. } => Some(base),
            FilePlace::Unknown(_) => None,
        },
        _ => None,
    }
}
