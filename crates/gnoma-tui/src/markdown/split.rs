//! Where a text can be cut: it is read line by line, and nothing that comes later changes the meaning of a piece
//! that was released. Pieces are single top-level blocks, items of top-level lists and lines of fenced code; their
//! content is not examined here.

/// A piece of text is cut when it has this length, though its block continues.
const MAX_TEXT_BYTES: usize = 8_192;
/// Length at which an item of a list is cut; later than other text, as lists cannot be cut well.
const MAX_ITEM_BYTES: usize = 32_768;
/// Length at which a table is cut; it continues below another head.
const MAX_TABLE_BYTES: usize = 16_384;
/// Spaces that make code of a line.
const CODE_SPACES: usize = 4;

/// A part of the text that is read by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) kind: PieceKind,
    /// An empty line precedes it.
    pub(super) gap: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Text in complete blocks.
    Text {
        source: String,
        /// The number of the first item, where it continues with a list.
        number: Option<u64>,
    },
    /// The start of fenced code.
    CodeStart { language: String },
    /// A line of it.
    CodeLine(String),
}

/// Cuts a text that arrives bit by bit into pieces that can be drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Splitter {
    block: Block,
    /// The lines of the open block.
    open: String,
    /// Bytes of them that were given out before: the head of a table that was cut.
    repeated: usize,
    /// An empty line precedes the open block.
    gap: bool,
    /// The last line was empty.
    blank: bool,
    /// `true` if what comes next is set off even where the text has no empty line.
    set_off: bool,
}

#[derive(Clone, Debug, Default)]
enum Block {
    #[default]
    None,
    /// Ends with an empty line: a paragraph, a table, a quote, HTML.
    Text {
        quote: bool,
    },
    /// One item of a list.
    Item(Item),
    /// Goes on after empty lines while it is indented.
    Indented,
    Code(Fence),
}

#[derive(Clone, Debug)]
struct Item {
    /// Columns before its text.
    content: usize,
    mark: char,
    /// The number it bears.
    number: Option<u64>,
    fence: Option<Fence>,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: char,
    count: usize,
    indent: usize,
}

impl Splitter {
    /// The lines that are open.
    pub(super) fn open(&self) -> &str {
        &self.open
    }

    /// The next line, without its end.
    pub(super) fn push_line(&mut self, line: &str, out: &mut Vec<Piece>) {
        if let Block::Code(fence) = self.block {
            return self.push_code_line(line, fence, out);
        }
        if line.trim().is_empty() {
            return self.push_blank_line(out);
        }
        if self.goes_on(line) {
            self.append_line(line);
        } else {
            self.flush(out);
            self.begin_block(line, out);
        }
        self.blank = false;
        self.enforce_limit(out);
    }

    /// Ends the text and hands over what is left of it.
    pub(super) fn finish(&mut self, out: &mut Vec<Piece>) {
        self.flush(out);
    }

    fn push_code_line(&mut self, line: &str, fence: Fence, out: &mut Vec<Piece>) {
        if fence.is_closed_by(line) {
            self.block = Block::None;
            self.set_off = true;
            return;
        }
        let spaces = indent_columns(line).min(fence.indent);
        let kind = PieceKind::CodeLine(line.get(spaces..).unwrap_or_default().to_owned());
        out.push(Piece { kind, gap: false });
    }

    fn push_blank_line(&mut self, out: &mut Vec<Piece>) {
        match &self.block {
            Block::Text { .. } => self.flush(out),
            Block::Item(_) | Block::Indented => self.open.push('\n'),
            Block::None | Block::Code(_) => {}
        }
        self.blank = true;
    }

    /// The line is part of the open block.
    fn goes_on(&self, line: &str) -> bool {
        match &self.block {
            Block::None | Block::Code(_) => false,
            Block::Text { quote } => !can_interrupt(line, *quote),
            Block::Indented => {
                indent_columns(line) >= CODE_SPACES || !self.blank && !can_interrupt(line, false)
            }
            Block::Item(item) => {
                let lazy = item.fence.is_none() && !self.blank && !can_interrupt(line, false);
                indent_columns(line) >= item.content || (lazy && parse_marker(line).is_none())
            }
        }
    }

    /// Another line of the open block.
    fn append_line(&mut self, line: &str) {
        if let Block::Item(item) = &mut self.block {
            item.track_fence(line);
        }
        self.open.push_str(line);
        self.open.push('\n');
    }

    /// A block begins with this line.
    fn begin_block(&mut self, line: &str, out: &mut Vec<Piece>) {
        let sets_off = std::mem::take(&mut self.set_off);
        self.gap = self.blank || sets_off;
        if let Some((fence, language)) = parse_fence(line) {
            out.push(Piece { kind: PieceKind::CodeStart { language }, gap: true });
            self.block = Block::Code(fence);
            return;
        }
        let is_heading = is_heading(line);
        if is_heading || is_rule(line) {
            self.gap |= is_heading;
            self.block = Block::Text { quote: false };
            self.append_line(line);
            return self.flush(out);
        }
        self.block = match parse_marker(line) {
            Some(marker) => Block::Item(self.build_item(&marker, line)),
            None if indent_columns(line) >= CODE_SPACES || is_footnote(line) => Block::Indented,
            None => Block::Text { quote: is_quote(line) },
        };
        self.append_line(line);
    }

    /// An item; it is counted on when the block before was an item of the same list.
    fn build_item(&self, marker: &Marker, line: &str) -> Item {
        let before = match &self.block {
            Block::Item(before) if before.mark == marker.mark => before.number,
            _ => None,
        };
        let number = match (before, marker.number) {
            (Some(before), Some(_)) => Some(before.saturating_add(1)),
            (_, number) => number,
        };
        let rest = line.get(marker.content..).unwrap_or_default();
        let fence = parse_fence(rest).map(|(fence, _)| fence);
        Item { content: marker.content, mark: marker.mark, number, fence }
    }

    /// Gives out the open block. The kind of it stays known until the next one begins.
    fn flush(&mut self, out: &mut Vec<Piece>) {
        let source = std::mem::take(&mut self.open);
        if source.len() > std::mem::take(&mut self.repeated) {
            let number = match &self.block {
                Block::Item(item) => item.number,
                _ => None,
            };
            out.push(Piece { kind: PieceKind::Text { source, number }, gap: self.gap });
        }
        if !matches!(self.block, Block::Item(_)) {
            self.block = Block::None;
        }
    }

    /// Gives out the open block when it becomes too long.
    fn enforce_limit(&mut self, out: &mut Vec<Piece>) {
        let head = table_head(&self.open);
        let max = match (&self.block, head) {
            (Block::Text { .. }, 0) => MAX_TEXT_BYTES,
            (Block::Text { .. }, _) => MAX_TABLE_BYTES,
            (Block::None | Block::Item(_) | Block::Indented | Block::Code(_), _) => MAX_ITEM_BYTES,
        };
        if self.open.len() - self.repeated <= max {
            return;
        }
        let head = self.open.get(..head).unwrap_or_default().to_owned();
        self.flush(out);
        self.block = Block::None;
        if !head.is_empty() && head.len() < max {
            self.block = Block::Text { quote: false };
            self.gap = true;
            self.repeated = head.len();
            self.open = head;
        }
    }
}

impl Item {
    /// Code inside the item hides what would be marks.
    fn track_fence(&mut self, line: &str) {
        let inner = line.get(self.content.min(indent_columns(line))..).unwrap_or_default();
        self.fence = match self.fence {
            Some(fence) if fence.is_closed_by(inner) => None,
            Some(fence) => Some(fence),
            None => parse_fence(inner).map(|(fence, _)| fence),
        };
    }
}

impl Fence {
    fn is_closed_by(self, line: &str) -> bool {
        let marks = line.trim();
        indent_columns(line) < CODE_SPACES
            && marks.len() >= self.count
            && marks.chars().all(|c| c == self.mark)
    }
}

/// A block begins with the line, though there is no empty line before it.
fn can_interrupt(line: &str, in_quote: bool) -> bool {
    if indent_columns(line) >= CODE_SPACES {
        return false;
    }
    let underlines = line.trim().chars().all(|c| c == '-') && !in_quote;
    parse_fence(line).is_some()
        || is_heading(line)
        || (is_rule(line) && !underlines)
        || (is_quote(line) && !in_quote)
        || parse_marker(line).is_some_and(|marker| marker.interrupts)
}

/// Columns of spaces before the text; a tab reaches to the next multiple of four.
fn indent_columns(line: &str) -> usize {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += CODE_SPACES - columns % CODE_SPACES,
            _ => break,
        }
    }
    columns
}

fn parse_fence(line: &str) -> Option<(Fence, String)> {
    let indent = indent_columns(line);
    let text = line.trim();
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let count = text.chars().take_while(|c| *c == mark).count();
    let info = text.get(count..).unwrap_or_default();
    if indent >= CODE_SPACES || count < 3 || (mark == '`' && info.contains('`')) {
        return None;
    }
    let word = |c: char| c.is_whitespace() || matches!(c, '{' | ',');
    let language = info.trim_start().split(word).next().unwrap_or_default();
    Some((Fence { mark, count, indent }, language.to_owned()))
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start();
    let marks = text.chars().take_while(|c| *c == '#').count();
    let after = text.get(marks..).unwrap_or_default();
    indent_columns(line) < CODE_SPACES
        && (1..=6).contains(&marks)
        && (after.is_empty() || after.starts_with([' ', '\t']))
}

fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    indent_columns(line) < CODE_SPACES && marks.clone().count() >= 2 && marks.all(|c| c == first)
}

fn is_quote(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

fn is_footnote(line: &str) -> bool {
    line.starts_with("[^") && line.contains("]:")
}

/// Bytes of the head of a table, whose second line is the one between head and body; none of
/// anything else.
fn table_head(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let is_rule = second.contains('-') && second.chars().all(|c| " \t|:-\n".contains(c));
    let is_table = first.contains('|') && second.contains('|') && is_rule;
    if is_table { first.len() + second.len() } else { 0 }
}

/// The marker with which an item begins.
struct Marker {
    mark: char,
    content: usize,
    number: Option<u64>,
    /// `true` if the marker ends a paragraph without an empty line.
    interrupts: bool,
}

fn parse_marker(line: &str) -> Option<Marker> {
    let indent = indent_columns(line);
    if indent >= CODE_SPACES || is_rule(line) {
        return None;
    }
    let text = line.trim_start();
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let mark = text.get(digits..)?.chars().next()?;
    let fits = if digits == 0 { "-*+" } else { ".)" };
    if !fits.contains(mark) || digits > 9 {
        return None;
    }
    let after = text.get(digits + 1..)?;
    if !after.is_empty() && !after.starts_with([' ', '\t']) {
        return None;
    }
    let spaces = after.len() - after.trim_start_matches(' ').len();
    let is_empty = after.trim().is_empty();
    let spaces = if is_empty || spaces > CODE_SPACES { 1 } else { spaces.max(1) };
    let number = text.get(..digits)?.parse().ok();
    let interrupts = !is_empty && number.is_none_or(|number| number == 1);
    Some(Marker { mark, content: indent + digits + 1 + spaces, number, interrupts })
}
