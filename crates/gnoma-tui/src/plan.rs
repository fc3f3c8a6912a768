//! The model's plan as lines: what is done, what it is working on, and what is left.

use gnoma_core::plan::{PlanStep, StepStatus};

use crate::text::{Ink, Line, Span, Style};

/// Describes in words how many steps are done.
pub(crate) fn progress(steps: &[PlanStep]) -> String {
    let done = steps.iter().filter(|step| step.status == StepStatus::Done).count();
    format!("{done} of {} done", steps.len())
}

/// A line for each step. Where the lines are read aloud, a word stands for each mark.
pub(crate) fn lines(steps: &[PlanStep], is_spoken: bool) -> Vec<Line> {
    steps.iter().map(|step| line(step, is_spoken)).collect()
}

fn line(step: &PlanStep, is_spoken: bool) -> Line {
    let (mark, word, mark_style, style) = match step.status {
        StepStatus::Done => {
            let style = Style { strike: true, ..Style::of(Ink::Dim) };
            ("✓", "done:", Style::of(Ink::Good), style)
        }
        StepStatus::Active => ("●", "now:", Style::of(Ink::Accent), Style::default().bold()),
        StepStatus::Pending => ("○", "next:", Style::of(Ink::Dim), Style::default()),
    };
    let mark = if is_spoken { word } else { mark };
    Line::from([Span::new(format!("  {mark} "), mark_style), Span::new(step.text.clone(), style)])
}
