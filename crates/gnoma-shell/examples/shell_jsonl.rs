//! Scoring helper.
use gnoma_shell::{Effect, Place, Start, analyse};
use std::io::BufRead;
fn main() {
    let start = Start { cwd: "/home/u/project".into(), home: Some("/home/u".into()) };
    for line in std::io::stdin().lock().lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let c = v["command"].as_str().unwrap();
        let a = analyse(c, &start);
        let secret = a.commands.iter().flat_map(|c| &c.effects).any(|e| match e {
            Effect::Read(p) => {
                let t = match p {
                    Place::Path(p) => p.display().to_string(),
                    Place::Pattern { pattern, .. } => pattern.clone(),
                    Place::Unknown(t) => t.clone(),
                };
                [
                    ".ssh",
                    ".env",
                    "credentials",
                    "/etc/shadow",
                    ".netrc",
                    ".npmrc",
                    ".kube",
                    ".git/config",
                    "/proc/self",
                    "outside/secret",
                    ".git-cred",
                ]
                .iter()
                .any(|m| t.contains(m))
            }
            _ => false,
        });
        let verdict = if a.is_read_only() && !secret { "allow" } else { "ask" };
        let why: Vec<String> = a
            .commands
            .iter()
            .flat_map(|c| {
                c.effects.iter().filter(|e| !matches!(e, Effect::Read(_))).map(|e| format!("{e:?}"))
            })
            .chain(a.oddities.iter().cloned())
            .chain(a.unparsed.clone())
            .collect();
        println!(
            "{}",
            serde_json::json!({"id": v["id"], "parse_ok": a.unparsed.is_none(), "commands": a.commands.iter().map(|c| c.text.clone()).collect::<Vec<_>>(), "read_only": a.is_read_only(), "risk": format!("{:?}", a.risk()).to_lowercase(), "verdict": verdict, "why": why.join("; ")})
        );
    }
}
