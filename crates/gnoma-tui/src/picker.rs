//! A list to choose from, narrowed by typing. It does not know what its rows mean.

use unicode_segmentation::UnicodeSegmentation;

use crate::{
    keymap::Action,
    text::{self, BackgroundRole, Line, Span, Style, TextRole},
};

/// Characters of a filter.
const MAX_FILTER_CHARS: usize = 200;
/// Rows that are read out.
const MAX_READ_ROWS: usize = 30;
/// Rows that a page moves.
const PAGE: usize = 8;

/// One row of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The name of the row.
    pub label: String,
    /// More about it, dimmed.
    pub detail: String,
    /// `true` if the row is in use now.
    pub current: bool,
}

impl Row {
    /// A row that is not in use.
    pub fn new(label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { label: label.into(), detail: detail.into(), current: false }
    }

    /// Marks it as in use, or not.
    #[must_use]
    pub fn with_current(self, current: bool) -> Self {
        Self { current, ..self }
    }

    /// The row for people who hear it: `label: detail`.
    fn describe(&self) -> String {
        match self.detail.trim() {
            "" => self.label.clone(),
            detail => format!("{}: {detail}", self.label),
        }
    }
}

/// The line that leaves a list where lines are written instead of keys.
const LEAVE: &str = "q";

/// The effect of a key on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickerOutcome {
    /// The list is still open.
    Open,
    /// The list is still open, and these lines are to be read out: the result of a line that was written.
    Explained(Vec<Line>),
    /// This row was taken, counted in all rows.
    Row(usize),
    /// No row was taken.
    Nothing,
}

/// A list and what is chosen in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picker {
    title: String,
    rows: Vec<Row>,
    filter: String,
    /// Rows that the filter leaves, in their order.
    left: Vec<usize>,
    /// The index of the chosen row in `left`.
    chosen: usize,
    /// Lines are written instead of keys: each is a choice of its own.
    by_line: bool,
    /// The source that is asked for more rows.
    growing: Option<&'static str>,
}

impl Picker {
    /// A list; what is in use is chosen first.
    pub fn new(title: impl Into<String>, rows: Vec<Row>) -> Self {
        let chosen = rows.iter().position(|row| row.current).unwrap_or(0);
        let left = (0..rows.len()).collect();
        Self {
            title: title.into(),
            rows,
            filter: String::new(),
            left,
            chosen,
            by_line: false,
            growing: None,
        }
    }

    /// Says that more is going to come, and from whom.
    #[must_use]
    pub fn with_pending_rows(self, from: &'static str) -> Self {
        Self { growing: Some(from), ..self }
    }

    /// Reports whether more rows are going to come.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.growing.is_some()
    }

    /// Replaces all rows. The filter stays, and so does the selection if the row still exists.
    pub fn replace_rows(&mut self, rows: Vec<Row>) {
        self.growing = None;
        let chosen = self.left.get(self.chosen).and_then(|row| self.rows.get(*row)).cloned();
        self.rows = rows;
        let filter = std::mem::take(&mut self.filter);
        self.change_filter(filter);
        let is_chosen = |row: &usize| match (&chosen, self.rows.get(*row)) {
            (Some(chosen), Some(row)) => row.label == chosen.label,
            (None, Some(row)) => row.current,
            (_, None) => false,
        };
        self.chosen = self.left.iter().position(is_chosen).unwrap_or(0);
    }

    /// Sets whether the list is for people who type lines and hear the result.
    #[must_use]
    pub fn by_line(self, by_line: bool) -> Self {
        Self { by_line, ..self }
    }

    /// Narrows the list to what fits `filter`.
    #[must_use]
    pub fn with_filter(mut self, filter: &str) -> Self {
        if !filter.is_empty() {
            self.type_text(filter);
        }
        self
    }

    /// All rows, whatever was typed to narrow the list.
    #[must_use]
    pub fn without_filter(mut self) -> Self {
        self.change_filter(String::new());
        self
    }

    /// Rows that are left.
    #[must_use]
    pub fn match_count(&self) -> usize {
        self.left.len()
    }

    /// Does what a key asks for.
    pub fn apply_action(&mut self, action: Action) -> PickerOutcome {
        let last = self.left.len().saturating_sub(1);
        match action {
            Action::Up => self.chosen = self.chosen.checked_sub(1).unwrap_or(last),
            Action::Down => self.chosen = if self.chosen >= last { 0 } else { self.chosen + 1 },
            Action::PageUp => self.chosen = self.chosen.saturating_sub(PAGE),
            Action::PageDown => self.chosen = (self.chosen + PAGE).min(last),
            Action::First => self.chosen = 0,
            Action::Last => self.chosen = last,
            Action::Accept if self.by_line => return self.take_line(),
            Action::Accept | Action::Complete => {
                return self
                    .left
                    .get(self.chosen)
                    .map_or(PickerOutcome::Open, |row| PickerOutcome::Row(*row));
            }
            Action::Close | Action::Stop | Action::Interrupt => return PickerOutcome::Nothing,
            Action::DeleteLeft => self.delete_last_char(),
            Action::DeleteToLineStart => self.change_filter(String::new()),
            _ => (),
        }
        PickerOutcome::Open
    }

    /// Narrows the list by what was typed or pasted.
    pub fn type_text(&mut self, text: &str) {
        let mut filter = std::mem::take(&mut self.filter);
        let room = MAX_FILTER_CHARS.saturating_sub(filter.chars().count());
        filter.extend(text.chars().filter(|c| !c.is_control()).take(room));
        if self.by_line {
            self.filter = filter;
        } else {
            self.change_filter(filter);
        }
    }

    /// Interprets a whole line: a number, a name, a part of some, or the way out.
    fn take_line(&mut self) -> PickerOutcome {
        let line = std::mem::take(&mut self.filter);
        let line = line.trim();
        let number = line.parse().ok().and_then(|number: usize| number.checked_sub(1));
        let place = if line.is_empty() { Some(self.chosen) } else { number };
        if let Some(row) = place.and_then(|place| self.left.get(place)) {
            return PickerOutcome::Row(*row);
        }
        if let Some(row) = self.rows.iter().position(|row| row.label == line) {
            return PickerOutcome::Row(row);
        }
        if line == LEAVE {
            return PickerOutcome::Nothing;
        }
        self.change_filter(line.to_owned());
        self.filter.clear();
        match *self.left.as_slice() {
            [row] => PickerOutcome::Row(row),
            [] => {
                self.change_filter(String::new());
                PickerOutcome::Explained(vec![
                    Line::new(format!("nothing matches `{line}`"), dim_style()),
                    way_on(),
                ])
            }
            _ => PickerOutcome::Explained(self.read_out()),
        }
    }

    fn delete_last_char(&mut self) {
        let mut filter = std::mem::take(&mut self.filter);
        if let Some((start, _)) = filter.grapheme_indices(true).next_back() {
            filter.truncate(start);
        }
        self.change_filter(filter);
    }

    fn change_filter(&mut self, filter: String) {
        let wanted = filter.to_lowercase();
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let fits = |row: &Row| {
            let text = format!("{} {}", row.label, row.detail).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let rows = self.rows.iter().enumerate();
        self.left = rows.filter(|(_, row)| fits(row)).map(|(index, _)| index).collect();
        self.chosen = 0;
        self.filter = filter;
    }

    /// Returns the title, which says what is to be chosen.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The selected row in one line, for people who hear the list.
    #[must_use]
    pub fn describe_selection(&self) -> String {
        match self.left.get(self.chosen).and_then(|index| self.rows.get(*index)) {
            None => "nothing matches".to_owned(),
            Some(row) => {
                let (number, count) = (self.chosen + 1, self.left.len());
                format!("{number} of {count}: {}", row.describe())
            }
        }
    }

    /// The whole list, for those who hear it.
    #[must_use]
    pub fn read_out(&self) -> Vec<Line> {
        let rows = self.left.iter().filter_map(|index| self.rows.get(*index));
        let text = |(number, row): (usize, &Row)| {
            let current = if row.current { " (in use)" } else { "" };
            format!("  {number} {}{current}", row.describe())
        };
        let mut lines = vec![Line::new(self.title.clone(), Style::with_ink(TextRole::Accent))];
        let rows = (1..).zip(rows.take(MAX_READ_ROWS));
        lines.extend(rows.map(|row| Line::new(text(row), Style::default())));
        let rest = self.left.len().saturating_sub(MAX_READ_ROWS);
        if rest > 0 {
            lines.push(Line::new(format!("  {rest} more; type part of the name"), dim_style()));
        }
        lines.push(way_on());
        lines
    }

    /// The list in at most `height` lines, and the column of the cursor in the first of them.
    #[must_use]
    pub fn render_lines(&self, width: usize, height: usize) -> (Vec<Line>, usize) {
        let mut lines = vec![self.heading(width)];
        let cursor = lines.first().map_or(0, Line::width).min(width.saturating_sub(1));
        if height > 2 {
            lines.extend(self.render_rows(width, height - 2));
            lines.push(truncate_line(Line::new(self.footer(), dim_style()), width));
        }
        lines.truncate(height.max(1));
        (lines, cursor)
    }

    fn heading(&self, width: usize) -> Line {
        let mut line = Line::from([
            Span::new(self.title.clone(), Style::with_ink(TextRole::Accent).bold()),
            Span::new(" › ", dim_style()),
        ]);
        line.spans.push(Span::new(self.filter.clone(), Style::default()));
        truncate_line(line, width)
    }

    fn footer(&self) -> String {
        let last = match self.growing {
            Some(from) => format!("asking {from} …"),
            None => "type to narrow".to_owned(),
        };
        format!("Enter select · Esc close · {last}")
    }

    /// The rows around the chosen one.
    fn render_rows(&self, width: usize, height: usize) -> Vec<Line> {
        if self.left.is_empty() {
            let text = if self.is_growing() { "  nothing yet" } else { "  no matches" };
            return vec![truncate_line(Line::new(text, dim_style()), width)];
        }
        let first = self.chosen.saturating_sub(height.saturating_sub(1));
        let shown = self.left.iter().enumerate().skip(first).take(height);
        let labels = shown.clone().filter_map(|(_, row)| self.rows.get(*row));
        let column =
            labels.map(|row| text::display_width(&row.label)).max().unwrap_or(0).min(width / 2);
        let row = |(place, row): (usize, &usize)| {
            Some(row_line(self.rows.get(*row)?, place == self.chosen, column, width))
        };
        let mut lines: Vec<_> = shown.filter_map(row).collect();
        text::pad_background(&mut lines, width);
        lines
    }
}

fn row_line(row: &Row, chosen: bool, column: usize, width: usize) -> Line {
    let paper = if chosen { BackgroundRole::Chosen } else { BackgroundRole::None };
    let mark = if row.current { "• " } else { "  " };
    let label = short_label(row, column, width.saturating_sub(4));
    let gap = " ".repeat(column.saturating_sub(text::display_width(&label)) + 2);
    let ink = if chosen { TextRole::Accent } else { TextRole::Text };
    let line = Line::from([
        Span::new(
            if chosen { "› " } else { "  " },
            Style::with_ink(TextRole::Accent).on_paper(paper),
        ),
        Span::new(mark, Style::with_ink(TextRole::Good).on_paper(paper)),
        Span::new(label, Style::with_ink(ink).on_paper(paper)),
        Span::new(format!("{gap}{}", row.detail), dim_style().on_paper(paper)),
    ]);
    let mut line = truncate_line(line, width);
    line.trim_end();
    line
}

/// The label in `room` columns beside its detail: a long one gives way, down to its column.
fn short_label(row: &Row, column: usize, room: usize) -> String {
    if row.detail.is_empty() || text::display_width(&row.label) <= column {
        return row.label.clone();
    }
    let beside = room.saturating_sub(text::display_width(&row.detail) + 2);
    truncate_line(Line::new(row.label.clone(), Style::default()), beside.max(column)).plain_text()
}

/// Explains what can be done with a list that is read out.
fn way_on() -> Line {
    Line::new(
        format!("Type a number or a name; {LEAVE} cancels; Enter alone selects:"),
        dim_style(),
    )
}

fn dim_style() -> Style {
    Style::with_ink(TextRole::Dim)
}

/// The line in at most `width` columns; an ellipsis says that something is missing.
#[must_use]
pub fn truncate_line(line: Line, width: usize) -> Line {
    if line.width() <= width {
        return line;
    }
    let mut room = width.saturating_sub(1);
    let mut kept = Line::default();
    let mut full = false;
    for span in line.spans {
        if full {
            break;
        }
        let mut text = String::new();
        for grapheme in span.text.graphemes(true) {
            let columns = text::display_width(grapheme);
            if columns > room {
                full = true;
                break;
            }
            room -= columns;
            text.push_str(grapheme);
        }
        kept.spans.push(Span { text: text.into(), ..span });
    }
    if let (Some(last), true) = (kept.spans.last_mut(), width > 0) {
        last.text.to_mut().push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fruit() -> Picker {
        let rows = ["apple", "pear", "pineapple"].map(|name| Row::new(name, "a fruit"));
        Picker::new("Fruit", rows.into())
    }

    #[test]
    fn picker_filter_preserves_row_numbers() {
        let mut picker = fruit().with_filter("pine");
        assert_eq!(picker.apply_action(Action::Accept), PickerOutcome::Row(2));
        picker.type_text("x");
        assert_eq!(
            (picker.match_count(), picker.apply_action(Action::Accept)),
            (0, PickerOutcome::Open)
        );
        picker.apply_action(Action::DeleteToLineStart);
        assert_eq!(picker.apply_action(Action::Up), PickerOutcome::Open);
        assert_eq!(picker.apply_action(Action::Accept), PickerOutcome::Row(2));
    }

    #[test]
    fn picker_selects_the_current_row_first() {
        let rows = vec![Row::new("a", ""), Row::new("b", "").with_current(true)];
        assert_eq!(Picker::new("x", rows).apply_action(Action::Accept), PickerOutcome::Row(1));
    }

    #[test]
    fn picker_truncates_a_long_name_before_its_detail() {
        let long = "a prompt that goes on and on and on about what it wants to have";
        let rows = vec![Row::new(long, "3 files changed since"), Row::new("short", "none")];
        let (lines, _) = Picker::new("Go back", rows).render_lines(60, 5);
        let shown = lines[1].plain_text();
        assert!(shown.ends_with("  3 files changed since") && shown.contains('…'), "{shown}");
        assert!(shown.contains("a prompt that goes on and on"), "{shown}");
    }

    #[test]
    fn line_mode_picker_selects_by_number_or_name() {
        let line = |picker: &mut Picker, text: &str| {
            picker.type_text(text);
            picker.apply_action(Action::Accept)
        };
        let mut picker = fruit().by_line(true);
        assert_eq!(line(&mut picker, "2"), PickerOutcome::Row(1));
        assert_eq!(line(&mut picker, "apple"), PickerOutcome::Row(0));
        assert_eq!(line(&mut picker, "pine"), PickerOutcome::Row(2));
        assert_eq!(line(&mut picker, "q"), PickerOutcome::Nothing);
        let PickerOutcome::Explained(lines) = line(&mut picker, "17") else { panic!("17 fits") };
        assert_eq!(lines[0].plain_text(), "nothing matches `17`");
        let PickerOutcome::Explained(lines) = line(&mut picker, "app") else { panic!("two fit") };
        assert_eq!(lines[2].plain_text(), "  2 pineapple: a fruit");
        assert_eq!(
            line(&mut picker, "2"),
            PickerOutcome::Row(2),
            "numbers are those that were read out"
        );
    }

    proptest! {
        #[test]
        fn picker_fits_its_size_and_shows_the_selected_row(
            moves in proptest::collection::vec(0_usize..6, 0..20), width in 1_usize..40, height in 1_usize..8,
        ) {
            let mut picker = fruit();
            let actions = [Action::Up, Action::Down, Action::PageDown, Action::First, Action::Last, Action::DeleteLeft];
            for step in moves {
                picker.apply_action(actions[step]);
            }
            let (lines, cursor) = picker.render_lines(width, height);
            prop_assert!(lines.len() <= height);
            prop_assert!(cursor < width);
            prop_assert!(lines.iter().all(|line| line.width() <= width));
            if height > 2 && width > 1 {
                prop_assert!(lines.iter().any(|line| line.plain_text().starts_with('›')));
            }
        }

        #[test]
        fn truncated_line_is_as_wide_as_allowed(text in "[a-z漢🎉]{0,20}", width in 1_usize..20) {
            let line = truncate_line(Line::new(text.clone(), Style::default()), width);
            prop_assert!(line.width() <= width);
            prop_assert!(line.plain_text() == text || line.width() + 2 > width);
        }
    }
}
