//! Rules about files: what a model opens stays where a rule wants it.

use gnoma_core::{
    Command, ToolOutcome,
    session::Outcome,
    tool::{Access, ToolOutput},
};
use gnoma_router::{
    RouterSettings, Strategy,
    rules::{PathBase, Rule, RuleConditions, RuleEffect},
};
use gnoma_testkit::{Answer, FakeTool};

use super::team::{Team, assert_complete, changes, member, name, said, team};
use crate::outcome;

/// Files in `secrets` are for the arm `here` only.
fn options() -> RouterSettings {
    let rule = Rule {
        name: "stays here".into(),
        origin: "gnoma.toml:1".into(),
        when: RuleConditions { paths: vec!["secrets/**".into()], ..RuleConditions::default() },
        then: vec![RuleEffect::Pin("fake/here".into())],
    };
    let ground = PathBase { root: "/shop".into(), folder: "/shop".into() };
    RouterSettings {
        rules: vec![rule],
        ground,
        strategy: Strategy::Single,
        ..RouterSettings::default()
    }
}

fn reader() -> FakeTool {
    let done = ToolOutcome::Done(ToolOutput::from_text("what the file holds"));
    FakeTool::new("fs.read", Access::Read, move |_| done.clone())
}

fn reads(path: &str) -> Answer {
    Answer::calls(&[("read", "fs.read", &format!(r#"{{"path":"{path}"}}"#))])
}

/// A remote arm that is better in all, and the one that may see the files.
fn two(remote: Vec<Answer>, here: Vec<Answer>) -> Team {
    let members = vec![member("remote", 0.95, 0.001, remote), member("here", 0.3, 0.1, here)];
    team(members, options(), vec![reader()])
}

#[tokio::test(start_paused = true)]
async fn path_rule_moves_to_the_allowed_model_before_file_content_is_sent() {
    let mut team = two(vec![reads("./secrets/key.txt")], vec![Answer::text("done")]);
    let events = team.turn("find out why it fails").await;
    assert_eq!(changes(&events), [("remote", "here", false)]);
    assert_complete(&events);
    assert_eq!(team.asked(0), 1, "it is never sent what the file holds");
    // Nor later: the conversation has it now.
    team.providers[1].push(Answer::text("more"));
    assert_eq!(said(&team.turn("go on").await), ["go on", "more"]);
    assert_eq!(team.asked(0), 1);
}

#[tokio::test(start_paused = true)]
async fn files_outside_a_path_rule_may_be_sent_to_any_model() {
    let mut team = two(vec![reads("src/lib.rs"), Answer::text("done")], Vec::new());
    assert_complete(&team.turn("find out why it fails").await);
    assert_eq!((team.asked(0), team.asked(1)), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn pinned_model_is_not_sent_files_that_a_path_rule_forbids() {
    let mut team = two(vec![reads("secrets/key.txt")], Vec::new());
    team.order(Command::Pin { arm: Some(name("remote")) }).await;
    let events = team.turn("find out why it fails").await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    let text = error.to_string();
    assert!(text.contains("rule `stays here` (gnoma.toml:1) pins `fake/here`"), "{text}");
    assert_eq!((team.asked(0), team.asked(1)), (1, 0));
}

/// A member of a panel may not see what the first has opened.
#[tokio::test(start_paused = true)]
async fn ensemble_members_are_not_sent_files_that_a_path_rule_forbids() {
    let looks = vec![reads("secrets/key.txt"), Answer::text("I looked"), Answer::text("done")];
    let members = vec![member("here", 0.95, 0.001, looks), member("remote", 0.5, 0.1, Vec::new())];
    let options = RouterSettings { strategy: Strategy::Ensemble, ..options() };
    let edit =
        FakeTool::new("edit", Access::Edit, |_| ToolOutcome::Done(ToolOutput::from_text("")));
    let mut team = team(members, options, vec![reader(), edit]);
    assert_complete(&team.turn("fix the parser").await);
    assert_eq!(team.asked(1), 0);
}
