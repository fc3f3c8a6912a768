//! Indents new lines like the place they go to.
//!
//! A loose match pairs each line of the searched text with a line of the file. The pairs say which indentation of
//! the model's text corresponds to which of the file's; new lines follow the nearest pair.

/// The translation of the model's indentation to the file's.
pub(super) struct IndentTranslation<'a> {
    pairs: Vec<Pair<'a>>,
    step: Option<IndentLevel>,
}

struct Pair<'a> {
    line: usize,
    theirs: &'a str,
    ours: &'a str,
}

/// One level of indentation, in the model's text and in the file.
struct IndentLevel {
    theirs: String,
    ours: String,
}

impl<'a> IndentTranslation<'a> {
    /// From pairs of lines: what the model wrote, what the file holds. Blank lines say nothing.
    pub(super) fn from_pairs(lines: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let pairs: Vec<Pair<'a>> = lines
            .enumerate()
            .filter(|(_, (theirs, _))| !theirs.trim().is_empty())
            .map(|(line, (theirs, ours))| Pair {
                line,
                theirs: indentation_of(theirs),
                ours: indentation_of(ours),
            })
            .collect();
        let step = IndentLevel::infer_level(&pairs);
        Self { pairs, step }
    }

    /// `line`, which goes in at line `at` of the pairs, with the file's indentation.
    pub(super) fn reindent_line(&self, line: &str, at: usize) -> String {
        let wanted = indentation_of(line);
        let body = line.get(wanted.len()..).unwrap_or_default();
        if body.is_empty() {
            return line.to_owned();
        }
        format!("{}{body}", self.translate_indentation(wanted, at))
    }

    fn translate_indentation(&self, wanted: &str, at: usize) -> String {
        if let Some(pair) =
            self.best_pair(at, |pair| wanted.starts_with(pair.theirs), |pair| pair.theirs.len())
        {
            let deeper = wanted.strip_prefix(pair.theirs).unwrap_or_default();
            return format!("{}{}", pair.ours, self.convert_indentation(deeper));
        }
        if let Some(pair) = self.best_pair(at, |pair| pair.theirs.starts_with(wanted), |_| 0) {
            let surplus = pair.theirs.strip_prefix(wanted).unwrap_or_default();
            let shallower = pair.ours.strip_suffix(self.convert_indentation(surplus).as_str());
            return shallower.unwrap_or_default().to_owned();
        }
        wanted.to_owned()
    }

    /// The fitting pair with the highest rank, and of these the nearest to line `at`.
    fn best_pair(
        &self,
        at: usize,
        fits: impl Fn(&Pair<'_>) -> bool,
        rank: impl Fn(&Pair<'_>) -> usize,
    ) -> Option<&Pair<'a>> {
        let fitting = self.pairs.iter().filter(|pair| fits(pair));
        fitting.min_by_key(|pair| (usize::MAX - rank(pair), pair.line.abs_diff(at)))
    }

    fn convert_indentation(&self, more: &str) -> String {
        match &self.step {
            Some(step) => more.replace(&step.theirs, &step.ours),
            None => more.to_owned(),
        }
    }
}

impl IndentLevel {
    fn infer_level(pairs: &[Pair<'_>]) -> Option<Self> {
        pairs
            .iter()
            .find_map(|pair| Self::of_kinds(pair.theirs, pair.ours))
            .or_else(|| pairs.windows(2).find_map(Self::of_levels))
    }

    /// From one line that is indented by spaces here and by tabs there.
    fn of_kinds(theirs: &str, ours: &str) -> Option<Self> {
        let width = |spaces: &str, tabs: &str| {
            let is_pure = |text: &str, char| !text.is_empty() && text.chars().all(|c| c == char);
            let fits = is_pure(spaces, ' ')
                && is_pure(tabs, '\t')
                && spaces.len().is_multiple_of(tabs.len());
            fits.then(|| " ".repeat(spaces.len() / tabs.len()))
        };
        let tab = || "\t".to_owned();
        if let Some(theirs) = width(theirs, ours) {
            return Some(Self { theirs, ours: tab() });
        }
        width(ours, theirs).map(|ours| Self { theirs: tab(), ours })
    }

    /// From two lines, one a level deeper than the other, with levels of different depth.
    fn of_levels(pairs: &[Pair<'_>]) -> Option<Self> {
        let [a, b] = pairs else { return None };
        let (outer, inner) = if a.theirs.len() < b.theirs.len() { (a, b) } else { (b, a) };
        let theirs = inner.theirs.strip_prefix(outer.theirs)?;
        let ours = inner.ours.strip_prefix(outer.ours)?;
        let is_news = !theirs.is_empty() && !ours.is_empty() && theirs != ours;
        is_news.then(|| Self { theirs: theirs.to_owned(), ours: ours.to_owned() })
    }
}

/// The white space a line begins with.
fn indentation_of(line: &str) -> &str {
    let body = line.trim_start();
    line.get(..line.len() - body.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(pairs: &[(&str, &str)], line: &str) -> String {
        IndentTranslation::from_pairs(pairs.iter().copied()).reindent_line(line, 0)
    }

    #[test]
    fn reindent_shifts_every_line_by_the_same_amount() {
        let pairs = [("if x {", "    if x {"), ("    y", "        y")];
        assert_eq!(moved(&pairs, "    z"), "        z");
        assert_eq!(moved(&pairs, "        deeper"), "            deeper");
        let inward = [("        a", "    a")];
        assert_eq!(moved(&inward, "    out"), "out");
        assert_eq!(moved(&inward, "            in"), "        in");
    }

    #[test]
    fn reindent_converts_spaces_to_the_tabs_of_the_file() {
        let pairs = [("    a", "\ta"), ("        b", "\t\tb")];
        assert_eq!(moved(&pairs, "            c"), "\t\t\tc");
        assert_eq!(moved(&[("\ta", "  a")], "\t\tb"), "    b");
        assert_eq!(moved(&[("    a", "\t\ta")], "b"), "b");
    }

    #[test]
    fn reindent_converts_the_indentation_width() {
        let pairs = [("a", "a"), ("  b", "    b")];
        assert_eq!(moved(&pairs, "    c"), "        c");
    }

    #[test]
    fn reindent_leaves_unmatched_and_blank_lines_alone() {
        assert_eq!(moved(&[("\ta", "\t\ta")], "  b"), "  b");
        assert_eq!(moved(&[("a", "  a")], "   "), "   ");
        assert_eq!(moved(&[], "  b"), "  b");
    }
}
