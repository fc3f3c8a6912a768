//! Drafts as people should see them: pasted texts by their names, not with all their content.

use gnoma_core::{Content, shell_line::split_shell_lines};

use crate::composer::{Draft, Fold};

/// Columns that a tab becomes.
const TAB: &str = "    ";
/// Characters of a prompt in one line.
const MAX_LINE_CHARS: usize = 200;

/// All of a draft, with what was pasted folded.
pub(super) fn describe_draft(draft: &Draft) -> String {
    let mut shown = String::new();
    let mut done = 0;
    for fold in draft.folds.iter().filter(|fold| fold.image.is_none()) {
        let (Some(before), Some(inside)) =
            (draft.text.get(done..fold.start), draft.text.get(fold.start..fold.end))
        else {
            continue;
        };
        shown.push_str(before);
        let lines = inside.lines().count();
        let is_pasted = split_shell_lines(inside).0.is_empty();
        let what = if is_pasted { "pasted text" } else { "output of a command" };
        let unit = if lines == 1 { "line" } else { "lines" };
        shown.push_str(&format!("[{what}, {lines} {unit}]"));
        done = fold.end;
    }
    shown.push_str(draft.text.get(done..).unwrap_or_default());
    if shown.trim().is_empty() && !draft.images.is_empty() {
        return "[image]".to_owned();
    }
    shown
}

/// A draft in one line.
pub(super) fn first_line(draft: &Draft) -> String {
    let whole = describe_draft(draft);
    let mut lines = whole.trim().lines();
    let first: String = lines.next().unwrap_or_default().chars().take(MAX_LINE_CHARS).collect();
    match lines.count() {
        0 => first,
        more => format!("{first} … +{more}"),
    }
}

/// A message in one line.
pub(super) fn message_line(content: &[Content]) -> String {
    let text = |part: &Content| match part {
        Content::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    let text: String = content.iter().filter_map(text).collect();
    if text.trim().is_empty() { "[image]".to_owned() } else { first_line(&text.as_str().into()) }
}

/// The text with spaces for its tabs.
pub(super) fn replace_tabs(text: &str) -> String {
    text.replace('\t', TAB)
}

/// A draft whose text was changed elsewhere: images stay where their labels still stand.
pub(super) fn rewrite_draft(before: &Draft, text: String) -> Draft {
    let mut draft = Draft { text, ..Draft::default() };
    let mut from = 0;
    for fold in &before.folds {
        let (Some(image), Some(label)) = (
            fold.image.and_then(|index| before.images.get(index)),
            before.text.get(fold.start..fold.end),
        ) else {
            continue;
        };
        let Some(at) = draft.text.get(from..).and_then(|rest| rest.find(label)) else { continue };
        let start = from + at;
        from = start + label.len();
        draft.images.push(image.clone());
        draft.folds.push(Fold { start, end: from, image: Some(draft.images.len() - 1) });
    }
    draft
}

#[cfg(test)]
mod tests {
    use gnoma_core::Image;

    use super::*;

    #[test]
    fn draft_description_summarizes_pasted_text() {
        let text = "look: one\ntwo\nthree, please".to_owned();
        let folds = vec![Fold { start: 6, end: 19, image: None }];
        let draft = Draft { text, folds, ..Draft::default() };
        assert_eq!(describe_draft(&draft), "look: [pasted text, 3 lines], please");
        assert_eq!(first_line(&"a\nb\nc".into()), "a … +2");
    }

    #[test]
    fn an_image_stays_while_its_label_does() {
        let image = Image { mime: "image/png".to_owned(), base64: "AA==".into() };
        let before = Draft {
            text: "see [Image #1] here".to_owned(),
            images: vec![image],
            folds: vec![Fold { start: 4, end: 14, image: Some(0) }],
            session: None,
        };
        let kept = rewrite_draft(&before, "now [Image #1]".to_owned());
        assert_eq!((kept.images.len(), kept.folds[0].start), (1, 4));
        assert!(rewrite_draft(&before, "gone".to_owned()).images.is_empty());
    }
}
