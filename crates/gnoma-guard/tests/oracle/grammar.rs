//! Commands made at random: programs of the tables with their options, ones that are nearly those, and the
//! small languages (awk, sed, find, the shell's own arrays) in which a word more or less runs something.

use std::{collections::HashSet, path::Path};

/// The tables of programs, as the shell reader has them.
const TABLES: [&str; 6] = [
    include_str!("../../../gnoma-shell/src/programs/tables/text.table"),
    include_str!("../../../gnoma-shell/src/programs/tables/files.table"),
    include_str!("../../../gnoma-shell/src/programs/tables/git.table"),
    include_str!("../../../gnoma-shell/src/programs/tables/development.table"),
    include_str!("../../../gnoma-shell/src/programs/tables/system.table"),
    include_str!("../../../gnoma-shell/src/programs/tables/network.table"),
];
/// Programs that wait, or fill the disk.
const LASTING: [&str; 10] =
    ["sleep", "yes", "top", "vmstat", "iostat", "sar", "pidstat", "mpstat", "usleep", "journalctl"];
/// Programs that take a tenth of a second and more to start; they come less often.
const SLOW: [&str; 27] = [
    "apt",
    "apt-cache",
    "apropos",
    "pip3",
    "yq",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "node",
    "nodejs",
    "corepack",
    "terraform",
    "tofu",
    "java",
    "javac",
    "jps",
    "cpan",
    "kubectl",
    "helm",
    "aws",
    "gcloud",
    "az",
    "cargo",
    "rustc",
    "rustup",
    "pip",
];
/// How often a program that is slow is taken where it comes up: once in so many times, in the long form alone:
/// what such programs do is the machine's business as well.
const SLOWLY: usize = 40;
/// Options that wait for more.
const WAITING: [&str; 8] = ["f", "F", "follow", "retry", "s", "pid", "c", "follow-new"];

const TEXTS: [&str; 26] = [
    "1", "a", "foo", "pwn", "x=1", "./x", "sh ./x", "|./x", "%s", ",", ":", "*.md", "-", "0",
    "e ./x", "w pwn", "HEAD", "always", "auto", "never", "json", "main", "name", "3", "=", "+1",
];
const FILES: [&str; 24] = [
    "a",
    "b",
    "f",
    "y",
    "c",
    "src",
    ".",
    "src/main.rs",
    "x.json",
    "config.yml",
    "a.tar",
    "log.gz",
    "-",
    "data.csv",
    "app.log",
    "README.md",
    "sub/a",
    "link",
    "link-to-env",
    ".env",
    "x.patch",
    "x.awk",
    "/etc/passwd",
    "pwn",
];
const REVISIONS: [&str; 10] =
    ["HEAD", "main", "HEAD~1", "feature", "v0", "HEAD:a", "a", "HEAD:.env", "--", "stash@{0}"];

/// Pieces of awk programs.
const AWK: [&str; 40] = [
    "BEGIN",
    "END",
    "{",
    "}",
    "(",
    ")",
    ";",
    "/",
    "/a/",
    "\"",
    "\"./x\"",
    "\"a\"",
    "system(\"./x\")",
    "$",
    "$1",
    "$0",
    "1",
    "1e1",
    ".5",
    "0x1",
    "x",
    "x=",
    "y",
    "getline",
    "getline x",
    "print",
    "printf",
    ">",
    "<",
    "|",
    "\"pwn\"",
    "/\"/",
    "~",
    "!",
    "length",
    "in",
    "+",
    "++",
    "[",
    "]",
];
/// Pieces of sed programs.
const SED: [&str; 24] = [
    "s", "/", "a", "b", "e", "w", " ./x", " pwn", ";", "1", "$", "p", "d", "\\", "\n", "[", "]",
    "g", "y", "{", "}", "/a/", "r a", ",",
];
/// Pieces of commands of the shell.
const SHELL: [&str; 44] = [
    "declare",
    "typeset",
    "readonly",
    "local",
    "export",
    "command",
    "builtin",
    "-a",
    "-A",
    "-i",
    "-n",
    "a=1",
    "'a=($(./x))'",
    "\"a=(\\$(./x))\"",
    "'a+=($(./x))'",
    "'a=([k]=`./x`)'",
    "a=(1)",
    "a=",
    "echo",
    "\"$a\"",
    "${a[@]}",
    "$((a))",
    "'$(./x)'",
    "v='($(./x))'",
    "\"a=$v\"",
    "a=\"$v\"",
    ";",
    "&&",
    "|",
    "test -v",
    "'a[$(./x)]'",
    "[[ a -eq 1 ]]",
    "printf",
    "-v",
    "read",
    "<<< '$(./x)'",
    "let",
    "eval",
    "f() {",
    "}",
    "f",
    "unset",
    "'a=(<(./x))'",
    "for a in 1 2; do",
];
/// Words of `find` beside places and names.
const FIND: [&str; 26] = [
    "-name",
    "-type",
    "f",
    "-exec",
    "cat",
    "{}",
    "+",
    "\\;",
    "-print0",
    "-delete",
    "-o",
    "!",
    "-path",
    "'*.md'",
    "-fprint",
    "pwn",
    "-ok",
    "./x",
    "-maxdepth",
    "1",
    "-quit",
    "-newer",
    "a",
    "grep",
    "wc",
    "-ls",
];

/// One program or command of the tables.
struct Tool {
    title: &'static str,
    options: Vec<(&'static str, &'static str)>,
    operands: Vec<&'static str>,
    is_slow: bool,
}

/// Numbers that look random, the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or_default()
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Makes commands of the programs that this machine has.
pub(crate) struct Grammar {
    tools: Vec<Tool>,
    is_long: bool,
}

impl Grammar {
    /// Of the programs in these folders; those that are slow come only where it `is_long`.
    pub(crate) fn new(folders: &[&Path], is_long: bool) -> Self {
        let has = |program: &str| folders.iter().any(|folder| folder.join(program).exists());
        let blocks = || TABLES.into_iter().flat_map(|table| table.split("\n[").skip(1));
        let shared = |wanted: &str| blocks().find(|block| block.split(']').next() == Some(wanted));
        let mut tools = Vec::new();
        for block in blocks().filter(|block| !block.starts_with('@')) {
            let lines =
                |key: &'static str| block.lines().filter_map(move |line| line.strip_prefix(key));
            let mut words: Vec<_> = lines("options:").flat_map(str::split_whitespace).collect();
            for name in lines("like:").flat_map(str::split_whitespace) {
                let of_shared = shared(name).into_iter().flat_map(str::lines);
                words.extend(
                    of_shared
                        .filter_map(|line| line.strip_prefix("options:"))
                        .flat_map(str::split_whitespace),
                );
            }
            let titles =
                block.split(']').take(1).chain(lines("also:").flat_map(|line| line.split('|')));
            for title in titles.map(str::trim) {
                let program = title.split(' ').next().unwrap_or_default();
                if has(program) && !LASTING.contains(&program) {
                    let operands = lines("operands:").flat_map(str::split_whitespace).collect();
                    tools.push(Tool {
                        title,
                        options: words.iter().flat_map(|word| options(word)).collect(),
                        operands,
                        is_slow: SLOW.contains(&program),
                    });
                }
            }
        }
        Self { tools, is_long }
    }

    /// How many programs and commands there are.
    pub(crate) fn len(&self) -> usize {
        self.tools.len()
    }

    /// Every option of every program and command, each with every kind of argument.
    pub(crate) fn sweep(&self) -> Vec<String> {
        let mut seen = Seen::default();
        let all = self.tools.iter().flat_map(swept);
        all.filter(|command| seen.add(command)).collect()
    }

    /// A command.
    pub(crate) fn command(&self, dice: &mut Dice) -> String {
        let mut command = self.part(dice);
        if dice.one_in(8) {
            command = format!("{command} | {}", self.part(dice));
        }
        if dice.one_in(20) {
            let around = [
                "timeout 1 ",
                "nice ",
                "env ",
                "command ",
                "xargs ",
                "LC_ALL=C ",
                "busybox ",
                "time ",
            ];
            command = format!("{}{command}", dice.pick(&around));
        }
        if dice.one_in(20) {
            let after = [
                " 2>&1",
                " > /dev/null",
                " < a",
                " <<< x",
                " 2>/dev/null",
                "; true",
                " && ls",
                " | head",
            ];
            command.push_str(dice.pick(&after));
        }
        command
    }

    fn part(&self, dice: &mut Dice) -> String {
        match dice.below(20) {
            0..=3 => program(dice, "awk", &AWK, 12, ""),
            4 => program(dice, "sed", &SED, 8, ""),
            5 => soup(dice, &SHELL, 8, " "),
            6 => {
                let before = dice.pick(&[
                    "",
                    "",
                    "a=(1); ",
                    "v='($(./x))'; ",
                    "declare -A a; ",
                    "command ",
                    "d=declare; $",
                ]);
                let name = if before.ends_with('$') { "d" } else { dice.pick(&SHELL[..5]) };
                let flag = dice.pick(&["", "", "-a", "-A", "-ra", "-x", "-g"]);
                format!("{before}{name} {flag} {}", dice.pick(&SHELL[11..27]))
            }
            7 => format!("find . {}", soup(dice, &FIND, 8, " ")),
            _ => self.of_table(dice),
        }
    }

    fn of_table(&self, dice: &mut Dice) -> String {
        let mut tool = &self.tools[dice.below(self.tools.len())];
        while tool.is_slow && !(self.is_long && dice.one_in(SLOWLY)) {
            tool = &self.tools[dice.below(self.tools.len())];
        }
        let mut words = vec![tool.title.to_owned()];
        for _ in 0..dice.below(4) {
            if !tool.options.is_empty() {
                words.push(option(tool, dice));
            }
        }
        for role in tool.operands.iter().copied().take(2) {
            for _ in 0..dice.below(3).min(if role.ends_with('*') { 2 } else { 1 }) {
                words.push(value(role.trim_end_matches('*'), dice));
            }
        }
        words.join(" ")
    }
}

/// The options of one program or command, one at a time.
fn swept(tool: &Tool) -> Vec<String> {
    let operand = |role: &&str| match role.trim_end_matches('*') {
        "revision" => "HEAD",
        "archive" => "a.tar",
        "folder" => "src",
        "read" | "list" | "look" | "path" | "names" | "write" => "a",
        _ => "foo",
    };
    let operands = tool.operands.iter().map(operand).collect::<Vec<_>>().join(" ");
    let mut commands = vec![tool.title.to_owned(), format!("{} {operands}", tool.title)];
    for (name, _) in &tool.options {
        let name = name.trim_start_matches('-');
        let is_short = name.chars().count() == 1;
        let (dashes, joint) = if is_short { ("-", "") } else { ("--", "=") };
        let option = format!("{} {dashes}{name}", tool.title);
        commands.push(option.clone());
        commands.push(format!("{option} {operands}"));
        for value in ["a", "pwn", "./x", "1"] {
            commands.push(format!("{option}{joint}{value} {operands}"));
            commands.push(format!("{option} {value} {operands}"));
        }
        if !is_short {
            commands.push(format!("{} -{name} {operands}", tool.title));
            commands.push(format!("{} -{name} pwn {operands}", tool.title));
        }
    }
    commands.iter().map(|command| command.trim().to_owned()).collect()
}

/// The options of one word of a table, each with what its value is.
fn options(word: &'static str) -> Vec<(&'static str, &'static str)> {
    let end = word.find(['=', '!']).unwrap_or(word.len());
    let (name, rest) = word.split_at(end);
    let value = rest.split('!').next().unwrap_or_default();
    let is_short = !name.starts_with("--");
    let Some(letters) = name.strip_prefix('-').filter(|_| is_short) else {
        return vec![(name, value)];
    };
    let each =
        letters.char_indices().filter_map(|(at, letter)| letters.get(at..at + letter.len_utf8()));
    each.map(|letter| (letter, value)).chain([(letters, value)]).collect()
}

/// An option, or what is nearly one.
fn option(tool: &Tool, dice: &mut Dice) -> String {
    let (name, kind) = dice.pick(&tool.options);
    let name = name.trim_start_matches('-');
    if WAITING.contains(&name)
        && matches!(tool.title, "tail" | "head" | "ss" | "dmesg" | "free" | "w" | "lsof")
    {
        return String::new();
    }
    let dashes = if name.len() > 1 && !dice.one_in(6) { "--" } else { "-" };
    let kept = if dice.one_in(10) { 1 + dice.below(name.len()) } else { name.len() };
    let name = name.get(..kept).unwrap_or(name);
    let role = kind.trim_start_matches(['=', '?']);
    let role = if role.is_empty() { "text" } else { role };
    let odd = dice.one_in(10);
    match (kind.is_empty() != odd, dice.below(3)) {
        (true, _) => format!("{dashes}{name}"),
        (false, 0) => format!("{dashes}{name} {}", value(role, dice)),
        (false, 1) if dashes == "-" => format!("{dashes}{name}{}", value(role, dice)),
        (false, _) => format!("{dashes}{name}={}", value(role, dice)),
    }
}

fn value(role: &str, dice: &mut Dice) -> String {
    let pool: &[&str] = match role {
        "read" | "list" | "look" | "path" | "names" | "write" | "archive" | "folder" => &FILES,
        "revision" => &REVISIONS,
        _ if dice.one_in(3) => &FILES,
        _ => &TEXTS,
    };
    quoted(dice.pick(pool))
}

fn program(dice: &mut Dice, name: &str, pieces: &[&str], most: usize, joint: &str) -> String {
    let text = soup(dice, pieces, most, joint);
    let file = dice.pick(&["", " f", " y", " a"]);
    format!("{name} {}{file}", quoted(&text))
}

fn soup(dice: &mut Dice, pieces: &[&str], most: usize, joint: &str) -> String {
    let picked: Vec<_> = (0..=dice.below(most)).map(|_| dice.pick(pieces)).collect();
    let mut text = String::new();
    for (at, piece) in picked.iter().enumerate() {
        let apart = at > 0 && joint.is_empty() && dice.one_in(3);
        text.push_str(if at == 0 {
            ""
        } else if apart {
            " "
        } else {
            joint
        });
        text.push_str(piece);
    }
    text
}

fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./-_=:,+~@".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Commands that were made already.
#[derive(Default)]
pub(crate) struct Seen(HashSet<String>);

impl Seen {
    /// Whether `command` is new.
    pub(crate) fn add(&mut self, command: &str) -> bool {
        self.0.insert(command.to_owned())
    }
}
