use super::*;

fn split(body: &str) -> Result<IntroAndSteps, String> {
    split_steps(body, 1, "all").map_err(|fault| fault.to_string())
}

#[test]
fn task_headings_begin_steps_of_each_kind() {
    let (intro, steps) = split(
        "# Release\nFor people.\n\n## Write {model=opus}\nWrite it.\n\n```sh\nnot a step of its own\n```\n\
         ## Test\n\n```sh\ncargo test\n## no heading\n```\n## Push\n/task push $version\n\
         ## Sure?\n? Push it\nnow?\n- yes\n- no\n",
    )
    .unwrap();
    assert_eq!(intro, "# Release\nFor people.");
    let titles: Vec<_> = steps.iter().map(|step| (&*step.title, step.line)).collect();
    assert_eq!(titles, [("Write", 4), ("Test", 10), ("Push", 16), ("Sure?", 18)]);
    assert_eq!(steps[0].options.model.as_deref(), Some("opus"));
    assert!(matches!(&steps[0].action, StepAction::Prompt(text) if text.ends_with("```")));
    assert_eq!(steps[1].action, StepAction::Command("cargo test\n## no heading".to_owned()));
    let (name, arguments) = ("push".to_owned(), "$version".to_owned());
    assert_eq!(steps[2].action, StepAction::Task { name, arguments });
    let choices = vec!["yes".to_owned(), "no".to_owned()];
    assert_eq!(steps[3].action, StepAction::Question { text: "Push it now?".to_owned(), choices });
}

#[test]
fn task_heading_may_have_a_tab_after_its_hashes() {
    let (_, steps) = split("##\tA\nx\n```json\n{}\n```\n##\t B\n?\tSure?\n").unwrap();
    let titles: Vec<_> = steps.iter().map(|step| &*step.title).collect();
    assert_eq!(titles, ["A", "B"]);
    assert!(matches!(steps[1].action, StepAction::Question { .. }));
}

#[test]
fn file_without_headings_is_one_step() {
    let (intro, steps) = split("Do the thing.\n\nWell.\n").unwrap();
    assert_eq!((intro.as_str(), steps.len(), &*steps[0].title), ("", 1, "all"));
    assert_eq!(steps[0].action, StepAction::Prompt("Do the thing.\n\nWell.".to_owned()));
}

#[test]
fn task_step_options_are_parsed_from_the_heading() {
    let (_, steps) =
        split("## A {role=small parallel}\nx\n## B {parallel timeout=2m}\n```sh\nls\n```\n")
            .unwrap();
    let role = Some("small".to_owned());
    let wanted = [
        StepOptions { role, is_parallel: true, ..StepOptions::default() },
        StepOptions { timeout_s: Some(120), is_parallel: true, ..StepOptions::default() },
    ];
    assert_eq!(steps.into_iter().map(|step| step.options).collect::<Vec<_>>(), wanted);
}

#[test]
fn task_argument_braces_in_a_heading_belong_to_the_title() {
    let (_, steps) = split("## Tag ${version} now {parallel}\nx\n## Tag ${v}\ny\n").unwrap();
    let titles: Vec<_> = steps.iter().map(|step| &*step.title).collect();
    assert_eq!(titles, ["Tag ${version} now", "Tag ${v}"]);
    assert!(steps[0].options.is_parallel && !steps[1].options.is_parallel);
}

#[test]
fn lines_that_are_no_markdown_headings_are_task_text() {
    let text = "x\n    ## code\n### Below\n#hash\n```\n##code\n ## code\n```";
    let (_, steps) = split(text).unwrap();
    assert_eq!(steps[0].action, StepAction::Prompt(text.to_owned()));
    let escaped = escape_headings("##A\n ## B\n##\n## C\n    ## D\n```\n## E");
    assert_eq!(escaped, "###A\n ### B\n###\n### C\n    ## D\n```\n## E\n```");
    assert_eq!(split(&escaped).unwrap().1.len(), 1);
}

#[test]
fn invalid_task_steps_are_reported_with_their_line() {
    for (body, told) in [
        ("", "1: the task has no step"),
        ("## A\n", "1: the step `A` has no text"),
        ("x\n##B\ny", "2: a step begins with `## Title`"),
        ("x\n ## B\ny", "2: a step begins with `## Title`"),
        ("## A\nx\n   ##B\ny", "3: a step begins with `## Title`"),
        ("x\n##\ny", "2: the step needs a title"),
        ("## {model=a}\ny", "1: the step needs a title"),
        ("## A {modle=x}\ny", "1: unknown option `modle=x`"),
        ("x\n## A {parallel\ny", "2: the options of a step stand in one pair of braces"),
        ("## A parallel}\ny", "1: the options of a step stand in one pair of braces"),
        ("## A {}\ny", "1: the options of a step stand in one pair of braces"),
        ("## A { }\ny", "1: the options of a step stand in one pair of braces"),
        ("## A {{parallel}}\ny", "1: the options of a step stand in one pair of braces"),
        ("## A {parallel} {model=a}\ny", "1: the options of a step stand in one pair"),
        ("## A {parallel} b\ny", "1: the options of a step stand in one pair of braces"),
        ("## A {parallel}.\ny", "1: the options of a step stand in one pair of braces"),
        ("## A }{\ny", "1: the options of a step stand in one pair of braces"),
        ("## A ${a {parallel}\ny", "1: the options of a step stand in one pair of braces"),
        ("## A {parallel parallel}\ny", "1: the option `parallel` occurs twice"),
        ("## A {model=a model=b}\ny", "1: the option `model` occurs twice"),
        ("## A {model=a role=small}\ny", "1: a step has a model or a role, not both"),
        ("## A {model=}\ny", "1: unknown option `model=`"),
        ("## A {model = a}\ny", "1: unknown option `model`"),
        ("## A {Parallel}\ny", "1: unknown option `Parallel`"),
        ("## A {parallel, model=a}\ny", "1: unknown option `parallel,`"),
        ("## A {timeout=}\n```sh\nls\n```", "1: `` is not a time limit"),
        ("## A {model=a}\n```sh\nls\n```", "1: only a prompt has a model or a role"),
        ("## A {role=small}\n? b\n", "1: only a prompt has a model or a role"),
        ("## A {model=a}\n/task b\n", "1: only a prompt has a model or a role"),
        ("## A {timeout=soon}\n```sh\nls\n```", "1: `soon` is not a time limit"),
        ("## A {timeout=0s}\n```sh\nls\n```", "1: `0s` is not a time limit"),
        ("## A {timeout=2h}\n```sh\nls\n```", "1: `2h` is not a time limit"),
        ("## A {timeout=5m}\ny", "1: only a command has a time limit"),
        ("## A {role=boss}\ny", "1: `boss` is no role of a model; the roles are small"),
        ("## A {parallel}\n/task b", "1: only prompts and commands run side by side"),
        ("## A {parallel=2}\ny", "1: unknown option `parallel=2`"),
        ("## A\n```sh\n\n```", "1: the step `A` has no text"),
        ("## A\nx\n```sh\nls\n", "3: the code block that begins here does not end"),
        ("## A\n/task\n", "1: write `/task NAME"),
        ("## A\n/task run\n", "1: write `/task NAME"),
        ("## A\n? ok?\n- yes\nmore", "1: a question is"),
        ("## A\n? - yes", "1: a question is"),
        ("## A\n?Push it now?\n- yes", "1: a question is"),
        ("## A\n```console\nls\n```", "1: a step that begins with ````console` and is only"),
        ("## A\n```bash title=x\nls\n```", "1: a step that begins with ````bash title=x`"),
        ("## A\n```\nls\n```", "1: a step that begins with `````"),
        ("## A\n```sh\nls\n```\n\n```sh\npwd\n```", "1: a step that begins with ````sh`"),
    ] {
        let error = split(body).unwrap_err();
        assert!(error.starts_with(told), "{body:?}: {error}");
    }
    let many = "## A\nx\n".repeat(MAX_STEPS + 1);
    assert!(split(&many).unwrap_err().contains("more than 50 steps"));
}
