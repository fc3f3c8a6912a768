//! The scenes of the pictures: a small shop whose coupons work only in lower case, and a conversation about it.
//! The model's words are scripted; what gnoma does with them is real.

use std::time::Duration;

use gnoma_core::{StopReason, Usage};
use gnoma_testkit::{Reply, Script, Wire};

use super::paint::Shade;

/// One step of a scene: keys that a person types, or text that they wait for.
pub(super) enum Step {
    /// These keys are typed.
    Type(&'static str),
    /// Waits until all of this is on the screen at once. The picture is the last such screen.
    See(&'static [&'static str]),
}

/// The script and settings of one picture.
pub(super) struct Scene {
    /// The name of the file.
    pub(super) name: &'static str,
    /// The size of the terminal, in columns and rows.
    pub(super) size: (u16, u16),
    pub(super) shade: Shade,
    /// The person's settings; `URL` is replaced by the server's address.
    pub(super) settings: String,
    /// The person's tasks: the name and the text of each.
    pub(super) tasks: &'static [(&'static str, &'static str)],
    /// An environment variable with a key.
    pub(super) key: Option<(&'static str, &'static str)>,
    pub(super) replies: Vec<Reply>,
    pub(super) steps: Vec<Step>,
}

/// The files of the project.
pub(super) const PROJECT: [(&str, &str); 3] =
    [("src/coupons.py", COUPONS), ("src/basket.py", BASKET), ("test.sh", TEST)];
const COUPONS: &str = r#""""Coupons of the shop, and their discounts."""

from decimal import Decimal

COUPONS = {
    "summer10": Decimal("0.10"),
    "friends20": Decimal("0.20"),
}


def discount(code: str) -> Decimal:
    """The discount that a coupon gives."""
    if code in COUPONS:
        return COUPONS[code]
    return Decimal(0)
"#;
const BASKET: &str = r#"from coupons import discount


def total(prices, code=""):
    return sum(prices) * (1 - discount(code))
"#;
/// A test that takes as long as a picture needs.
const TEST: &str = r#"echo "ok   an empty basket is free"
echo "ok   a coupon lowers the price"
echo "ok   SUMMER10 equals summer10"
sleep 20
"#;

/// The tasks of the person.
const TASKS: [(&str, &str); 3] = [("fix", FIX), ("explain", EXPLAIN), ("release", RELEASE)];
const FIX: &str = r#"---
description: Fix an issue of the checkout, and prove it
arguments:
  issue: number
---
## Fix it
Fix issue $issue.
## Test
```sh
sh test.sh
```
"#;
const EXPLAIN: &str = r#"---
description: Explain a file such as src/basket.py to a new colleague
arguments:
  file: path
---
Explain $file.
"#;
const RELEASE: &str = r#"---
description: Write the entry, tag, push
arguments:
  version: version
  remote: text = origin
---
## Entry
Write the entry for $version.
## Tag
```sh
git tag "$version"
```
"#;

const WIDE: (u16, u16) = (92, 30);
const NARROW: (u16, u16) = (40, 24);
const READ: &str = r#"{"path":"src/coupons.py"}"#;
const GREP: &str = r#"{"pattern":"discount\\(","path":"src"}"#;
const EDIT: &str = r#"{"path":"src/coupons.py","edits":[{"old_string":"    \"\"\"The discount that a coupon gives.\"\"\"\n    if code in COUPONS:\n        return COUPONS[code]\n    return Decimal(0)","new_string":"    \"\"\"The discount that a coupon gives, however it is typed.\"\"\"\n    return COUPONS.get(code.strip().lower(), Decimal(0))"}]}"#;
const QUESTION: &str = "SUMMER10 is rejected at checkout, but summer10 works. Fix it.";
const THINKING: &str = "The code is compared exactly as typed.\nThe keys are lower case, so the lookup must be, too.\nSpaces around a code come from copying it.";
const TABLE: &str = r#"Coupons now work **however they are typed**. What changed:

| typed | before | now |
|---|---:|---:|
| `summer10` | 10% | 10% |
| `SUMMER10` | – | 10% |
| ` Friends20 ` | – | 20% |
| `winter5` | – | – |

The lookup is one line in `src/coupons.py`:

```python
def discount(code: str) -> Decimal:
    """The discount that a coupon gives, however it is typed."""
    return COUPONS.get(code.strip().lower(), Decimal(0))
```

1. `total` in `src/basket.py` needs no change.
2. Codes that were never issued still give no discount.
"#;

/// Returns the scenes of all pictures.
pub(super) fn all_scenes() -> Vec<Scene> {
    vec![
        start_scene("start", Shade::Dark),
        streaming_scene("streaming", Shade::Dark),
        permission_scene("permission", Shade::Dark),
        answer_scene("answer", Shade::Dark),
        streaming_scene("light", Shade::Light),
        narrow_scene(),
        setup_scene(),
        task_scene("task", Shade::Dark),
    ]
}

/// The first screen, with a prompt that names a file.
fn start_scene(name: &'static str, shade: Shade) -> Scene {
    let mut scene = base_scene(name, shade, "");
    scene.size.1 = 11;
    scene.steps.extend([
        Step::Type("SUMMER10 is rejected at checkout, but summer10 works. Look at @src/"),
        Step::See(&["checkout", "src/basket.py"]),
    ]);
    scene
}

/// A turn in the middle of its work.
fn streaming_scene(name: &'static str, shade: Shade) -> Scene {
    let rules = "[permission]\nmode = \"accept_edits\"\n[[permission.rules]]\nrule = \"bash(sh test.sh)\"\naction = \"allow\"\n";
    let mut scene = base_scene(name, shade, rules);
    scene.replies = vec![
        model_reply(
            3_120,
            "I look at how coupons are looked up.",
            &[("fs_read", READ), ("fs_grep", GREP)],
            THINKING,
        ),
        model_reply(
            4_480,
            "`discount` compares the code **exactly as typed**. One function has to change:",
            &[("fs_edit", EDIT)],
            "",
        ),
        // Long enough for the seconds of the call and of the turn to differ in the same way each time.
        model_reply(4_910, "Now the tests.", &[("bash", r#"{"command":"sh test.sh"}"#)], "")
            .with_delay(Duration::from_millis(700)),
    ];
    scene.steps.extend([
        Step::Type(QUESTION),
        Step::See(&["Fix it."]),
        Step::Type("\r"),
        Step::See(&["ok   SUMMER10 equals summer10", "sh test.sh · 2s", "◑ running bash 3s"]),
    ]);
    scene
}

/// An edit that is asked about.
fn permission_scene(name: &'static str, shade: Shade) -> Scene {
    let mut scene = base_scene(name, shade, "");
    let words = "`discount` compares the code **exactly as typed**. One function has to change:";
    scene.replies = vec![
        model_reply(3_120, "I look at how coupons are looked up.", &[("fs_read", READ)], THINKING),
        model_reply(4_480, words, &[("fs_edit", EDIT)], ""),
    ];
    scene.steps.extend([
        Step::Type(QUESTION),
        Step::See(&["Fix it."]),
        Step::Type("\r"),
        Step::See(&["tell the model why", "waiting for you"]),
    ]);
    scene
}

/// An answer with a table and code.
fn answer_scene(name: &'static str, shade: Shade) -> Scene {
    let mut scene = base_scene(name, shade, "");
    scene.size.1 = 26;
    scene.replies = vec![model_reply(5_200, TABLE, &[], "")];
    scene.steps.extend([
        Step::Type("What is different now?"),
        Step::See(&["different now?"]),
        Step::Type("\r"),
        Step::See(&["no discount.", "context"]),
    ]);
    scene
}

/// The tasks to choose from.
fn task_scene(name: &'static str, shade: Shade) -> Scene {
    let mut scene = base_scene(name, shade, "");
    scene.size.1 = 11;
    scene.tasks = &TASKS;
    scene.steps.extend([
        Step::Type("/task"),
        Step::See(&["› /task"]),
        Step::Type("\r"),
        Step::See(&["Task ›", "release VERSION [REMOTE]", "Enter select", "F1 help"]),
    ]);
    scene
}

/// Builds the scene of the first start, without settings or a key.
fn setup_scene() -> Scene {
    let mut scene = base_scene("setup", Shade::Dark, "");
    scene.settings = String::new();
    scene.key = None;
    scene.size.1 = 17;
    scene.steps = vec![Step::Type("gnoma\r"), Step::See(&["demo", "Enter select"])];
    scene
}

/// Builds the permission scene on a narrow terminal.
fn narrow_scene() -> Scene {
    let mut scene = permission_scene("narrow", Shade::Dark);
    scene.size = NARROW;
    scene
}

/// The program has started and takes keys.
fn base_scene(name: &'static str, shade: Shade, more: &str) -> Scene {
    let settings = format!(
        "[provider]\ndefault = \"mistral\"\nmodel = \"mistral-large-latest\"\n[provider.endpoints]\nmistral = \"URL/v1\"\n[provider.context]\nmistral = 131072\n{more}"
    );
    Scene {
        name,
        size: WIDE,
        shade,
        settings,
        tasks: &[],
        key: Some(("MISTRAL_API_KEY", "made-up")),
        replies: Vec::new(),
        steps: vec![Step::Type("gnoma\r"), Step::See(&["Ask anything"])],
    }
}

/// An answer of the model after a prompt of so many tokens.
fn model_reply(prompt: u64, text: &str, calls: &[(&str, &str)], thinking: &str) -> Reply {
    let mut script = Script::text([text]);
    if !thinking.is_empty() {
        script = script.with_thinking(thinking, "");
    }
    for (place, (name, arguments)) in calls.iter().enumerate() {
        script = script.with_call(format!("call{place:05}"), *name, *arguments);
    }
    let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    script.usage = Usage {
        input: prompt / 4,
        cache_read: prompt - prompt / 4,
        output: 180,
        ..Usage::default()
    };
    Wire::Mistral.stream_reply(&script.with_stop(stop)).with_piece_delay(Duration::from_millis(30))
}
