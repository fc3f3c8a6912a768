use super::{super::parse_task, *};

fn tasks(all: &[(&str, &str)]) -> HashMap<String, TaskDefinition> {
    let task = |(name, text): &(&str, &str)| ((*name).to_owned(), parse_task(name, text).unwrap());
    all.iter().map(task).collect()
}

fn plan(name: &str, arguments: &[&str], all: &[(&str, &str)]) -> Result<TaskPlan, String> {
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    plan_task(name, &arguments, &tasks(all)).map_err(|error| error.to_string())
}

#[test]
fn task_plan_lists_steps_of_nested_tasks_and_checks() {
    let release = "---\narguments:\n  version: version\nchecks: test $version\npermission: plan\n---\nIntro.\n\
        ## Run\n```sh\nls \"$version\"\n```\n## Write\nWrite $version.\n## Push\n/task push \"$version x\"\n";
    let push = "---\narguments: what\npermission: auto\n---\n## Sure\n? Push $what?\n- yes\n## Go\nGo: $answer.";
    let plan = plan("release", &["v2"], &[("release", release), ("push", push)]).unwrap();
    let titles: Vec<_> = plan.steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(titles, ["Run", "Write", "Push › Sure", "Push › Go", "Check: test $version"]);
    let action = |at: usize| plan.steps[at].resolve_action(Some("yes"));
    assert_eq!(action(0), PlannedAction::Command("version='v2'\nls \"$version\"".to_owned()));
    assert_eq!(action(1), PlannedAction::Prompt("Intro.\n\nWrite v2.".to_owned()));
    assert!(matches!(action(2), PlannedAction::Question { text, .. } if text == "Push v2 x?"));
    assert_eq!(action(3), PlannedAction::Prompt("Go: yes.".to_owned()));
    assert_eq!(plan.modes, [PermissionMode::Plan, PermissionMode::Auto]);
    assert_ne!(plan.steps[0].digest(), plan.steps[1].digest());
}

#[test]
fn task_intro_text_is_added_to_the_first_prompt_that_is_no_slash_command() {
    let task = "Intro.\n## A\n/review it\n## B\n/etc/passwd is wrong.\n## C\nGo.\n";
    let plan = plan("t", &[], &[("t", task)]).unwrap();
    let texts = plan.steps.iter().map(|step| match step.resolve_action(None) {
        PlannedAction::Prompt(text) => text,
        other => panic!("{other:?}"),
    });
    let expected = ["/review it", "Intro.\n\n/etc/passwd is wrong.", "Go."];
    assert_eq!(texts.collect::<Vec<_>>(), expected);
}

#[test]
fn command_has_the_nearest_time_limit() {
    let task = "---\ntimeout: 20m\nchecks: ls\n---\n## A {timeout=90s}\n```sh\na\n```\n## B\n```sh\nb\n```\n\
        ## C\n/task c\n";
    let plan = plan("t", &[], &[("t", task), ("c", "```sh\nc\n```")]).unwrap();
    let limits: Vec<u64> = plan.steps.iter().map(|step| step.timeout_s).collect();
    assert_eq!(limits, [90, 1_200, STEP_TIMEOUT_S, 1_200]);
}

#[test]
fn adjacent_parallel_task_steps_form_a_group() {
    let groups = |text: &str, other: &str| -> Vec<Option<usize>> {
        let plan = plan("t", &[], &[("t", text), ("other", other)]).unwrap();
        plan.steps.iter().map(|step| step.group).collect()
    };
    let side = |title: &str| format!("## {title} {{parallel}}\nx\n");
    let task = format!("{}{}## C\nx\n{}", side("A"), side("B"), side("D"));
    assert_eq!(groups(&task, "x"), [Some(0), Some(0), None, Some(3)]);
    // Steps of another task are neighbours only of each other.
    let task = format!("{}## B\n/task other\n{}", side("A"), side("C"));
    let other = format!("{}{}", side("E"), side("F"));
    assert_eq!(groups(&task, &other), [Some(0), Some(1), Some(1), Some(3)]);
    let many: String = (0..=MAX_SIDE_STEPS).map(|at| side(&at.to_string())).collect();
    assert_eq!(groups(&many, "x").last(), Some(&Some(MAX_SIDE_STEPS)));
}

#[test]
fn adjacent_read_only_task_commands_form_a_parallel_group() {
    let groups = |text: &str| -> Vec<Option<usize>> {
        let mut plan = plan("t", &[], &[("t", text), ("o", "```sh\nls o\n```")]).unwrap();
        plan.group_reading_commands(|command| command.starts_with("ls"));
        plan.steps.iter().map(|step| step.group).collect()
    };
    let step = |command: &str| format!("## A\n```sh\n{command}\n```\n");
    let (read, write, nested) = (step("ls"), step("rm x"), "## N\n/task o\n");
    assert_eq!(groups(&format!("{read}{read}{write}{read}")), [Some(0), Some(0), None, None]);
    // What a prompt finds may be read by the next step, and its own text may speak of the step before.
    let asks = "## P\nSay it.\n## P\nSay more.\n";
    let all = groups(&format!("{asks}{read}{nested}"));
    assert_eq!(all, [None, None, Some(2), Some(2)]);
    assert_eq!(groups(&format!("{read}{}{read}", step("ls; sleep 5"))), [None, None, None]);
    let marked = "## M {parallel}\n```sh\nls m\n```\n";
    assert_eq!(groups(&format!("{marked}{read}{read}")), [Some(0), Some(1), Some(1)]);
    let many = groups(&read.repeat(MAX_SIDE_STEPS + 2));
    assert_eq!((many[0], many[9], many[10], many[11]), (Some(0), Some(0), Some(10), Some(10)));
}

#[test]
fn recorded_task_arguments_are_validated_against_the_current_task() {
    let replan = |text: &str, recorded: &[(&str, &str)]| {
        let recorded: Vec<NamedValue> = recorded
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let plan = replan_task("t", &recorded, &tasks(&[("t", text)]));
        plan.map(|plan| plan.arguments).map_err(|error| error.to_string())
    };
    let task = "---\narguments:\n  v: version\n  note: text = \"\"\n---\nx";
    let values = replan(task, &[("v", "v1"), ("note", "a=b")]).unwrap();
    assert_eq!(values, [("v".into(), "v1".into()), ("note".into(), "a=b".into())]);
    // A default was never checked, so it is not checked now.
    let empty = "---\narguments:\n  v: version = \"\"\n---\nx";
    assert!(replan(empty, &[("v", "")]).is_ok());
    for (recorded, part) in [
        (&[("v", "latest")][..], "`latest` is not a version"),
        (&[("version", "v1"), ("note", "")], "no argument `version` any more"),
        (&[("note", "x")], "the argument `v` is missing"),
    ] {
        let error = replan(task, recorded).unwrap_err();
        assert!(error.contains(part), "{recorded:?}: {error}");
    }
}

#[test]
fn task_plan_errors_explain_cycles_and_missing_tasks_or_arguments() {
    let a = ("a", "## B\n/task b\n");
    let cycle = plan("a", &[], &[a, ("b", "## A\n/task a\n")]).unwrap_err();
    assert_eq!(cycle, "b.md:1: the tasks run each other in a circle: a → b → a");
    assert_eq!(plan("a", &[], &[a]).unwrap_err(), "a.md:1: there is no task `b`");
    let needs = ("b", "---\narguments:\n  n: number\n---\nx");
    assert!(plan("a", &[], &[a, needs]).unwrap_err().starts_with("a.md:1: the argument `n`"));
    let answer = ("a", "## Q\n? x\n## B\n/task b $answer\n");
    assert!(plan("a", &[], &[answer, needs]).unwrap_err().contains("a.md:3: `$answer`"));
    let command = |line: &str| format!("## A\n```sh\n{line}\n```\n");
    let push = command("git push $answer");
    let unasked = plan("a", &[], &[("a", &push)]).unwrap_err();
    assert!(unasked.starts_with("a.md:1: `$answer` has no value in this command"), "{unasked}");
    let asked = format!("## Q\n? Where to?\n{push}");
    assert!(plan("a", &[], &[("a", &asked)]).is_ok());
    for own in ["read -r answer\necho $answer", "echo ${answer:-none}"] {
        assert!(plan("a", &[], &[("a", &command(own))]).is_ok(), "{own}");
    }
    let blank = ("a", "---\narguments:\n  t: text = \"\"\n---\n## A\n$t\n");
    assert!(plan("a", &[], &[blank]).unwrap_err().starts_with("a.md:5: the step has no text"));
    assert!(plan("a", &["x"], &[blank]).is_ok());
    let chain: Vec<(String, String)> =
        (0..7).map(|at| (format!("t{at}"), format!("## N\n/task t{}\n", at + 1))).collect();
    let chain: Vec<_> = chain.iter().map(|(name, text)| (&**name, &**text)).collect();
    let deep = plan("t0", &[], &chain).unwrap_err();
    assert_eq!(deep, "t4.md:1: tasks run each other more than 5 deep");
    let many = "## A\n/task many\n".repeat(50);
    let of = "## S\nx\n".repeat(50);
    let error = plan("all", &[], &[("all", &many), ("many", &of)]).unwrap_err();
    assert_eq!(error, "many.md:1: the run has more than 200 steps");
}

#[test]
fn task_check_follows_nested_tasks_with_required_arguments() {
    let needs = |step: &str| {
        format!("---\narguments:\n  v: version\n  w: text = x\n---\n## A\n/task {step}\n")
    };
    let (a, b) = (needs("b $v"), needs("a $v"));
    let (fine, text, many) =
        (needs("one ${v} \"$w x\""), needs("one $v no.number"), needs("one $v 1 2 3"));
    let all = tasks(&[
        ("a", &a),
        ("b", &b),
        ("fine", &fine),
        ("text", &text),
        ("many", &many),
        ("one", "---\narguments:\n  v: version\n  n: number\n---\nx"),
    ]);
    let check = |name: &str| check_task(&all[name], &all).map_err(|error| error.to_string());
    assert_eq!(check("fine"), Ok(()));
    assert_eq!(check("a").unwrap_err(), "b.md:6: the tasks run each other in a circle: a → b → a");
    assert!(check("text").unwrap_err().starts_with("text.md:6: `no.number` is not a number"));
    assert!(check("many").unwrap_err().contains("`2` is one argument too many"));
    let missing = parse_task("m", &needs("nosuch $v")).unwrap();
    let error = check_task(&missing, &all).unwrap_err().to_string();
    assert_eq!(error, "m.md:6: there is no task `nosuch`");
}
