//! `${…}`.

use super::cursor::{ParseResult, Parser, starts_name};
use super::expansions::SPECIAL_PARAMETERS;
use super::pieces::Shape;
use super::{Operation, Parameter, Word, WordPart, WordPartKind};

/// The letters that `${x@Q}` allows.
const TRANSFORMATIONS: &str = "QEPAaKkUuL";

impl Parser<'_> {
    pub(super) fn braced_parameter(&mut self, quoted: bool) -> ParseResult<Parameter> {
        self.eat("${");
        let close = self.expansion_closing(self.at, '}', "`${`")?;
        let parameter = match self.peek() {
            Some('#') if self.peek_second() != Some('}') => self.parameter_length(close)?,
            Some('!') if self.peek_second() != Some('}') => {
                self.indirect_parameter(close, quoted)?
            }
            _ => self.direct_parameter(close, quoted)?,
        };
        self.require_place(close)?;
        self.bump();
        Ok(parameter)
    }

    fn direct_parameter(&mut self, close: usize, quoted: bool) -> ParseResult<Parameter> {
        let (name, subscript) = self.parameter_name()?;
        let operation = self.parse_operation(close, quoted)?;
        Ok(Parameter { name, indirect: false, subscript, operation })
    }

    fn parameter_length(&mut self, close: usize) -> ParseResult<Parameter> {
        self.bump();
        let (name, subscript) = self.parameter_name()?;
        if self.next_start() != close {
            return Err(self.ambiguous_error(self.at, "a length, or the number of arguments"));
        }
        Ok(Parameter { name, indirect: false, subscript, operation: Operation::Length })
    }

    fn indirect_parameter(&mut self, close: usize, quoted: bool) -> ParseResult<Parameter> {
        self.bump();
        if !self
            .peek()
            .is_some_and(|found| starts_name(found) || found.is_ascii_digit() || found == '#')
        {
            return Err(self.expected_error("a parameter's name"));
        }
        let (name, subscript) = self.parameter_name()?;
        let is_list = subscript.as_ref().is_some_and(is_all_elements);
        if is_list && self.next_start() == close {
            return Ok(Parameter { name, indirect: false, subscript, operation: Operation::Keys });
        }
        if subscript.is_none() && matches!(self.peek(), Some('*' | '@')) && self.at + 1 == close {
            self.bump();
            return Ok(Parameter { name, indirect: false, subscript, operation: Operation::Names });
        }
        let operation = self.parse_operation(close, quoted)?;
        Ok(Parameter { name, indirect: true, subscript, operation })
    }

    fn parameter_name(&mut self) -> ParseResult<(String, Option<Word>)> {
        let mut name = self.parse_name();
        if name.is_empty() {
            while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
                self.bump();
                name.push(digit);
            }
        } else if self.peek() == Some('[') {
            return Ok((name, Some(self.parse_subscript()?)));
        }
        if name.is_empty() {
            let Some(found) = self.peek().filter(|found| SPECIAL_PARAMETERS.contains(*found))
            else {
                return Err(self.expected_error("a parameter's name"));
            };
            self.bump();
            name.push(found);
        }
        Ok((name, None))
    }

    fn parse_operation(&mut self, close: usize, quoted: bool) -> ParseResult<Operation> {
        if self.next_start() == close {
            return Ok(Operation::Value);
        }
        let colon = self.peek() == Some(':');
        if colon && !matches!(self.peek_second(), Some('-' | '=' | '?' | '+')) {
            return self.parse_substring(close);
        }
        if colon {
            self.bump();
        }
        let Some(operator) = self.bump() else { return Err(self.expected_error("`}`")) };
        Ok(match operator {
            '-' => Operation::Default(self.parse_operand(close, quoted)?),
            '=' => Operation::AssignDefault(self.parse_operand(close, quoted)?),
            '?' => Operation::Require(self.parse_operand(close, quoted)?),
            '+' => Operation::Alternative(self.parse_operand(close, quoted)?),
            '#' => Operation::RemovePrefix(self.repeatable_pattern("#")?),
            '%' => Operation::RemoveSuffix(self.repeatable_pattern("%")?),
            '^' => Operation::ChangeCase(self.repeatable_pattern("^")?),
            ',' => Operation::ChangeCase(self.repeatable_pattern(",")?),
            '~' => Operation::ChangeCase(self.repeatable_pattern("~")?),
            '/' => self.parse_replacement(close)?,
            '@' => match self.bump() {
                Some(letter) if TRANSFORMATIONS.contains(letter) => Operation::Transform(letter),
                _ => return Err(self.expected_error("a letter after `@`")),
            },
            _ => return Err(self.expected_error("an operator or `}`")),
        })
    }

    /// The word of `${x:-word}`: in quotes, quotes within it do not quote.
    fn parse_operand(&mut self, close: usize, quoted: bool) -> ParseResult<Word> {
        if quoted { self.quoted_word_to(close) } else { self.parse_word(Shape::Operand) }
    }

    /// A pattern, in which quotes quote also when it stands in quotes.
    fn repeatable_pattern(&mut self, operator: &str) -> ParseResult<Word> {
        self.eat(operator);
        self.parse_pattern(Shape::Operand)
    }

    /// Parses a pattern. In double quotes, bash does not always agree with itself on what single quotes within the
    /// pattern hold; such a pattern is an error.
    fn parse_pattern(&mut self, shape: Shape) -> ParseResult<Word> {
        let start = self.at;
        let word = self.parse_word(shape)?;
        let is_doubtful = |part: &WordPart| match &part.kind {
            WordPartKind::SingleQuoted(text) | WordPartKind::AnsiQuoted(Some(text)) => {
                text.contains(['$', '`', '"', '\\', '}', '\''])
            }
            WordPartKind::AnsiQuoted(None) => true,
            _ => false,
        };
        if self.in_quotes && word.parts.iter().any(is_doubtful) {
            return Err(self.ambiguous_error(start, "single quotes within double quotes"));
        }
        Ok(word)
    }

    fn parse_replacement(&mut self, close: usize) -> ParseResult<Operation> {
        if matches!(self.peek(), Some('/' | '#' | '%')) && self.at < close {
            self.bump();
        }
        let pattern = self.parse_pattern(Shape::Replaced)?;
        let replacement =
            if self.eat("/") { Some(self.parse_pattern(Shape::Operand)?) } else { None };
        Ok(Operation::Replace { pattern, replacement })
    }

    fn parse_substring(&mut self, close: usize) -> ParseResult<Operation> {
        self.bump();
        let end = self.find_delimiter(':', close);
        let offset = self.arithmetic_to(end.unwrap_or(close))?;
        let length = if end.is_some() {
            self.bump();
            Some(self.arithmetic_to(close)?)
        } else {
            None
        };
        Ok(Operation::Substring { offset, length })
    }
}

fn is_all_elements(subscript: &Word) -> bool {
    matches!(subscript.parts.as_slice(),
        [part] if matches!(&part.kind, WordPartKind::Literal(text) if text == "@" || text == "*"))
}
