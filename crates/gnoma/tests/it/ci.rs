//! `gnoma ci`: reviews of changes, in every form, and templates.

use std::process::Command;

use gnoma_schema::Schema;
use serde_json::{Value, json};

use crate::support::{Run, World, calls, exists, says};

/// A project with a commit on `main` and another one, which is reviewed, behind it.
fn changed(answer: &Value) -> World {
    with_change(World::new([says(&answer.to_string())]))
}

fn with_change(world: World) -> World {
    world.write("a.txt", "one\ntwo\nthree\n");
    git(
        &world,
        "git init -q -b main . && git add a.txt && git commit -qm one && git checkout -qb work",
    );
    world.write("a.txt", "one\n2\nthree\nfour\n");
    world.write("sub dir.txt", "new\n");
    git(&world, "git add . && git commit -qm two");
    world
}

fn git(world: &World, script: &str) {
    let who = ["AUTHOR", "COMMITTER"].map(|it| [(it, "NAME", "a"), (it, "EMAIL", "a@example.org")]);
    let who = who.concat().into_iter().map(|(it, what, value)| (format!("GIT_{it}_{what}"), value));
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(world.project.path()).envs(who);
    shell.env("HOME", world.home.path());
    assert!(shell.status().unwrap().success(), "{script}");
}

fn comment(path: &str, line: i64, level: &str, title: &str, message: &str) -> Value {
    json!({ "path": path, "line": line, "level": level, "title": title, "message": message })
}

/// What a model says that was misled by what it has read.
fn hostile() -> Value {
    json!({
        "summary": "Fine.\n::set-output name=a::b\n/merge\n@everyone <script>alert(1)</script> ##[add-mask]x",
        "comments": [
            comment("a.txt", 4, "warning", "[Look](http://evil.example)", "![p](http://evil.example/?q)\n/approve"),
            comment("a.txt", 2, "error", "`2` is no word", "Write `two`."),
            comment("a.txt", 9, "error", "not in the change", ""),
            comment("/etc/passwd", 1, "error", "not in the change", ""),
            comment("sub dir.txt", 1, "note", "A blank", "in a name"),
        ],
    })
}

const REVIEW: [&str; 4] = ["ci", "review", "--base", "main"];

async fn review(answer: &Value, more: &[&str]) -> (World, Run) {
    let world = changed(answer);
    let run = world.run(&[&REVIEW, more].concat()).await;
    (world, run)
}

/// The rules of the schema of SARIF 2.1.0 for what is written, in our words.
const SARIF: &str = r##"{"type":"object","required":["version","runs"],"properties":{
"$schema":{"type":"string"},"version":{"enum":["2.1.0"]},"runs":{"type":"array","minItems":1,"items":{
"type":"object","required":["tool","results"],"additionalProperties":false,"properties":{
"tool":{"type":"object","required":["driver"],"additionalProperties":false,"properties":{"driver":{
"type":"object","required":["name"],"additionalProperties":false,"properties":{
"name":{"type":"string"},"version":{"type":"string"},"informationUri":{"type":"string","pattern":"^https://"},
"rules":{"type":"array","uniqueItems":true,"items":{"type":"object","required":["id"],"additionalProperties":false,
"properties":{"id":{"type":"string"},"name":{"type":"string"},"shortDescription":{"$ref":"#/$defs/message"}}}}}}}},
"columnKind":{"enum":["utf16CodeUnits","unicodeCodePoints"]},"properties":{"type":"object"},
"results":{"type":"array","items":{"type":"object","required":["message"],"additionalProperties":false,"properties":{
"ruleId":{"type":"string"},"ruleIndex":{"type":"integer","minimum":-1},
"level":{"enum":["none","note","warning","error"]},"message":{"$ref":"#/$defs/message"},
"partialFingerprints":{"type":"object","additionalProperties":{"type":"string"}},
"locations":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"physicalLocation":{
"type":"object","anyOf":[{"required":["address"]},{"required":["artifactLocation"]}],"additionalProperties":false,
"properties":{"artifactLocation":{"type":"object","additionalProperties":false,"properties":{
"uri":{"type":"string","pattern":"^[A-Za-z0-9._~/%-]+$"},"uriBaseId":{"type":"string"}}},
"region":{"type":"object","additionalProperties":false,"properties":{"startLine":{"type":"integer","minimum":1}}}}}}}}}}}}}}},
"$defs":{"message":{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}}}"##;

#[tokio::test]
async fn comments_on_lines_of_the_change_are_kept_and_the_others_are_counted() {
    let (world, run) = review(&hostile(), &["--format", "json"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["comments_dropped"], 2);
    let places = report["comments"].as_array().unwrap().iter();
    let places: Vec<_> =
        places.map(|it| (it["path"].as_str().unwrap(), it["line"].as_i64().unwrap())).collect();
    assert_eq!(places, [("a.txt", 2), ("a.txt", 4), ("sub dir.txt", 1)]);
    assert!(!run.out.contains("##["), "a command of a CI: {}", run.out);
    // The model has seen the change with numbers, and could have called tools that read.
    let asked = world.server.requests()[0].json();
    let prompt = asked["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(prompt.contains("+     2 | 2\\n      3 | three"), "{prompt}");
    assert!(prompt.contains("-       | two"), "{prompt}");
    assert!(run.err.contains("reviewing 2 changed files against main"), "{}", run.err);
}

#[tokio::test]
async fn ci_review_report_escapes_hostile_model_output() {
    let world = changed(&hostile());
    let summary = world.home.path().join("summary.md");
    std::fs::write(&summary, "before\n").unwrap();
    let mut command = world.command(&REVIEW);
    command.env("GITHUB_STEP_SUMMARY", &summary);
    let run = crate::support::finish(command.spawn().unwrap()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let page = std::fs::read_to_string(summary).unwrap();
    assert_eq!(page, format!("before\n{}", run.out));
    for what in ["<script", "::set-output", "@everyone", "](http", "://evil", "##[", "\n/", "\n::"]
    {
        assert!(!run.out.contains(what) && !run.err.contains(what), "{what}: {run:?}");
    }
    assert!(
        run.out.contains("2 changed files against main; errors: 1, warnings: 1, notes: 1; dropped"),
        "{}",
        run.out
    );
}

#[tokio::test]
async fn the_exit_code_tells_of_comments_at_or_over_the_level() {
    let warning = json!({ "summary": "", "comments": [comment("a.txt", 4, "warning", "t", "m")] });
    for (level, code) in [("note", 9), ("warning", 9), ("error", 0)] {
        let (_, run) = review(&warning, &["--fail-on", level]).await;
        assert_eq!(run.code, Some(code), "{level}: {run:?}");
    }
    let (_, run) = review(&json!({ "summary": "", "comments": [] }), &["--fail-on", "note"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let world = with_change(World::new(["{}"; 4].map(says)));
    let run = world.run(&REVIEW).await;
    assert_eq!((run.code, run.out.as_str()), (Some(8), ""), "{run:?}");
}

#[tokio::test]
async fn sarif_follows_the_rules_of_its_schema() {
    let (world, run) =
        review(&hostile(), &["--format", "sarif", "--output", "out.sarif", "--fail-on", "error"])
            .await;
    assert_eq!((run.code, run.out.as_str()), (Some(9), ""), "{run:?}");
    let report: Value = serde_json::from_str(&world.read("out.sarif")).unwrap();
    Schema::parse(SARIF).unwrap().check(&report).unwrap();
    let results = &report["runs"][0]["results"];
    let place = |at: usize| &results[at]["locations"][0]["physicalLocation"];
    assert_eq!(place(2)["artifactLocation"]["uri"], "sub%20dir.txt");
    assert_eq!(place(0)["region"]["startLine"], 2);
    assert!(!results[1]["message"]["text"].as_str().unwrap().contains("]("));
}

#[tokio::test]
async fn ci_review_output_fits_gitlab_and_github_formats() {
    let (_, run) = review(&hostile(), &["--format", "codequality"]).await;
    let issues: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(issues[0]["severity"], "critical");
    assert_eq!(issues[2]["location"], json!({ "path": "sub dir.txt", "lines": { "begin": 1 } }));
    assert_ne!(issues[0]["fingerprint"], issues[1]["fingerprint"]);
    let (_, run) = review(&hostile(), &["--format", "github"]).await;
    let body: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (&body["event"], &body["comments"][0]["side"]),
        (&json!("COMMENT"), &json!("RIGHT"))
    );
    assert_eq!(body["commit_id"].as_str().unwrap().len(), 40);
    assert!(!run.out.contains("](http"), "{}", run.out);
}

#[tokio::test]
async fn a_review_changes_nothing_and_runs_nothing_of_the_repository() {
    let world = World::new([
        calls("fs_write", r#"{"path":"b.txt","content":"x"}"#),
        says(&json!({ "summary": "s", "comments": [] }).to_string()),
    ]);
    world.write("a.txt", "one\n");
    world.write(".gitattributes", "*.txt diff=evil\n");
    git(
        &world,
        "git init -q -b main . && git add . && git commit -qm one && git checkout -qb work",
    );
    world.write("a.txt", "two\n");
    let evil = "touch ran; cat";
    git(
        &world,
        &format!(
            "git commit -qam two && git config diff.evil.textconv '{evil}' && git config diff.evil.command '{evil}' \
         && git config core.fsmonitor '{evil}' && git config diff.external '{evil}' && git config color.ui always"
        ),
    );
    let run = world.run(&[&REVIEW[..], &["--format", "json"]].concat()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        !exists(world.project.path(), "ran") && !exists(world.project.path(), "b.txt"),
        "{run:?}"
    );
    assert_eq!(serde_json::from_str::<Value>(&run.out).unwrap()["files"], 1);
}

#[tokio::test]
async fn ci_review_reports_a_bad_base_before_any_model_request() {
    let world = changed(&hostile());
    for (base, said) in [
        ("nowhere", "git does not know `nowhere`"),
        ("--output=x", "git does not know"),
        ("", "git does not know"),
    ] {
        let base = format!("--base={base}");
        let run = world.run(&["ci", "review", &base]).await;
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains(said), "{run:?}");
    }
    git(&world, "git checkout -q --orphan other && git commit -qm three");
    let run = world.run(&REVIEW).await;
    assert!(run.code == Some(2) && run.err.contains("fetch-depth: 0"), "{run:?}");
    assert!(world.server.requests().is_empty() && !exists(world.project.path(), "x"));
    git(&world, "git checkout -q main");
    let run = world.run(&REVIEW).await;
    assert!(run.code == Some(0) && run.out.contains("There is nothing to review."), "{run:?}");
    assert!(world.server.requests().is_empty());
    let outside = World::new([]);
    let run = outside.run(&REVIEW).await;
    assert!(
        run.code == Some(2) && run.err.contains("is not a git repository, or has no commits yet"),
        "{run:?}"
    );
}

#[tokio::test]
async fn a_template_is_shown_written_once_and_replaced_only_by_force() {
    let world = World::new([]);
    let file = ".github/workflows/gnoma-review.yml";
    let shown = world.run(&["ci", "init", "github", "--print"]).await;
    assert!(shown.code == Some(0) && shown.out.contains("contents: read"), "{shown:?}");
    assert!(!exists(world.project.path(), ".github"));
    let run = world.run(&["ci", "init", "github"]).await;
    assert!(run.code == Some(0) && run.err.contains("MISTRAL_API_KEY"), "{run:?}");
    assert_eq!(world.read(file), shown.out);
    world.write(file, "mine\n");
    let run = world.run(&["ci", "init", "github"]).await;
    assert!(run.code == Some(2) && run.err.contains("--force"), "{run:?}");
    assert_eq!(world.read(file), "mine\n");
    let run = world
        .run(&["ci", "init", "github", "--force", "--comments", "--key-env", "OPENAI_API_KEY"])
        .await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let written = world.read(file);
    assert!(
        written.contains("secrets.OPENAI_API_KEY") && written.contains("pull-requests: write"),
        "{written}"
    );
    let run = world.run(&["ci", "init", "github", "--key-env", "A: b"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    for (what, name) in [("gitlab", ".gitlab/gnoma-review.yml"), ("container", "Containerfile")] {
        let run = world.run(&["ci", "init", what]).await;
        assert!(run.code == Some(0) && exists(world.project.path(), name), "{run:?}");
    }
}
