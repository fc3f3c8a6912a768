//! Counts of things in sentences for people.

/// Writes a count with its noun, in the plural unless it is one: `1 step`, `3 steps`. `noun` forms its plural by `s`.
#[must_use]
pub fn describe_count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_every_other_count_plural() {
        let counts = [0, 1, 2].map(|count| describe_count(count, "step"));
        assert_eq!(counts, ["0 steps", "1 step", "2 steps"]);
    }
}
