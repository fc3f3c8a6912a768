//! `[[ … ]]`.

use super::cursor::{ParseResult, Parser};
use super::pieces::Shape;
use super::{Binary, CommandKind, Test, Word};

/// Operators that look like words.
const BINARY: [&str; 13] =
    ["==", "=~", "=", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-ef", "-nt", "-ot"];
/// Letters of operators with one operand.
const UNARY: &str = "abcdefghknoprstuvwxzGLNORS";

impl Parser<'_> {
    /// Parses the test after `[[`, with the `]]`.
    pub(super) fn parse_test(&mut self) -> ParseResult<CommandKind> {
        let test = self.any_of()?;
        let Some(end) = self.whole_word("]]") else { return Err(self.expected_error("`]]`")) };
        self.move_to(end);
        self.reserved = true;
        Ok(CommandKind::Test(test))
    }

    fn any_of(&mut self) -> ParseResult<Test> {
        let mut tests = vec![self.all_of()?];
        while self.eat("||") {
            tests.push(self.all_of()?);
        }
        Ok(unwrap_single(tests, Test::Or))
    }

    fn all_of(&mut self) -> ParseResult<Test> {
        let mut tests = vec![self.parse_term()?];
        while self.eat("&&") {
            tests.push(self.parse_term()?);
        }
        Ok(unwrap_single(tests, Test::And))
    }

    /// One comparison and the blanks after it.
    fn parse_term(&mut self) -> ParseResult<Test> {
        self.count_node()?;
        self.skip_lines()?;
        if let Some(end) = self.whole_word("!") {
            self.move_to(end);
            let negated = self.parse_nested(Self::parse_term)?;
            return Ok(Test::Not(Box::new(negated)));
        }
        let test =
            if self.peek() == Some('(') { self.test_group()? } else { self.parse_comparison()? };
        if matches!(test, Test::Word(_)) {
            self.skip_blanks();
        } else {
            self.skip_lines()?;
        }
        Ok(test)
    }

    fn test_group(&mut self) -> ParseResult<Test> {
        self.bump();
        let inner = self.parse_nested(Self::any_of)?;
        self.expect(')', "`)`")?;
        Ok(Test::Group(Box::new(inner)))
    }

    fn parse_comparison(&mut self) -> ParseResult<Test> {
        let left = self.operand_word(Shape::Value)?;
        if let Some(operator) = left.plain_text().filter(|text| is_unary(text)) {
            let operator = operator.to_owned();
            return Ok(Test::Unary(operator, self.operand_word(Shape::Value)?));
        }
        self.skip_blanks();
        let Some(operator) = self.binary_operator() else {
            return if self.at_term_end() {
                Ok(Test::Word(left))
            } else {
                Err(self.expected_error("an operator or `]]`"))
            };
        };
        let shape = match operator {
            "=~" => Shape::Regex,
            "==" | "=" | "!=" => Shape::Pattern,
            _ => Shape::Value,
        };
        let right = self.operand_word(shape)?;
        Ok(Test::Binary(Box::new(Binary { left, operator: operator.to_owned(), right })))
    }

    fn operand_word(&mut self, shape: Shape) -> ParseResult<Word> {
        self.skip_blanks();
        let begins = self.at_word() || (shape == Shape::Regex && self.peek() == Some('('));
        if !begins || self.whole_word("]]").is_some() {
            return Err(self.expected_error("a word to compare"));
        }
        self.parse_word(shape)
    }

    fn binary_operator(&mut self) -> Option<&'static str> {
        let plain = BINARY.into_iter().find_map(|word| Some((word, self.whole_word(word)?)));
        if let Some((operator, end)) = plain {
            self.move_to(end);
            return Some(operator);
        }
        let operator = match (self.peek()?, self.peek_second()) {
            ('<' | '>', Some('<' | '>' | '&' | '|' | '(')) => return None,
            ('<', _) => "<",
            ('>', _) => ">",
            _ => return None,
        };
        self.bump();
        Some(operator)
    }

    fn at_term_end(&mut self) -> bool {
        self.whole_word("]]").is_some()
            || self.peek() == Some(')')
            || ["&&", "||"].into_iter().any(|end| self.looking_at(end).is_some())
    }
}

fn is_unary(word: &str) -> bool {
    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
    letters.next().is_some_and(|letter| UNARY.contains(letter)) && letters.next().is_none()
}

/// The only test, or all of them joined.
fn unwrap_single(mut tests: Vec<Test>, join: fn(Vec<Test>) -> Test) -> Test {
    match tests.pop() {
        Some(only) if tests.is_empty() => only,
        Some(last) => {
            tests.push(last);
            join(tests)
        }
        None => join(tests),
    }
}
