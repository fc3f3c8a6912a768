//! The rules by which Claude Code's settings deny or ask, as rules of a session. Such rules only restrict, so
//! those of a project apply before it is trusted as well.

use gnoma_extend::{
    ExtendPlaces, ExtensionSource,
    claude::{restricting_rules, wider_rules},
    hooks::{self, Restrictions},
};
use gnoma_guard::permission::{Origin, Rule, RuleAction};
use serde_json::Value;

/// Most rules of one file; of more, only so many are read, and that is said.
const MAX_RULES: usize = 1_000;
/// Longest rule that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 100;

/// The rules that apply in a project, and what could not be understood of them, a sentence each.
#[derive(Debug, Default)]
pub struct ClaudeRules {
    /// The rules that apply in the project.
    pub rules: Vec<Rule>,
    /// The rules that could not be understood, a sentence each, for people.
    pub faults: Vec<String>,
}

impl ClaudeRules {
    /// Reads the files of a person and of the project.
    #[must_use]
    pub fn read(places: &ExtendPlaces) -> Self {
        Self::from_restrictions(&hooks::read_hook_files(places).restrictions, places)
    }

    /// The rules of files that were read.
    pub(crate) fn from_restrictions(files: &[Restrictions], places: &ExtendPlaces) -> Self {
        let mut read = Self::default();
        for file in files {
            let all = file.deny.iter().map(|rule| (RuleAction::Deny, rule));
            let all = all.chain(file.ask.iter().map(|rule| (RuleAction::Ask, rule)));
            for (action, rule) in all.take(MAX_RULES) {
                read.add_rule(action, rule, file, places);
            }
            if file.deny.len() + file.ask.len() > MAX_RULES {
                let shown = &file.shown;
                read.faults.push(format!("only the first {MAX_RULES} rules of {shown} apply"));
            }
        }
        read
    }

    fn add_rule(
        &mut self,
        action: RuleAction,
        rule: &Value,
        file: &Restrictions,
        places: &ExtendPlaces,
    ) {
        let origin =
            if file.by == ExtensionSource::Project { Origin::Project } else { Origin::User };
        let Some(theirs) = rule.as_str() else {
            let shown = quote_shortened(&rule.to_string());
            let fault = format!("{}: the rule {shown} is no text, so it has no effect", file.shown);
            return self.faults.push(fault);
        };
        let parse = |action, texts: Vec<String>| {
            let rules = texts.iter().map(|text| Rule::parse(action, text, origin));
            rules.collect::<Result<Vec<_>, _>>().map_err(|error| error.fault.to_string())
        };
        let exact = restricting_rules(theirs, &places.project).map_err(|fault| fault.to_string());
        match exact.and_then(|texts| parse(action, texts)) {
            Ok(rules) => self.rules.extend(rules),
            Err(why) => {
                let wider = parse(RuleAction::Ask, wider_rules(theirs, &places.project));
                let wider = wider.unwrap_or_default();
                let named: Vec<String> = wider.iter().map(|rule| format!("`{rule}`")).collect();
                let instead = match &*named {
                    [] => "it has no effect".to_owned(),
                    named => format!("gnoma asks before {} instead", named.join(" and ")),
                };
                self.faults.push(format!(
                    "{}: gnoma cannot apply the {action} rule {} ({why}): {instead}",
                    file.shown,
                    quote_shortened(theirs)
                ));
                self.rules.extend(wider);
            }
        }
    }
}

fn quote_shortened(text: &str) -> String {
    let text = text.escape_debug().to_string();
    let kept = gnoma_core::text_truncation::head_chars(&text, MAX_SHOWN_CHARS);
    format!("`{kept}{}`", if kept.len() < text.len() { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn read(by: ExtensionSource, deny: Value, ask: Value) -> ClaudeRules {
        let list = |value: Value| value.as_array().cloned().unwrap_or_default();
        let file = Restrictions { by, shown: "f".to_owned(), deny: list(deny), ask: list(ask) };
        let places = ExtendPlaces { project: PathBuf::from("/p"), ..ExtendPlaces::default() };
        ClaudeRules::from_restrictions(&[file], &places)
    }

    #[test]
    fn claude_rules_that_restrict_apply_and_the_rest_is_named() {
        let deny = json!(["Read(./secrets/**)", "Agent(x)", "Nothing(y)", 5, "Read(a[b-]"]);
        let ask = json!(["Bash(git push:*)", "Bash(a | b)", "Skill(x y z)"]);
        let read = read(ExtensionSource::Project, deny, ask);
        let rules: Vec<_> =
            read.rules.iter().map(|rule| format!("{} {rule}", rule.action)).collect();
        let expected = [
            "deny fs.read(secrets/**)",
            "deny fs.read(/p/secrets/**)",
            "deny agent(x)",
            "ask fs.read(a?)",
            "ask bash(git push *)",
            "ask bash(a *)",
            "ask skill(x)",
        ];
        assert_eq!(rules, expected);
        assert!(read.rules.iter().all(|rule| rule.origin == Origin::Project));
        let faults = read.faults.join("\n");
        for part in
            ["`Nothing(y)`", "rule `5`", "`Read(a[b-]`", "`Bash(a | b)`", "before `bash(a *)`"]
        {
            assert!(faults.contains(part), "{part}: {faults}");
        }
        assert_eq!(read.faults.len(), 4);
    }
}
