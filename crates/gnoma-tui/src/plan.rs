//! The model's plan as lines: what is done, what it is working on, and what is left.

use gnoma_core::plan::{PlanStep, StepStatus};

use crate::text::{Line, Span, Style, TextRole};

/// Describes in words how many steps are done.
pub(crate) fn describe_progress(steps: &[PlanStep]) -> String {
    let done = steps.iter().filter(|step| step.status == StepStatus::Done).count();
    format!("{done} of {} done", steps.len())
}

/// A line for each step. Where the lines are read aloud, a word stands for each mark.
pub(crate) fn render_steps(steps: &[PlanStep], is_spoken: bool) -> Vec<Line> {
    steps.iter().map(|step| render_step(step, is_spoken)).collect()
}

fn render_step(step: &PlanStep, is_spoken: bool) -> Line {
    let (mark, word, mark_style, style) = match step.status {
        StepStatus::Done => {
            let style = Style { strike: true, ..Style::with_ink(TextRole::Dim) };
            ("✓", "done:", Style::with_ink(TextRole::Good), style)
        }
        StepStatus::Active => {
            ("●", "now:", Style::with_ink(TextRole::Accent), Style::default().bold())
        }
        StepStatus::Pending => ("○", "next:", Style::with_ink(TextRole::Dim), Style::default()),
    };
    let mark = if is_spoken { word } else { mark };
    Line::from([Span::new(format!("  {mark} "), mark_style), Span::new(step.text.clone(), style)])
}
