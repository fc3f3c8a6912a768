//! The report for people.

use std::fmt::Write as _;

use super::{
    escape,
    review::{Comment, Review},
};

/// Names of files that are listed; of more only the number is told.
const MAX_NAMES: usize = 20;

/// Renders the report on a review for people, as Markdown without links, HTML or mentions.
pub fn render_report(review: &Review) -> String {
    let Review { left_out, summary, comments, .. } = review;
    let mut text = format!("## Review by gnoma\n\n**Summary:** {}\n\n", escape::markdown(summary));
    for it in comments {
        let place = escape::markdown(&format!("{}:{}", it.path, it.line));
        let _infallible = writeln!(text, "- {place}<br>{}", render_comment(it));
    }
    let scope = escape::markdown(&review.describe_scope());
    let _infallible = write!(text, "\n{scope}; {}.\n", review.describe_counts());
    if !left_out.is_empty() {
        let mut names: Vec<_> =
            left_out.iter().take(MAX_NAMES).map(|it| escape::markdown(it)).collect();
        if left_out.len() > MAX_NAMES {
            names.push(format!("and {} more", left_out.len() - MAX_NAMES));
        }
        let _infallible = write!(
            text,
            "\nNot reviewed, because the change is too large: {}.\n",
            names.join(", ")
        );
    }
    text
}

/// One comment, in one line.
pub(super) fn render_comment(comment: &Comment) -> String {
    let (title, message) = (escape::markdown(&comment.title), escape::markdown(&comment.message));
    format!("**{}: {title}**<br>{message}", comment.level.name())
}
