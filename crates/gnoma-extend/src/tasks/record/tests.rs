use std::collections::HashMap;

use super::{
    super::{parse_task, plan_task},
    *,
};

fn plan(text: &str) -> TaskPlan {
    let tasks = HashMap::from([("t".to_owned(), parse_task("t", text).unwrap())]);
    plan_task("t", &[], &tasks).unwrap()
}

const THREE: &str = "## A\na\n## B\n```sh\nb\n```\n## C\nc";

fn ended(state: StepState) -> StepResult {
    let (why, message) = ("w".to_owned(), Some("said".to_owned()));
    let models = vec![ModelRef { provider: "p".into(), model: "weak".into() }];
    let took_ms = None;
    StepResult { state, why, micro_usd: 5, answer: None, message, models, took_ms }
}

fn begun() -> RunRecord {
    RunRecord::new("r1".to_owned(), &plan(THREE), "s".to_owned(), 100)
}

#[test]
fn task_run_completes_all_steps() {
    let mut run = begun();
    for at in 0..3 {
        assert_eq!(run.next_step(), Some(at));
        run.begin_step(at, 100);
        run.end_step(at, ended(StepState::Done), 150);
    }
    assert_eq!((run.next_step(), run.state, run.micro_usd()), (None, RunState::Done, 15));
    assert_eq!(run.steps[2].took_ms, 50);
    let resumed = run.resume(&plan(THREE), None, 200);
    assert_eq!(resumed, Err(ResumeError::Done));
}

#[test]
fn resumed_task_run_repeats_a_started_step_only_if_the_user_chooses_so() {
    for state in [StepState::Begun, StepState::Failed, StepState::Stopped] {
        let mut run = begun();
        run.begin_step(0, 100);
        run.end_step(0, ended(StepState::Done), 110);
        run.begin_step(1, 120);
        if state != StepState::Begun {
            run.end_step(1, ended(state), 130);
            assert_eq!(run.next_step(), None);
        }
        let refused = run.clone().resume(&plan(THREE), None, 200).unwrap_err();
        assert!(refused.to_string().starts_with("step 2 of 3 (`B`) "), "{refused}");
        let again = run.clone().resume(&plan(THREE), Some(ResumeChoice::Again), 200).unwrap();
        assert_eq!(again.next_step(), Some(1));
        let skipped = run.clone().resume(&plan(THREE), Some(ResumeChoice::Skip), 200).unwrap();
        assert_eq!((skipped.next_step(), skipped.finished_steps()), (Some(2), 2));
        // The step that failed may be edited, those that are done may not.
        let edited = THREE.replace("\nb\n", "\nb2\n");
        assert!(run.clone().resume(&plan(&edited), Some(ResumeChoice::Again), 200).is_ok());
        let edited = THREE.replace("\na\n", "\na2\n");
        let refused = run.resume(&plan(&edited), Some(ResumeChoice::Again), 200).unwrap_err();
        assert!(refused.to_string().contains("step 1 (`A`) is done and has changed"), "{refused}");
    }
}

#[test]
fn task_step_retried_with_a_stronger_model_excludes_those_that_answered() {
    let mut run = begun();
    run.begin_step(0, 100);
    let interrupted = run.clone().resume(&plan(THREE), Some(ResumeChoice::Stronger), 200);
    assert!(interrupted.unwrap_err().to_string().starts_with("no model answered in step 1"));
    run.end_step(0, ended(StepState::Failed), 110);
    let run = run.resume(&plan(THREE), Some(ResumeChoice::Stronger), 200).unwrap();
    assert!(run.steps[0].escalates && run.steps[0].models.len() == 1);
    assert_eq!((run.next_step(), run.micro_usd()), (Some(0), 5));
    // Saved before models were recorded.
    let old = serde_json::to_string(&begun()).unwrap();
    assert!(!old.contains("models") && serde_json::from_str::<RunRecord>(&old).is_ok());
}

#[test]
fn parallel_task_steps_end_in_any_order_and_only_unfinished_ones_rerun() {
    let plan = plan("## A {parallel}\na\n## B {parallel}\nb\n## C {parallel}\nc\n## D\nd");
    let mut run = RunRecord::new("r1".to_owned(), &plan, "s".to_owned(), 100);
    (0..3).for_each(|at| run.begin_step(at, 100));
    run.end_step(2, StepResult { took_ms: Some(7), ..ended(StepState::Done) }, 110);
    assert_eq!((run.state, run.steps[2].took_ms), (RunState::Running, 7));
    run.end_step(1, ended(StepState::Failed), 120);
    // Killed now, the first one has no end.
    let refused = run.clone().resume(&plan, None, 200).unwrap_err();
    assert!(refused.to_string().contains("step 1 of 4 (`A`) has begun"), "{refused}");
    let skipped = run.clone().resume(&plan, Some(ResumeChoice::Skip), 200).unwrap();
    assert_eq!((skipped.next_step(), skipped.finished_steps()), (Some(3), 3));
    run.stop(0, 130);
    assert_eq!((run.state, run.open_step().unwrap().0), (RunState::Failed, 2));
    let again = run.resume(&plan, Some(ResumeChoice::Again), 200).unwrap();
    let open: Vec<bool> = again.steps.iter().map(StepRecord::is_over).collect();
    assert_eq!(open, [false, false, true, false]);
    assert_eq!((again.next_step(), again.micro_usd()), (Some(0), 10));
}

#[test]
fn started_task_step_is_named_before_a_waiting_one() {
    let plan = plan("## A {parallel}\na\n## B {parallel}\nb");
    let mut run = RunRecord::new("r1".to_owned(), &plan, "s".to_owned(), 100);
    (0..2).for_each(|at| run.begin_step(at, 100));
    run.end_step(1, ended(StepState::Stopped), 110);
    run.stop(0, 110);
    assert_eq!(run.open_step().unwrap().0, 2);
    assert!(run.resume(&plan, None, 200).unwrap_err().to_string().starts_with("step 2 of 2"));
}

#[test]
fn duration_of_parallel_task_steps_is_counted_once() {
    let mut run = begun();
    for (at, began_ms, took_ms) in [(0, 200, 50), (1, 100, 10), (2, 200, 70)] {
        run.begin_step(at, began_ms);
        run.end_step(at, ended(StepState::Done), began_ms + took_ms);
    }
    assert_eq!(run.took_ms(), 80);
}

#[test]
fn task_question_that_a_later_step_uses_cannot_be_skipped() {
    let plan = plan("## Q\n? Push it?\n## B\nUse $answer.");
    let mut run = RunRecord::new("r1".to_owned(), &plan, "s".to_owned(), 100);
    run.begin_step(0, 100);
    run.end_step(0, ended(StepState::Stopped), 110);
    let refused = run.clone().resume(&plan, Some(ResumeChoice::Skip), 200).unwrap_err();
    assert!(refused.to_string().contains("step 1 (`Q`) asks a question and cannot be left out"));
    assert_eq!(run.resume(&plan, Some(ResumeChoice::Again), 200).unwrap().next_step(), Some(0));
}

#[test]
fn task_run_stopped_before_a_step_resumes_without_a_choice() {
    let mut run = begun();
    run.begin_step(0, 100);
    run.stop(0, 100);
    assert_eq!((run.next_step(), run.state), (None, RunState::Stopped));
    assert_eq!(run.resume(&plan(THREE), None, 200).unwrap().next_step(), Some(0));
}

#[test]
fn messages_of_steps_are_recorded_once_and_stay_after_a_resume() {
    let mut run = begun();
    run.begin_step(0, 100);
    run.add_message("said");
    run.end_step(0, ended(StepState::Failed), 110);
    let message = ("s".to_owned(), digest_message("said "));
    assert_eq!(run.messages, std::slice::from_ref(&message));
    let run = run.resume(&plan(THREE), Some(ResumeChoice::Again), 200).unwrap();
    assert_eq!(run.messages, [message]);
}

#[test]
fn task_run_killed_between_two_steps_resumes_with_the_next() {
    let mut run = begun();
    run.begin_step(0, 100);
    run.end_step(0, ended(StepState::Done), 110);
    let text = serde_json::to_string(&run).unwrap();
    let read: RunRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(read, run);
    assert_eq!(read.resume(&plan(THREE), None, 200).unwrap().next_step(), Some(1));
}

#[test]
fn task_resume_error_names_started_steps_and_possible_choices() {
    let plan = plan("## A {parallel}\na\n## B {parallel}\n```sh\nb\n```\n## C\nc");
    let mut run = RunRecord::new("r1".to_owned(), &plan, "s".to_owned(), 100);
    (0..2).for_each(|at| run.begin_step(at, 100));
    let command = StepResult { models: Vec::new(), ..ended(StepState::Failed) };
    run.end_step(1, command, 110);
    let refused = run.clone().resume(&plan, None, 200).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "step 1 of 3 (`A`) has begun and its end is not known, step 2 (`B`) failed, so they may have had effects"
    );
    assert!(matches!(refused, ResumeError::Undecided { can_escalate: false, can_skip: true, .. }));
    let refused = run.clone().resume(&plan, Some(ResumeChoice::Stronger), 200).unwrap_err();
    assert!(refused.to_string().starts_with("no model answered in step 1 (`A`), step 2 (`B`),"));
    let numbers: Vec<usize> = run.begun_steps().into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [2, 1]);
    run.end_step(0, ended(StepState::Stopped), 120);
    let refused = run.resume(&plan, None, 200).unwrap_err();
    assert!(matches!(refused, ResumeError::Undecided { can_escalate: true, .. }));
}

#[test]
fn failed_task_step_is_found_again_in_the_edited_file() {
    use StepState::{Done, Skipped, Waiting};
    let failed = || {
        let mut run = begun();
        run.begin_step(0, 100);
        run.end_step(0, ended(StepState::Done), 110);
        run.begin_step(1, 120);
        run.end_step(1, ended(StepState::Failed), 130);
        run
    };
    let resume = |text: &str, choice| failed().resume(&plan(text), Some(choice), 200).unwrap();
    let states = |run: RunRecord| run.steps.into_iter().map(|it| it.state).collect::<Vec<_>>();
    // A step before it; another text below its title; another title and text; the step is gone.
    for (text, expected) in [
        ("## A\na\n## X\nx\n## B\n```sh\nb\n```\n## C\nc", vec![Done, Waiting, Skipped, Waiting]),
        ("## A\na\n## X\nx\n## B\n```sh\nb2\n```\n## C\nc", vec![Done, Waiting, Skipped, Waiting]),
        ("## A\na\n## D\n```sh\nd\n```\n## C\nc", vec![Done, Skipped, Waiting]),
        ("## A\na\n## C\nc", vec![Done, Waiting]),
    ] {
        assert_eq!(states(resume(text, ResumeChoice::Skip)), expected, "{text}");
    }
    // A prompt that became a command has no model, and a question has no answer.
    let edited = |body: &str| plan(&THREE.replace("```sh\nb\n```", body));
    let error = failed().resume(&edited("? b"), Some(ResumeChoice::Skip), 200).unwrap_err();
    assert!(matches!(error, ResumeError::Unanswered { number: 2, .. }), "{error}");
    let error = failed().resume(&plan(THREE), Some(ResumeChoice::Stronger), 200).unwrap_err();
    assert!(matches!(error, ResumeError::NoModel { .. }), "{error}");
    let run = failed().resume(&edited("b"), Some(ResumeChoice::Stronger), 200).unwrap();
    assert!(run.steps[1].escalates);
}
