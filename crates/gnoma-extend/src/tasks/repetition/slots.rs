//! Finds the arguments behind the differing parts of steps: the same value can occur in many places, as a part of a
//! longer one, or in other letters (`due_on`, `DueOn`).

/// Stands for an argument inside a value.
const HOLE: char = '\u{1}';

/// The values of one differing part, one for each occurrence; none where the occurrence lacks the step.
pub(super) type Values = Vec<Option<String>>;

/// Returns the arguments, as the values of each in all occurrences, from the differing parts of steps.
pub(super) fn find_arguments(parts: &[Values]) -> Vec<Values> {
    let mut arguments: Vec<Values> = Vec::new();
    let pieces: Vec<Values> = parts.iter().flat_map(split_alike).collect();
    // Shorter parts first, so that longer ones can be explained by them.
    let mut parts: Vec<&Values> = pieces.iter().collect();
    gnoma_core::sort::by_key(&mut parts, |part| part_rank(part));
    for part in parts {
        let rest = subtract_all(part, &arguments);
        for piece in differing_pieces(&rest) {
            arguments.push(piece);
        }
    }
    arguments
}

/// Orders parts: those that all occurrences have first, then by length.
fn part_rank(part: &Values) -> (usize, usize) {
    let missing = part.iter().filter(|it| it.is_none()).count();
    (missing, part.iter().flatten().map(String::len).sum())
}

/// Splits values at the commas and equals signs that all of them have in common: `[a,b]` is two values.
fn split_alike(part: &Values) -> Vec<Values> {
    let is_joint = |c: char| matches!(c, ',' | '=' | ';');
    let pieces = |value: &String| value.split(is_joint).map(str::to_owned).collect::<Vec<_>>();
    let split: Vec<Option<Vec<String>>> = part.iter().map(|it| it.as_ref().map(pieces)).collect();
    let count = split.iter().flatten().map(Vec::len).min().unwrap_or(1);
    if count < 2 || split.iter().flatten().any(|it| it.len() != count) {
        return vec![part.clone()];
    }
    let piece =
        |at| split.iter().map(|it| it.as_ref().and_then(|it| it.get(at).cloned())).collect();
    (0..count).map(piece).collect()
}

/// Replaces the arguments in values by holes.
pub(super) fn subtract_all(part: &Values, arguments: &[Values]) -> Values {
    let mut rest = part.clone();
    let mut longest_first: Vec<&Values> = arguments.iter().collect();
    gnoma_core::sort::by_key(&mut longest_first, |it| {
        std::cmp::Reverse(it.iter().flatten().map(String::len).sum::<usize>())
    });
    for argument in longest_first {
        if let Some(next) = subtract_argument(&rest, argument) {
            rest = next;
        }
    }
    rest
}

/// Replaces an argument by holes, if each value holds it in the same letters or in the same other ones.
fn subtract_argument(part: &Values, argument: &Values) -> Option<Values> {
    let forms: [fn(&str) -> String; 3] = [str::to_owned, str::to_lowercase, plain_letters];
    forms.iter().find_map(|form| {
        let mut rest = Vec::with_capacity(part.len());
        for (value, inner) in part.iter().zip(argument) {
            rest.push(match (value, inner) {
                (None, _) => None,
                (Some(_), None) => return None,
                (Some(value), Some(inner)) => {
                    let (value, inner) = (form(value), form(inner));
                    if inner.is_empty() || !value.contains(&inner) {
                        return None;
                    }
                    Some(value.replace(&inner, "\u{1}"))
                }
            });
        }
        Some(rest)
    })
}

/// Lower-case letters and digits, and holes.
pub(super) fn plain_letters(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric() || *c == HOLE)
        .flat_map(char::to_lowercase)
        .collect()
}

/// The pieces between holes that are not the same in all values. If their number differs, the whole is one piece.
fn differing_pieces(values: &Values) -> Vec<Values> {
    let present: Vec<&String> = values.iter().flatten().collect();
    let Some((first, others)) = present.split_first() else { return Vec::new() };
    if others.iter().all(|it| it == first) {
        return Vec::new();
    }
    let count = first.split(HOLE).count();
    if others.iter().any(|it| it.split(HOLE).count() != count) {
        return vec![values.iter().map(|it| it.as_ref().map(|it| trim_signs(it))).collect()];
    }
    (0..count)
        .filter_map(|at| {
            let piece: Values = values
                .iter()
                .map(|it| it.as_ref().and_then(|it| it.split(HOLE).nth(at)).map(trim_signs))
                .collect();
            let mut present = piece.iter().flatten();
            let first = present.next()?;
            present.any(|it| it != first).then_some(piece)
        })
        .collect()
}

/// A value without the signs around it.
fn trim_signs(value: &str) -> String {
    let value = value.replace(HOLE, " ");
    value.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}
