//! Where a bracket closes, told as bash tells it before it knows what stands within: by quotes and
//! brackets alone. What the grammar finds later must agree.

use super::cursor::{ParseResult, Parser};

impl Parser<'_> {
    /// Returns the offset at which `close` ends the construct that was opened just before `from`.
    pub(super) fn find_closing(
        &mut self,
        from: usize,
        close: char,
        name: &'static str,
    ) -> ParseResult<usize> {
        let found = self.pairs_from(from, close, true).find_closing();
        let Some(length) = found else { return Err(self.unterminated_error(from, name)) };
        self.count_reread(length)?;
        Ok(from + length)
    }

    /// Returns the end of `${ }` or of a subscript. A `<( )` inside it is an error: only some versions of bash look
    /// for one there.
    pub(super) fn expansion_closing(
        &mut self,
        from: usize,
        close: char,
        name: &'static str,
    ) -> ParseResult<usize> {
        let end = self.find_closing(from, close, name)?;
        if self.pairs_from(from, close, true).has_process() {
            return Err(self.ambiguous_error(from, "a process substitution within an expansion"));
        }
        Ok(end)
    }

    /// Returns the end of calculated text. Text on which bash is inconsistent is an error: it sometimes counts
    /// brackets within `${ }` and sometimes does not.
    pub(super) fn arithmetic_closing(
        &mut self,
        from: usize,
        close: char,
        name: &'static str,
    ) -> ParseResult<usize> {
        let end = self.find_closing(from, close, name)?;
        if self.pairs_from(from, close, false).find_closing() != Some(end - from) {
            return Err(self.ambiguous_error(from, "brackets within `${ }` in calculated text"));
        }
        Ok(end)
    }

    fn pairs_from(&self, from: usize, close: char, braces_nest: bool) -> Pairs<'_> {
        Pairs { text: self.text_from(from), at: 0, open: vec![close], braces_nest }
    }

    /// Returns the offset of an unquoted `wanted` before `end`.
    pub(super) fn find_delimiter(&self, wanted: char, end: usize) -> Option<usize> {
        let text = self.text.get(self.at..end)?;
        let length = Pairs { text, at: 0, open: vec![wanted], braces_nest: true }.find_closing()?;
        Some(self.at + length)
    }

    /// The end of `))` when it stands at `close`.
    pub(super) fn doubly_closed(&mut self, close: usize) -> Option<usize> {
        let here = std::mem::replace(&mut self.at, close);
        let end = self.looking_at("))");
        self.at = here;
        end
    }
}

struct Pairs<'a> {
    text: &'a str,
    at: usize,
    /// The closing character of each open bracket, innermost last.
    open: Vec<char>,
    /// True if the content of `${ }` is separate from the text around it.
    braces_nest: bool,
}

impl Pairs<'_> {
    fn find_closing(mut self) -> Option<usize> {
        while self.next_character()?.is_some() {}
        Some(self.at - 1)
    }

    /// True if `<(` or `>(` stands in `${ }` or a subscript, outside of quotes and commands.
    fn has_process(mut self) -> bool {
        while let Some(Some((found, innermost))) = self.next_character() {
            let is_process = matches!(found, '<' | '>') && self.peek() == Some('(');
            if is_process && matches!(innermost, '}' | ']') {
                return true;
            }
        }
        false
    }

    /// Takes a character, with what belongs to it, and gives it with the bracket it stood in; nothing
    /// when it was the last bracket.
    fn next_character(&mut self) -> Option<Option<(char, char)>> {
        let found = self.next()?;
        let innermost = *self.open.last()?;
        if found == '\\' {
            self.next()?;
        } else if found == innermost {
            self.open.pop();
            if self.open.is_empty() {
                return Some(None);
            }
        } else if innermost != '`' {
            self.push_opening(found, innermost)?;
        }
        Some(Some((found, innermost)))
    }

    fn next(&mut self) -> Option<char> {
        let found = self.peek()?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn push_opening(&mut self, found: char, innermost: char) -> Option<()> {
        match found {
            '"' | '`' => self.open.push(found),
            '\'' if innermost != '"' => self.single_quoted(false)?,
            '(' if innermost == ')' => self.open.push(')'),
            '[' if innermost == ']' => self.open.push(']'),
            '$' => self.push_dollar(innermost)?,
            _ => {}
        }
        Some(())
    }

    fn push_dollar(&mut self, innermost: char) -> Option<()> {
        match self.peek() {
            Some('(') => self.open.push(')'),
            Some('{') if self.braces_nest => self.open.push('}'),
            Some('[') => self.open.push(']'),
            Some('\'') if innermost != '"' => {
                self.next();
                return self.single_quoted(true);
            }
            // The process number; what follows is not what `$` would make of it.
            Some('$') => {}
            _ => return Some(()),
        }
        self.next();
        Some(())
    }

    fn single_quoted(&mut self, escapes: bool) -> Option<()> {
        loop {
            match self.next()? {
                '\'' => return Some(()),
                '\\' if escapes => {
                    self.next()?;
                }
                _ => {}
            }
        }
    }
}
