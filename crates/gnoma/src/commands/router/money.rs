//! Amounts of money for people.

/// Micro-dollars in a dollar.
pub(in crate::commands) const MICRO: f64 = 1e6;

/// Micro-dollars for people: cents, and more digits where there are none.
pub(in crate::commands) fn format_money(micro_usd: f64) -> String {
    let dollars = micro_usd / MICRO;
    if dollars == 0.0 || dollars >= 1.0 {
        format!("${dollars:.2}")
    } else {
        format!("${dollars:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_of_money_are_not_rounded_to_zero() {
        assert_eq!(format_money(0.0), "$0.00");
        assert_eq!(format_money(1_500.0), "$0.0015");
        assert_eq!(format_money(12_345_678.0), "$12.35");
    }
}
