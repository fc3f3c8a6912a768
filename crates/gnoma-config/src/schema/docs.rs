//! `docs/configuration.md` says what the schema says: it is written from it, and compared.

use std::{fmt::Write as _, fs, path::Path};

use super::{Guard, ROWS};

const HEAD: &str = "\
# Configuration

Settings are TOML and come in layers, of which later ones win: built-in → `~/.config/gnoma/config.toml` → `profiles/NAME.toml` next to
it → `.gnoma/config.toml` of the project → environment → flags. `gnoma config show --origin` shows which layer set each value.

`${VAR}` and `${VAR:-default}` in values are replaced from the environment. `*` stands for a name of your choice. Keys marked ⚿ can run
programs, redirect traffic, spend money or weaken a protection: in a project's file they have no effect until you run `gnoma trust`.
Keys marked ↓ can only be lowered there, and keys marked ⊘ are ignored there, trusted or not. Keys marked \"not used yet\" are checked but have
no effect.

gnoma uses the proxies in `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY`, except for the hosts in `NO_PROXY` and for servers on this
machine; it names a variable that is no address, and does not use it. `SSL_CERT_FILE` (a whole path) sets `network.ca_file`, unless it is not a readable PEM file.

Features that may still change have a switch below `features`, each a short name of another setting, which stays valid; a file that has both follows
the setting. `gnoma features` lists them with their stage (experimental, preview, stable, removed); `gnoma features enable NAME` and `disable NAME`
write your own file, with `--profile PROFILE` that of a profile, with `--project` that of a trusted project.

| key | built in | | meaning |
|---|---|---|---|
";

fn render_page() -> String {
    let mut page = HEAD.to_owned();
    for row in ROWS {
        let default = row.default_value().map(|value| format!("`{value}`")).unwrap_or_default();
        let guard = match row.guard {
            Guard::Open => "",
            Guard::NeverMore => "↓",
            Guard::Personal => "⊘",
            Guard::Trusted | Guard::NotLooser | Guard::OnlyDeny => "⚿",
        };
        let meaning = row.doc.replace('|', "\\|");
        let _infallible = writeln!(page, "| `{}` | {default} | {guard} | {meaning} |", row.path);
    }
    page
}

#[test]
fn configuration_page_matches_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fresh = root.join("target/configuration.md");
    let page = render_page();
    if fs::read_to_string(root.join("docs/configuration.md")).is_ok_and(|there| there == page) {
        return;
    }
    fs::write(&fresh, page).unwrap();
    panic!("docs/configuration.md is not what the schema says; copy {} there", fresh.display());
}
