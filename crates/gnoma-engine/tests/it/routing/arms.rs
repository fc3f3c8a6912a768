//! Which arm is asked: failing over, resting and getting well, pins.

use std::time::Duration;

use gnoma_core::{
    Command, ErrorKind, Event, ModelRef, ToolOutcome, ToolResult, session::Outcome, tool::Access,
};
use gnoma_router::{RouterSettings, Strategy};
use gnoma_testkit::{Answer, FakeTool};

use super::team::{
    Team, assert_complete, broken, by, changes, editor, edits, looks, member, name, routed, said,
    team, team_resumed, used,
};
use crate::{assert_paired, outcome};

/// Longer than an arm rests after its first failure.
const A_REST: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn failover_to_another_model_loses_no_messages() {
    for (answer, retracted) in [
        (Answer::from_error(ErrorKind::RateLimited), false),
        (Answer::from_error(ErrorKind::NotFound), false),
        (broken("half an ans", ErrorKind::Network), true),
        (broken("half an ans", ErrorKind::Protocol), true),
    ] {
        let best = member("best", 0.9, 0.1, vec![answer]);
        let other = member("other", 0.6, 0.1, vec![Answer::text("done")]);
        let mut team = team(vec![best, other], by(Strategy::Single), Vec::new());
        let events = team.turn("fix the parser").await;
        assert_eq!(changes(&events), [("best", "other", retracted)]);
        assert_eq!(said(&events), ["fix the parser", "done"], "the broken half is not kept");
        assert_complete(&events);
        // The arm that failed rests: the next turn does not ask it again.
        team.providers[1].push(Answer::text("and more"));
        let events = team.turn("fix the lexer").await;
        assert!(changes(&events).is_empty());
        assert_eq!(said(&events), ["fix the lexer", "and more"]);
    }
}

#[tokio::test(start_paused = true)]
async fn single_model_is_retried_without_failover() {
    let answers = vec![Answer::from_error(ErrorKind::Overloaded), Answer::text("done")];
    let mut team =
        team(vec![member("only", 0.5, 0.1, answers)], RouterSettings::default(), Vec::new());
    let events = team.turn("fix the parser").await;
    assert!(events.iter().any(|event| matches!(event, Event::Retrying { .. })));
    assert!(!events.iter().any(|event| matches!(event, Event::Routed(_))), "there was no choice");
    assert_eq!(said(&events), ["fix the parser", "done"]);
}

#[tokio::test(start_paused = true)]
async fn single_model_has_no_cooldown_after_a_failed_turn() {
    let answers = vec![Answer::from_error(ErrorKind::NotFound), Answer::text("done")];
    let mut team =
        team(vec![member("only", 0.5, 0.1, answers)], RouterSettings::default(), Vec::new());
    team.turn("fix the parser").await;
    assert_complete(&team.turn("fix the parser").await);
}

#[tokio::test(start_paused = true)]
async fn single_model_has_no_cooldown_after_a_cancelled_retry() {
    let answers = vec![
        Answer::from_error(ErrorKind::Overloaded),
        Answer::endless_silence(),
        Answer::text("done"),
    ];
    let mut team =
        team(vec![member("only", 0.5, 0.1, answers)], RouterSettings::default(), Vec::new());
    team.run.say("fix the parser");
    team.cancel_after(Duration::from_secs(10)).await;
    assert_complete(&team.turn("fix the parser").await);
}

#[tokio::test(start_paused = true)]
async fn model_whose_cooldown_ends_first_is_asked_if_all_are_cooling_down() {
    let down = || (0..4).map(|_| Answer::from_error(ErrorKind::Network)).collect::<Vec<_>>();
    let members = vec![member("a", 0.9, 0.1, down()), member("b", 0.5, 0.1, down())];
    let mut team = team(members, by(Strategy::Single), Vec::new());
    team.turn("fix the parser").await;
    team.pass(Duration::from_secs(2));
    for provider in &team.providers {
        (0..4).for_each(|_| provider.push(Answer::text("back")));
    }
    assert_complete(&team.turn("fix the parser").await);
}

/// Two arms. The better one has failed once and rested; tried again, it gives this answer.
async fn rested(answer: Answer) -> Team {
    let best = vec![Answer::from_error(ErrorKind::Overloaded), answer, Answer::text("three")];
    let other = vec![Answer::text("one"), Answer::text("other")];
    let members = vec![member("best", 0.9, 0.1, best), member("other", 0.5, 0.1, other)];
    let mut team = team(members, by(Strategy::Single), Vec::new());
    team.turn("fix the parser").await;
    team.pass(A_REST);
    team
}

/// Who is chosen right after the trial of a [`rested`] arm.
async fn chosen_after_the_trial(mut team: Team) -> Vec<ModelRef> {
    assert_eq!(team.asked(0), 2, "it was tried again");
    team.pass(Duration::from_secs(1));
    routed(&team.turn("fix the printer").await).arms.clone()
}

#[tokio::test(start_paused = true)]
async fn successful_probe_ends_a_cooldown_with_or_without_token_usage() {
    for answer in [used("two", 10), Answer::text("two")] {
        let mut team = rested(answer).await;
        team.turn("fix the lexer").await;
        assert_eq!(chosen_after_the_trial(team).await, [name("best")]);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_probe_does_not_renew_the_cooldown() {
    let mut team = rested(Answer::endless_silence()).await;
    team.run.say("fix the lexer");
    team.cancel_after(Duration::from_secs(5)).await;
    assert_eq!(chosen_after_the_trial(team).await, [name("best")]);
}

/// "Go on" means the same in a session that was taken up again as in one that was never left.
#[tokio::test(start_paused = true)]
async fn resumed_session_keeps_its_task_type_for_go_on() {
    let answers = || vec![Answer::text("done"), Answer::text("done")];
    let members = || vec![member("a", 0.9, 0.1, answers()), member("b", 0.5, 0.1, answers())];
    let mut whole = team(members(), by(Strategy::Single), Vec::new());
    let first = whole.turn("debug why the parser crashes on empty input").await;
    let kind = routed(&first).kind.clone();
    let then = routed(&whole.turn("go on").await).kind.clone();
    assert_eq!(then, kind);

    let past = crate::history(&first);
    let asked = (gnoma_core::session::PermissionMode::Bypass, false);
    let keeping = (gnoma_engine::PersistenceOptions::default(), past);
    let mut resumed = team_resumed(asked, members(), by(Strategy::Single), Vec::new(), keeping);
    assert_eq!(routed(&resumed.turn("go on").await).kind, kind);
}

#[tokio::test(start_paused = true)]
async fn pinned_model_has_no_failover() {
    let failing = || (0..4).map(|_| Answer::from_error(ErrorKind::NotFound)).collect::<Vec<_>>();
    let members = vec![member("best", 0.9, 0.1, failing()), member("other", 0.6, 0.1, Vec::new())];
    let options = RouterSettings { pinned: Some(name("best")), ..RouterSettings::default() };
    let mut team = team(members, options, Vec::new());
    let events = team.turn("fix the parser").await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert!(error.hint.as_deref().unwrap_or_default().contains("fake/other"), "{error:?}");
    assert!(changes(&events).is_empty());

    // An arm that is not there changes nothing; then the person chooses the other.
    team.order(Command::Pin { arm: Some(name("nobody")) }).await;
    team.providers[1].push(Answer::text("done"));
    team.order(Command::Pin { arm: Some(name("other")) }).await;
    assert_eq!(said(&team.turn("fix the parser").await), ["fix the parser", "done"]);
}

#[tokio::test(start_paused = true)]
async fn model_pin_of_the_command_line_can_be_removed() {
    let done = || vec![Answer::text("done")];
    let members = vec![member("best", 0.9, 0.1, done()), member("other", 0.3, 0.1, done())];
    let options = RouterSettings { pinned: Some(name("other")), ..by(Strategy::Single) };
    let mut team = team(members, options, Vec::new());
    team.order(Command::Pin { arm: None }).await;
    team.turn("fix the parser").await;
    assert_eq!(team.asked(0), 1);
}

#[tokio::test(start_paused = true)]
async fn model_pin_during_a_turn_does_not_disable_its_failover() {
    let late = Answer::from_error(ErrorKind::Protocol).with_event_delay(Duration::from_secs(5));
    let best = member("best", 0.9, 0.1, vec![late]);
    let other = member("other", 0.5, 0.1, vec![Answer::text("done")]);
    let mut team = team(vec![best, other], by(Strategy::Single), Vec::new());
    team.run.say("fix the parser");
    team.run.until(|event| matches!(event, Event::RoundStarted { .. })).await;
    assert!(team.run.handle.send_command(Command::Pin { arm: Some(name("other")) }));
    assert_complete(&team.run.until_idle().await);
}

#[tokio::test(start_paused = true)]
async fn model_without_tool_support_is_sent_no_tools() {
    let only = member("only", 0.5, 0.1, vec![Answer::text("a monoid")]).without_tools();
    let mut team = team(vec![only], RouterSettings::default(), vec![editor()]);
    team.turn("what is a monad?").await;
    assert!(team.providers[0].requests()[0].tools.is_empty());
}

#[tokio::test(start_paused = true)]
async fn failover_keeps_tool_results_and_does_not_rerun_tools() {
    let edit = editor();
    let best = vec![edits(), broken("and now I", ErrorKind::Network)];
    let other = vec![Answer::text("done")];
    let members = vec![member("best", 0.9, 0.1, best), member("other", 0.5, 0.1, other)];
    let mut team = team(members, by(Strategy::Single), vec![edit.clone()]);
    let events = team.turn("fix the parser").await;
    assert_complete(&events);
    assert_eq!(changes(&events), [("best", "other", true)]);
    assert_eq!(edit.calls().len(), 1);
    let asked = &team.providers[1].requests()[0].messages;
    assert_paired(asked);
    let results = asked.iter().flat_map(|message| message.tool_results());
    assert_eq!(results.map(ToolResult::joined_text).collect::<Vec<_>>(), ["changed"]);
    let kept = asked.iter().any(|message| message.text_content().contains("and now I"));
    assert!(!kept, "half a sentence is nobody's");
}

#[tokio::test(start_paused = true)]
async fn context_overflow_of_a_misstated_window_fails_over_or_compacts() {
    let long = "many words of a story ".repeat(1_000);
    let too_long = || Answer::from_error(ErrorKind::ContextTooLong);
    let best = member("best", 0.9, 0.1, vec![too_long()]).windowed(1_000_000);
    let other = member("other", 0.5, 0.1, vec![Answer::text("done")]).windowed(200_000);
    let mut two = team(vec![best, other], by(Strategy::Single), Vec::new());
    let events = two.turn(&format!("fix the parser: {long}")).await;
    assert_complete(&events);
    assert_eq!(changes(&events), [("best", "other", false)]);

    let answers = [Answer::text("yes"), Answer::text("well"), too_long()];
    let after = [Answer::text("in short"), Answer::text("done")];
    let answers = answers.into_iter().chain(after).collect();
    let alone = member("alone", 0.9, 0.1, answers).windowed(1_000_000);
    let mut alone = team(vec![alone], by(Strategy::Single), Vec::new());
    for words in ["fix the parser", "fix the lexer"] {
        alone.turn(&format!("{words}: {long}")).await;
    }
    let events = alone.turn("fix the printer").await;
    assert_complete(&events);
    assert!(events.iter().any(|event| matches!(event, Event::Compacted { .. })), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn failover_skips_models_whose_context_window_is_too_small() {
    let much =
        FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text("word ".repeat(20_000)));
    let best = vec![looks(), Answer::from_error(ErrorKind::Overloaded)];
    let members = vec![
        member("best", 0.9, 0.1, best).windowed(200_000),
        member("small", 0.8, 0.1, Vec::new()).windowed(18_000),
        member("large", 0.5, 0.1, vec![Answer::text("done")]).windowed(200_000),
    ];
    let mut team = team(members, by(Strategy::Single), vec![much]);
    let events = team.turn("fix the parser").await;
    assert_complete(&events);
    assert_eq!(changes(&events), [("best", "large", false)]);
}
