//! `gnoma router pools`: limits, and where they stand.

use anyhow::Result;
use gnoma_core::ledger::{Level, Unit, Window};
use gnoma_router::pool::Pool;
use serde_json::json;

use super::{Ground, money};
use crate::{
    args::TurnArgs,
    clock,
    commands::{print_json, route, show},
    report::Exit,
    table,
};

const NONE: &str = "no limits are set; `[router.caps]` and `[rate_limits.NAME]` set some\n";
const SECOND_MS: u64 = 1_000;
const MINUTE_MS: i64 = 60_000;

pub(super) async fn run(ground: &Ground<'_>, args: &TurnArgs, json: bool) -> Result<Exit> {
    let ready = route::ready(ground, args, None).await?;
    let levels = route::levels(ground, &ready.routes).await;
    if json {
        return print_json(&json!({ "limits": levels }));
    }
    let now_ms = clock::now_ms();
    let text = table::lines(
        ["pool", "limit", "used", "in flight", "begins anew"],
        levels.iter().map(|level| row(level, now_ms)),
    );
    show(if levels.is_empty() { NONE } else { &text })
}

fn row(level: &Level, now_ms: i64) -> [String; 5] {
    let Level { pool, limit, used, held, resets_at_ms } = level;
    let pool = Pool::parse(pool).map_or_else(|| pool.clone(), |pool| pool.words());
    let amount = |amount: u64| match limit.unit {
        Unit::MicroUsd => money(amount as f64),
        Unit::Requests | Unit::Input | Unit::Output | Unit::Tokens | Unit::Custom => {
            amount.to_string()
        }
    };
    let most = format!("{} {}", amount(limit.most), words(limit.unit, limit.window));
    let anew = match (limit.window, resets_at_ms) {
        (Window::Rolling { .. }, _) => "as time goes by".to_owned(),
        (Window::Day | Window::Month | Window::Ever, Some(at_ms)) => {
            wait(at_ms.saturating_sub(now_ms))
        }
        (Window::Day | Window::Month | Window::Ever, None) => "never".to_owned(),
    };
    [pool, most.trim_end().to_owned(), amount(*used), amount(*held), anew]
}

fn words(unit: Unit, window: Window) -> String {
    let what = match unit {
        Unit::Requests => "requests ",
        Unit::Input => "tokens read ",
        Unit::Output => "tokens written ",
        Unit::Tokens => "tokens ",
        Unit::Custom => "units ",
        Unit::MicroUsd => "",
    };
    let per = match window {
        Window::Rolling { ms: SECOND_MS } => "a second".to_owned(),
        Window::Rolling { ms: 60_000 } => "a minute".to_owned(),
        Window::Rolling { ms } => format!("in {} s", ms / SECOND_MS),
        Window::Day => "a day".to_owned(),
        Window::Month => "a month".to_owned(),
        Window::Ever => String::new(),
    };
    format!("{what}{per}")
}

/// How long it is until then.
fn wait(ms: i64) -> String {
    const HOUR_MIN: i64 = 60;
    const DAY_MIN: i64 = 24 * HOUR_MIN;
    match ms.max(0) / MINUTE_MS {
        minutes @ ..HOUR_MIN => format!("in {minutes} min"),
        minutes @ HOUR_MIN..DAY_MIN => format!("in {} h", minutes / HOUR_MIN),
        minutes @ DAY_MIN.. => format!("in {} d", minutes / DAY_MIN),
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::Limit;

    use super::*;

    #[test]
    fn a_limit_is_told_in_its_own_unit() {
        let level = |unit, window, most| Level {
            pool: "rates:mistral".to_owned(),
            limit: Limit { unit, window, most },
            used: 2,
            held: 1,
            resets_at_ms: Some(2 * 3_600_000),
        };
        let minute = Window::Rolling { ms: 60_000 };
        let row_of = |level: &Level| row(level, 0).join("|");
        assert_eq!(
            row_of(&level(Unit::Tokens, minute, 50_000)),
            "mistral|50000 tokens a minute|2|1|as time goes by"
        );
        assert_eq!(
            row_of(&level(Unit::MicroUsd, Window::Day, 5_000_000)),
            "mistral|$5.00 a day|$0.0000|$0.0000|in 2 h"
        );
    }
}
