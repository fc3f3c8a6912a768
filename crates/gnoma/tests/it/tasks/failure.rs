//! A step that failed: what is offered, and what becomes of the run.

use gnoma_core::StopReason;
use gnoma_testkit::{Script, Wire};

use super::*;
use crate::tui::Person;

/// Two arms on the test's server: `test/m1` is preferred, `two/m2` is the other.
pub(super) fn two_arms(world: &World) {
    let url = world.server.url();
    world.configure(&format!(
        "two = \"{url}/v1\"\n[provider.models]\ntwo = [\"m2\"]\n\
         [router]\nstrategy = \"single\"\nverify = \"off\"\ndiscovery_interval = \"0s\"\n\
         [[arms]]\nid = \"test/m1\"\ninput_price = 1\noutput_price = 4\n\
         [[arms]]\nid = \"two/m2\"\ninput_price = 3\noutput_price = 15\n\
         [[router.rules]]\nname = \"first\"\nprefer = [\"test/m1\"]\nprefer_by = 100\n"
    ));
}

/// The model refuses.
fn refuses() -> Reply {
    let script = Script::text(["No."]).with_stop(StopReason::ContentFilter);
    Wire::OpenAi.stream_reply(&script)
}

fn asked_models(world: &World) -> Vec<String> {
    let requests = world.server.requests();
    requests.iter().map(|it| it.json()["model"].as_str().unwrap().to_owned()).collect()
}

const TWO: &str = "## One\nExplain it.\n## Two\n```sh\necho two >> ran.txt\n```\n";

#[tokio::test(flavor = "multi_thread")]
async fn failed_step_is_offered_to_a_stronger_model_and_the_run_goes_on() {
    let world = World::new([refuses(), says("explained")]);
    two_arms(&world);
    world.put_home(".config/gnoma/tasks/t.md", TWO);
    let person = Person::ready(&world, &["--permission", "bypass"]);
    person.types("/task t\r");
    person.waits_for("step 1 of 2 (One) failed: the model refused");
    // The failure is on the disk before anybody answers.
    assert!(world.records()[0].contains(r#""state":"failed""#), "{:?}", world.records());
    person.types("1");
    person.waits_for("Task t is done: 2 steps");
    assert_eq!(asked_models(&world), ["m1", "m2"]);
    assert_eq!(world.read("ran.txt"), "two\n");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_that_is_dismissed_leaves_the_run_as_it_ended() {
    let world = World::new([]);
    world.put_home(".config/gnoma/tasks/t.md", "## One\n```sh\ncat missing.txt\n```\n");
    let person = Person::ready(&world, &["--permission", "bypass"]);
    person.types("/task t\r");
    person.waits_for("skip this step");
    assert!(!person.sees().contains("stronger"), "{}", person.sees());
    person.types("n");
    person.waits_for("stopped at step 1 of 1 (One), which failed");
    person.types("/task resume again\r");
    person.waits_for("skip this step");
    world.write("missing.txt", "here");
    person.types("1");
    person.waits_for("Task t is done");
    person.leaves();
}

#[tokio::test]
async fn resume_asks_a_stronger_model_than_the_one_that_failed() {
    let world = World::new([refuses(), says("explained")]);
    two_arms(&world);
    world.put_home(".config/gnoma/tasks/t.md", TWO);
    let run = world.run(&["--permission", "bypass", "task", "run", "t"]).await;
    assert_ne!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("`stronger` (`--stronger`) has a stronger model do it"), "{run:?}");
    let resumed = world.run(&["--permission", "bypass", "task", "resume", "--stronger"]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(asked_models(&world), ["m1", "m2"]);
    world.put_home(".config/gnoma/tasks/c.md", "## One\n```sh\nfalse\n```\n");
    world.run(&["--permission", "bypass", "task", "run", "c"]).await;
    let refused = world.run(&["task", "resume", "c", "--stronger"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("no model answered in step 1 (`One`)"), "{refused:?}");
}
