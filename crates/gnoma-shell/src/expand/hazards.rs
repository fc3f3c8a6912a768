//! Expansions that may do more than give a value.
//!
//! What is calculated is expanded once more by the shell, so a value in it may run commands.

use super::Expander;
use super::join::ExpandedPiece;
use crate::syntax::{Arithmetic, Operation, Parameter, Word, WordPart};

impl Expander<'_> {
    /// Notes what expanding a parameter might do beside giving a value.
    pub(super) fn look_at_hazards(&mut self, parameter: &Parameter) {
        let name = &parameter.name;
        self.may_fail |= parameter.indirect;
        if parameter.indirect && parameter.operation != Operation::Names {
            self.hazards.push(format!("`${{!{name}}}` expands the variable that `{name}` names"));
        }
        if let Some(subscript) = &parameter.subscript {
            self.look_at_subscript(subscript);
        }
        match &parameter.operation {
            Operation::AssignDefault(_) => {
                self.hazards.push(format!("`${{{name}=…}}` sets a variable while it is expanded"));
            }
            Operation::Transform('P') => {
                self.hazards.push(format!("`${{{name}@P}}` runs any `$( )` in the value"));
            }
            Operation::Substring { offset, length } => {
                self.check_arithmetic(offset);
                if let Some(length) = length {
                    self.check_arithmetic(length);
                }
            }
            Operation::Default(word)
            | Operation::Alternative(word)
            | Operation::Require(word)
            | Operation::RemovePrefix(word)
            | Operation::RemoveSuffix(word)
            | Operation::ChangeCase(word) => {
                self.expand_single(word);
            }
            Operation::Replace { pattern, replacement } => {
                self.expand_single(pattern);
                if let Some(replacement) = replacement {
                    self.expand_single(replacement);
                }
            }
            Operation::Value
            | Operation::Length
            | Operation::Names
            | Operation::Keys
            | Operation::Transform(_) => {}
        }
    }

    /// A subscript is calculated, and a value in it may run commands.
    pub(crate) fn look_at_subscript(&mut self, subscript: &Word) {
        let written = subscript.span.text_in(self.text).to_owned();
        if !matches!(written.as_str(), "@" | "*") {
            self.calculate_parts(&subscript.parts, &written);
        }
    }

    /// Notes whether calculating might run something.
    pub(crate) fn check_arithmetic(&mut self, arithmetic: &Arithmetic) {
        let written = arithmetic.span.text_in(self.text).to_owned();
        self.calculate_parts(&arithmetic.parts, &written);
    }

    fn calculate_parts(&mut self, parts: &[WordPart], written: &str) {
        self.may_fail = true;
        let mut text = String::new();
        for part in parts {
            for piece in self
                .expand_part(part, true)
                .unwrap_or_else(|| vec![ExpandedPiece::Unknown { quoted: true }])
            {
                match piece {
                    ExpandedPiece::Text(piece)
                    | ExpandedPiece::Loose(piece)
                    | ExpandedPiece::Glob(piece) => {
                        text.push_str(&piece);
                    }
                    ExpandedPiece::Number | ExpandedPiece::Process { may_be_empty: false, .. } => {
                        text.push('0');
                    }
                    ExpandedPiece::Process { .. }
                    | ExpandedPiece::Unknown { .. }
                    | ExpandedPiece::OneOf(_)
                    | ExpandedPiece::Listed { .. } => {
                        return self.uncertain_number(written);
                    }
                }
            }
        }
        self.check_expression(&text);
    }

    fn uncertain_number(&mut self, written: &str) {
        self.hazards.push(format!(
            "`{written}` does arithmetic with an unknown value, which may run commands"
        ));
    }

    /// A text that is calculated: every name in it must have a plain number for a value.
    pub(crate) fn check_expression(&mut self, text: &str) {
        if text.contains(['$', '`', '[']) {
            return self.uncertain_number(text);
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        for name in text.split(|c| !is_name(c)).filter(|name| !name.is_empty()) {
            if name.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let plain = self.variable_value(name).is_some_and(|value| value.is_number());
            if !plain {
                return self.uncertain_number(text);
            }
        }
    }
}
