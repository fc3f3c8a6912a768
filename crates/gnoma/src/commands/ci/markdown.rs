//! The report for people.

use std::fmt::Write as _;

use super::{
    escape,
    review::{Comment, Review, name},
};

/// Names of files that are listed; of more only the number is told.
const MAX_NAMES: usize = 20;

/// The report on a review.
pub(super) fn report(review: &Review) -> String {
    let Review { left_out, summary, comments, .. } = review;
    let mut text = format!("## Review by gnoma\n\n**Summary:** {}\n\n", escape::markdown(summary));
    for it in comments {
        let place = escape::markdown(&format!("{}:{}", it.path, it.line));
        let _infallible = writeln!(text, "- {place}<br>{}", comment(it));
    }
    let scope = escape::markdown(&review.scope());
    let _infallible = write!(text, "\n{scope}; {}.\n", review.counted());
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
pub(super) fn comment(comment: &Comment) -> String {
    let (title, message) = (escape::markdown(&comment.title), escape::markdown(&comment.message));
    format!("**{}: {title}**<br>{message}", name(comment.level))
}
