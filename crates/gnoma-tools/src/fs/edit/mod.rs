//! `fs.edit`: replaces text in a file, in one place or several, all or none.
//!
//! What is matched and what is put there is decided in [`apply`]; this file reads, checks that the
//! model knows the file as it is, writes in one step and words the answer.

mod apply;
mod fold;
mod loose;
mod nearest;
mod rebuild;
mod reindent;
#[cfg(test)]
mod tests;

use gnoma_core::{
    ToolCx, ToolSpec,
    tool::{Access, Tier, ToolKind, ToolOutput, TouchedResource},
};
use serde::Deserialize;

use super::{
    FileAnswer, FileTools, Refusal, atomic,
    diff::Diff,
    encoding::{TextForm, describe_hidden},
    ledger::Familiarity,
    target::{Target, TargetKind},
    text::{format_count, line_range, truncate_chars},
    write::{describe_kept, unencodable_refusal},
};
use crate::args;
use apply::{AppliedEdits, Cause, Edit, EditError, EditSpot, apply_edits};
use nearest::NearestLines;

/// Edits one call may make.
const MAX_EDITS: usize = 100;
/// Bytes of a file that is shown whole in place of the nearest lines.
const MAX_SHOWN_BYTES: usize = 6_000;
/// Characters of a nearest line that are shown.
const MAX_LINE_CHARS: usize = 300;

/// The arguments of a call: one edit, or a list of them.
#[derive(Deserialize)]
pub(super) struct EditArguments {
    path: String,
    old_string: Option<String>,
    new_string: Option<String>,
    replace_all: Option<bool>,
    edits: Option<Vec<ListedEdit>>,
}

#[derive(Deserialize)]
struct ListedEdit {
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

pub(super) fn spec() -> ToolSpec {
    let spec = args::tool_spec(
        "fs.edit",
        Access::Edit,
        [TouchedResource::path("path")],
        Tier::Lean,
        "Replace text in a file. old_string must match in one place unless replace_all; empty \
         creates the file. edits: several, in order, all or none.",
        r#"{"type":"object","properties":{"path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"},"edits":{"type":"array","items":{"type":"object","properties":{"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["old_string","new_string"]}}},"required":["path"]}"#,
    );
    ToolSpec { kind: ToolKind::WritesFiles, ..spec }
}

pub(super) fn run(shared: &FileTools, arguments: &EditArguments, cx: &ToolCx) -> FileAnswer {
    let _lease = shared.lease_file(cx, &arguments.path)?;
    let _sole = shared.sole_writer();
    let plan = PlannedEdit::from_arguments(shared, arguments, cx)?;
    let written = atomic::replace_file(&plan.target, &plan.applied.content, shared, cx)?;
    if plan.is_known {
        shared.ledger.record_seen(&plan.target.path, &plan.applied.content);
    }
    let diff = plan.diff();
    let text = format!("{}{}\n{}", plan.summary(), written.note(), diff.for_model());
    Ok(ToolOutput { diff: diff.for_people(), ..ToolOutput::from_text(text.trim_end()) })
}

pub(super) fn preview(
    shared: &FileTools,
    arguments: &EditArguments,
    cx: &ToolCx,
) -> Result<Option<String>, Refusal> {
    Ok(PlannedEdit::from_arguments(shared, arguments, cx)?.diff().for_people())
}

impl EditArguments {
    /// The edits, in order.
    fn edits(&self) -> Result<Vec<Edit<'_>>, Refusal> {
        let listed = self.edits.as_deref().unwrap_or_default();
        // Some models fill in every field, so an empty single edit beside a list is none.
        let edits = match (self.single_edit(), listed) {
            (Some(single), []) => vec![single],
            (Some(single), _) if !(single.old.is_empty() && single.new.is_empty()) => {
                return Err(refuse_edit(
                    "give `old_string` and `new_string`, or `edits`, not both",
                ));
            }
            (None, []) => {
                return Err(refuse_edit("give `old_string` and `new_string`, or `edits`"));
            }
            (_, listed) => listed.iter().map(ListedEdit::as_edit).collect(),
        };
        if edits.len() > MAX_EDITS {
            return Err(refuse_edit(&format!("one call makes at most {MAX_EDITS} edits")));
        }
        Ok(edits)
    }

    fn single_edit(&self) -> Option<Edit<'_>> {
        Some(Edit {
            old: self.old_string.as_deref()?,
            new: self.new_string.as_deref()?,
            all: self.replace_all.unwrap_or(false),
        })
    }
}

impl ListedEdit {
    fn as_edit(&self) -> Edit<'_> {
        Edit {
            old: &self.old_string,
            new: &self.new_string,
            all: self.replace_all.unwrap_or(false),
        }
    }
}

/// The edit that a call would make.
struct PlannedEdit {
    target: Target,
    old: Option<Vec<u8>>,
    applied: AppliedEdits,
    /// The model knows the whole of the new content.
    is_known: bool,
    /// The features of the file that a model does not see.
    kept: Vec<&'static str>,
}

impl PlannedEdit {
    fn from_arguments(
        shared: &FileTools,
        arguments: &EditArguments,
        cx: &ToolCx,
    ) -> Result<Self, Refusal> {
        let target = shared.resolve_target(cx, &arguments.path)?;
        let edits = arguments.edits()?;
        let plan = match target.kind()? {
            TargetKind::Missing => Self::plan_creation(target, &edits)?,
            TargetKind::File(_) => Self::plan_change(shared, target, &edits)?,
            TargetKind::Folder => return Err(target.is_folder()),
            TargetKind::Special => return Err(target.is_special()),
        };
        let length = plan.applied.content.len() as u64;
        if length > shared.max_file_bytes {
            return Err(refuse_edit(&format!(
                "`{}` would have {length} bytes, more than the {} a file may have",
                plan.target.name, shared.max_file_bytes
            )));
        }
        Ok(plan)
    }

    fn plan_creation(target: Target, edits: &[Edit<'_>]) -> Result<Self, Refusal> {
        match edits {
            [only] if only.old.is_empty() => Ok(Self {
                target,
                old: None,
                applied: AppliedEdits { content: only.new.as_bytes().to_vec(), places: Vec::new() },
                is_known: true,
                kept: Vec::new(),
            }),
            _ => Err(target.is_missing()),
        }
    }

    fn plan_change(
        shared: &FileTools,
        target: Target,
        edits: &[Edit<'_>],
    ) -> Result<Self, Refusal> {
        let old = target.read_content(shared.max_file_bytes)?;
        let knowledge = shared.ledger.familiarity_of(&target.path, &old);
        if knowledge == Familiarity::Changed {
            return Err(refuse_edit(&format!(
                "`{}` has changed since it was last read; read it again first",
                target.name
            )));
        }
        let (form, text) = TextForm::decode(&old);
        let edits: Vec<_> = edits.iter().map(|edit| without_mark(*edit, &text)).collect();
        let mut applied = apply_edits(&text, &edits).map_err(|error| {
            let why = explain_error(&error, &target.name, edits.len());
            let is_guess = matches!(error.cause, Cause::NotFound { .. });
            match numbered_lines(&text).filter(|_| is_guess && knowledge == Familiarity::Unseen) {
                Some(lines) => {
                    refuse_edit(&describe_unread_file(&target.name, edits.len(), &error, &lines))
                }
                None => refuse_edit(&why),
            }
        })?;
        let kept = describe_hidden(form, &text);
        let content = std::mem::take(&mut applied.content);
        applied.content = form
            .encode(content)
            .map_err(|error| unencodable_refusal(&target.name, form, &error))?;
        if applied.content == old {
            return Err(refuse_edit(&format!("the edit leaves `{}` as it is", target.name)));
        }
        let is_known = knowledge == Familiarity::Current;
        Ok(Self { target, old: Some(old), applied, is_known, kept })
    }

    fn diff(&self) -> Diff {
        Diff::from_contents(&self.target.name, self.old.as_deref(), &self.applied.content)
    }

    fn summary(&self) -> String {
        let name = &self.target.name;
        if self.old.is_none() {
            return format!("created `{name}`");
        }
        let places = &self.applied.places;
        let replacements: usize = places.iter().map(|place| place.count).sum();
        let mut text = format!("edited `{name}`");
        if replacements > 1 {
            text.push_str(&format!(" ({})", format_count(replacements, "replacement")));
        }
        text.push_str(&describe_kept(&self.kept));
        for (index, place) in places.iter().enumerate() {
            if let Some(note) = describe_inexact_match(place) {
                let which = edit_prefix(index, places.len());
                text.push_str(&format!("\n{which}{note}"));
            }
        }
        text
    }
}

/// Returns an edit of `text` without the byte order mark before its texts, unless the text has it there: a file's own
/// mark is not in its text, and is kept.
fn without_mark<'e>(edit: Edit<'e>, text: &[u8]) -> Edit<'e> {
    const MARK: char = '\u{feff}';
    let is_there = |old: &str| memchr::memmem::find(text, old.as_bytes()).is_some();
    match edit.old.strip_prefix(MARK).filter(|_| !is_there(edit.old)) {
        Some(old) => Edit { old, new: edit.new.strip_prefix(MARK).unwrap_or(edit.new), ..edit },
        None => edit,
    }
}

/// Returns the note for the model about a match that was not exact.
fn describe_inexact_match(place: &EditSpot) -> Option<String> {
    let overlooked = place.looseness?.describe_ignored();
    let lines = line_range(place.lines.0, place.lines.1);
    Some(format!("matched ignoring {overlooked} at {lines}"))
}

/// `edit 2 of 3: ` if there are several.
fn edit_prefix(index: usize, count: usize) -> String {
    if count > 1 { format!("edit {} of {count}: ", index + 1) } else { String::new() }
}

fn refuse_edit(why: &str) -> Refusal {
    Refusal::Failed(format!("nothing was changed: {why}"))
}

/// Explains why an edit of `name` failed and what to do about it.
fn explain_error(error: &EditError, name: &str, count: usize) -> String {
    let why = match &error.cause {
        Cause::Empty => format!(
            "`old_string` is empty, but `{name}` exists: name the text to replace, or use fs.write"
        ),
        Cause::NoChange => "`old_string` and `new_string` are the same".to_owned(),
        Cause::Overwritten => {
            "`old_string` was in the file until an earlier edit of this call replaced it".to_owned()
        }
        Cause::Ambiguous { count, lines, looseness } => {
            describe_ambiguity(*count, lines, *looseness)
        }
        Cause::Undecodable { line } => format!(
            "`new_string` holds `U+FFFD`, which stands for bytes of line {line} that are not \
             UTF-8: choose an `old_string` without them"
        ),
        Cause::NotFound { nearest, new_at } => not_found(name, nearest.as_ref(), *new_at),
    };
    format!("{}{why}", edit_prefix(error.edit, count))
}

fn describe_ambiguity(
    count: usize,
    lines: &[usize],
    looseness: Option<fold::MatchTolerance>,
) -> String {
    let how = looseness
        .map(|looseness| format!(" (ignoring {})", looseness.describe_ignored()))
        .unwrap_or_default();
    let more = if count > lines.len() { ", …" } else { "" };
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let lines = lines.join(", ");
    let remedy = match looseness {
        None => "add lines around it to make it unique, or set `replace_all`",
        Some(_) => "copy it exactly as it is in the file, with lines around it",
    };
    format!("`old_string` matches {count} times{how}, at lines {lines}{more}: {remedy}")
}

/// The lines of a small text with their numbers; `None` for anything else.
fn numbered_lines(content: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content).ok()?;
    if text.is_empty() || text.len() > MAX_SHOWN_BYTES {
        return None;
    }
    let line = |(number, line): (usize, &str)| format!("{number}\t{line}\n");
    Some((1..).zip(text.lines()).map(line).collect())
}

/// A text that was guessed is not in a file that was never read: the file is shown.
fn describe_unread_file(name: &str, count: usize, error: &EditError, lines: &str) -> String {
    let which = edit_prefix(error.edit, count);
    format!(
        "{which}`old_string` is not in `{name}`, which was not read yet. It reads (copy without the \
         line numbers):\n{}",
        lines.trim_end_matches('\n')
    )
}

fn not_found(name: &str, nearest: Option<&NearestLines>, new_at: Option<usize>) -> String {
    let mut why = format!("`old_string` is not in `{name}`");
    if let Some(line) = new_at {
        why.push_str(&format!(", but `new_string` is already there at line {line}"));
    }
    match nearest {
        None => why.push_str(" and no similar text was found; read the file again"),
        Some(nearest) => {
            why.push_str(
                ". The nearest text as it really is (copy it without the line numbers):\n",
            );
            for (number, line) in (nearest.first_line..).zip(&nearest.lines) {
                let (kept, was_cut) = truncate_chars(line, MAX_LINE_CHARS);
                let mark = if was_cut { "…" } else { "" };
                why.push_str(&format!("{number}\t{kept}{mark}\n"));
            }
            why.pop();
        }
    }
    why
}
