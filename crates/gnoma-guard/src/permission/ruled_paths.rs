//! The files that rules deny or ask about, for walls: a command does not say which files it will find, so the sandbox
//! keeps those from it that no answer was about.

use std::path::{Path, PathBuf};

use gnoma_core::places::{RuledPaths, original_path};

use super::{
    JudgementContext, Permissions, Subject,
    file::is_meant,
    paths::{PathReach, is_reached},
    rule::RuleAction,
};
use crate::places::FileAccess;

/// The paths that the rules of a session deny or ask about.
#[derive(Debug)]
pub struct RuleReach {
    reading: Vec<PathReach>,
    changing: Vec<PathReach>,
    copies: Vec<(PathBuf, PathBuf)>,
}

impl Permissions {
    /// The files that the rules deny or ask about; `None` if no rule is about files.
    #[must_use]
    pub fn rule_reach(&self, world: &JudgementContext<'_>) -> Option<RuleReach> {
        let of = |touch: FileAccess| -> Vec<PathReach> {
            let limiting = self.rules().iter().filter(|rule| rule.action != RuleAction::Allow);
            let patterns = limiting.filter_map(|rule| match &rule.subject {
                Subject::Path { tool, path } => is_meant(tool, touch, &[]).then_some(path),
                _ => None,
            });
            patterns.flat_map(|path| path.forbidden_reach(world)).collect()
        };
        let (reading, changing) = (of(FileAccess::Read), of(FileAccess::Write));
        let copies = world.copies.to_vec();
        let has_any = !reading.is_empty() || !changing.is_empty();
        has_any.then_some(RuleReach { reading, changing, copies })
    }
}

impl RuleReach {
    fn is_in(&self, reach: &[PathReach], path: &Path) -> bool {
        let original = original_path(path, &self.copies);
        is_reached(reach, path) || original.is_some_and(|path| is_reached(reach, &path))
    }
}

impl RuledPaths for RuleReach {
    fn limits_reading(&self, path: &Path) -> bool {
        self.is_in(&self.reading, path)
    }

    fn limits_changing(&self, path: &Path) -> bool {
        self.is_in(&self.changing, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        git::NoRepositories,
        permission::{Origin, Rule},
    };

    #[test]
    fn deny_and_ask_rules_in_any_spelling_resolve_to_their_file_paths() {
        let reach = |action, rule: &str| {
            let rule = Rule::parse(action, rule, Origin::Project).unwrap();
            let (cwd, roots) = (PathBuf::from("/w/app"), [PathBuf::from("/w/app")]);
            let resolve = |path: &Path| path.to_owned();
            let list = |_: &Path| None;
            let world = JudgementContext {
                cwd: &cwd,
                home: None,
                roots: &roots,
                config_dirs: &[],
                programs: &[],
                copies: &[(PathBuf::from("/state/copy"), PathBuf::from("/w/app"))],
                trusted: true,
                sandboxed: true,
                network_on_grant: true,
                resolve: &resolve,
                list: &list,
                repositories: &NoRepositories,
            };
            Permissions::new(vec![rule]).rule_reach(&world)
        };
        for (action, rule) in [
            (RuleAction::Deny, "fs.read(secrets)"),
            (RuleAction::Ask, "fs.read(secrets/**)"),
            (RuleAction::Deny, "fs.read(**/secrets/**)"),
            (RuleAction::Deny, "fs.read(/w/app/secrets)"),
            (RuleAction::Ask, "fs.*(SECRETS/*)"),
        ] {
            let reach = reach(action, rule).unwrap();
            assert!(reach.limits_reading(Path::new("/w/app/secrets/a.txt")), "{rule}");
            assert!(reach.limits_reading(Path::new("/state/copy/secrets/b/c.txt")), "{rule}");
            assert!(!reach.limits_reading(Path::new("/w/app/src/secrets.rs")), "{rule}");
            assert_eq!(reach.limits_changing(Path::new("/w/app/secrets/a")), rule.contains("fs.*"));
        }
        assert!(reach(RuleAction::Allow, "fs.read(secrets)").is_none());
        assert!(reach(RuleAction::Deny, "bash(rm *)").is_none());
    }
}
