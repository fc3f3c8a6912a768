//! Roles: who has one is asked wherever it can be, and stands in nobody's way where it cannot.

use gnoma_core::{ErrorKind, Event};
use gnoma_router::{RouterSettings, Strategy, rules::Roles};
use gnoma_testkit::Answer;

use super::team::{
    assert_complete, by, cascade, changes, checks, editor, edits, member, name, reviewed, routed,
    team, verdict,
};

fn edited_by(model: &str, options: RouterSettings) -> RouterSettings {
    let roles = Roles { editor: Some(name(model)), ..Roles::default() };
    RouterSettings { roles, ..options }
}

#[tokio::test(start_paused = true)]
async fn model_with_the_editor_role_is_used_until_its_cooldown() {
    let worse = vec![Answer::from_error(ErrorKind::Overloaded)];
    let better = vec![Answer::text("done"), Answer::text("and more")];
    let members = vec![member("worse", 0.3, 0.1, worse), member("better", 0.9, 0.1, better)];
    let mut team = team(members, edited_by("worse", by(Strategy::Single)), Vec::new());
    let events = team.turn("fix the parser").await;
    assert_eq!(routed(&events).arms, [name("worse")]);
    assert!(routed(&events).why.contains("has the role `editor`"), "{}", routed(&events).why);
    assert_complete(&events);
    assert_eq!(changes(&events), [("worse", "better", false)]);
    let why = events.iter().find_map(|event| match event {
        Event::ArmChanged { why, .. } => Some(why.as_str()),
        _ => None,
    });
    assert!(why.is_some_and(|why| why.contains("the role `editor`")), "{why:?}");

    let events = team.turn("fix the lexer").await;
    assert_complete(&events);
    let said = &routed(&events).why;
    assert!(said.contains("has the role `editor`, but") && said.contains("instead"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn failed_review_of_the_role_model_escalates_to_another() {
    let options = edited_by("cheap", RouterSettings { strategy: Strategy::Cascade, ..reviewed() });
    let cheap = vec![edits(), Answer::text("it is done"), verdict(true, "it is")];
    let strong = vec![verdict(false, "it is not"), edits(), Answer::text("now it is")];
    let mut team = cascade(cheap, strong, options, vec![editor()]);
    let events = team.turn("fix the parser").await;
    assert_eq!(checks(&events), [("cheap", "fake/strong", false), ("strong", "fake/cheap", true)]);
    assert_eq!(changes(&events), [("cheap", "strong", false)]);
    assert_complete(&events);
}

#[tokio::test(start_paused = true)]
async fn model_with_the_reviewer_role_reviews_other_models() {
    let holds = || vec![verdict(true, "it does")];
    let author = vec![edits(), Answer::text("done")];
    let members = vec![
        member("author", 0.6, 0.02, author),
        member("strong", 0.85, 0.5, holds()),
        member("named", 0.3, 0.5, holds()),
    ];
    let roles =
        Roles { editor: Some(name("author")), reviewer: Some(name("named")), ..Roles::default() };
    let options = RouterSettings { roles, strategy: Strategy::Cascade, ..reviewed() };
    let mut team = team(members, options, vec![editor()]);
    let events = team.turn("fix the parser").await;
    assert_eq!(checks(&events), [("author", "fake/named", true)]);
}
