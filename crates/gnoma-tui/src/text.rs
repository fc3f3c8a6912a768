//! Styled text in cells. Styles name meanings, not colours: a theme paints them at the very end, so
//! that tests read well and a change of theme draws nothing differently but its colours.

use std::{borrow::Cow, sync::Arc};

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextRole {
    /// Ordinary text without special meaning.
    #[default]
    Text,
    /// Less important: hints, thinking, sizes.
    Dim,
    /// The program itself: prompts, names of commands, what is chosen.
    Accent,
    /// The words of a person.
    Person,
    /// A good result; added lines.
    Good,
    /// A bad result; removed lines.
    Bad,
    /// A text that needs attention.
    Warning,
    /// The text of a heading.
    Heading,
    /// The text of links and paths.
    Link,
    /// Code within ordinary text.
    Code,
    /// Code: keywords of the language.
    Keyword,
    /// Code: names of types.
    Type,
    /// Code: names of functions.
    Function,
    /// Code: the text of strings.
    String,
    /// Code: numbers and constants.
    Number,
    /// Code: the text of comments.
    Comment,
    /// Code: operators and punctuation.
    Operator,
}

/// The background of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackgroundRole {
    /// The terminal's own background.
    #[default]
    None,
    /// Added in a diff.
    Added,
    /// The changed part of an added line.
    AddedMark,
    /// Removed in a diff.
    Removed,
    /// The changed part of a removed line.
    RemovedMark,
    /// Chosen in a list.
    Chosen,
    /// Written by a person.
    Person,
}

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// The meaning of the text.
    pub ink: TextRole,
    /// The background of the text.
    pub paper: BackgroundRole,
    /// `true` if the text is bold.
    pub bold: bool,
    /// `true` if the text is italic.
    pub italic: bool,
    /// `true` if the text is underlined.
    pub underline: bool,
    /// `true` if the text is struck through.
    pub strike: bool,
}

impl Style {
    /// Plain text of this meaning.
    #[must_use]
    pub fn with_ink(ink: TextRole) -> Self {
        Self { ink, ..Self::default() }
    }

    /// Returns this style in bold.
    #[must_use]
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// This style on another background.
    #[must_use]
    pub fn on_paper(self, paper: BackgroundRole) -> Self {
        Self { paper, ..self }
    }
}

/// A piece of text in one style. It contains no control characters and no line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The text of the piece.
    pub text: Cow<'static, str>,
    /// The style of the text.
    pub style: Style,
    /// The target of the link, for terminals that can follow links.
    pub link: Option<Arc<str>>,
}

impl Span {
    /// A piece of text in a style. Control characters become a visible replacement.
    pub fn new(text: impl Into<Cow<'static, str>>, style: Style) -> Self {
        Self { text: replace_harmful_chars(text.into()), style, link: None }
    }

    /// Returns the number of columns that the text takes.
    #[must_use]
    pub fn width(&self) -> usize {
        display_width(&self.text)
    }
}

/// Columns that a text takes: the sum of its graphemes, because a terminal draws one after the other
/// and knows no ligatures.
#[must_use]
pub fn display_width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.graphemes(true).map(UnicodeWidthStr::width).sum()
    }
}

/// No control character may reach a terminal from here, whoever wrote the text.
fn replace_harmful_chars(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.chars().any(is_harmful) {
        text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect::<String>().into()
    } else {
        text
    }
}

/// Characters that steer instead of being seen: controls, line separators, and what turns the
/// direction of everything after it, with which a text could rewrite its surroundings. Letters that
/// run from right to left need none of these.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The pieces of the line, from left to right.
    pub spans: Vec<Span>,
}

impl Line {
    /// A line of one piece.
    pub fn new(text: impl Into<Cow<'static, str>>, style: Style) -> Self {
        Self { spans: vec![Span::new(text, style)] }
    }

    /// Returns the number of columns that the line takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(Span::width).sum()
    }

    /// Returns the text of the line without styles.
    #[must_use]
    pub fn plain_text(&self) -> String {
        self.spans.iter().map(|span| &*span.text).collect()
    }

    /// Takes the spaces at the end away: they are bytes for nothing.
    pub fn trim_end(&mut self) {
        while let Some(last) = self.spans.last_mut() {
            let kept = last.text.trim_end_matches(' ').len();
            if kept > 0 {
                if kept < last.text.len() {
                    last.text.to_mut().truncate(kept);
                }
                return;
            }
            self.spans.pop();
        }
    }

    /// The line as lines of at most `width` columns: broken at spaces if possible, and otherwise inside a word.
    /// `indent` precedes every line but the first and counts. A width too small for a single wide character still
    /// makes progress.
    #[must_use]
    pub fn wrap(&self, width: usize, indent: &Self) -> Vec<Self> {
        let mut wrapper = Wrapper::new(width.max(1), indent);
        for span in &self.spans {
            for word in span.text.split_word_bounds() {
                wrapper.push_word(word, span);
            }
        }
        wrapper.into_lines()
    }

    /// The line as lines of at most `width` columns. Those after the first are indented to the text behind a padded
    /// label, or else like the first.
    #[must_use]
    pub fn wrap_hanging(&self, width: usize) -> Vec<Self> {
        let text = self.plain_text();
        let blanks = text.len() - text.trim_start_matches(' ').len();
        let label = match self.spans.as_slice() {
            [label, _, ..] if blanks > 0 && label.text.ends_with(' ') => label.width(),
            _ => blanks,
        };
        let indent = if label * 2 <= width { label } else { blanks.min(width / 2) };
        self.wrap(width, &Self::new(" ".repeat(indent), Style::default()))
    }
}

impl<const N: usize> From<[Span; N]> for Line {
    fn from(spans: [Span; N]) -> Self {
        Self { spans: spans.into() }
    }
}

/// Pads lines with a background to one column more than the widest of the lines, but to no more than `limit`, so
/// that they form a block.
pub fn pad_background(lines: &mut [Line], limit: usize) {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0);
    let columns = widest.saturating_add(1).min(limit);
    for line in lines {
        let paper = line.spans.first().map_or(BackgroundRole::None, |span| span.style.paper);
        let missing = columns.saturating_sub(line.width());
        if paper != BackgroundRole::None && missing > 0 {
            line.spans.push(Span::new(" ".repeat(missing), Style::default().on_paper(paper)));
        }
    }
}

/// A line may end between the two: at spaces, and between letters that need none.
fn may_break(before: &str, after: &str) -> bool {
    let is_space = |word: &str| word.chars().all(char::is_whitespace);
    let is_letter = |word: &str| word.starts_with(char::is_alphanumeric);
    let is_wide =
        |word: &str| is_letter(word) && word.graphemes(true).next().map_or(0, display_width) > 1;
    let both_letters = is_letter(before) && is_letter(after);
    is_space(before) || is_space(after) || (both_letters && (is_wide(before) || is_wide(after)))
}

struct Wrapper<'a> {
    width: usize,
    indent: &'a Line,
    done: Vec<Line>,
    line: Line,
    used: usize,
    /// Columns of the indent of the line that is being filled.
    lead: usize,
    /// Words that stay together, such as one with its full stop.
    together: Vec<(&'a str, &'a Span)>,
}

impl<'a> Wrapper<'a> {
    fn new(width: usize, indent: &'a Line) -> Self {
        Self {
            width,
            indent,
            done: Vec::new(),
            line: Line::default(),
            used: 0,
            lead: 0,
            together: Vec::new(),
        }
    }

    fn push_word(&mut self, word: &'a str, span: &'a Span) {
        if self.together.last().is_some_and(|(before, _)| may_break(before, word)) {
            self.flush_words();
        }
        self.together.push((word, span));
    }

    /// Moves words that stay together to the next line together, when they fit there.
    fn flush_words(&mut self) {
        let words = std::mem::take(&mut self.together);
        let columns: usize = words.iter().map(|(word, _)| display_width(word)).sum();
        let room = self.width.saturating_sub(self.indent.width());
        if words.len() > 1
            && columns <= room
            && self.used + columns > self.width
            && self.used > self.lead
        {
            self.next_line();
        }
        for (word, span) in words {
            self.place_word(word, span);
        }
    }

    fn place_word(&mut self, word: &str, span: &Span) {
        let columns = display_width(word);
        if self.used + columns <= self.width {
            return self.push(word, columns, span);
        }
        // A space that does not fit any more is where the line is broken.
        if word.chars().all(char::is_whitespace) {
            if self.used > self.lead {
                self.next_line();
            }
            return;
        }
        if self.used > self.lead {
            self.next_line();
        }
        if self.used + columns <= self.width {
            return self.push(word, columns, span);
        }
        for grapheme in word.graphemes(true) {
            let columns = grapheme.width();
            if self.used + columns > self.width && self.used > self.lead {
                self.next_line();
            }
            self.push(grapheme, columns, span);
        }
    }

    fn push(&mut self, text: &str, columns: usize, span: &Span) {
        self.used += columns;
        match self.line.spans.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => {
                last.text.to_mut().push_str(text);
            }
            _ => self.line.spans.push(Span {
                text: text.to_owned().into(),
                style: span.style,
                link: span.link.clone(),
            }),
        }
    }

    fn next_line(&mut self) {
        self.done.push(std::mem::take(&mut self.line));
        let room_for_indent = self.indent.width() < self.width;
        if room_for_indent {
            self.line.spans.clone_from(&self.indent.spans);
        }
        self.lead = self.line.width();
        self.used = self.lead;
    }

    fn into_lines(mut self) -> Vec<Line> {
        self.flush_words();
        self.done.push(self.line);
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        let line = Line::new(text.to_owned(), Style::default());
        line.wrap(width, &Line::default()).iter().map(Line::plain_text).collect()
    }

    #[test]
    fn lines_break_between_words_and_long_words_inside() {
        assert_eq!(wrapped("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("漢字漢字", 3), ["漢", "字", "漢", "字"]);
        assert_eq!(wrapped("see (this). And", 10), ["see ", "(this). ", "And"]);
        assert_eq!(wrapped("https://gnoma.dev/", 10), ["https://", "gnoma.dev/"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn background_padding_extends_lines_to_a_block() {
        let on = |text: &'static str, paper| Line::new(text, Style::default().on_paper(paper));
        let mut lines = [on("long line", BackgroundRole::None), on("a", BackgroundRole::Added)];
        pad_background(&mut lines, 20);
        assert_eq!(lines.each_ref().map(Line::width), [9, 10]);
        pad_background(&mut lines, 8);
        assert_eq!(lines.each_ref().map(Line::width), [9, 10], "nothing is taken away");
    }

    proptest! {
        #[test]
        fn wrapping_loses_only_spaces_and_never_exceeds_the_width(
            graphemes in prop::collection::vec(
                prop::sample::select(vec!["a", "z", " ", "漢", "e\u{301}", "👩‍🚀", "🇦🇹", "ا"]),
                0..60,
            ),
            width in 2_usize..20,
        ) {
            let text = graphemes.concat();
            let lines = wrapped(&text, width);
            let bare = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(bare(&lines.concat()), bare(&text));
            for line in lines {
                prop_assert!(super::display_width(&line) <= width, "{:?}", line);
            }
        }
    }
}
