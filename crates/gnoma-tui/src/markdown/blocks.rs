//! Complete blocks as lines: the output of the Markdown parser, laid out in columns. Every block is preceded by the
//! marks of the blocks around it, such as the bar of a quote.

use std::collections::HashMap;

use pulldown_cmark::{
    BlockQuoteKind, BrokenLink, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag,
    TagEnd,
};

use super::{code, table::Table};
use crate::{
    highlight::Highlighter,
    text::{Line, Span, Style, TextRole},
};

/// Targets of links that are remembered for later blocks.
const MAX_DEFINITIONS: usize = 256;
/// Columns of a rule.
const RULE_COLUMNS: usize = 24;
/// Blocks around a block that are marked; deeper ones look like the last of them.
const MAX_DEPTH: usize = 12;
/// Before the items of a list, by its depth.
const BULLETS: [&str; 3] = ["• ", "◦ ", "– "];

/// The addresses to which the names of links lead, by their names in small letters.
pub(super) type Definitions = HashMap<String, String>;

/// The blocks of a text as lines of at most `width` columns. What they define is added to
/// `definitions`. `number` is the number of the first item of a list.
pub(super) fn render_blocks(
    source: &str,
    number: Option<u64>,
    width: usize,
    definitions: &mut Definitions,
) -> Vec<Line> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let known = &*definitions;
    let look_up = |link: BrokenLink<'_>| {
        let target = known.get(&link.reference.to_lowercase())?;
        Some((CowStr::from(target.clone()), CowStr::Borrowed("")))
    };
    let parser = Parser::new_with_broken_link_callback(source, options, Some(look_up));
    let mut defined: Vec<_> = parser
        .reference_definitions()
        .iter()
        .map(|(name, found)| (found.span.start, name.to_owned(), found.dest.to_string()))
        .collect();
    gnoma_core::sort::sort_items(&mut defined);
    let mut painter = Painter::new(source, number, width);
    for (event, range) in parser.into_offset_iter() {
        painter.on_event(event, range.start);
    }
    for (_, name, target) in defined {
        painter.emit_definition(&name, &target);
        if definitions.len() < MAX_DEFINITIONS {
            definitions.entry(name.to_lowercase()).or_insert(target);
        }
    }
    painter.lines
}

struct Painter<'a> {
    source: &'a str,
    width: usize,
    /// Numbers the first list from here.
    number: Option<u64>,
    lines: Vec<Line>,
    /// The last line is an empty one between blocks.
    after_gap: bool,
    /// Marks of the blocks that are open, from the outermost.
    around: Vec<Mark>,
    /// The next number of each open list; `None` where they have bullets.
    lists: Vec<Option<u64>>,
    /// The line of text that is being put together.
    line: Line,
    style: Vec<Style>,
    /// Target of the link that is open, and where in the line its text begins.
    link: Option<(String, usize)>,
    code: Option<(Option<Highlighter>, String)>,
    table: Option<Table>,
}

/// The prefix of a block's lines.
struct Mark {
    /// Before the first line, once.
    first: Option<Span>,
    rest: Span,
}

impl Mark {
    fn new(first: Span) -> Self {
        let rest = Span::new(" ".repeat(first.width()), Style::default());
        Self { first: Some(first), rest }
    }
}

impl<'a> Painter<'a> {
    fn new(source: &'a str, number: Option<u64>, width: usize) -> Self {
        Self {
            source,
            width: width.max(1),
            number,
            lines: Vec::new(),
            after_gap: true,
            around: Vec::new(),
            lists: Vec::new(),
            line: Line::default(),
            style: Vec::new(),
            link: None,
            code: None,
            table: None,
        }
    }

    fn on_event(&mut self, event: Event<'_>, at: usize) {
        match event {
            Event::Start(tag) => self.start_tag(tag, at),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => self.add_text(&text),
            Event::Code(code) | Event::InlineMath(code) | Event::DisplayMath(code) => {
                self.push(&code, Style { ink: TextRole::Code, ..self.style() });
            }
            Event::InlineHtml(html) if is_break(&html) => self.break_line(),
            Event::InlineHtml(html) => {
                self.push(&html, Style { ink: TextRole::Dim, ..self.style() });
            }
            Event::Html(html) => {
                self.push(html.trim_end(), Style::with_ink(TextRole::Dim));
                self.break_line();
            }
            Event::FootnoteReference(name) => {
                self.push(&format!("[^{name}]"), Style { ink: TextRole::Link, ..self.style() });
            }
            // Who writes to a terminal breaks lines where a line is meant to end.
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.begin_block(at);
                self.push(
                    &"─".repeat(RULE_COLUMNS.min(self.width)),
                    Style::with_ink(TextRole::Dim),
                );
                self.end_line();
            }
            Event::TaskListMarker(done) => {
                let (mark, ink) =
                    if done { ("[x] ", TextRole::Good) } else { ("[ ] ", TextRole::Dim) };
                self.push(mark, Style::with_ink(ink));
            }
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>, at: usize) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(at),
            Tag::Heading { level, .. } => self.begin_heading(level, at),
            Tag::BlockQuote(kind) => self.begin_quote(kind, at),
            Tag::CodeBlock(kind) => self.begin_code(&kind, at),
            Tag::List(start) => self.begin_list(start),
            Tag::Item => {
                self.begin_block(at);
                let bullet = self.bullet();
                self.open(Mark::new(Span::new(bullet, Style::with_ink(TextRole::Accent))));
            }
            Tag::FootnoteDefinition(name) => {
                self.begin_block(at);
                self.open(Mark::new(Span::new(
                    format!("[^{name}] "),
                    Style::with_ink(TextRole::Link),
                )));
            }
            Tag::Table(alignments) => {
                self.begin_block(at);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableRow => self.begin_row(),
            Tag::Emphasis => self.style.push(Style { italic: true, ..self.style() }),
            Tag::Strong => self.style.push(self.style().bold()),
            Tag::Strikethrough => self.style.push(Style { strike: true, ..self.style() }),
            Tag::Link { dest_url, .. } => self.begin_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.begin_link(&dest_url);
                self.push("[image] ", Style { ink: TextRole::Link, ..self.style() });
            }
            Tag::TableHead
            | Tag::TableCell
            | Tag::Superscript
            | Tag::Subscript
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn begin_heading(&mut self, level: HeadingLevel, at: usize) {
        self.begin_block(at);
        let underline = level == HeadingLevel::H1;
        self.style.push(Style { underline, ..Style::with_ink(TextRole::Heading).bold() });
    }

    fn begin_quote(&mut self, kind: Option<BlockQuoteKind>, at: usize) {
        self.begin_block(at);
        let bar = Span::new("│ ", Style::with_ink(TextRole::Dim));
        self.open(Mark { first: None, rest: bar });
        if let Some(kind) = kind {
            let (name, ink) = alert_label(kind);
            self.push(name, Style::with_ink(ink).bold());
            self.end_line();
        }
    }

    fn begin_code(&mut self, kind: &CodeBlockKind<'_>, at: usize) {
        self.begin_block(at);
        let highlighter = match kind {
            CodeBlockKind::Fenced(info) => {
                info.split_whitespace().next().and_then(Highlighter::for_name)
            }
            CodeBlockKind::Indented => None,
        };
        self.code = Some((highlighter, String::new()));
    }

    fn begin_list(&mut self, start: Option<u64>) {
        self.end_line();
        let is_first = self.lists.is_empty() && self.around.is_empty();
        let number = if is_first { self.number.take() } else { None };
        self.lists.push(start.map(|start| number.unwrap_or(start)));
    }

    fn begin_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.begin_row();
        }
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::Heading(_) => {
                self.end_line();
                self.style.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item | TagEnd::FootnoteDefinition => self.close_block(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.push_cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.draw(self.available_width()) {
                        self.emit_line(line);
                    }
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.style.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn style(&self) -> Style {
        self.style.last().copied().unwrap_or_default()
    }

    fn add_text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None if self.link.is_some() => {
                self.push(text, Style { ink: TextRole::Link, underline: true, ..self.style() });
            }
            None => self.text_with_addresses(text),
        }
    }

    /// Addresses in the text become links.
    fn text_with_addresses(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = find_url(rest) {
            let (before, found) = rest.split_at(at);
            let end = found
                .find(|c: char| c.is_whitespace() || "<>\"'`)]}|".contains(c))
                .unwrap_or(found.len());
            let end = found[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_']).len();
            self.push(before, self.style());
            self.begin_link(&found[..end]);
            self.push(
                &found[..end],
                Style { ink: TextRole::Link, underline: true, ..self.style() },
            );
            self.end_link();
            rest = &found[end..];
        }
        self.push(rest, self.style());
    }

    fn push(&mut self, text: &str, style: Style) {
        let text = text.replace(['\t', '\n'], " ");
        if text.is_empty() {
            return;
        }
        let mut span = Span::new(text, style);
        if let Some((target, _)) = &self.link
            && can_be_followed(target)
        {
            span.link = Some(target.as_str().into());
        }
        self.line.spans.push(span);
    }

    fn begin_link(&mut self, target: &str) {
        let target: String = target.chars().filter(|c| !c.is_control()).collect();
        self.link = Some((target, self.line.spans.len()));
    }

    /// Says where the link leads, unless its text says so or it is a file.
    fn end_link(&mut self) {
        let Some((target, from)) = self.link.take() else { return };
        let shown: String = self.line.spans.iter().skip(from).map(|span| &*span.text).collect();
        let bare = |text: &str| text.trim_end_matches('/').trim_start_matches("mailto:").to_owned();
        if can_be_followed(&target) && bare(&shown) != bare(&target) {
            self.push(&format!(" ({target})"), Style::with_ink(TextRole::Dim));
        }
    }

    fn bullet(&mut self) -> String {
        let depth = self.lists.len().saturating_sub(1);
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let bullet = format!("{number}. ");
                *number = number.saturating_add(1);
                bullet
            }
            Some(None) | None => {
                BULLETS.get(depth % BULLETS.len()).copied().unwrap_or("- ").to_owned()
            }
        }
    }

    fn end_code(&mut self) {
        let Some((mut highlighter, code)) = self.code.take() else { return };
        let room = self.available_width();
        for line in code.lines() {
            for line in code::render_code_line(line, highlighter.as_mut(), room) {
                self.emit_line(line);
            }
        }
    }

    /// A block begins: what was being written ends, and an empty line is kept.
    fn begin_block(&mut self, at: usize) {
        self.end_line();
        let fresh = self.around.last().is_some_and(|mark| mark.first.is_some());
        if !self.after_gap && !fresh && is_after_blank(self.source, at) {
            self.emit_line(Line::default());
            self.after_gap = true;
        }
    }

    fn open(&mut self, mark: Mark) {
        self.around.push(mark);
    }

    /// A block with a mark ends; one without lines shows its mark.
    fn close_block(&mut self) {
        self.end_line();
        if self.around.last().is_some_and(|mark| mark.first.is_some()) {
            self.emit_line(Line::default());
        }
        self.around.pop();
    }

    /// The line ends here, even when nothing is in it.
    fn break_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.table.is_some() {
            self.line = line;
            return self.push(" ", Style::default());
        }
        if let Some((_, from)) = &mut self.link {
            *from = 0;
        }
        self.emit_wrapped(&line);
    }

    fn end_line(&mut self) {
        if !self.line.spans.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.emit_wrapped(&line);
        }
    }

    fn emit_wrapped(&mut self, line: &Line) {
        for line in line.wrap(self.available_width(), &Line::default()) {
            self.emit_line(line);
        }
    }

    /// The marks that there is room for: at least half of the width is left to the text.
    fn shown_marks(&self) -> usize {
        let mut used = 0;
        let fits = |mark: &&Mark| {
            used += mark.rest.width();
            used <= self.width / 2
        };
        self.around.iter().take(MAX_DEPTH).take_while(fits).count()
    }

    /// Columns that the marks leave.
    fn available_width(&self) -> usize {
        let marks = self.around.iter().take(self.shown_marks());
        let used: usize = marks.map(|mark| mark.rest.width()).sum();
        self.width.saturating_sub(used).max(1)
    }

    /// A line that fits, behind its marks.
    fn emit_line(&mut self, line: Line) {
        let shown = self.shown_marks();
        let mut spans = Vec::with_capacity(shown + line.spans.len());
        for (at, mark) in self.around.iter_mut().enumerate() {
            let first = mark.first.take();
            if at < shown {
                spans.push(first.unwrap_or_else(|| mark.rest.clone()));
            }
        }
        spans.extend(line.spans);
        let mut line = Line { spans };
        line.trim_end();
        self.lines.push(line);
        self.after_gap = false;
    }

    /// The definition of a link is shown, since what refers to it may be drawn already.
    fn emit_definition(&mut self, name: &str, target: &str) {
        self.begin_link(target);
        self.push(&format!("[{name}]: {target}"), Style::with_ink(TextRole::Dim));
        self.link = None;
        self.end_line();
    }
}

/// The text before this place ends with an empty line, apart from the bars of quotes.
fn is_after_blank(source: &str, at: usize) -> bool {
    let before = source.get(..at).unwrap_or_default();
    let Some((lines, _)) = before.rsplit_once('\n') else { return false };
    let last = lines.rsplit('\n').next().unwrap_or(lines);
    last.chars().all(|c| c.is_whitespace() || c == '>')
}

fn find_url(text: &str) -> Option<usize> {
    let begins = |at: &usize| {
        let after = text.get(*at..).unwrap_or_default();
        ["https://", "http://"].iter().any(|scheme| {
            after.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(char::is_alphanumeric))
        })
    };
    text.match_indices("http").map(|(at, _)| at).find(begins)
}

fn can_be_followed(target: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

fn is_break(html: &str) -> bool {
    let name: String = html.chars().filter(|c| !c.is_whitespace() && *c != '/').collect();
    name.eq_ignore_ascii_case("<br>")
}

fn alert_label(kind: BlockQuoteKind) -> (&'static str, TextRole) {
    match kind {
        BlockQuoteKind::Note => ("Note", TextRole::Accent),
        BlockQuoteKind::Tip => ("Tip", TextRole::Good),
        BlockQuoteKind::Important => ("Important", TextRole::Accent),
        BlockQuoteKind::Warning => ("Warning", TextRole::Warning),
        BlockQuoteKind::Caution => ("Caution", TextRole::Bad),
    }
}
