//! `gnoma analytics`: the person's own statistics of the features that they use.

use anyhow::Result;
use gnoma_core::json_value::json;
use gnoma_host::analytics;

use super::common::{load_settings, print_json, print_safe_text, print_stored_text};
use crate::{
    args::{AnalyticsSub, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
    table,
};

pub(super) fn run(
    what: &AnalyticsSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let path = analytics::path(&around.environment);
    let is_json = match what {
        AnalyticsSub::Show { json } => *json,
        AnalyticsSub::Clear => {
            let removed = analytics::clear(&path)?;
            let told = if removed { "removed what was counted\n" } else { "nothing was counted\n" };
            return print_safe_text(told);
        }
    };
    let counts = analytics::read(&path)?;
    let loaded = load_settings(args, around)?.1;
    let is_on = loaded.explain_key("analytics.local").is_some_and(|set| set.value == "true");
    if is_json {
        let file = path.display().to_string();
        return print_json(&json!({ "is_on": is_on, "file": file, "counts": counts }));
    }
    if !is_on {
        report::print_line(
            "nothing is counted: `gnoma config set analytics.local true` counts the features that you use, in a file \
             that is never sent",
        );
    }
    if counts.is_empty() {
        return print_safe_text("");
    }
    let rows = counts.iter().map(|(name, count)| [count.to_string(), name.clone()]);
    print_stored_text(&format!(
        "{}\nin {}; nothing sends it\n",
        table::render_table(["count", "what"], rows),
        path.display()
    ))
}
