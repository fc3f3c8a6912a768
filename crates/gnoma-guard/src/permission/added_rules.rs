//! Rules that are added while sessions run.

use std::sync::Arc;

use gnoma_core::sync::Mutex;

use super::rule::{Rule, RuleAction};

/// Most rules that are added so.
const MAX_RULES: usize = 1_000;

/// Rules that apply from the next call on, in every session that has them. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct AddedRules(Arc<Mutex<Vec<Rule>>>);

impl AddedRules {
    /// Adds a rule; whether there was room for it.
    #[must_use]
    pub fn add_rule(&self, rule: Rule) -> bool {
        let mut rules = self.0.lock();
        let is_known = rules.contains(&rule);
        let has_room = is_known || rules.len() < MAX_RULES;
        if has_room && !is_known {
            rules.push(rule);
        }
        has_room
    }

    /// Takes back what was added; whether it was there.
    #[must_use]
    pub fn remove(&self, rule: &Rule) -> bool {
        let mut rules = self.0.lock();
        let before = rules.len();
        rules.retain(|known| known != rule);
        rules.len() < before
    }

    /// Takes back all that were added with this action.
    pub fn clear(&self, action: RuleAction) {
        self.0.lock().retain(|known| known.action != action);
    }

    pub(super) fn all_rules(&self) -> Vec<Rule> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::{Origin, Permissions};

    #[test]
    fn session_permission_rules_can_be_added_and_removed_while_it_runs() {
        let since = AddedRules::default();
        let permissions = Arc::new(Permissions::default().with_since(since.clone()));
        let rule = |action, text| Rule::parse(action, text, Origin::Session).unwrap();
        let now = || Permissions::with_later_rules(&permissions).rules().to_vec();
        assert!(now().is_empty());
        let (deny, allow) = (rule(RuleAction::Deny, "bash"), rule(RuleAction::Allow, "fs.read"));
        assert!(
            since.add_rule(deny.clone())
                && since.add_rule(deny.clone())
                && since.add_rule(allow.clone())
        );
        assert_eq!(now(), [deny.clone(), allow.clone()]);
        since.clear(RuleAction::Allow);
        assert!(!since.remove(&allow) && since.remove(&deny) && now().is_empty());
    }
}
