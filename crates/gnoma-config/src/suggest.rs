//! Which known name was probably meant.

/// Longer names are not compared: the work grows with the product of the lengths.
const MAX_NAME_CHARS: usize = 64;

/// The name nearest to `wrong`, if one is near: at most a third of its letters differ. Of two that
/// are as near, the one as long as `wrong`.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong_length = wrong.chars().count();
    if wrong_length > MAX_NAME_CHARS {
        return None;
    }
    let ranked = names.filter_map(|name| {
        let length = name.chars().count();
        let distance = distance(wrong, name);
        let is_near = distance <= (wrong_length.max(length) / 3).max(1);
        is_near.then_some((distance, wrong_length.abs_diff(length), name))
    });
    ranked.min().map(|(_, _, name)| name)
}

/// Edits between two words: letters added, dropped, replaced, or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous_left = None;
    for (row, l) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut diagonal = row;
        for (column, r) in right.iter().enumerate() {
            let above = at(&last, column + 1);
            let mut best =
                (diagonal + usize::from(l != *r)).min(above + 1).min(at(&current, column) + 1);
            let swapped =
                column > 0 && previous_left == Some(*r) && right.get(column - 1) == Some(&l);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
            diagonal = above;
        }
        before_last = std::mem::replace(&mut last, current);
        previous_left = Some(l);
    }
    at(&last, right.len())
}

fn at(row: &[usize], column: usize) -> usize {
    row.get(column).copied().unwrap_or(usize::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("model", "modle"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["mode", "model", "max_tokens", "temperature"];
        assert_eq!(nearest("modle", names.into_iter()), Some("model"));
        assert_eq!(nearest("max_token", names.into_iter()), Some("max_tokens"));
        assert_eq!(nearest("colour", names.into_iter()), None);
    }
}
