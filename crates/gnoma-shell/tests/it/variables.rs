//! What variables hold after commands that set them, or only seem to. What is written here is what bash does.

use super::facts::look;

const KEEPS_X: &str = include_str!("commands/keeps_x.txt");
const SETS_X: &str = include_str!("commands/sets_x.txt");
const CALCULATES_V: &str = include_str!("commands/calculates_v.txt");

/// Lines that end early, so that what stands behind in them does not run.
const ABORTED: [&str; 14] = [
    "readonly x\nx=true",
    "declare -r x\nx=true; :",
    ": $((1/0)); x=true",
    "y=$((08)); x=true",
    "f() { : $((1/0)); }\nf; x=true",
    "{ : $((1/0)); x=true; }",
    "readonly q=1\nq=2; x=true",
    "echo ${x:1/0}; x=true",
    "for i in 1; do : $((1/0)); done; x=true",
    "eval ': $((1/0)); x=true'",
    "f() { local x=true; : $((1/0)); }\nf; x=true",
    "readonly x; f() { x=true; }\nf",
    "if :; then : $((1/0)); fi; x=true",
    "echo ${!}${!z}; x=true",
];

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with("# "))
}

fn passed(commands: impl Iterator<Item = String>) -> Vec<String> {
    commands.filter(|command| look(command).is_read_only()).collect()
}

#[test]
fn variable_value_that_may_survive_is_not_forgotten() {
    let in_one_line = lines(KEEPS_X).map(|line| format!("x=touch; {line}; $x p"));
    let in_lines = lines(KEEPS_X).chain(ABORTED).map(|line| format!("x=touch\n{line}\n$x p"));
    let passed = passed(in_one_line.chain(in_lines));
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn variable_assignment_by_any_builtin_is_detected() {
    let directly = lines(SETS_X).map(|line| format!("x=true; {line}; $x p"));
    let in_function = lines(SETS_X).map(|line| format!("g_() {{ {line}; }}; x=true; g_; $x p"));
    let passed = passed(directly.chain(in_function));
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn arithmetic_evaluation_of_a_variable_may_run_commands() {
    let known = lines(CALCULATES_V).map(|line| format!("v='a[$(touch p)]'; {line}"));
    let read = lines(CALCULATES_V).map(|line| format!("read -r v < f; {line}"));
    let passed = passed(known.chain(read));
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn everyday_scripts_of_several_lines_are_read_only() {
    for command in [
        "n=1\nm=$((n+1))\necho $m",
        "f=a.txt\nfor i in 1 2; do\n  cat \"$f\"\ndone",
        "cd src\nls\ncat lib.rs",
        "x=$(git rev-parse HEAD)\necho \"$x\"\ngit show --stat \"HEAD\" | cat",
        "show() {\n  local f=$1\n  head -5 \"$f\"\n}\nshow a; show b",
    ] {
        let analysis = look(command);
        assert!(analysis.is_read_only(), "{command}: {analysis:#?}");
    }
}
