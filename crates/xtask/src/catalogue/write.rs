//! The list as text: a section per provider, a model per line, columns parted by tabs, sorted.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    fetch::{LITELLM, PACKAGES},
    merge::CatalogueRow,
    name::strip_date,
    providers::SAME_AS,
    read::format_dollars,
};

const COLUMNS: &str = "id, window (tokens of prompt), most tokens of answer, dollars per million tokens: \
                       input, output, cache read, cache write; s sees, t thinks, j schemas; \
                       released; retires; weights";

/// Returns the text of the whole file.
pub(super) fn render_list(providers: &BTreeMap<&str, BTreeMap<String, CatalogueRow>>) -> String {
    let mut text = format!(
        "# Models and their prices, made by `cargo xtask catalogue`; not to be edited by hand.\n\
         # made {}\n",
        LITELLM.date
    );
    for package in PACKAGES {
        let (name, version, date) = (package.name, package.version, package.date);
        push_line(&mut text, &format!("# {name} {version} of {date}: {}", package.used_for));
    }
    push_line(&mut text, &format!("# {COLUMNS}"));
    let mut sections: BTreeMap<&str, String> =
        providers.iter().map(|(name, rows)| (*name, render_section(rows))).collect();
    for (name, other) in SAME_AS {
        sections.insert(name, format!("\t={other}\n"));
    }
    for (name, section) in sections {
        let gap = if section.starts_with('\t') { "" } else { "\n" };
        text.extend(["@", name, gap, section.as_str()]);
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn render_section(rows: &BTreeMap<String, CatalogueRow>) -> String {
    let leads = lead_ids(rows);
    let mut text = String::new();
    for (id, row) in rows {
        match leads.get(id.as_str()) {
            Some((lead, _)) if lead != id => push_line(&mut text, &format!("{id}\t={lead}")),
            Some((_, newest)) => push_line(&mut text, &render_columns(id, row, newest.as_deref())),
            None => push_line(&mut text, &render_columns(id, row, row.released.as_deref())),
        }
    }
    text
}

/// For ids that differ by nothing but their date: the one that stands for them, and their newest day.
fn lead_ids(rows: &BTreeMap<String, CatalogueRow>) -> BTreeMap<&str, (String, Option<String>)> {
    let mut leads = BTreeMap::new();
    let mut ids: Vec<&String> = rows.keys().collect();
    while let Some(first) = ids.first().copied() {
        let same = |id: &str| {
            let facts =
                |id: &str| rows.get(id).map(|row| CatalogueRow { released: None, ..row.clone() });
            strip_date(id).0 == strip_date(first).0 && facts(id) == facts(first)
        };
        let (group, others): (Vec<&String>, Vec<&String>) =
            ids.into_iter().partition(|id| same(id));
        let base = strip_date(first).0;
        let lead = [base.to_owned(), format!("{base}-latest")]
            .into_iter()
            .find(|name| group.contains(&name))
            .or_else(|| group.last().map(|last| (*last).clone()));
        let newest = group.iter().filter_map(|id| rows.get(*id)?.released.clone()).max();
        if let Some(lead) = lead {
            leads.extend(group.iter().map(|id| (id.as_str(), (lead.clone(), newest.clone()))));
        }
        ids = others;
    }
    leads
}

fn render_columns(id: &str, row: &CatalogueRow, released: Option<&str>) -> String {
    let mut able = String::new();
    for (can, letter) in [(row.vision, 's'), (row.thinking, 't'), (row.structured, 'j')] {
        if can {
            able.push(letter);
        }
    }
    let weights = match row.open_weights {
        Some(true) => "open",
        Some(false) => "closed",
        None => "",
    };
    let cost = |micro: Option<u64>| micro.map(format_dollars).unwrap_or_default();
    let money = row.money;
    let mut text = format!("{id}\t{}\t", row.window);
    if let Some(output) = row.output {
        // Writing into a text cannot fail.
        let _written = write!(text, "{output}");
    }
    for column in [
        &format_dollars(money.input),
        &format_dollars(money.output),
        &cost(money.cache_read),
        &cost(money.cache_write),
        &able,
        released.unwrap_or_default(),
        row.retires.as_deref().unwrap_or_default(),
        weights,
    ] {
        text.push('\t');
        text.push_str(column);
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::read::Money;

    fn row(input: u64, released: Option<&str>) -> CatalogueRow {
        CatalogueRow {
            window: 200_000,
            output: None,
            money: Money { input, output: 2_500_000, cache_read: Some(30), cache_write: None },
            vision: true,
            thinking: false,
            structured: true,
            open_weights: None,
            released: released.map(str::to_owned),
            retires: None,
        }
    }

    #[test]
    fn model_prices_are_formatted_exactly() {
        for (micro, shown) in
            [(0, "0"), (3_000_000, "3"), (2_800, "0.0028"), (1_250_001, "1.250001")]
        {
            assert_eq!(format_dollars(micro), shown);
        }
    }

    #[test]
    fn ids_that_differ_by_their_date_alone_are_one_model() {
        let rows = [
            ("a-2401", row(1, Some("2024-01-01"))),
            ("a-2512", row(5, Some("2025-12-01"))),
            ("a-latest", row(5, None)),
            ("a-latest-mini", row(5, None)),
        ];
        let rows = rows.map(|(id, row)| (id.to_owned(), row)).into();
        let fields = "2.5\t0.00003\t\tsj";
        let expected = format!(
            "a-2401\t200000\t\t0.000001\t{fields}\t2024-01-01\n\
             a-2512\t=a-latest\n\
             a-latest\t200000\t\t0.000005\t{fields}\t2025-12-01\n\
             a-latest-mini\t200000\t\t0.000005\t{fields}\n"
        );
        assert_eq!(render_section(&rows), expected);
    }
}
