//! Answers JSON lines of texts with what is found in them, for measuring.

use std::io::{self, BufRead, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use gnoma_secrets::{Options, Scanner};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disabled_families = std::env::args().skip(1).collect();
    let scanner = Scanner::new(Options { disabled_families, ..Options::default() })?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let row: Value = serde_json::from_str(&line?)?;
        let text = BASE64_STANDARD.decode(row["text_b64"].as_str().unwrap_or_default())?;
        let findings: Vec<Value> = scanner
            .scan(&text)
            .iter()
            .map(|found| json!({"rule": &*found.rule, "start": found.start, "end": found.end, "action": "redact"}))
            .collect();
        writeln!(out, "{}", json!({"id": row["id"], "findings": findings}))?;
    }
    Ok(())
}
