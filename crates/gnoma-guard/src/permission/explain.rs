//! Explains a verdict on a command, for people and as one row of data.

use std::fmt::Write as _;

use gnoma_core::{session::PermissionMode, tool::Trial};
use gnoma_shell::{Analysis, Risk};

use super::{
    JudgementContext, Permissions, one_line,
    opinion::{Decision, Opinion},
    trial::trial_for_mode,
};

/// Longest line of an explanation, in characters.
const MAX_LINE_CHARS: usize = 160;

/// The verdict of mode accept_edits on a command in a trusted workspace without rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellRow {
    /// True if the command was understood.
    pub parse_ok: bool,
    /// The simple commands of which the command consists.
    pub commands: Vec<String>,
    /// True if it is proved that the command changes nothing.
    pub read_only: bool,
    /// The damage that the command could do, in one word.
    pub risk: &'static str,
    /// `allow`, `trial` (it first runs where its changes have no effect; `ask` if that is not possible), `ask` or
    /// `refuse`.
    pub verdict: &'static str,
    /// The reason for the verdict, in one line.
    pub why: String,
}

impl ShellRow {
    /// Judges `command` as it would be in `world`, trusted.
    #[must_use]
    pub fn from_command(command: &str, world: &JudgementContext<'_>) -> Self {
        let world = JudgementContext { trusted: true, ..*world };
        let permissions = Permissions::default();
        let judged =
            permissions.build_judgement(PermissionMode::AcceptEdits, &world).judge_command(command);
        let texts = judged.analysis.commands.iter().map(|command| command.text.clone());
        Self {
            parse_ok: judged.analysis.unparsed.is_none(),
            commands: texts.collect(),
            read_only: judged.analysis.is_read_only(),
            risk: risk_name(judged.analysis.risk()),
            verdict: match judged.whole.decision {
                Decision::Allow => "allow",
                Decision::Ask if judged.whole.can_be_tried && world.sandboxed => "trial",
                Decision::Ask => "ask",
                Decision::Deny => "refuse",
            },
            why: judged.whole.reason,
        }
    }
}

impl Permissions {
    /// Says in a line what would be decided about a shell command. `can_try`: commands can run on trial here.
    #[must_use]
    pub fn describe_verdict(
        &self,
        mode: PermissionMode,
        world: &JudgementContext<'_>,
        command: &str,
        can_try: bool,
    ) -> String {
        let whole = self.build_judgement(mode, world).judge_command(command).whole;
        let is_tried = whole.decision != Decision::Allow && whole.can_be_tried && world.sandboxed;
        let how = match trial_for_mode(mode).filter(|_| is_tried && can_try) {
            None => return describe_opinion(&whole),
            Some(Trial::Discard) => "its changes are discarded",
            Some(Trial::Ask) => "its changes are saved after a yes",
            Some(Trial::KeepEdits) => "changes that are no edits of files are saved after a yes",
        };
        format!("allow on trial, {how}: {}", shorten_line(&whole.reason))
    }

    /// Explains what would be decided about a shell command, part by part, in lines for people.
    #[must_use]
    pub fn explain_command(
        &self,
        mode: PermissionMode,
        world: &JudgementContext<'_>,
        command: &str,
    ) -> String {
        let judged = self.build_judgement(mode, world).judge_command(command);
        let mut text = render_heading(&judged.analysis, mode);
        for (number, (command, part)) in
            (1..).zip(judged.analysis.commands.iter().zip(&judged.parts))
        {
            let _infallible = writeln!(text, "\n{number}. {}", shorten_line(&command.text));
            if part.effects.is_empty() {
                text.push_str("   only computes or prints\n");
            }
            let mut effects: Vec<_> =
                part.effects.iter().map(|effect| shorten_line(&effect.worry.what)).collect();
            effects.dedup();
            for effect in effects {
                let _infallible = writeln!(text, "   {effect}");
            }
            let _infallible = writeln!(text, "   risk: {}", risk_name(command.risk));
            let _infallible = writeln!(text, "   {}", describe_opinion(&part.opinion));
        }
        text.push('\n');
        for oddity in &judged.analysis.oddities {
            let _infallible = writeln!(text, "note: {}", shorten_line(oddity));
        }
        let _infallible = writeln!(text, "verdict: {}", describe_opinion(&judged.whole));
        for rule in judged.whole.always.iter().flatten() {
            let _infallible = writeln!(text, "\"always\" would add: {rule}");
        }
        text
    }
}

fn render_heading(analysis: &Analysis, mode: PermissionMode) -> String {
    let count = match analysis.commands.len() {
        0 => "no simple command".to_owned(),
        1 => "1 simple command".to_owned(),
        count => format!("{count} simple commands"),
    };
    let unparsed =
        analysis.unparsed.as_deref().map(|why| format!("; not understood: {}", shorten_line(why)));
    format!("mode {mode}, {count}{}\n", unparsed.unwrap_or_default())
}

fn describe_opinion(opinion: &Opinion) -> String {
    let decision = match opinion.decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    };
    format!("{decision}: {}", shorten_line(&opinion.reason))
}

fn shorten_line(text: &str) -> String {
    one_line(text, MAX_LINE_CHARS)
}

fn risk_name(risk: Risk) -> &'static str {
    match risk {
        Risk::None => "none",
        Risk::Low => "low",
        Risk::Medium => "medium",
        Risk::High => "high",
        Risk::Critical => "critical",
    }
}
