//! The archive for a bug report: what `gnoma doctor` says, versions, the terminal, the settings without secrets,
//! and the last debug log.
//!
//! Nothing of sessions is in it, and of the log only what no person, model or tool wrote. What settings say about
//! secrets that may pass does not count here: all that look like secrets are replaced. The home is written as `~`.

mod mask;
mod tar;

use std::path::Path;

use gnoma_config::ExplainedValue;

use crate::{Folders as _, Project, Result, debug_log, files::NewFile};

/// A file of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// The name of the file.
    pub name: &'static str,
    /// The content of the file.
    pub text: String,
}

/// Returns the files of a report. `doctor`: what `gnoma doctor` says; `terminal`: facts about the terminal.
///
/// # Errors
/// The patterns of secrets in the settings cannot be used.
pub fn collect_files(project: &Project, doctor: &str, terminal: &str) -> Result<Vec<ReportFile>> {
    let log = debug_log::read_last(&project.environment().state_dir());
    let texts = [
        ("doctor.txt", doctor.to_owned()),
        ("versions.txt", describe_versions()),
        ("terminal.txt", terminal.to_owned()),
        ("configuration.toml", describe_settings(&project.values)),
        ("debug.log", log.as_deref().map_or_else(no_log, mask::reduce_log)),
    ];
    let firewall = project.strict_firewall()?;
    let home = project.environment().home();
    let clean = |text: String| {
        let text = mask::mask_addresses(&firewall.redact_text(&text));
        match home.as_deref().and_then(Path::to_str).filter(|home| home.len() > 1) {
            Some(home) => text.replace(home, "~"),
            None => text,
        }
    };
    Ok(texts.map(|(name, text)| ReportFile { name, text: clean(text) }).into())
}

/// Writes the files into a new archive in the format of `tar`, which only its owner can read.
///
/// # Errors
/// The file already exists or cannot be written.
pub fn write_archive(files: &[ReportFile], path: &Path, now_ms: i64) -> Result<()> {
    let mut archive = NewFile::create(path)?;
    for ReportFile { name, text } in files {
        archive.write(&tar::encode_entry(name, text.as_bytes(), now_ms.div_euclid(1_000)))?;
    }
    archive.write(&tar::END)?;
    archive.finish()
}

fn no_log() -> String {
    "there is no debug log; `GNOMA_LOG=debug gnoma` writes one\n".to_owned()
}

fn describe_settings(values: &[ExplainedValue]) -> String {
    let line = |ExplainedValue { key, value, origin, .. }: &ExplainedValue| {
        format!("{key} = {}  # {origin}\n", mask::mask_setting(key, value))
    };
    values.iter().map(line).collect()
}

fn describe_versions() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = read("/etc/os-release");
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!(
        "gnoma {} ({build})\nsystem {} {}\nkernel {}\ndistribution {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        read("/proc/sys/kernel/osrelease").trim(),
        name.unwrap_or("unknown").trim_matches('"'),
    )
}
