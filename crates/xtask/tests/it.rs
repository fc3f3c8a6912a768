//! The rules: who may use whom, and what source files must not hold.

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[path = "it/dependencies.rs"]
mod dependencies;
#[path = "it/environment.rs"]
mod environment;
#[path = "it/promises.rs"]
mod promises;
#[path = "it/structure.rs"]
mod structure;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};

/// Crate, and the crates of the workspace it may use in what is shipped.
const MAY_USE: &[(&str, &[&str])] = &[
    ("gnoma-core", &[]),
    ("gnoma-packed", &[]),
    ("gnoma-config", &["gnoma-core", "gnoma-router"]),
    ("gnoma-net", &["gnoma-core"]),
    ("gnoma-llm", &["gnoma-core", "gnoma-net", "gnoma-packed"]),
    ("gnoma-otel", &["gnoma-core", "gnoma-net"]),
    ("gnoma-secrets", &["gnoma-core", "gnoma-packed"]),
    ("gnoma-shell", &["gnoma-packed"]),
    ("gnoma-guard", &["gnoma-core", "gnoma-secrets", "gnoma-shell"]),
    ("gnoma-sandbox", &["gnoma-core"]),
    ("gnoma-store", &["gnoma-core"]),
    ("gnoma-router", &["gnoma-core", "gnoma-packed"]),
    ("gnoma-schema", &[]),
    ("gnoma-tui", &["gnoma-core"]),
    ("gnoma-serve", &["gnoma-core"]),
    ("gnoma-web", &["gnoma-core"]),
    ("gnoma-acp", &["gnoma-core"]),
    ("gnoma-tools", &["gnoma-core", "gnoma-sandbox"]),
    ("gnoma-extend", &["gnoma-core", "gnoma-net", "gnoma-sandbox"]),
    ("gnoma-engine", &["gnoma-core", "gnoma-guard", "gnoma-router", "gnoma-schema", "gnoma-shell"]),
    (
        "gnoma-host",
        &[
            "gnoma-core",
            "gnoma-acp",
            "gnoma-config",
            "gnoma-net",
            "gnoma-otel",
            "gnoma-llm",
            "gnoma-guard",
            "gnoma-router",
            "gnoma-sandbox",
            "gnoma-store",
            "gnoma-tools",
            "gnoma-engine",
            "gnoma-extend",
        ],
    ),
    (
        "gnoma-front",
        &[
            "gnoma-core",
            "gnoma-guard",
            "gnoma-sandbox",
            "gnoma-schema",
            "gnoma-engine",
            "gnoma-host",
        ],
    ),
    (
        "gnoma-claude",
        &[
            "gnoma-core",
            "gnoma-config",
            "gnoma-guard",
            "gnoma-schema",
            "gnoma-tools",
            "gnoma-extend",
            "gnoma-host",
            "gnoma-front",
        ],
    ),
    (
        "gnoma",
        &[
            "gnoma-core",
            "gnoma-config",
            "gnoma-net",
            "gnoma-packed",
            "gnoma-llm",
            "gnoma-guard",
            "gnoma-router",
            "gnoma-schema",
            "gnoma-sandbox",
            "gnoma-acp",
            "gnoma-serve",
            "gnoma-web",
            "gnoma-store",
            "gnoma-tools",
            "gnoma-tui",
            "gnoma-engine",
            "gnoma-extend",
            "gnoma-host",
            "gnoma-front",
            "gnoma-claude",
        ],
    ),
    ("gnoma-testkit", &["gnoma-core"]),
    (
        "gnoma-bench",
        &[
            "gnoma-core",
            "gnoma-llm",
            "gnoma-guard",
            "gnoma-router",
            "gnoma-sandbox",
            "gnoma-testkit",
            "gnoma-tui",
        ],
    ),
    ("xtask", &["gnoma-core"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn crate_dependencies_follow_the_allowed_layers() {
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let manifest: toml::Table = text.parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        assert_eq!(
            folder.file_name().unwrap().to_str(),
            Some(name.as_str()),
            "folder = crate name"
        );
        let (_, may) = MAY_USE
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("`{name}` is not in the table of allowed edges"));
        let used = manifest.get("dependencies").and_then(toml::Value::as_table);
        for dependency in used.into_iter().flat_map(toml::Table::keys) {
            let ours = MAY_USE.iter().any(|(known, _)| known == dependency);
            assert!(!ours || may.contains(&dependency.as_str()), "`{name}` uses `{dependency}`");
        }
        seen.insert(name);
    }
    assert_eq!(seen.len(), MAY_USE.len(), "the table names crates that are gone");
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn sources_follow_the_code_rules() {
    let mut files = Vec::new();
    sources(&crates(), &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let shown = file.display();
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        if !is_test && !text.starts_with("//!") && !file.ends_with("tests.rs") {
            wrong.push(format!("{shown}: does not open with what it is for"));
        }
        for forbidden in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[", "ignore]")] {
            if text.contains(forbidden) {
                wrong.push(format!("{shown}: holds `{forbidden}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The words and signs of a source file, without comments and texts.
fn words(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => words(group.stream(), found),
            TokenTree::Ident(word) => found.push(word.to_string()),
            TokenTree::Punct(sign) => found.push(sign.as_char().to_string()),
            TokenTree::Literal(_) => (),
        }
    }
}

#[test]
fn project_settings_are_applied_in_one_module() {
    const LOWERING: &str = "gnoma-host/src/project_settings.rs";
    // A request of the protocol and its reply have the same name.
    const ELSEWHERE: [&str; 2] = ["Request", "Reply"];
    let mut files = Vec::new();
    for folder in ["gnoma-host/src", "gnoma-front/src", "gnoma-claude/src", "gnoma/src"] {
        sources(&crates().join(folder), &mut files);
    }
    assert!(files.iter().any(|file| file.ends_with(LOWERING)));
    files.retain(|file| !file.ends_with(LOWERING));
    let sees_all = |file: &PathBuf| {
        let mut found = Vec::new();
        words(fs::read_to_string(file).unwrap().parse().unwrap(), &mut found);
        found.windows(4).any(|last| {
            let [of, .., word] = last else { return false };
            let is_elsewhere = last[1..3] == [":", ":"] && ELSEWHERE.contains(&of.as_str());
            word == "Settings" && !is_elsewhere
                || last[1..] == ["loaded", ".", "settings"]
                || last[2..] == ["Loaded", "settings"]
        })
    };
    files.retain(sees_all);
    assert!(files.is_empty(), "see all settings, which only {LOWERING} may: {files:?}");
}

/// Larger pictures make a page slow.
const MAX_PICTURE_BYTES: u64 = 76_000;

/// The names of the pictures that a page shows.
fn shown(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let links = text.split("pictures/").skip(1);
    let name = |link: &str| link.split_once(".png)").map(|(name, _)| name.to_owned());
    links.filter_map(name).collect()
}

#[test]
fn documentation_pictures_match_the_picture_scenes() {
    let root = crates().join("..");
    let scenes = crates().join("gnoma-bench/src/command/pictures/scenes.rs");
    let scenes = fs::read_to_string(scenes).unwrap();
    let mut named = BTreeSet::new();
    for page in ["README.md", "docs/tasks.md", "docs/tui.md", "docs/web.md"] {
        named.extend(shown(&root.join(page)));
    }
    let browser = fs::read_to_string(root.join("bench/web.mjs")).unwrap();
    for name in &named {
        // Those of the page are taken by a browser.
        let is_made = match name.strip_prefix("web-") {
            Some(name) => browser.contains(&format!("\"{name}\");")),
            None => scenes.contains(&format!("(\"{name}\"")),
        };
        assert!(is_made, "no scene makes {name}.png");
    }
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(root.join("docs/pictures")).unwrap() {
        let entry = entry.unwrap();
        let file = entry.file_name().into_string().unwrap();
        assert!(entry.metadata().unwrap().len() <= MAX_PICTURE_BYTES, "{file} is too large");
        there.insert(file.strip_suffix(".png").unwrap().to_owned());
    }
    assert_eq!(named, there, "pages show what docs/pictures has");
}

#[test]
fn protocol_schema_file_matches_its_types() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(xtask::SCHEMA);
    let written = fs::read_to_string(file).unwrap();
    assert_eq!(
        written,
        gnoma_core::protocol::protocol_schema(),
        "`cargo xtask schema` makes it anew"
    );
}
