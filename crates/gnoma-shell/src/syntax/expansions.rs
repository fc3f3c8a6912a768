//! What begins with `$`, other than `${ }`.

use super::cursor::{ParseResult, Parser, starts_name};
use super::quoted::QuoteEnd;
use super::{Arithmetic, Operation, Parameter, WordPartKind};

/// Parameters whose name is one character that is not a letter.
pub(super) const SPECIAL_PARAMETERS: &str = "@*#?-$!";

impl Parser<'_> {
    /// Parses the expansion that `$` begins here; `None` for a plain dollar sign, which is left where it is.
    /// `fence` is `None` outside of quotes.
    pub(super) fn parse_dollar(
        &mut self,
        fence: Option<QuoteEnd>,
    ) -> ParseResult<Option<WordPartKind>> {
        let kind = match self.peek_second() {
            Some('(') => self.dollar_parenthesis()?,
            Some('[') => WordPartKind::Arithmetic(self.dollar_bracket()?),
            Some('{') => {
                let parameter =
                    self.parse_nested(|parser| parser.braced_parameter(fence.is_some()))?;
                WordPartKind::Parameter(Box::new(parameter))
            }
            Some('\'') if fence.is_none() => WordPartKind::AnsiQuoted(self.ansi_quoted()?),
            Some('\'' | '"') if matches!(fence, Some(QuoteEnd::Place(_))) => {
                return Err(self.ambiguous_error(self.at, "a quote after `$` within an expansion"));
            }
            Some('"') if fence.is_none() => {
                self.bump();
                WordPartKind::LocaleQuoted(self.double_quoted()?)
            }
            Some(found) if starts_name(found) => {
                self.bump();
                let name = self.parse_name();
                WordPartKind::Parameter(Box::new(plain_parameter(name)))
            }
            Some(found) if found.is_ascii_digit() || SPECIAL_PARAMETERS.contains(found) => {
                self.bump();
                self.bump();
                WordPartKind::Parameter(Box::new(plain_parameter(found.to_string())))
            }
            _ => return Ok(None),
        };
        Ok(Some(kind))
    }

    /// `$((…))` or `$( … )`.
    fn dollar_parenthesis(&mut self) -> ParseResult<WordPartKind> {
        let Some(inside) = self.looking_at("$((") else {
            return Ok(WordPartKind::CommandSubstitution(self.parse_substitution("$(")?));
        };
        let close = self.arithmetic_closing(inside, ')', "`$((`")?;
        if let Some(end) = self.doubly_closed(close) {
            self.move_to(inside);
            let arithmetic = self.arithmetic_to(close)?;
            self.move_to(end);
            return Ok(WordPartKind::Arithmetic(arithmetic));
        }
        Ok(WordPartKind::CommandSubstitution(self.parse_substitution("$(")?))
    }

    /// `$[…]`, the old form of `$((…))`.
    fn dollar_bracket(&mut self) -> ParseResult<Arithmetic> {
        self.eat("$[");
        let close = self.arithmetic_closing(self.at, ']', "`$[`")?;
        let arithmetic = self.arithmetic_to(close)?;
        self.bump();
        Ok(arithmetic)
    }

    /// The three expressions of `for ((…))`.
    pub(super) fn arithmetic_header(&mut self, close: usize) -> ParseResult<[Arithmetic; 3]> {
        let initial = self.arithmetic_part(close)?;
        let condition = self.arithmetic_part(close)?;
        if self.find_delimiter(';', close).is_some() {
            return Err(self.ambiguous_error(self.at, "`for ((` with more than three parts"));
        }
        Ok([initial, condition, self.arithmetic_to(close)?])
    }

    fn arithmetic_part(&mut self, close: usize) -> ParseResult<Arithmetic> {
        let Some(end) = self.find_delimiter(';', close) else {
            return Err(self.ambiguous_error(self.at, "`for ((` with fewer than three parts"));
        };
        let arithmetic = self.arithmetic_to(end)?;
        self.bump();
        Ok(arithmetic)
    }
}

/// A parameter of which only the value is taken.
pub(super) fn plain_parameter(name: String) -> Parameter {
    Parameter { name, indirect: false, subscript: None, operation: Operation::Value }
}
