//! Parts of the picture around the editor: fields to write in, and the plan while the model works on it.

use gnoma_core::plan::{PlanStep, StepStatus};

use super::{State, layer::FieldPurpose};
use crate::{
    composer::Composer,
    frame::{Cell, Size},
    picker::truncate_line,
    plan,
    text::{BackgroundRole, Line, Span, Style, TextRole},
};

/// Rows of the editor, where there is room for them.
pub(super) const MAX_EDITOR_ROWS: usize = 10;
/// The mark before the written text.
pub(super) const PROMPT: &str = "› ";
/// A narrower terminal has no room for that.
pub(super) const MIN_WIDTH_FOR_PROMPT: usize = 8;
/// Steps of the plan that are shown while the model works.
const MAX_PLAN_STEPS: usize = 4;
/// Rows that the plan leaves to the conversation.
const MIN_ROWS_BESIDE_PLAN: usize = 12;

/// Some lines, and where among them the cursor is.
#[derive(Default)]
pub(super) struct Part {
    pub(super) lines: Vec<Line>,
    pub(super) cursor: Option<Cell>,
    /// `true` if the part is the editor and nothing else.
    pub(super) is_editor: bool,
}

impl State {
    /// Returns lines with what is done of the plan and what comes next, while a turn runs.
    pub(super) fn plan_lines(&self, width: usize, room: usize, panel: &Part) -> Vec<Line> {
        let steps = &self.session.view.plan;
        let is_left = steps.iter().any(|step| step.status != StepStatus::Done);
        if self.accessible || self.is_idle() || !is_left || !panel.is_editor {
            return Vec::new();
        }
        let rows = room.saturating_sub(MIN_ROWS_BESIDE_PLAN).min(MAX_PLAN_STEPS + 2);
        if rows < 2 {
            return Vec::new();
        }
        plan_excerpt(steps, rows).into_iter().map(|line| truncate_line(line, width)).collect()
    }
}

/// The steps from the one on that is worked on, in at most `rows` lines.
fn plan_excerpt(steps: &[PlanStep], rows: usize) -> Vec<Line> {
    let dim = Style::with_ink(TextRole::Dim);
    let mut lines = vec![Line::new(format!("Plan · {}", plan::describe_progress(steps)), dim)];
    let open = |step: &&PlanStep| step.status != StepStatus::Done;
    let mut left: Vec<PlanStep> = steps.iter().filter(open).cloned().collect();
    gnoma_core::sort::by_key(&mut left, |step| step.status != StepStatus::Active);
    let room = rows - 1;
    let shown = if left.len() > room.min(MAX_PLAN_STEPS) {
        room.saturating_sub(1).clamp(1, MAX_PLAN_STEPS)
    } else {
        left.len()
    };
    lines.extend(plan::render_steps(left.get(..shown).unwrap_or(&left), false));
    if left.len() > shown && room > shown {
        lines.push(Line::new(format!("  … {} more", left.len() - shown), dim));
    }
    lines
}

/// A field to write in, below what it is for and above the keys.
pub(super) fn render_field(
    title: &str,
    field: &mut Composer,
    goal: &FieldPurpose,
    size: Size,
) -> Part {
    let Size { width, height: room } = size;
    let heading = Line::new(title.to_owned(), Style::with_ink(TextRole::Accent).bold());
    let mut lines = heading.wrap(width, &Line::default());
    lines.truncate(room.saturating_sub(2));
    let above = lines.len();
    let lead = if width >= MIN_WIDTH_FOR_PROMPT { PROMPT.chars().count() } else { 0 };
    let rows = room.saturating_sub(above + 1).clamp(1, MAX_EDITOR_ROWS);
    let (rows, cell) = field.render_window(width.saturating_sub(lead), rows);
    lines.extend(add_prompt(
        rows,
        if lead > 0 { PROMPT } else { "" },
        Style::with_ink(TextRole::Accent),
    ));
    if lines.len() < room {
        lines.push(Line::new(field_keys(goal), Style::with_ink(TextRole::Dim)));
    }
    let cursor = Some(Cell { row: above + cell.row, column: cell.column + lead });
    Part { lines, cursor, is_editor: false }
}

/// Describes what Enter and Esc do in a field.
fn field_keys(goal: &FieldPurpose) -> &'static str {
    match goal {
        FieldPurpose::Refuse(_) => "Enter denies and sends this to the model · Esc back",
        FieldPurpose::Reply(_) => "Enter sends the answer · Esc back",
        FieldPurpose::Rule(_) => "Enter allows this · Tab other scope · Esc back",
        FieldPurpose::Part(_) => "Enter keeps these · Esc back",
        FieldPurpose::Set(_) => "Enter saves · Esc back",
        FieldPurpose::Bypass => "Enter confirms · Esc back",
    }
}

/// Rows of an editor with a prompt before the first of them.
pub(super) fn add_prompt(rows: Vec<Line>, prompt: &'static str, style: Style) -> Vec<Line> {
    let indent = " ".repeat(prompt.chars().count());
    let lead = |(place, mut line): (usize, Line)| {
        let lead = if place == 0 {
            Span::new(prompt, style)
        } else {
            Span::new(indent.clone(), Style::default().on_paper(BackgroundRole::None))
        };
        line.spans.insert(0, lead);
        line
    };
    rows.into_iter().enumerate().map(lead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(marks: &str) -> Vec<PlanStep> {
        let step = |(at, mark): (usize, char)| {
            let status = match mark {
                'x' => StepStatus::Done,
                '>' => StepStatus::Active,
                _ => StepStatus::Pending,
            };
            PlanStep { text: format!("step {}", at + 1), status }
        };
        marks.chars().enumerate().map(step).collect()
    }

    fn shown(marks: &str, rows: usize) -> Vec<String> {
        plan_excerpt(&steps(marks), rows)
            .iter()
            .map(|line| line.plain_text().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn plan_pane_shows_current_and_next_steps() {
        assert_eq!(shown("xx>.", 6), ["Plan · 2 of 4 done", "  ● step 3", "  ○ step 4"]);
        let long = shown("x>.......", 6);
        assert_eq!(long.len(), 6);
        assert_eq!((long[1].as_str(), long[5].as_str()), ("  ● step 2", "  … 4 more"));
        assert_eq!(shown("x>...", 2), ["Plan · 1 of 5 done", "  ● step 2"]);
    }
}
