//! Amounts of money in the status line.

/// Micro-dollars in a dollar.
pub(crate) const MICRO_USD: f64 = 1e6;

/// Money, as far as prices are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The amount in micro-dollars.
    pub micro_usd: u64,
    /// The price of some of it is not known, so that it is more.
    pub is_partial: bool,
}

impl Cost {
    pub(super) fn add(&mut self, micro_usd: Option<u64>) {
        self.micro_usd = self.micro_usd.saturating_add(micro_usd.unwrap_or(0));
        self.is_partial |= micro_usd.is_none();
    }

    pub(super) fn is_known(self) -> bool {
        self.micro_usd > 0 || !self.is_partial
    }

    /// For people; `None` where nothing is known.
    #[must_use]
    pub fn describe_amount(self) -> Option<String> {
        let more = if self.is_partial { "≥" } else { "" };
        self.is_known().then(|| format!("{more}{}", format_dollars(self.micro_usd)))
    }
}

/// An amount of money, with as few digits as are useful.
#[must_use]
pub fn format_dollars(micro_usd: u64) -> String {
    let (whole, rest) = (micro_usd / 1_000_000, micro_usd % 1_000_000);
    match micro_usd {
        0 => "$0".to_owned(),
        1..=99 => "<$0.0001".to_owned(),
        100..=9_999 => format!("$0.{:04}", rest / 100),
        10_000..=999_999 => format!("$0.{:03}", rest / 1_000),
        1_000_000..=99_999_999 => format!("${whole}.{:02}", rest / 10_000),
        _ => format!("${whole}"),
    }
}
