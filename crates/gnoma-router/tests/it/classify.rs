//! How well words tell the type of a task, on requests sorted by hand.

use std::fmt::Write;

use gnoma_router::classify::{TaskType, classify_text};

const PROMPTS: &str = include_str!("../data/prompts.tsv");
/// Percent sorted right at least.
const LEAST_ON_TUNING: usize = 95;
const LEAST_ON_UNSEEN: usize = 78;

struct Prompt {
    set: &'static str,
    kind: TaskType,
    text: String,
}

fn prompts() -> Vec<Prompt> {
    let lines = PROMPTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut columns = line.splitn(3, '\t');
            let mut column = || columns.next().unwrap();
            Prompt {
                set: column(),
                kind: column().parse().unwrap(),
                text: column().replace("\\n", "\n"),
            }
        })
        .collect()
}

/// Percent right, and a line for each that is wrong.
fn sorted_right(set: &str) -> (usize, usize, String) {
    let prompts: Vec<Prompt> = prompts().into_iter().filter(|prompt| prompt.set == set).collect();
    let mut wrong = String::new();
    let mut right = 0;
    for prompt in &prompts {
        let said = classify_text(&prompt.text);
        if said.kind == prompt.kind {
            right += 1;
        } else {
            writeln!(
                wrong,
                "{:?} is {}, taken for {:?}",
                prompt.text,
                prompt.kind.name(),
                said.scores
            )
            .unwrap();
        }
    }
    (right, prompts.len(), wrong)
}

fn assert_at_least(set: &str, percent: usize) {
    let (right, all, wrong) = sorted_right(set);
    println!("{set}: {right} of {all} right\n{wrong}");
    assert!(right * 100 >= all * percent, "{set}: {right} of {all} right\n{wrong}");
}

#[test]
fn classifier_accuracy_meets_its_minimum_on_the_tuning_set() {
    assert_at_least("tuning", LEAST_ON_TUNING);
}

#[test]
fn classifier_accuracy_meets_its_minimum_on_the_unseen_set() {
    assert_at_least("unseen", LEAST_ON_UNSEEN);
}

#[test]
fn classifier_test_sets_cover_every_task_type() {
    for set in ["tuning", "unseen"] {
        for kind in TaskType::ALL {
            let prompts = prompts();
            let of_kind = prompts.iter().filter(|prompt| prompt.set == set && prompt.kind == kind);
            assert!(of_kind.count() >= 4, "{set} {}", kind.name());
        }
    }
}
