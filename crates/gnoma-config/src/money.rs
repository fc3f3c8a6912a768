//! Amounts of money as people write them: `5`, `"5 EUR"`, `"$5"`. Everything is counted in dollars.

/// The currency in which everything is counted.
pub(crate) const DOLLAR: &str = "USD";
/// Letters of a currency's name.
const CODE_CHARS: usize = 3;
/// The key that sets the rates of other currencies, in dollars for one unit.
pub(crate) const RATES: &str = "router.exchange";

/// An amount in a currency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Money {
    pub(crate) amount: f64,
    /// The code of the currency, such as `EUR`.
    pub(crate) currency: String,
}

impl Money {
    /// Reads an amount with its currency: a code before or behind it, or a sign before it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        for (sign, currency) in [("$", DOLLAR), ("€", "EUR"), ("£", "GBP")] {
            let rest = text.strip_prefix(sign).or_else(|| text.strip_suffix(sign));
            if let Some(rest) = rest {
                return Some(Self { amount: parse_amount(rest)?, currency: currency.to_owned() });
            }
        }
        let is_code = |word: &str| {
            word.len() == CODE_CHARS && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        };
        let at = |start: bool| {
            let middle = if start { CODE_CHARS } else { text.len().checked_sub(CODE_CHARS)? };
            text.split_at_checked(middle)
        };
        let (code, rest) = match (at(true), at(false)) {
            (Some((code, rest)), _) if is_code(code) => (code, rest),
            (_, Some((rest, code))) if is_code(code) => (code, rest),
            _ => return None,
        };
        Some(Self { amount: parse_amount(rest)?, currency: code.to_ascii_uppercase() })
    }

    /// As it is written in a file.
    pub(crate) fn to_text(&self) -> String {
        format!("{} {}", self.amount, self.currency)
    }
}

fn parse_amount(text: &str) -> Option<f64> {
    let number: f64 = text.trim().replace(',', ".").parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_currency() {
        for (text, amount, currency) in [
            ("5 EUR", 5.0, "EUR"),
            ("5eur", 5.0, "EUR"),
            ("EUR 5.50", 5.5, "EUR"),
            ("2,50 €", 2.5, "EUR"),
            ("€2", 2.0, "EUR"),
            ("$5", 5.0, "USD"),
            ("0.5 USD", 0.5, "USD"),
            ("10 GBP", 10.0, "GBP"),
        ] {
            let currency = currency.to_owned();
            assert_eq!(Money::parse(text), Some(Money { amount, currency }), "{text}");
        }
        for text in ["", "EUR", "five EUR", "-1 EUR", "5 EURO", "5", "nan USD", "1e400 EUR"] {
            assert_eq!(Money::parse(text), None, "{text}");
        }
    }
}
