//! An arm fails, and another goes on: every ordered pair of protocols, every place in an answer.
//!
//! The servers are strict: what the real vendor would refuse, they refuse.

mod histories;
mod sides;

use std::fmt;

use futures_util::StreamExt as _;
use gnoma_core::StopReason;
use gnoma_testkit::{
    End, Failure, Fault, FaultStage, Reaction, RetryAfter, Script, Server, Vendor, Wire,
};
use serde_json::Value;

use crate::support::{Run, World, finish, says};

use self::sides::{FILE, FINAL, SIDES, Side, halves, pairs};

/// Programs that run at a time. They wait more than they work.
const AT_ONCE: usize = 6;

/// Where the first arm fails.
const PLACES: [Option<FaultStage>; 4] =
    [None, Some(FaultStage::Text), Some(FaultStage::Arguments), Some(FaultStage::Thinking)];

/// One cell of the matrix.
struct Case {
    from: &'static Side,
    to: &'static Side,
    /// Before the answer, where it is `None`.
    stage: Option<FaultStage>,
    failing: Reaction,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from.word, self.to.word);
        let how = match &self.failing {
            Reaction::Fail(failure) => format!("{failure:?} before the answer"),
            Reaction::Break { stage, fault, .. } => format!("{fault:?} in {stage:?}"),
            Reaction::HangUp | Reaction::Answer(_) => "no word".to_owned(),
        };
        write!(f, "{from} → {to}, {how}")
    }
}

/// What may go wrong before an answer begins.
fn before(nth: usize) -> Reaction {
    let later = RetryAfter::Date {
        at: "Sun, 01 Mar 2020 00:02:00 GMT".to_owned(),
        now: "Sun, 01 Mar 2020 00:00:00 GMT".to_owned(),
    };
    let reactions = [
        Reaction::Fail(Failure::RateLimited(None)),
        Reaction::Fail(Failure::RateLimited(Some(RetryAfter::Seconds(120)))),
        Reaction::Fail(Failure::RateLimited(Some(later))),
        Reaction::Fail(Failure::Overloaded),
        Reaction::Fail(Failure::Internal),
        Reaction::Fail(Failure::Quota),
        Reaction::Fail(Failure::TooLong),
        Reaction::Fail(Failure::WebPage),
        Reaction::HangUp,
    ];
    reactions[nth % reactions.len()].clone()
}

/// What may go wrong within one.
fn within(nth: usize) -> Fault {
    let faults = [
        Fault::Cut,
        Fault::Reset,
        Fault::TooShort,
        Fault::Told(Failure::Overloaded),
        Fault::Garbage,
        Fault::Silence,
    ];
    faults[nth % faults.len()].clone()
}

fn cases() -> impl Iterator<Item = Case> {
    PLACES.into_iter().enumerate().flat_map(|(row, stage)| {
        pairs().map(move |(nth, from, to)| {
            let failing = match stage {
                None => before(nth),
                Some(stage) => {
                    Reaction::Break { script: from.half(), stage, fault: within(nth + row) }
                }
            };
            Case { from, to, stage, failing }
        })
    })
}

/// A home in which `alpha` is preferred and `beta` can take over.
fn two_arms(alpha: (&Side, &str), beta: (&Side, &str)) -> World {
    let world = World::new([]);
    let ((one, one_url), (other, other_url)) = (alpha, beta);
    let text = format!(
        "[provider]\ndefault = \"alpha\"\neffort = \"low\"\n\
         [provider.endpoints]\nalpha = \"{one_url}\"\nbeta = \"{other_url}\"\n\
         [provider.protocols]\nalpha = \"{}\"\nbeta = \"{}\"\n\
         [provider.models]\nalpha = [\"{}\"]\nbeta = [\"{}\"]\n\
         [provider.context]\nalpha = 100000\nbeta = 200000\n\
         [router]\nmode = \"auto\"\nstrategy = \"single\"\nverify = \"off\"\n\
         [[router.rules]]\nname = \"alpha first\"\nprefer = [\"alpha/*\"]\nprefer_by = 100\n\
         [network]\nidle_timeout = \"2s\"\n",
        one.word, other.word, one.model, other.model
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    world.write(FILE, "one\n");
    world
}

impl Case {
    /// Runs it and tells what is not as it should be.
    async fn run(self) -> Vec<String> {
        let (from, to) = (self.from, self.to);
        let alpha = from.start([Reaction::Answer(from.looks()), self.failing.clone()]);
        let beta = to.start([Reaction::Answer(to.looks()), Reaction::Answer(to.ends())]);
        let world = two_arms((from, &alpha.url()), (to, &beta.url()));
        let run = world.run(&["--output-format", "stream-json", "what does a.txt hold?"]).await;
        let mut wrong = self.wrong(&run, &beta);
        // The round that went well, and the one that did not: nobody waits where another can go on.
        if alpha.requests().len() != 2 {
            wrong.push(format!("the first arm was asked {} times", alpha.requests().len()));
        }
        wrong.extend(alpha.violations());
        wrong.extend(beta.violations());
        wrong.iter().map(|wrong| format!("{self}: {wrong}")).collect()
    }

    fn wrong(&self, run: &Run, beta: &Vendor) -> Vec<String> {
        let lines: Vec<Value> =
            run.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
        let mut wrong = Vec::new();
        if run.code != Some(0) {
            wrong.push(format!("exit code {:?}: {}", run.code, run.err.trim()));
        }
        match of("result").next_back() {
            Some(result) if result["result"] == FINAL => (),
            other => wrong.push(format!("the result is {other:?}")),
        }
        let changes: Vec<&Value> = of("arm_changed").collect();
        match changes.as_slice() {
            [change] => wrong.extend(self.wrong_change(change)),
            other => wrong.push(format!("{} changes of arms", other.len())),
        }
        let asked = beta.requests();
        if asked.len() != 2 {
            wrong.push(format!("the second arm was asked {} times", asked.len()));
        }
        for request in &asked {
            let sent = String::from_utf8_lossy(&request.body);
            wrong.extend(
                halves(&sent).iter().map(|word| format!("`{word}` went to the second arm")),
            );
        }
        for line in of("assistant").chain(of("user")) {
            let text = line.to_string();
            wrong.extend(halves(&text).iter().map(|word| format!("`{word}` is in the history")));
        }
        wrong
    }

    fn wrong_change(&self, change: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut demand = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{what}: {change}"));
            }
        };
        demand(change["from"] == self.from.arm("alpha").to_string(), "given up is another");
        demand(change["to"] == self.to.arm("beta").to_string(), "going on is another");
        let reason = change["reason"].as_str().unwrap_or_default();
        demand(!reason.is_empty(), "nobody says why");
        demand(change["retracted"] == self.stage.is_some(), "retracted or not");
        wrong
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failover_continues_the_turn_wherever_a_model_fails() {
    let runs = futures_util::stream::iter(cases().map(Case::run)).buffer_unordered(AT_ONCE);
    let wrong: Vec<Vec<String>> = runs.collect().await;
    assert_eq!(wrong.len(), SIDES.len() * (SIDES.len() - 1) * PLACES.len());
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

/// The first arm cannot even be reached.
#[tokio::test]
async fn failover_skips_an_unreachable_model() {
    let [from, to, ..] = &SIDES;
    let beta = to.start([Reaction::Answer(to.ends())]);
    let world =
        two_arms((from, &format!("{}/v1", Server::unused_address().unwrap())), (to, &beta.url()));
    let run = world.run(&["hello"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.out, format!("{FINAL}\n"));
    assert_eq!(beta.violations(), [""; 0]);
}

/// A pinned arm is what the person wants: it is not left, but the way out is shown.
#[tokio::test]
async fn pinned_model_does_not_fail_over_but_alternatives_are_named() {
    let [from, to, ..] = &SIDES;
    let alpha = from.start([Reaction::Fail(Failure::NoModel)]);
    let beta = to.start([Reaction::Answer(to.ends())]);
    let world = two_arms((from, &alpha.url()), (to, &beta.url()));
    let run = world.run(&["--model", &from.arm("alpha").to_string(), "hello"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains(&to.arm("beta").to_string()), "{}", run.err);
    assert!(beta.requests().is_empty());
    assert_eq!(alpha.violations(), [""; 0]);
}

/// With one arm only it is asked again, and what has arrived is taken back where people see it.
#[tokio::test]
async fn only_model_is_retried_when_its_stream_breaks() {
    let script = Script::text(["half an ", "answer"]).with_stop(StopReason::EndTurn);
    let broken = Wire::OpenAi.broken_reply(&script, FaultStage::Text, &Fault::Cut);
    assert!(matches!(broken.end, End::Abort(_)));
    let world = World::new([broken, says("the whole answer")]);
    let run = finish(world.command(&["hi"]).spawn().unwrap()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    // A script that reads it has the answer once.
    assert_eq!(run.out, "the whole answer\n", "{run:?}");
    assert!(
        run.err.contains("; retrying in ") && run.err.contains("(attempt 2 of 8)"),
        "{}",
        run.err
    );
    assert_eq!(world.server.requests().len(), 2);
}

/// An arm that was asked for by name is asked again by itself.
#[tokio::test]
async fn pinned_model_is_retried_when_its_stream_breaks() {
    let [from, to, ..] = &SIDES;
    let (stage, fault) = (FaultStage::Text, Fault::Cut);
    let breaks = Reaction::Break { script: from.half(), stage, fault };
    let alpha = from.start([breaks, Reaction::Answer(from.ends())]);
    let beta = to.start([Reaction::Answer(to.ends())]);
    let world = two_arms((from, &alpha.url()), (to, &beta.url()));
    let run = world.run(&["--model", &from.arm("alpha").to_string(), "hello"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(beta.requests().is_empty());
    assert_eq!((alpha.requests().len(), alpha.violations()), (2, vec![]));
}
