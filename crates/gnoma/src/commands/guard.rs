//! `gnoma guard`: the guard's own judgement for people, scripts and measurements.

use std::{
    fmt::Write as _,
    io::{self, BufRead as _, BufWriter, Read as _, Write as _},
};

use anyhow::{Context as _, Result};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use gnoma_core::json_value::json;
use gnoma_engine::GatePlace;
use gnoma_guard::{
    firewall::{AllowedHash, FirewallAction, Policy},
    permission::{JudgementContext, ShellRow},
    secrets::Finding,
    unicode::{self, Flag, RetainedControls},
    vault::Vault,
};
use gnoma_host::{
    HostError, Places, ProcessResources, Project,
    guard_setup::{self, SecretSearch},
    project_settings::ProjectSettings,
    session,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    common::{load_settings, open_input, print_safe_text},
    guard_run,
};
use crate::{
    args::{GuardInput, GuardSub, TurnArgs, shell_line},
    environment::ProcessEnvironment,
    report::{self, Exit},
};

/// Most bytes that are looked at in one go; a longer text is refused, not cut.
const MAX_TEXT_BYTES: u64 = 1 << 30;

pub(crate) async fn run(
    what: &GuardSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let (spec, loaded) = load_settings(args, around)?;
    let lowered = ProjectSettings::from(loaded);
    match what {
        GuardSub::Scan(input) => {
            let keys = &lowered.routing.provider.api_keys;
            scan_input(
                input,
                &guard_setup::secret_search(&lowered.guard, keys, &spec.environment, &spec.folder)?,
            )
        }
        GuardSub::Clean(input) => clean_input(input),
        GuardSub::Shell(input) => {
            let ProjectSettings { guard, keeping, .. } = &lowered;
            let places = Places::for_folder(keeping, &spec.environment, &spec.folder);
            let trials = guard_setup::build_trials(guard, &places, &spec, Vec::new(), None);
            judge_commands(input, &guard_setup::gate_place(guard, &places, &spec, trials, None))
        }
        GuardSub::Explain { command } => {
            let project = Project::with_settings(
                spec,
                lowered,
                report::stderr_notices(),
                ProcessResources::default(),
            )?;
            explain_command(&shell_line(command), &project)
        }
        GuardSub::Run { mode, input } => {
            let project = Project::with_settings(
                spec,
                lowered,
                report::stderr_notices(),
                ProcessResources::default(),
            )?;
            guard_run::run(input, *mode, project).await
        }
    }
}

/// Code 1 when something was found.
fn exit_for_finding(found: bool) -> Exit {
    if found { Exit::Failed } else { Exit::Done }
}

fn read_input(input: &GuardInput) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    open_input(input)?.take(MAX_TEXT_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        let text = format!("the text is longer than {MAX_TEXT_BYTES} bytes; split it");
        return Err(HostError::usage(text).into());
    }
    Ok(text)
}

/// Answers each JSON line with one.
fn answer_lines<T: for<'a> Deserialize<'a>>(
    input: &GuardInput,
    mut answer: impl FnMut(T) -> Result<(Value, bool)>,
) -> Result<Exit> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut found = false;
    for (number, line) in (1..).zip(open_input(input)?.split(b'\n')) {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let question = gnoma_core::json::from_bytes(&line).map_err(|error| {
            HostError::usage(format!("line {number} is not a valid request: {error}"))
        })?;
        let (value, hit) = answer(question)?;
        found |= hit;
        if let Err(error) = writeln!(out, "{value}") {
            return report::exit_after_write_error(error);
        }
    }
    match out.flush() {
        Ok(()) => Ok(exit_for_finding(found)),
        Err(error) => report::exit_after_write_error(error),
    }
}

/// A text in a JSON line.
#[derive(Deserialize)]
struct TextLine {
    id: String,
    text_b64: String,
}

impl TextLine {
    fn decode_text(&self) -> Result<Vec<u8>> {
        let decoded = BASE64_STANDARD.decode(&self.text_b64);
        decoded.with_context(|| format!("`text_b64` of `{}` is not base64", self.id))
    }
}

fn scan_input(input: &GuardInput, search: &SecretSearch) -> Result<Exit> {
    if input.jsonl {
        return answer_lines(input, |line: TextLine| {
            let text = line.decode_text()?;
            let hits = find_hits(search, &text);
            let findings: Vec<_> = hits.iter().map(Hit::to_json).collect();
            let redacted = BASE64_STANDARD.encode(redact_hits(&text, &hits));
            let value = json!({"id": line.id, "findings": findings, "redacted_b64": redacted});
            Ok((value, !hits.is_empty()))
        });
    }
    let text = read_input(input)?;
    let hits = find_hits(search, &text);
    let mut listed = String::new();
    let (mut line, mut column, mut at) = (1, 1, 0);
    for Hit { finding, action } in &hits {
        for byte in text.get(at..finding.start).unwrap_or_default() {
            (line, column) = if *byte == b'\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        at = finding.start;
        let (rule, bytes) = (&finding.rule, finding.end - finding.start);
        let action = action_name(*action);
        let _infallible = writeln!(listed, "{line}:{column} {rule} ({bytes} bytes): {action}");
    }
    let exit = exit_for_finding(!hits.is_empty());
    print_safe_text(&listed).map(|printed| if printed == Exit::Done { exit } else { printed })
}

/// A secret and what the settings do with it.
struct Hit {
    finding: Finding,
    action: FirewallAction,
}

impl Hit {
    fn to_json(&self) -> Value {
        let Finding { start, end, rule } = &self.finding;
        json!({"rule": &**rule, "start": start, "end": end, "action": action_name(self.action)})
    }
}

fn action_name(action: FirewallAction) -> &'static str {
    match action {
        FirewallAction::Redact => "redact",
        FirewallAction::Block => "block",
        FirewallAction::Warn => "warn",
        FirewallAction::Allow => "allow",
    }
}

fn find_hits(search: &SecretSearch, text: &[u8]) -> Vec<Hit> {
    let SecretSearch { scanner, policy, allowed } = search;
    let hit = |finding: Finding| {
        let action = action_for_finding(policy, allowed, text, &finding);
        Hit { finding, action }
    };
    scanner.scan(text).into_iter().map(hit).collect()
}

fn action_for_finding(
    policy: &Policy,
    allowed: &[AllowedHash],
    text: &[u8],
    finding: &Finding,
) -> FirewallAction {
    let value = text.get(finding.start..finding.end).map(String::from_utf8_lossy);
    let of_value = value.map(|value| AllowedHash::from_value(&value));
    if of_value.is_some_and(|value| allowed.contains(&value)) {
        return FirewallAction::Allow;
    }
    policy.action(&finding.rule, None, None)
}

fn redact_hits(text: &[u8], hits: &[Hit]) -> Vec<u8> {
    let vault = Vault::new(1);
    let (mut redacted, mut at) = (Vec::with_capacity(text.len()), 0);
    let hidden = hits
        .iter()
        .filter(|hit| matches!(hit.action, FirewallAction::Redact | FirewallAction::Block));
    for Hit { finding, .. } in hidden {
        let value = text.get(finding.start..finding.end).unwrap_or_default();
        redacted.extend_from_slice(text.get(at..finding.start).unwrap_or_default());
        let placeholder = vault.conceal(&finding.rule, &String::from_utf8_lossy(value));
        redacted.extend_from_slice(placeholder.as_bytes());
        at = finding.end;
    }
    redacted.extend_from_slice(text.get(at..).unwrap_or_default());
    redacted
}

fn clean_input(input: &GuardInput) -> Result<Exit> {
    if input.jsonl {
        return answer_lines(input, |line: TextLine| {
            let text = line.decode_text()?;
            let cleaned = unicode::clean_bytes(&text, RetainedControls::Text);
            let flags: Vec<_> = cleaned.flags.iter().map(Flag::to_sentence).collect();
            let found = has_suspicious_flag(&cleaned.flags);
            let text = BASE64_STANDARD.encode(cleaned.text.as_bytes());
            Ok((json!({"id": line.id, "text_b64": text, "flags": flags}), found))
        });
    }
    let text = read_input(input)?;
    let cleaned = unicode::clean_bytes(&text, RetainedControls::Text);
    for flag in &cleaned.flags {
        report::print_line(flag.to_sentence());
    }
    // The bytes as they are: this output is what the command is for, and it is clean.
    let mut out = io::stdout().lock();
    match out.write_all(cleaned.text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(exit_for_finding(has_suspicious_flag(&cleaned.flags))),
        Err(error) => report::exit_after_write_error(error),
    }
}

/// True if a person should be told of one of the flags.
fn has_suspicious_flag(flags: &[Flag]) -> bool {
    flags.iter().any(|flag| flag.kind.is_suspicious())
}

/// A command in a JSON line.
#[derive(Deserialize)]
struct CommandLine {
    id: String,
    command: String,
}

fn judge_commands(input: &GuardInput, place: &GatePlace) -> Result<Exit> {
    let world = place.judgement_context();
    let runs = |row: &ShellRow| row.verdict == "allow";
    if input.jsonl {
        return answer_lines(input, |line: CommandLine| {
            let row = judge_command(&line.command, &world, place);
            let asks = !runs(&row);
            let value = json!({
                "id": line.id, "parse_ok": row.parse_ok, "commands": row.commands,
                "read_only": row.read_only, "risk": row.risk, "verdict": row.verdict, "why": row.why,
            });
            Ok((value, asks))
        });
    }
    let text = read_input(input)?;
    let (mut listed, mut asks) = (String::new(), false);
    for command in String::from_utf8_lossy(&text).lines().filter(|line| !line.trim().is_empty()) {
        let row = judge_command(command, &world, place);
        asks |= !runs(&row);
        let _infallible = writeln!(listed, "{:<6} {command}\n       {}", row.verdict, row.why);
    }
    let exit = exit_for_finding(asks);
    print_safe_text(&listed).map(|printed| if printed == Exit::Done { exit } else { printed })
}

/// The verdict on a command; where nothing can be tried it is a question as ever.
fn judge_command(command: &str, world: &JudgementContext<'_>, place: &GatePlace) -> ShellRow {
    let row = ShellRow::from_command(command, world);
    let verdict = if row.verdict == "trial" && !(place.can_try)() { "ask" } else { row.verdict };
    ShellRow { verdict, ..row }
}

fn explain_command(command: &str, project: &Project) -> Result<Exit> {
    let Project { guard, places, spec, .. } = project;
    let place = guard_setup::gate_place(guard, places, spec, None, None);
    let permissions = session::session_permissions(project)?;
    print_safe_text(&permissions.explain_command(
        guard.permission.mode,
        &place.judgement_context(),
        command,
    ))
}
