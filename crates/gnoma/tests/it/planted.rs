//! No secret reaches the store: hundreds are planted wherever a session meets words, and none is in
//! anything that was written.

use std::{fs, path::Path};

use gnoma_testkit::{Script, Wire};
use serde_json::json;

use crate::support::{World, calls, says};

/// Secrets of each kind.
const OF_EACH: u64 = 25;
/// Places they are planted in, one after the other.
const PLACES: usize = 5;

const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &[u8] = b"0123456789abcdef";

/// Numbers that are the same in each run, by Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }
}

/// A kind of secret: what stands before it in a line, its fixed beginning in two parts, its random
/// part, and what follows in the line.
type Kind = (&'static str, [&'static str; 2], &'static [u8], usize, &'static str);

/// All made up, and in parts so that nobody takes this file for a leak.
const KINDS: [Kind; 20] = [
    ("token: ", ["gh", "p_"], ALNUM, 36, ""),
    ("token: ", ["gh", "o_"], ALNUM, 36, ""),
    ("CI_TOKEN=", ["gl", "pat-"], ALNUM, 20, ""),
    ("aws_access_key_id = ", ["AK", "IA"], UPPER, 16, ""),
    ("aws_secret_access_key = ", ["", ""], ALNUM, 40, ""),
    ("SLACK=", ["xo", "xb-1234567890-123456789012-"], ALNUM, 24, ""),
    ("stripe ", ["sk_", "live_"], ALNUM, 24, ""),
    ("ANTHROPIC_API_KEY=", ["sk-", "ant-api03-"], ALNUM, 93, "AA"),
    ("key=", ["AI", "za"], ALNUM, 35, ""),
    ("//registry.npmjs.org/:_authToken=", ["np", "m_"], ALNUM, 36, ""),
    ("HF_TOKEN=", ["h", "f_"], ALNUM, 34, ""),
    ("token ", ["dop_", "v1_"], HEX, 64, ""),
    ("SENDGRID=", ["S", "G.aBcDeFgHiJkLmNoPqRsTuV."], ALNUM, 43, ""),
    ("shop: ", ["shp", "at_"], HEX, 32, ""),
    ("password = \"", ["", ""], ALNUM, 22, "\""),
    ("Authorization: Bearer ", ["", ""], ALNUM, 40, ""),
    ("postgres://app:", ["", ""], ALNUM, 18, "@db.example.com/app"),
    ("https://me:", ["", ""], ALNUM, 24, "@git.example.com/x.git"),
    ("secret_key: ", ["", ""], HEX, 48, ""),
    ("export API_TOKEN=", ["", ""], ALNUM, 32, ""),
];

/// A planted secret: the part nobody may find, and the line around it.
struct Planted {
    value: String,
    line: String,
}

fn plant() -> Vec<Planted> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut planted = Vec::new();
    for _ in 0..OF_EACH {
        for (before, [one, two], alphabet, length, after) in KINDS {
            let value = format!("{one}{two}{}", random.text(alphabet, length));
            let line = format!("{before}{value}{after}");
            planted.push(Planted { value, line });
        }
    }
    planted
}

fn lines(planted: &[Planted], place: usize) -> String {
    let own = planted.iter().enumerate().filter(|(at, _)| at / KINDS.len() % PLACES == place);
    own.map(|(_, secret)| format!("{}\n", secret.line)).collect()
}

/// Every byte that is written below `folder`.
fn written(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        let name = path.display().to_string();
        if path.is_dir() {
            all.extend(written(&path));
        } else {
            all.push((name, fs::read(&path).unwrap()));
        }
    }
    all
}

#[tokio::test]
async fn planted_secrets_appear_in_no_written_file() {
    let planted = plant();
    assert_eq!(planted.len(), 500);
    let write = json!({"path": "made.txt", "content": lines(&planted, 3)}).to_string();
    let answer = Wire::OpenAi.stream_reply(
        &Script::text([lines(&planted, 4)])
            .with_thinking(lines(&planted, 4), "")
            .with_stop(gnoma_core::StopReason::EndTurn),
    );
    let world = World::new([
        calls("fs_read", r#"{"path":"settings.txt"}"#),
        calls("bash", r#"{"command":"cat output.log"}"#),
        calls("fs_write", &write),
        answer,
        says("and on"),
    ]);
    world.write("settings.txt", &lines(&planted, 1));
    world.write("output.log", &lines(&planted, 2));
    let run = world.pipe(&["--permission", "bypass", "look"], &lines(&planted, 0)).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = world.run(&["--continue", "go on"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let id = world.sessions().await.remove(0);
    world.run(&["sessions", "rename", &id, &planted[0].line]).await;
    for format in ["jsonl", "html", "markdown"] {
        let file = world.home.path().join(format!("export.{format}"));
        let file = file.to_str().unwrap();
        let run = world.run(&["sessions", "export", "--format", format, "-o", file]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let files = written(world.home.path());
    assert!(files.iter().any(|(name, _)| name.ends_with(".db")), "nothing was kept");
    assert!(files.iter().any(|(_, bytes)| find(bytes, "{{secret:")), "nothing was taken out");
    let mut found = Vec::new();
    for Planted { value, line } in &planted {
        let holds = |(_, bytes): &&(String, Vec<u8>)| find(bytes, value);
        found.extend(files.iter().find(holds).map(|(name, _)| format!("{line} in {name}")));
    }
    assert!(found.is_empty(), "{} were found: {found:#?}", found.len());
}

fn find(bytes: &[u8], text: &str) -> bool {
    let (first, text) = (text.as_bytes()[0], text.as_bytes());
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(text) {
            return true;
        }
        from += at + 1;
    }
    false
}
