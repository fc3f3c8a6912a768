//! Reads the hunks of unified diffs. Lines of a hunk are counted, so that no line of a file passes for a header.

/// The side of a change that a line is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The line is on both sides.
    Same,
    /// The line is only before the change.
    Removed,
    /// The line is only after the change.
    Added,
}

/// The position in a unified diff up to which it has been read.
#[derive(Debug, Default)]
pub struct HunkReader {
    /// Numbers of the next lines.
    old: usize,
    new: usize,
    /// Lines that the hunk still has.
    old_left: usize,
    new_left: usize,
}

impl HunkReader {
    /// True while lines of a hunk are still to come.
    #[must_use]
    pub fn is_in_hunk(&self) -> bool {
        self.old_left > 0 || self.new_left > 0
    }

    /// Begins a hunk if `line` is the header of one, such as `@@ -2,3 +2,4 @@`. Returns true if it is.
    pub fn read_header(&mut self, line: &str) -> bool {
        let Some((old, new)) = parse_hunk_header(line) else { return false };
        (self.old, self.old_left) = old;
        (self.new, self.new_left) = new;
        true
    }

    /// Returns the side that a line of a hunk is on, and its number there; its number after the change if it is on both.
    /// `None` if the hunk has no such line.
    pub fn read_line(&mut self, line: &str) -> Option<(Side, usize)> {
        match line.as_bytes().first() {
            Some(b'-') if self.old_left > 0 => {
                Some((Side::Removed, count_line(&mut self.old, &mut self.old_left)))
            }
            Some(b'+') if self.new_left > 0 => {
                Some((Side::Added, count_line(&mut self.new, &mut self.new_left)))
            }
            Some(b' ') | None if self.old_left > 0 && self.new_left > 0 => {
                count_line(&mut self.old, &mut self.old_left);
                Some((Side::Same, count_line(&mut self.new, &mut self.new_left)))
            }
            _ => None,
        }
    }

    /// Ends the hunk before its last line: the rest of it was cut off.
    pub fn end_hunk(&mut self) {
        (self.old_left, self.new_left) = (0, 0);
    }
}

/// Counts one line of a side and returns its number.
fn count_line(number: &mut usize, left: &mut usize) -> usize {
    let this = *number;
    *number = number.saturating_add(1);
    *left -= 1;
    this
}

type LineRange = (usize, usize);

/// Parses the header of a hunk: the first number and the count of lines on both sides.
fn parse_hunk_header(line: &str) -> Option<(LineRange, LineRange)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    Some((parse_range(old)?, parse_range(new)?))
}

fn parse_range(text: &str) -> Option<LineRange> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_hunk_that_look_like_headers_are_lines() {
        let mut reader = HunkReader::default();
        assert!(!reader.read_header("--- a/x") && reader.read_line("-x").is_none());
        assert!(reader.read_header("@@ -2,2 +2,2 @@ fn main() {"));
        assert_eq!(reader.read_line("--- a/x"), Some((Side::Removed, 2)));
        assert_eq!(reader.read_line("+++ b/x"), Some((Side::Added, 2)));
        assert_eq!(reader.read_line(""), Some((Side::Same, 3)));
        assert!(!reader.is_in_hunk() && reader.read_line("+x").is_none());
        assert!(reader.read_header("@@ -7 +7,0 @@"));
        assert!(reader.is_in_hunk() && reader.read_line("+x").is_none());
        reader.end_hunk();
        assert!(!reader.is_in_hunk());
    }
}
