//! The permission question: the complete call, which part of it needs approval and why, what it would change, and the
//! rule that "always" would add. Or a question of the model, with the answers that it offers. Who receives the answer
//! is not known here.

mod body;
mod spoken_question;

use crate::{
    frame::Size,
    keymap::{Action, Context, Keymap},
    picker::truncate_line,
    text::{BackgroundRole, Line, Span, Style, TextRole},
};
use gnoma_core::{
    ToolCall,
    session::{Inquiry, NotableChange, PermissionAnswer, Scope},
    tool::{approval_question, tool_label},
};

/// Lines of arguments and preview that can be scrolled through.
const MAX_BODY_LINES: usize = 2_000;
/// Rows that a page moves.
const PAGE: usize = 6;
/// Rows that a long reason leaves to what would run.
const MIN_BODY_ROWS: usize = 3;
/// Rows for what would run and for the reason, without which the choices share one row.
const MIN_ROWS_BESIDE_CHOICES: usize = 3;
/// Rows that a long command leaves to the reason.
const MIN_FACT_ROWS: usize = 2;
/// Empty rows around the reason, where all has room with them.
const ROWS_OF_AIR: usize = 2;
/// The indentation before the place of a rule.
const HOLDING_INDENT: &str = "     ";
/// Lines of the body that a reader hears.
const MAX_SPOKEN_LINES: usize = 60;

/// A question that waits for a person.
#[derive(Clone, Debug)]
pub struct PermissionQuestion {
    /// The call that would run.
    pub call: ToolCall,
    reason: String,
    preview: Option<String>,
    always: Option<LastingRule>,
    /// The model wants words; then the reason is its question.
    inquiry: Option<Inquiry>,
    /// The changes of a call that has run on trial, of which a part can be saved.
    parts: Vec<String>,
    notable: Vec<NotableChange>,
    chosen: usize,
    scrolled: usize,
}

/// The rule that "always" would add, and where it would apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastingRule {
    /// The rule, as people write it.
    pub rule: String,
    /// The scope in which the rule applies, and for how long.
    pub scope: Scope,
    /// The place where the rule would be saved; empty for the session's.
    pub place: String,
}

impl LastingRule {
    /// Describes in a few words where the rule applies.
    #[must_use]
    pub fn describe_scope(&self) -> String {
        match self.scope {
            Scope::Session => "for this session".to_owned(),
            Scope::Project => format!("for this project, in {}", self.place),
            Scope::User => format!("everywhere, in {}", self.place),
        }
    }
}

/// The effect of a key on a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptVerdict {
    /// The question still waits.
    Open,
    /// The question is answered.
    Answer(PermissionAnswer),
    /// No, and the person will write why.
    WriteReason,
    /// The person will write an answer.
    WriteAnswer,
    /// Yes to a part, and the person will name it.
    NamePart,
    /// The person will change the rule of the lasting yes.
    EditRule,
    /// "Always" should apply elsewhere.
    NextScope,
}

/// The choices of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Once,
    Part,
    Always,
    No,
    NoBecause,
    /// The answer with this number, from 0, of those that the model offers.
    Offered(usize),
    /// An answer in other words.
    Words,
}

impl PermissionQuestion {
    /// A question as the session asked it.
    #[must_use]
    pub fn new(
        call: ToolCall,
        reason: String,
        preview: Option<String>,
        always: Option<String>,
    ) -> Self {
        let lasting = |rule| LastingRule { rule, scope: Scope::Session, place: String::new() };
        let always = always.map(lasting);
        Self {
            call,
            reason,
            preview,
            always,
            inquiry: None,
            parts: Vec::new(),
            notable: Vec::new(),
            chosen: 0,
            scrolled: 0,
        }
    }

    /// Makes it the model's question, if there is one.
    #[must_use]
    pub fn with_inquiry(mut self, inquiry: Option<Inquiry>) -> Self {
        self.inquiry = inquiry;
        self
    }

    /// Reports whether the question needs a text, not yes or no.
    #[must_use]
    pub fn wants_words(&self) -> bool {
        self.inquiry.is_some()
    }

    /// The answer with this number, from 1, of those that the model offers.
    #[must_use]
    pub fn offered_answer(&self, number: usize) -> Option<PermissionAnswer> {
        let choices = &self.inquiry.as_ref()?.choices;
        let text = choices.get(number.checked_sub(1)?)?.clone();
        Some(PermissionAnswer::Text { text })
    }

    /// The same about what a command has changed on trial.
    #[must_use]
    pub fn with_parts(self, parts: Vec<String>) -> Self {
        Self { parts, ..self }
    }

    /// Names what a person must see before a yes.
    #[must_use]
    pub fn with_notable(self, notable: Vec<NotableChange>) -> Self {
        Self { notable, ..self }
    }

    /// The files that can be kept separately.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Returns the rule that a lasting approval would add, where one is offered.
    #[must_use]
    pub fn lasting_rule(&self) -> Option<&LastingRule> {
        self.always.as_ref()
    }

    /// Changes where "always" would apply.
    pub fn set_scope(&mut self, scope: Scope, place: String) {
        if let Some(lasting) = &mut self.always {
            (lasting.scope, lasting.place) = (scope, place);
        }
    }

    /// Does what a key asks for.
    pub fn apply_action(&mut self, action: Action) -> PromptVerdict {
        let choices = self.choices();
        let count = choices.len();
        match action {
            Action::Up => self.chosen = (self.chosen + count - 1) % count,
            Action::Down => self.chosen = (self.chosen + 1) % count,
            Action::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE),
            Action::PageDown => self.scrolled = (self.scrolled + PAGE).min(MAX_BODY_LINES),
            Action::Accept => {
                let chosen = choices.get(self.chosen).copied();
                return chosen.map_or(PromptVerdict::Open, |choice| self.verdict(choice));
            }
            Action::AllowOnce if !self.wants_words() => return self.verdict(Choice::Once),
            Action::AllowPart if self.has_parts() => return self.verdict(Choice::Part),
            Action::AllowAlways => return self.verdict(Choice::Always),
            Action::EditRule if self.always.is_some() => return PromptVerdict::EditRule,
            Action::NextScope if self.always.is_some() => return PromptVerdict::NextScope,
            Action::Refuse => return self.verdict(Choice::No),
            Action::RefuseWithReason if self.wants_words() => return PromptVerdict::WriteAnswer,
            Action::RefuseWithReason => return self.verdict(Choice::NoBecause),
            _ => (),
        }
        PromptVerdict::Open
    }

    fn verdict(&self, choice: Choice) -> PromptVerdict {
        match (choice, &self.always) {
            (Choice::Once, _) => PromptVerdict::Answer(PermissionAnswer::Allow),
            (Choice::Part, _) => PromptVerdict::NamePart,
            (Choice::Always, None) => PromptVerdict::Open,
            (Choice::Always, Some(LastingRule { scope: Scope::Session, .. })) => {
                PromptVerdict::Answer(PermissionAnswer::Always)
            }
            (Choice::Always, Some(LastingRule { rule, scope, .. })) => {
                PromptVerdict::Answer(PermissionAnswer::Rule { rule: rule.clone(), scope: *scope })
            }
            (Choice::No, _) => {
                PromptVerdict::Answer(PermissionAnswer::Deny { reason: String::new() })
            }
            (Choice::NoBecause, _) => PromptVerdict::WriteReason,
            (Choice::Offered(place), _) => {
                self.offered_answer(place + 1).map_or(PromptVerdict::Open, PromptVerdict::Answer)
            }
            (Choice::Words, _) => PromptVerdict::WriteAnswer,
        }
    }

    /// Describes the question in a few words.
    #[must_use]
    pub fn short_description(&self) -> String {
        if self.wants_words() {
            return "The model asks you a question".to_owned();
        }
        format!("{} needs your approval", tool_label(&self.call.name))
    }

    /// The question in the size that there is. `place` is the folder it would run in, `behind` how
    /// many more questions wait.
    #[must_use]
    pub fn render_lines(
        &self,
        place: &str,
        behind: usize,
        keymap: &Keymap,
        size: Size,
    ) -> Vec<Line> {
        let Size { width, height } = size;
        let choices = self.choice_lines(keymap, width);
        if height < choices.len() + MIN_ROWS_BESIDE_CHOICES {
            return self.short_lines(keymap, size);
        }
        let mut lines = vec![self.heading(behind)];
        let mut below = self.facts(place, width);
        let fixed = lines.len() + choices.len() + MIN_BODY_ROWS;
        truncate_lines(&mut below, height.saturating_sub(fixed).max(MIN_FACT_ROWS));
        let used = lines.len() + below.len() + choices.len();
        let body = self.body_lines(width);
        let has_air = used + body.len() + ROWS_OF_AIR <= height;
        if has_air {
            if !below.is_empty() {
                below.insert(0, Line::default());
            }
            below.push(Line::default());
        }
        below.extend(choices);
        let room = height.saturating_sub(lines.len() + below.len());
        lines.extend(self.visible_body(body, room));
        lines.extend(below);
        let lines = lines.into_iter().map(|line| truncate_line(line, width));
        // Where there is no room, the choices are what must be seen.
        let excess = lines.len().saturating_sub(height);
        lines.skip(excess).collect()
    }

    /// Returns lines with the call that would run and the keys, where there is room for little else.
    fn short_lines(&self, keymap: &Keymap, Size { width, height }: Size) -> Vec<Line> {
        let word = |choice: Choice| match choice {
            Choice::Once => "yes",
            Choice::Part => "part",
            Choice::Always => "always",
            Choice::No => "no",
            Choice::NoBecause => "why",
            Choice::Offered(_) => "",
            Choice::Words => "write",
        };
        let mut keys = Line::default();
        for choice in self.choices() {
            keys.spans.push(Span::new(
                choice.key_label(keymap),
                Style::with_ink(TextRole::Accent).bold(),
            ));
            keys.spans.push(Span::new(format!(" {} ", word(choice)), Style::default()));
        }
        let mut lines = self.visible_body(self.body_lines(width), height.saturating_sub(1));
        lines.push(keys);
        let excess = lines.len().saturating_sub(height);
        lines.into_iter().skip(excess).map(|line| truncate_line(line, width)).collect()
    }

    fn heading(&self, behind: usize) -> Line {
        let mut line = Line::from([
            Span::new("? ", Style::with_ink(TextRole::Warning).bold()),
            Span::new(self.question_text(), Style::with_ink(TextRole::Warning).bold()),
        ]);
        if behind > 0 {
            line.spans.push(Span::new(format!(" · {behind} more waiting"), dim_style()));
        }
        line
    }

    /// Returns the question to the person, with the verb for what would happen.
    fn question_text(&self) -> String {
        if self.wants_words() {
            return "The model asks".to_owned();
        }
        if self.has_parts() {
            return "Keep what this command changed?".to_owned();
        }
        approval_question(&self.call)
    }

    fn facts(&self, place: &str, width: usize) -> Vec<Line> {
        if self.wants_words() {
            return Vec::new();
        }
        let mut facts = vec![Line::new(format!("  in {place}"), dim_style())];
        let because = Line::from([
            Span::new("  reason: ", dim_style()),
            Span::new(self.reason.clone(), Style::default()),
        ]);
        facts.extend(because.wrap(width, &Line::new("  ", dim_style())));
        facts
    }

    /// The part of the body that is in sight.
    fn visible_body(&self, body: Vec<Line>, room: usize) -> Vec<Line> {
        if body.len() <= room {
            return body;
        }
        let shown = room.saturating_sub(1);
        let first = self.scrolled.min(body.len() - shown);
        let below = body.len() - shown - first;
        let mut lines: Vec<Line> = body.into_iter().skip(first).take(shown).collect();
        let more = match (first, below) {
            (0, below) => format!("  … {below} more lines below (PgDn)"),
            (above, 0) => format!("  … {above} lines above (PgUp)"),
            (above, below) => format!("  … {above} lines above, {below} below (PgUp, PgDn)"),
        };
        if room > 0 {
            lines.push(Line::new(more, Style::with_ink(TextRole::Warning)));
        }
        lines
    }

    fn choices(&self) -> Vec<Choice> {
        if let Some(inquiry) = &self.inquiry {
            let offered = (0..inquiry.choices.len()).map(Choice::Offered);
            return offered.chain([Choice::Words, Choice::No]).collect();
        }
        let mut choices = vec![Choice::Once];
        choices.extend(self.has_parts().then_some(Choice::Part));
        choices.extend(self.always.as_ref().map(|_| Choice::Always));
        choices.extend([Choice::No, Choice::NoBecause]);
        choices
    }

    /// Reports whether some of the files can be kept separately.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    fn choice_lines(&self, keymap: &Keymap, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for (place, choice) in self.choices().into_iter().enumerate() {
            lines.push(self.choice_line(choice, place == self.chosen, keymap));
            lines.extend(self.holding_lines(choice, keymap, width));
        }
        lines
    }

    /// Returns lines about the scope of a lasting approval, and the keys that change it: in a line of their own
    /// where one has no room for both.
    fn holding_lines(&self, choice: Choice, keymap: &Keymap, width: usize) -> Vec<Line> {
        let Some(lasting) = self.always.as_ref().filter(|_| choice == Choice::Always) else {
            return Vec::new();
        };
        let key =
            |action| keymap.keys(Context::Permission, action).first().map(ToString::to_string);
        let keys = [(Action::NextScope, "other scope"), (Action::EditRule, "edit the rule")];
        let keys =
            keys.into_iter().filter_map(|(action, what)| Some(format!("{}: {what}", key(action)?)));
        let (place, keys) = (lasting.describe_scope(), keys.collect::<Vec<_>>().join(" · "));
        let whole = match keys.as_str() {
            "" => place.clone(),
            keys => format!("{place} · {keys}"),
        };
        let line = |text: &str| Line::new(format!("{HOLDING_INDENT}{text}"), dim_style());
        if line(&whole).width() <= width {
            return vec![line(&whole)];
        }
        vec![line(&place), line(&keys)]
    }

    fn choice_line(&self, choice: Choice, chosen: bool, keymap: &Keymap) -> Line {
        let text = match choice {
            Choice::Once if self.has_parts() => "yes, keep all of it, once".to_owned(),
            Choice::Once => "yes, once".to_owned(),
            Choice::Part => "keep only some files".to_owned(),
            Choice::Always => {
                let rule = self.always.as_ref().map_or("", |lasting| lasting.rule.as_str());
                format!("always: {rule}")
            }
            Choice::No if self.wants_words() => "no answer".to_owned(),
            Choice::No if self.has_parts() => "no, discard it".to_owned(),
            Choice::No => "no".to_owned(),
            Choice::NoBecause => "no, and tell the model why".to_owned(),
            Choice::Offered(place) => {
                let choices = self.inquiry.as_ref().map(|inquiry| &inquiry.choices);
                choices.and_then(|choices| choices.get(place)).cloned().unwrap_or_default()
            }
            Choice::Words => "write an answer".to_owned(),
        };
        let key = choice.key_label(keymap);
        let paper = if chosen { BackgroundRole::Chosen } else { BackgroundRole::None };
        Line::from([
            Span::new(
                if chosen { "› " } else { "  " },
                Style::with_ink(TextRole::Accent).on_paper(paper),
            ),
            Span::new(key, Style::with_ink(TextRole::Accent).bold().on_paper(paper)),
            Span::new(format!("  {text}"), Style::default().on_paper(paper)),
        ])
    }
}

impl Choice {
    /// The key that takes it, as people read it.
    fn key_label(self, keymap: &Keymap) -> String {
        let action = match self {
            Self::Once => Action::AllowOnce,
            Self::Part => Action::AllowPart,
            Self::Always => Action::AllowAlways,
            Self::No => Action::Refuse,
            Self::NoBecause | Self::Words => Action::RefuseWithReason,
            Self::Offered(place) => return (place + 1).to_string(),
        };
        let key = keymap.keys(Context::Permission, action).first();
        key.map(ToString::to_string).unwrap_or_default()
    }
}

/// The first of the lines; a mark says that there were more.
fn truncate_lines(lines: &mut Vec<Line>, count: usize) {
    if lines.len() > count {
        lines.truncate(count);
        if let Some(last) = lines.last_mut() {
            last.spans.push(Span::new(" …", dim_style()));
        }
    }
}

fn dim_style() -> Style {
    Style::with_ink(TextRole::Dim)
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson};

    use super::*;

    fn question(arguments: &str, always: Option<&str>) -> PermissionQuestion {
        let arguments = RawJson::parse(arguments).unwrap();
        let call = ToolCall::new(CallId::new("c1"), "bash", arguments);
        let reason = "`rm -rf build` removes files".to_owned();
        PermissionQuestion::new(call, reason, None, always.map(str::to_owned))
    }

    fn plain(lines: &[Line]) -> String {
        lines.iter().map(|line| line.plain_text().trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn permission_prompt_shows_the_whole_command_and_marks_the_asking_part() {
        let question =
            question(r#"{"command":"rm -rf build && make","wait_s":5}"#, Some("bash(make *)"));
        let lines = question.render_lines("~/src", 2, &Keymap::built_in(), Size::new(60, 20));
        insta::assert_snapshot!(plain(&lines), @r"
        ? Run this command? · 2 more waiting
          rm -rf build && make
          wait_s: 5

          in ~/src
          reason: `rm -rf build` removes files

        › y  yes, once
          a  always: bash(make *)
             for this session · s: other scope · e: edit the rule
          n  no
          r  no, and tell the model why
        ");
        let marked = lines.iter().flat_map(|line| &line.spans);
        let marked: Vec<_> = marked.filter(|span| span.text == "rm -rf build").collect();
        assert_eq!(marked.len(), 1);
        assert_eq!(marked[0].style.ink, TextRole::Warning);
    }

    #[test]
    fn permission_prompt_after_a_trial_can_save_all_or_part() {
        let reason = "`make` deletes `old` and creates `src/new`".to_owned();
        let arguments = RawJson::parse(r#"{"command":"make"}"#).unwrap();
        let call = ToolCall::new(CallId::new("c1"), "bash", arguments);
        let diff = Some("--- /dev/null\n+++ b/src/new\n@@ -0,0 +1 @@\n+x\n".to_owned());
        let mut question = PermissionQuestion::new(call, reason, diff, Some("bash(make)".into()))
            .with_parts(vec!["old".into(), "src/new".into()]);
        let shown =
            plain(&question.render_lines("~/src", 0, &Keymap::built_in(), Size::new(60, 20)));
        assert!(shown.starts_with("? Keep what this command changed?\n  make\n"), "{shown}");
        let choices = [
            "y  yes, keep all of it, once",
            "p  keep only some files",
            "a  always: bash(make)",
            "n  no, discard it",
            "r  no, and tell the model why",
        ];
        for choice in choices {
            assert!(shown.contains(choice), "{choice}: {shown}");
        }
        assert_eq!(question.apply_action(Action::AllowPart), PromptVerdict::NamePart);
        question.apply_action(Action::Down);
        assert_eq!(question.apply_action(Action::Accept), PromptVerdict::NamePart);
        let mut other = self::question("{}", None);
        assert_eq!(other.apply_action(Action::AllowPart), PromptVerdict::Open);
    }

    #[test]
    fn permission_prompt_lists_notable_changes_before_the_diff() {
        let arguments = RawJson::parse(r#"{"command":"make"}"#).unwrap();
        let call = ToolCall::new(CallId::new("c1"), "bash", arguments);
        let diff = Some("--- /dev/null\n+++ b/!0\n@@ -0,0 +1 @@\n+x\n".to_owned());
        let what = "creates: a program, which version control reads on every run".to_owned();
        let notable = vec![NotableChange { name: ".husky/pre-commit".into(), what }];
        let question = PermissionQuestion::new(call, "why".into(), diff, None)
            .with_parts(vec![".husky/pre-commit".into(), "!0".into()])
            .with_notable(notable);
        let shown =
            plain(&question.render_lines("~/src", 0, &Keymap::built_in(), Size::new(80, 24)));
        let named = shown.find(".husky/pre-commit").unwrap_or_else(|| panic!("{shown}"));
        assert!(shown.contains("creates: a program"), "{shown}");
        assert!(named < shown.find("+x").or(shown.find("!0")).unwrap_or(usize::MAX), "{shown}");
    }

    #[test]
    fn permission_prompt_scrolls_a_long_command_to_its_end() {
        let command: Vec<String> = (0..30).map(|line| format!("step {line}")).collect();
        let arguments = serde_json::json!({ "command": command.join("\n") }).to_string();
        let mut question = question(&arguments, None);
        assert!(
            plain(&question.render_lines("~", 0, &Keymap::built_in(), Size::new(40, 12)))
                .contains("more lines below")
        );
        for _ in 0..9 {
            question.apply_action(Action::PageDown);
        }
        assert!(
            plain(&question.render_lines("~", 0, &Keymap::built_in(), Size::new(40, 12)))
                .contains("step 29")
        );
    }

    #[test]
    fn permission_prompt_shows_the_command_despite_a_long_reason() {
        let mut question = question(r#"{"command":"rm -rf build"}"#, Some("bash(rm -rf build)"));
        question.reason = "it removes files and more besides; ".repeat(20);
        let shown = plain(&question.render_lines("~", 0, &Keymap::built_in(), Size::new(40, 12)));
        assert!(shown.contains("rm -rf build\n") && shown.contains(" …\n"), "{shown}");
        assert!(shown.ends_with("r  no, and tell the model why\n"), "{shown}");
    }

    #[test]
    fn permission_prompt_without_a_rule_offers_no_always() {
        let mut question = question("{}", None);
        assert_eq!(question.apply_action(Action::AllowAlways), PromptVerdict::Open);
        question.apply_action(Action::Up);
        assert_eq!(question.apply_action(Action::Accept), PromptVerdict::WriteReason);
    }

    #[test]
    fn permission_prompt_on_a_tiny_screen_shows_command_and_keys() {
        let lines = question(r#"{"command":"ls"}"#, None).render_lines(
            "~",
            0,
            &Keymap::built_in(),
            Size::new(20, 3),
        );
        assert_eq!(plain(&lines), "  ls\ny yes n no r why\n");
    }
}
