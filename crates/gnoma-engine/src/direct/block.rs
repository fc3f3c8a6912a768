//! The fenced blocks in an answer.

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FencedBlock<'a> {
    /// What was said before it, with the words on its first fence.
    pub(crate) before: &'a str,
    pub(crate) text: &'a str,
    /// It has its last fence.
    pub(crate) is_closed: bool,
}

/// Whether a block has begun.
pub(crate) fn opens(answer: &str) -> bool {
    answer.lines().any(is_fence)
}

/// The blocks of `answer`. Where a block may hold fences itself, there is one, which ends at the last fence.
pub(crate) fn blocks(answer: &str, holds_fences: bool) -> Vec<FencedBlock<'_>> {
    let mut found = Vec::new();
    let mut lines = Lines { text: answer, at: 0 };
    let mut begin = 0;
    while let Some((start, fence)) = lines.find(|(_, line)| is_fence(line)) {
        let from = start + fence.len();
        let mark = fence.trim_start().bytes().take_while(|byte| *byte == b'`').count();
        let closes = |(_, line): &(usize, &str)| {
            let line = line.trim();
            line.len() >= mark && line.bytes().all(|byte| byte == b'`')
        };
        let end =
            if holds_fences { lines.by_ref().filter(closes).last() } else { lines.find(closes) };
        let to = end.map_or(answer.len(), |(at, _)| at);
        let (Some(before), Some(text)) = (answer.get(begin..from), answer.get(from..to)) else {
            break;
        };
        found.push(FencedBlock { before, text, is_closed: end.is_some() });
        begin = to;
    }
    found
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// The lines of a text with their ends, and where they begin.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive('\n').next()?;
        let at = self.at;
        self.at += line.len();
        Some((at, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_what_stands_before_them() {
        let answer = "Here is a.py:\n```py\nx = 1\n\ny = 2\n```\nNow it works:\n```\nx\n```\n";
        let found = blocks(answer, false);
        assert_eq!((found[0].text, found[0].is_closed), ("x = 1\n\ny = 2\n", true));
        assert!(found[0].before.contains("a.py") && opens(answer));
        assert!(found[1].text == "x\n" && !found[1].before.contains("a.py"));
        assert_eq!(blocks("no block `x`", false), []);
        assert!(!opens("use ``` here"));
    }

    #[test]
    fn a_block_may_be_open_or_hold_fences() {
        assert!(!blocks("```\nx = 1\n", false)[0].is_closed);
        let inner = "```md\n# A\n```sh\nrun\n```\nend\n```\n";
        assert_eq!(blocks(inner, true)[0].text, "# A\n```sh\nrun\n```\nend\n");
        let long = "````md\n```sh\nrun\n```\n````\n";
        assert_eq!(blocks(long, false)[0].text, "```sh\nrun\n```\n");
    }
}
