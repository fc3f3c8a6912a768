//! Judges access to a file, by a file tool or as an effect of a command.

use std::path::Path;

use gnoma_core::{
    ToolCall,
    glob::glob_matches,
    session::PermissionMode,
    tool::{Access, Grant, ToolSpec},
};
use serde_json::Value;

use super::{
    Judgement, JudgementContext, Permissions, Verdict, by_rule,
    command_words::Match,
    opinion::{Decision, Opinion},
    rule::{Origin, Rule, RuleAction, Subject},
    suggest,
};
use crate::places::{self, FileAccess, JudgedPath, MAX_PATH_BYTES, PlaceConcern, Severity};

/// Tools that a rule about paths names to mean any reading or any changing.
const READING_TOOL: &str = "fs.read";
const READING: &[&str] = &[READING_TOOL];
const CHANGING: &[&str] = &["fs.write", "fs.edit"];

impl Permissions {
    /// Reports whether what a call of a file tool touches may be read without a question, and still is the file
    /// that `judged` was about.
    #[must_use]
    pub fn may_read(
        &self,
        mode: PermissionMode,
        world: &JudgementContext<'_>,
        tool: &ToolSpec,
        call: &ToolCall,
        judged: &Grant,
    ) -> bool {
        let name = READING_TOOL.to_owned();
        let call = ToolCall { name: name.clone(), ..call.clone() };
        let reading = ToolSpec { name, access: Access::Read, ..tool.clone() };
        let verdict = self.judge(mode, world, &reading, &call);
        matches!(verdict, Verdict::Allow { grant, .. } if grant.target == judged.target)
    }
}

impl<'a> Judgement<'a> {
    /// A tool that is given a path, or works in the working folder when it is given none.
    pub(super) fn judge_file_call(
        &self,
        tool: &ToolSpec,
        arguments: &Value,
        name: &str,
    ) -> (Opinion, Grant) {
        let path = match arguments.get(name) {
            None | Some(Value::Null) => ".",
            Some(Value::String(path)) => path,
            Some(_) => {
                return (Opinion::deny(format!("`{name}` must be a string")), Grant::default());
            }
        };
        if path.len() > MAX_PATH_BYTES {
            let reason = format!("`{name}` is longer than any file's path");
            return (Opinion::deny(reason), Grant::default());
        }
        let touch = if tool.access == Access::Read { FileAccess::Read } else { FileAccess::Write };
        let spot = JudgedPath::from_path(Path::new(path), self.world);
        let worry = places::weigh_access(touch, &spot, self.world);
        let mut grant = Grant { target: Some(spot.folder_or_path()), ..Grant::default() };
        self.grant_place(touch, &spot, &worry, &mut grant);
        (self.file_at(tool, touch, &spot, &worry), grant)
    }

    /// Adds what a touch reaches beyond what every call may: places outside the workspace, and inside
    /// it those that are guarded.
    pub(super) fn grant_place(
        &self,
        touch: FileAccess,
        spot: &JudgedPath,
        worry: &PlaceConcern,
        grant: &mut Grant,
    ) {
        let place = spot.folder_or_path();
        if places::is_plain_temporary(spot, worry, self.world) {
            // It is found without being named.
            return;
        }
        if touch != FileAccess::Read && worry.gravity > Severity::Plain {
            // What is deleted is taken out of the folder above it.
            let changed = if touch == FileAccess::Delete { place.parent() } else { None };
            grant.writable.push(changed.unwrap_or(&place).to_path_buf());
        }
        let is_kept = worry.gravity == Severity::Secret || self.is_limited(touch, spot);
        if !places::is_inside(spot, self.world) || is_kept {
            grant.paths.push(place);
        }
    }

    /// Reports whether a rule denies the touch or asks about it, so that the sandbox keeps the place from commands
    /// that were not approved.
    pub(super) fn is_limited(&self, touch: FileAccess, spot: &JudgedPath) -> bool {
        self.rules.iter().filter(|rule| rule.action != RuleAction::Allow).any(|rule| {
            matches!(&rule.subject, Subject::Path { tool, path }
                if is_meant(tool, touch, &[]) && path.touches_path(spot, self.world) == Match::Yes)
        })
    }

    fn file_at(
        &self,
        tool: &ToolSpec,
        touch: FileAccess,
        spot: &JudgedPath,
        worry: &PlaceConcern,
    ) -> Opinion {
        let (forbidden, by) = self.denying_rule_for_path(touch, spot, &[&tool.name]);
        if let (Match::Yes, Some(rule)) = (forbidden, by) {
            return by_rule(rule, "denies");
        }
        let rule = self.find_matching_rule(|rule| match &rule.subject {
            Subject::Tool(glob) => glob_matches(glob, &tool.name),
            _ => self.is_about(rule, touch, spot, &[&tool.name]),
        });
        let by_mode = self.by_mode(tool.access);
        let opinion = match self.mandatory_question("it", worry, rule) {
            Some(_) if by_mode.decision == Decision::Deny => by_mode,
            Some(question) => question,
            None => self
                .apply_rule(tool, rule)
                .unwrap_or_else(|| self.file_by_mode(by_mode, tool, worry, spot)),
        };
        opinion.merge_stricter(ask_on_match(forbidden, by))
    }

    fn file_by_mode(
        &self,
        by_mode: Opinion,
        tool: &ToolSpec,
        worry: &PlaceConcern,
        spot: &JudgedPath,
    ) -> Opinion {
        let always = suggest::for_path(&tool.name, spot, self.world);
        let runs_commands = matches!(self.mode, PermissionMode::Auto | PermissionMode::AcceptEdits);
        match by_mode.decision {
            Decision::Ask if runs_commands && places::is_own_temporary(spot, self.world) => {
                let mode = self.mode;
                Opinion::allow(format!("mode {mode}: it only changes a temporary file"))
            }
            Decision::Allow if worry.gravity == Severity::Plain => by_mode,
            Decision::Allow if self.mode == PermissionMode::Bypass => by_mode,
            Decision::Deny => by_mode,
            Decision::Ask if worry.gravity == Severity::Plain => by_mode.with_always(always),
            Decision::Allow | Decision::Ask => {
                Opinion::ask(format!("mode {}: it {}", self.mode, worry.what))
                    .with_always(always)
                    .mark_danger(self.mode)
            }
        }
    }

    /// The question that a touch is in every mode, when no rule answers it. A confirmed bypass turns
    /// it into a loud yes.
    pub(super) fn mandatory_question(
        &self,
        who: &str,
        worry: &PlaceConcern,
        rule: Option<&Rule>,
    ) -> Option<Opinion> {
        let lifted = match worry.gravity {
            Severity::Plain | Severity::Outside => true,
            Severity::Secret => rule.is_some_and(names_exactly),
            Severity::Beyond => rule.is_some_and(is_users_path),
            Severity::Guarded => false,
        };
        if lifted {
            return None;
        }
        if self.confirmed && rule.is_none_or(|rule| rule.action == RuleAction::Allow) {
            return Some(Opinion::loudly_allow(&format!("{who} {}", worry.what)));
        }
        let question = format!("{who} {}, which always needs approval", worry.what);
        Some(Opinion::ask(question).mark_danger(self.mode))
    }

    /// Returns how surely a rule denies the touch, and which rule. `tools` are the names that the touch goes by.
    pub(super) fn denying_rule_for_path(
        &self,
        touch: FileAccess,
        spot: &JudgedPath,
        tools: &[&str],
    ) -> (Match, Option<&'a Rule>) {
        let denying = self.rules_with_action(RuleAction::Deny).filter_map(|rule| {
            let Subject::Path { tool, path } = &rule.subject else { return None };
            let is_meant = is_meant(tool, touch, tools);
            let found = if is_meant { path.touches_path(spot, self.world) } else { Match::No };
            (found > Match::No).then_some((found, rule))
        });
        let worst = denying.max_by_key(|(found, _)| *found);
        worst.map_or((Match::No, None), |(found, rule)| (found, Some(rule)))
    }

    /// Reports whether a rule that allows or asks is about the touch.
    pub(super) fn is_about(
        &self,
        rule: &Rule,
        touch: FileAccess,
        spot: &JudgedPath,
        tools: &[&str],
    ) -> bool {
        let Subject::Path { tool, path } = &rule.subject else { return false };
        match rule.action {
            RuleAction::Allow => {
                tools.iter().any(|name| glob_matches(tool, name))
                    && path.covers_path(spot, self.world)
            }
            RuleAction::Ask | RuleAction::Deny => {
                is_meant(tool, touch, tools) && path.touches_path(spot, self.world) > Match::No
            }
        }
    }
}

/// A rule that may deny is asked about when it cannot be told.
pub(super) fn ask_on_match(found: Match, rule: Option<&Rule>) -> Opinion {
    match (found, rule) {
        (Match::Maybe | Match::Yes, Some(rule)) => {
            Opinion::ask(format!("the rule `{rule}` may deny a part of it"))
        }
        _ => Opinion::allow(String::new()),
    }
}

/// Reports whether a rule for tools named by `glob` means the touch. A rule that forbids `fs.read` means all
/// reading, by whatever tool; likewise for changing.
pub(super) fn is_meant(glob: &str, touch: FileAccess, tools: &[&str]) -> bool {
    let family = if touch == FileAccess::Read { READING } else { CHANGING };
    tools.iter().chain(family).any(|name| glob_matches(glob, name))
}

/// A secret is only shown by a rule that names its file.
fn names_exactly(rule: &Rule) -> bool {
    rule.action == RuleAction::Allow
        && matches!(&rule.subject, Subject::Path { path, .. } if path.is_exact())
}

/// Reports whether a rule is one about paths that the user wrote: only such a rule allows changes outside the
/// workspace.
fn is_users_path(rule: &Rule) -> bool {
    rule.action == RuleAction::Allow
        && matches!(rule.origin, Origin::User | Origin::Flag)
        && matches!(rule.subject, Subject::Path { .. })
}
