//! The conversation as Markdown for export: its end, since all of it is in the session's store.

use std::collections::VecDeque;

/// Of longer conversations the end is kept.
const MAX_BYTES: usize = 1_048_576;
const LEFT_OUT: &str = "(The beginning is not kept here; the stored session has it.)";

#[derive(Debug, Default)]
pub(super) struct Kept {
    parts: VecDeque<String>,
    bytes: usize,
    is_cut: bool,
}

impl Kept {
    pub(super) fn push(&mut self, part: &str) {
        let end = part.floor_char_boundary(MAX_BYTES);
        self.is_cut |= end < part.len();
        self.bytes += end;
        self.parts.push_back(part[..end].to_owned());
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.parts.pop_front()
        {
            self.bytes -= oldest.len();
            self.is_cut = true;
        }
    }

    /// All that is kept, and what is still being written.
    pub(super) fn text(&self, open: &str) -> String {
        let notice = if self.is_cut { LEFT_OUT } else { "" };
        let parts = self.parts.iter().map(String::as_str);
        let parts = [notice].into_iter().chain(parts).chain([open]);
        let mut text = String::with_capacity(self.bytes + open.len());
        let mut is_list = false;
        for part in parts.filter(|part| !part.is_empty()) {
            let goes_on = is_list && part.starts_with("- ");
            if !text.is_empty() && !goes_on {
                text.push('\n');
            }
            text.push_str(part);
            text.push('\n');
            is_list = part.starts_with("- ");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut kept = Kept::default();
        kept.push("first");
        assert_eq!(kept.text("open"), "first\n\nopen\n");
        for _ in 0..20 {
            kept.push(&"x".repeat(100_000));
        }
        assert!(kept.bytes <= MAX_BYTES);
        assert!(kept.text("").starts_with(LEFT_OUT));
    }
}
