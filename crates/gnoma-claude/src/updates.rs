//! Permission updates that come with a decision about a call: new rules, another permission mode. Pure.

use gnoma_guard::permission::{Origin, Rule, RuleAction};
use serde_json::Value;

use super::rules;

/// Most rules of one decision.
const MAX_RULES: usize = 200;

/// A change that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// A rule holds from now on.
    Add(Rule),
    /// All that were added with this action are taken back.
    Clear(RuleAction),
    /// A rule that was added is taken back.
    Remove(Rule),
    /// Another permission mode, by its name there.
    Mode(String),
}

/// Parses `updatedPermissions` of a decision, and returns the updates and what is not done of it, a sentence each.
/// If the decision does not allow the call, permissions never get wider: only rules that deny or ask are added.
pub(super) fn parse_updates(decision: &Value, allows: bool) -> (Vec<Update>, Vec<String>) {
    let mut all = Updates { allows, ..Updates::default() };
    let updates = decision.get("updatedPermissions").and_then(Value::as_array);
    updates.into_iter().flatten().for_each(|update| all.add_update(update));
    (all.updates, all.faults)
}

#[derive(Default)]
struct Updates {
    allows: bool,
    updates: Vec<Update>,
    faults: Vec<String>,
}

impl Updates {
    fn add_update(&mut self, update: &Value) {
        let text = |name: &str| update.get(name).and_then(Value::as_str);
        let kind = text("type").unwrap_or_default();
        let is_narrower = kind == "addRules" && matches!(text("behavior"), Some("deny" | "ask"));
        if !self.allows && !is_narrower {
            let fault =
                format!("`{kind}` of a decision that does not allow the call is not applied");
            return self.faults.push(fault);
        }
        if let Some(other) = text("destination").filter(|it| *it != "session") {
            self.faults.push(format!(
                "`{kind}` for `{other}` applies to this session; gnoma's settings are not changed"
            ));
        }
        match (kind, text("behavior").and_then(parse_action)) {
            ("setMode", _) => match text("mode") {
                Some(mode) => self.updates.push(Update::Mode(mode.to_owned())),
                None => self.faults.push("`setMode` without a `mode` is not applied".to_owned()),
            },
            ("addRules", Some(action)) => self.add_rules(update, action, Update::Add),
            ("replaceRules", Some(action)) => {
                self.updates.push(Update::Clear(action));
                self.add_rules(update, action, Update::Add);
            }
            ("removeRules", Some(action)) => self.add_rules(update, action, Update::Remove),
            ("addRules" | "replaceRules" | "removeRules", None) => {
                self.faults
                    .push(format!("`{kind}` without `allow`, `ask` or `deny` is not applied"));
            }
            _ => self.faults.push(format!("gnoma cannot apply `{kind}` while a session runs")),
        }
    }

    fn add_rules(&mut self, update: &Value, action: RuleAction, what: fn(Rule) -> Update) {
        let listed = update.get("rules").and_then(Value::as_array);
        for rule in listed.into_iter().flatten() {
            let written = format_rule(rule);
            let read = rules::parse_rules(action, &written, Origin::Session);
            match read {
                _ if self.updates.len() >= MAX_RULES => {
                    let fault = "there are too many rules in one decision";
                    return self
                        .faults
                        .push(format!("`{action} {written}` is not applied: {fault}"));
                }
                Ok(read) => self.updates.extend(read.into_iter().map(what)),
                Err(why) => {
                    self.faults.push(format!("`{action} {written}` is not applied: {why}"));
                }
            }
            self.faults.extend(rules::about_nothing(&written));
        }
    }
}

fn parse_action(behavior: &str) -> Option<RuleAction> {
    Some(match behavior {
        "allow" => RuleAction::Allow,
        "ask" => RuleAction::Ask,
        "deny" => RuleAction::Deny,
        _ => return None,
    })
}

/// A rule in two fields as it is written in one.
fn format_rule(rule: &Value) -> String {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("toolName"), text("ruleContent")) {
        (name, "") => name.to_owned(),
        (name, inside) => format!("{name}({inside})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn add(action: RuleAction, text: &str) -> Update {
        Update::Add(Rule::parse(action, text, Origin::Session).unwrap())
    }

    #[test]
    fn permission_updates_of_all_rule_actions_and_modes_are_parsed() {
        let (allow, deny, ask) = (RuleAction::Allow, RuleAction::Deny, RuleAction::Ask);
        let bash = json!({"toolName": "Bash", "ruleContent": "npm test:*"});
        let read = json!({"toolName": "Read", "ruleContent": "./.env"});
        let git = json!({"toolName": "mcp__git"});
        let decision = json!({"behavior": "allow", "updatedPermissions": [
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            {"type": "addRules", "behavior": "allow", "rules": [bash]},
            {"type": "addRules", "behavior": "deny", "rules": [read]},
            {"type": "replaceRules", "behavior": "ask", "rules": [git]},
            {"type": "removeRules", "behavior": "deny", "rules": [read]},
        ]});
        let wanted = [
            Update::Mode("acceptEdits".to_owned()),
            add(allow, "bash(npm test *)"),
            add(deny, "fs.read(.env)"),
            Update::Clear(ask),
            add(ask, "mcp(git:*)"),
            Update::Remove(Rule::parse(deny, "fs.read(.env)", Origin::Session).unwrap()),
        ];
        let (updates, faults) = super::parse_updates(&decision, true);
        assert_eq!((updates.as_slice(), faults.as_slice()), (wanted.as_slice(), [].as_slice()));
        // Of a decision that denies only what makes stricter counts.
        let (updates, faults) = super::parse_updates(&decision, false);
        assert_eq!((updates.as_slice(), faults.len()), ([wanted[2].clone()].as_slice(), 4));
    }

    #[test]
    fn inapplicable_permission_updates_are_reported() {
        for update in [
            json!({"type": "addDirectories", "directories": ["/"]}),
            json!({"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Bash",
                "ruleContent": "a && b"}]}),
            json!({"type": "addRules", "rules": [{"toolName": "Bash"}]}),
            json!({"type": "setMode"}),
            json!({}),
        ] {
            let (updates, faults) = parse_updates(&json!({"updatedPermissions": [update]}), true);
            assert!(updates.is_empty() && faults.len() == 1, "{update} {faults:?}");
        }
        let kept = json!({"type": "addRules", "behavior": "deny", "destination": "userSettings",
            "rules": [{"toolName": "Bash"}]});
        let (updates, faults) = parse_updates(&json!({"updatedPermissions": [kept]}), true);
        assert_eq!((updates, faults.len()), (vec![add(RuleAction::Deny, "bash")], 1));
    }
}
