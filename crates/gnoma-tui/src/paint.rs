//! Styled text to bytes: colours and attributes change only where they differ, links are marked as
//! OSC 8, and nothing that a text contains can be a control sequence. No cursor moves here.

use std::sync::Arc;

use crate::{
    text::{Line, Span},
    theme::{Colour, TerminalStyle, Theme},
};

/// A link longer than this is not marked.
const MAX_LINK_BYTES: usize = 2_048;

/// One line in its colours, without a line break, ending with plain attributes.
pub fn paint_line(line: &Line, theme: &Theme, out: &mut Vec<u8>) {
    let mut pen = Pen::new(theme);
    for span in &line.spans {
        pen.apply_style(span, out);
        paint_text(&span.text, out);
    }
    pen.reset_style(out);
}

/// Text as bytes. Control characters cannot be in a span that was made as it should be; whatever
/// gets here all the same is made harmless.
pub(crate) fn paint_text(text: &str, out: &mut Vec<u8>) {
    if !text.chars().any(char::is_control) {
        return out.extend_from_slice(text.as_bytes());
    }
    for c in text.chars() {
        let shown = if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// The style and link that the terminal was last told for the text that follows.
#[derive(Debug)]
pub(crate) struct Pen<'a> {
    theme: &'a Theme,
    look: TerminalStyle,
    link: Option<Arc<str>>,
}

impl<'a> Pen<'a> {
    /// A pen on a terminal whose attributes are plain.
    pub(crate) fn new(theme: &'a Theme) -> Self {
        Self { theme, look: TerminalStyle::default(), link: None }
    }

    /// Makes what follows look like the span.
    pub(crate) fn apply_style(&mut self, span: &Span, out: &mut Vec<u8>) {
        self.point_to(span.link.as_ref(), out);
        self.look_like(self.theme.resolve_style(span.style), out);
    }

    /// Sets the terminal back to plain text.
    pub(crate) fn reset_style(&mut self, out: &mut Vec<u8>) {
        self.point_to(None, out);
        self.look_like(TerminalStyle::default(), out);
    }

    fn point_to(&mut self, link: Option<&Arc<str>>, out: &mut Vec<u8>) {
        if self.link.as_ref() == link {
            return;
        }
        match link.filter(|link| link.len() <= MAX_LINK_BYTES) {
            Some(link) => {
                // The same name everywhere: the rows of a link that was wrapped are one.
                out.extend_from_slice(format!("\x1b]8;id={:x};", name_of(link)).as_bytes());
                write_url(link, out);
            }
            None => out.extend_from_slice(b"\x1b]8;;"),
        }
        out.extend_from_slice(b"\x1b\\");
        self.link = link.cloned();
    }

    fn look_like(&mut self, look: TerminalStyle, out: &mut Vec<u8>) {
        if self.look == look {
            return;
        }
        let change = Codes::from_change(self.look, look);
        let afresh = Codes::from_reset(look);
        let shorter = if afresh.0.len() < change.0.len() { afresh } else { change };
        out.extend_from_slice(b"\x1b[");
        out.extend_from_slice(shorter.0.as_bytes());
        out.push(b'm');
        self.look = look;
    }
}

/// A short name for an address (FNV-1a), the same for the same one.
fn name_of(link: &str) -> u32 {
    link.bytes().fold(0x811c_9dc5, |name, byte| (name ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// An address in the only characters that the sequence may hold.
fn write_url(link: &str, out: &mut Vec<u8>) {
    for byte in link.bytes() {
        if byte.is_ascii_graphic() {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

/// The parameters of one SGR sequence.
struct Codes(String);

impl Codes {
    /// Everything off, then what is wanted; nothing at all means off.
    fn from_reset(look: TerminalStyle) -> Self {
        let wanted = Self::from_change(TerminalStyle::default(), look);
        if wanted.0.is_empty() { wanted } else { Self(format!("0;{}", wanted.0)) }
    }

    fn from_change(old: TerminalStyle, new: TerminalStyle) -> Self {
        let mut codes = Self(String::new());
        // Bold and faint share the code that ends them.
        let dimmer = (old.bold && !new.bold) || (old.faint && !new.faint);
        codes.add_if(dimmer, "22");
        codes.add_if(new.bold && (dimmer || !old.bold), "1");
        codes.add_if(new.faint && (dimmer || !old.faint), "2");
        codes.add_switch(old.italic, new.italic, "3", "23");
        codes.add_switch(old.underline, new.underline, "4", "24");
        codes.add_switch(old.reverse, new.reverse, "7", "27");
        codes.add_switch(old.strike, new.strike, "9", "29");
        if old.front != new.front {
            codes.add_colour(new.front, 30);
        }
        if old.back != new.back {
            codes.add_colour(new.back, 40);
        }
        codes
    }

    fn add_switch(&mut self, old: bool, new: bool, on: &str, off: &str) {
        self.add_if(old != new, if new { on } else { off });
    }

    fn add_if(&mut self, condition: bool, code: &str) {
        if condition {
            if !self.0.is_empty() {
                self.0.push(';');
            }
            self.0.push_str(code);
        }
    }

    /// `base` is 30 for the letters and 40 for what is behind them.
    fn add_colour(&mut self, colour: Colour, base: u8) {
        let code = match colour {
            Colour::Own => format!("{}", base + 9),
            Colour::Ansi(place @ 0..8) => format!("{}", base + place),
            Colour::Ansi(place) => format!("{}", base + 60 + place % 8),
            Colour::Indexed(place) => format!("{};5;{place}", base + 8),
            Colour::Exact(red, green, blue) => format!("{};2;{red};{green};{blue}", base + 8),
        };
        self.add_if(true, &code);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        text::{BackgroundRole, Style, TextRole},
        theme::{Depth, Shade},
    };

    fn painted(spans: Vec<Span>, depth: Depth) -> String {
        let theme = Theme::from_name("terminal", Shade::Dark, depth).unwrap();
        let mut out = Vec::new();
        paint_line(&Line { spans }, &theme, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn painting_writes_only_style_changes() {
        let spans = vec![
            Span::new("plain ", Style::default()),
            Span::new("good ", Style::with_ink(TextRole::Good)),
            Span::new("best", Style::with_ink(TextRole::Good).bold()),
            Span::new(" end", Style::default()),
        ];
        assert_eq!(
            painted(spans.clone(), Depth::Sixteen),
            "plain \u{1b}[32mgood \u{1b}[1mbest\u{1b}[m end"
        );
        assert_eq!(painted(spans, Depth::None), "plain good \u{1b}[1mbest\u{1b}[m end");
    }

    #[test]
    fn styles_without_colours_use_attributes() {
        let spans = vec![
            Span::new("dim", Style::with_ink(TextRole::Dim)),
            Span::new("chosen", Style::default().on_paper(BackgroundRole::Chosen)),
        ];
        assert_eq!(painted(spans, Depth::None), "\u{1b}[2mdim\u{1b}[0;7mchosen\u{1b}[m");
    }

    #[test]
    fn hyperlinks_are_percent_encoded_and_closed() {
        let mut span = Span::new("here", Style::default());
        let link = "https://a.example/ü b\u{1b}]0;x\u{7}";
        span.link = Some(link.into());
        let address = "https://a.example/%C3%BC%20b%1B]0;x%07";
        let name = name_of(link);
        assert_eq!(
            painted(vec![span], Depth::None),
            format!("\u{1b}]8;id={name:x};{address}\u{1b}\\here\u{1b}]8;;\u{1b}\\")
        );
    }

    proptest! {
        #[test]
        fn painted_text_has_no_control_characters(
            texts in prop::collection::vec("[a\u{0}-\u{1f}\u{7f}-\u{9f}漢]{0,8}", 0..4),
        ) {
            let spans = texts.into_iter().map(|text| Span {
                text: Cow::Owned(text),
                style: Style::default(),
                link: None,
            });
            let bytes = painted(spans.collect(), Depth::Sixteen);
            prop_assert!(!bytes.chars().any(char::is_control), "{:?}", bytes);
        }
    }
}
