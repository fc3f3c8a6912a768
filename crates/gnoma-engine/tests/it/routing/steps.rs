//! Steps of tasks: each is routed by itself, and one that failed goes to a stronger arm.

use gnoma_core::{Command, ModelRef, session::StepTurn};
use gnoma_router::Strategy;
use gnoma_testkit::Answer;

use super::team::*;

fn step(text: &str, failed_models: Vec<ModelRef>) -> Command {
    let (model, name) = (Some("cheap".to_owned()), "t/One".to_owned());
    let text = text.to_owned();
    Command::RunStep(StepTurn { text, model, failed_models, name, ..StepTurn::default() })
}

fn check(command: &str) -> Command {
    let Command::RunStep(step) = step("I ran it:", Vec::new()) else { unreachable!() };
    let (command, timeout_s, model) = (Some(command.to_owned()), 60, None);
    Command::RunStep(StepTurn { command, model, timeout_s, name: "t/Two".to_owned(), ..step })
}

impl Team {
    async fn step(&mut self, text: &str, failed: &[&str]) {
        let failed = failed.iter().map(|model| name(model)).collect();
        assert!(self.run.handle.send_command(step(text, failed)));
        self.run.until_idle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn retry_of_a_failed_task_step_uses_a_stronger_model() {
    let answers = |text: &str| vec![Answer::text(text), Answer::text(text)];
    let cheap = member("cheap", 0.8, 0.02, answers("one"));
    let weak = member("weak", 0.2, 0.01, answers("two"));
    let strong = member("strong", 0.9, 0.5, answers("three"));
    let mut team = team(vec![cheap, weak, strong], by(Strategy::Single), Vec::new());
    team.step("explain this", &[]).await;
    assert_eq!([team.asked(0), team.asked(1), team.asked(2)], [1, 0, 0]);
    // The step names the arm that failed; the person's choice counts.
    team.step("explain this", &["cheap"]).await;
    assert_eq!([team.asked(0), team.asked(1), team.asked(2)], [1, 0, 1]);
    // No arm is left: the step is done as at first.
    team.step("explain this", &["cheap", "weak", "strong"]).await;
    assert_eq!([team.asked(0), team.asked(1), team.asked(2)], [2, 0, 1]);
    let learnt = team.learnt().await;
    assert!(learnt.iter().all(|it| &*it.kind.0 == "explain/t/One"), "{learnt:?}");
    let tried = |at: usize| (&learnt[at].tried[0].attempt.arm, learnt[at].tried[0].right);
    assert_eq!(tried(0), (&name("cheap"), Some(false)));
    assert_eq!(tried(1), (&name("strong"), Some(false)));
}

#[tokio::test(start_paused = true)]
async fn check_step_of_a_task_rates_the_step_before_it() {
    for (exit_code, right) in [(0, Some(true)), (1, Some(false))] {
        let cheap = member("cheap", 0.8, 0.02, vec![edits(), Answer::text("done")]);
        let strong = member("strong", 0.9, 0.5, Vec::new());
        let tools = vec![editor(), shell(Some(exit_code))];
        let mut team = team(vec![cheap, strong], by(Strategy::Single), tools);
        team.step("fix the parser", &[]).await;
        assert!(team.run.handle.send_command(check("cargo test")));
        team.run.until_idle().await;
        let learnt = team.learnt().await;
        assert_eq!((&*learnt[0].kind.0, learnt[0].tried[0].right), ("debug/t/One", right));
    }
}
