//! Whether a call may run. Pure: facts in, a verdict with its reason out.
//!
//! Plain until the guard takes it over: the mode decides by what the tool does to the world.
//! [`judge`] is the one place that is asked, also for tools that come from elsewhere.

use gnoma_core::{
    RawJson, ToolCall,
    session::PermissionMode,
    tool::{Access, ToolSpec},
};
use serde_json::Value;

/// An exception from the mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Tool names it is about; `*` stands for anything.
    pub tool: String,
    /// Text the arguments must contain; empty for any.
    pub pattern: String,
    /// The tool may run; otherwise it may not.
    pub allow: bool,
}

impl Rule {
    /// An allow rule with a pattern holds for nothing: text found somewhere in the arguments says
    /// little about the rest of a command.
    fn applies(&self, call: &ToolCall) -> bool {
        matches(&self.tool, &call.name)
            && (!self.allow || self.pattern.is_empty())
            && self.is_in(&call.arguments)
    }

    /// Whether the pattern stands in the arguments as the tool will read them, or as they were
    /// written: an escape must not hide it.
    fn is_in(&self, arguments: &RawJson) -> bool {
        let decoded = arguments.read::<Value>().unwrap_or_default();
        arguments.get().contains(&self.pattern) || holds(&decoded, &self.pattern)
    }
}

fn holds(value: &Value, pattern: &str) -> bool {
    match value {
        Value::String(text) => text.contains(pattern),
        Value::Array(items) => items.iter().any(|item| holds(item, pattern)),
        Value::Object(fields) => {
            fields.iter().any(|(name, item)| name.contains(pattern) || holds(item, pattern))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().contains(pattern),
    }
}

/// Whether `name` fits `glob`, in which `*` stands for any run of characters.
fn matches(glob: &str, name: &str) -> bool {
    let Some((head, rest)) = glob.split_once('*') else { return glob == name };
    let Some(left) = name.strip_prefix(head) else { return false };
    (0..=left.len()).any(|at| left.is_char_boundary(at) && matches(rest, &left[at..]))
}

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow {
        /// Which rule or mode says so.
        reason: String,
    },
    /// It does not run; the reason goes to the model.
    Deny {
        /// Why not.
        reason: String,
    },
    /// A person decides.
    Ask {
        /// Why they must.
        reason: String,
        /// What the call would change, as a unified diff.
        preview: Option<String>,
    },
}

/// Judges a call of `tool`: a rule that refuses beats everything, one that allows beats the mode.
#[must_use]
pub fn judge(mode: PermissionMode, rules: &[Rule], tool: &ToolSpec, call: &ToolCall) -> Verdict {
    let fitting = |allow| rules.iter().find(|rule| rule.allow == allow && rule.applies(call));
    if let Some(rule) = fitting(false) {
        let about = if rule.pattern.is_empty() { "" } else { " with this text" };
        return Verdict::Deny { reason: format!("a rule refuses `{}`{about}", rule.tool) };
    }
    if let (Some(rule), true) = (fitting(true), mode != PermissionMode::Plan) {
        return Verdict::Allow { reason: format!("a rule allows `{}`", rule.tool) };
    }
    by_mode(mode, tool)
}

fn by_mode(mode: PermissionMode, tool: &ToolSpec) -> Verdict {
    let by = |what: &str| format!("mode {mode}: {what}");
    let allow = |what: &str| Verdict::Allow { reason: by(what) };
    let deny = |what: &str| Verdict::Deny { reason: by(what) };
    let ask = |what: &str| Verdict::Ask { reason: by(what), preview: None };
    match (mode, tool.access) {
        (PermissionMode::Bypass, _) => allow("everything runs"),
        (PermissionMode::Deny, _) => deny("nothing runs"),
        (PermissionMode::Default, _) => ask("every call is asked for"),
        (
            PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::Plan,
            Access::Read,
        ) => allow("reading runs"),
        (PermissionMode::Plan, Access::Edit | Access::Execute) => {
            deny("only reading runs while planning")
        }
        (PermissionMode::AcceptEdits, Access::Edit) => allow("edits run"),
        (PermissionMode::Auto, Access::Edit) => ask("edits are asked for"),
        (PermissionMode::AcceptEdits | PermissionMode::Auto, Access::Execute) => {
            ask("commands are asked for")
        }
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        message::CallId,
        tool::{Tier, Touches},
    };

    use super::*;

    fn verdict(mode: PermissionMode, rules: &[(&str, &str, bool)], access: Access) -> Verdict {
        let rule = |(tool, pattern, allow): &(&str, &str, bool)| Rule {
            tool: (*tool).into(),
            pattern: (*pattern).into(),
            allow: *allow,
        };
        let rules: Vec<_> = rules.iter().map(rule).collect();
        let spec = ToolSpec {
            name: "fs.write".into(),
            description: String::new(),
            parameters: RawJson::empty_object(),
            access,
            touches: Touches::Nothing,
            tier: Tier::Lean,
        };
        let arguments = RawJson::parse(r#"{"path":".env"}"#).unwrap();
        judge(mode, &rules, &spec, &ToolCall::new(CallId::new("c"), "fs.write", arguments))
    }

    fn allows(mode: PermissionMode, rules: &[(&str, &str, bool)], access: Access) -> bool {
        matches!(verdict(mode, rules, access), Verdict::Allow { .. })
    }

    fn denies(mode: PermissionMode, rules: &[(&str, &str, bool)], access: Access) -> bool {
        matches!(verdict(mode, rules, access), Verdict::Deny { .. })
    }

    #[test]
    fn refusing_beats_allowing_and_even_bypass() {
        use Access::Edit;
        use PermissionMode::{Auto, Bypass};
        assert!(denies(Bypass, &[("fs.*", ".env", false)], Edit));
        assert!(denies(Auto, &[("*", "", true), ("fs.write", "", false)], Edit));
        assert!(allows(Bypass, &[("fs.*", "secrets", false)], Edit));
    }

    #[test]
    fn an_escape_does_not_hide_what_a_rule_refuses() {
        let rule = Rule { tool: "fs.*".into(), pattern: "secret".into(), allow: false };
        let arguments = RawJson::parse(r#"{"path":"\u0073ecret.txt"}"#).unwrap();
        assert!(rule.applies(&ToolCall::new(CallId::new("c"), "fs.read", arguments)));
    }

    #[test]
    fn allowing_beats_the_mode_but_not_planning_and_not_by_text() {
        use Access::Edit;
        use PermissionMode::{Auto, Plan};
        assert!(allows(Auto, &[("fs.*", "", true)], Edit));
        assert!(!allows(Auto, &[("fs.*", ".env", true)], Edit));
        assert!(!allows(Auto, &[("bash", "", true)], Edit));
        assert!(denies(Plan, &[("*", "", true)], Edit));
    }

    #[test]
    fn stars_stand_for_anything() {
        for (glob, name, fits) in [
            ("fs.*", "fs.read", true),
            ("*", "", true),
            ("*.read", "fs.read", true),
            ("f*.r*d", "fs.read", true),
            ("fs", "fs.read", false),
            ("*x*", "fs.read", false),
        ] {
            assert_eq!(matches(glob, name), fits, "{glob} {name}");
        }
    }
}
