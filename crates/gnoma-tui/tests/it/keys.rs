//! The table of keys: what comes with the program, and what a person's own file does to it.

use std::collections::HashSet;

use gnoma_tui::keymap::{Action, Code, Context, Key, Keymap};

fn key(name: &str) -> Key {
    name.parse().unwrap()
}

fn complaint(text: &str) -> String {
    Keymap::with_own(text).unwrap_err().to_string()
}

#[test]
fn built_in_key_bindings_reach_every_action() {
    let keymap = Keymap::built_in();
    let mut reached = HashSet::new();
    for context in Context::ALL {
        let actions = keymap.actions(context);
        assert!(!actions.is_empty(), "{context:?}");
        for action in actions {
            for key in keymap.keys(context, action) {
                assert_eq!(keymap.action_here(context, *key), Some(action), "{key} in {context:?}");
            }
            reached.insert(action);
        }
    }
    for action in Action::ALL {
        assert!(reached.contains(action), "`{}` is in no context", action.name());
        assert_eq!(Action::from_name(action.name()), Some(*action));
    }
}

#[test]
fn context_key_bindings_precede_global_ones() {
    let keymap = Keymap::built_in();
    assert_eq!(keymap.action(Context::Composer, key("esc")), Some(Action::Stop));
    assert_eq!(keymap.action(Context::Picker, key("esc")), Some(Action::Close));
    assert_eq!(keymap.action(Context::Picker, key("shift+tab")), Some(Action::Up));
    assert_eq!(keymap.action(Context::Permission, key("shift+tab")), Some(Action::CycleMode));
    assert_eq!(keymap.action(Context::Normal, Key::plain(Code::Char('G'))), Some(Action::TextEnd));
}

#[test]
fn own_key_bindings_replace_only_the_actions_they_name() {
    let own = "[composer]\nsend = \"ctrl+enter\"\nnewline = ['enter', 'shift+enter']\nqueue = []\n";
    let (keymap, taken) = Keymap::with_own(own).unwrap();
    assert_eq!(keymap.action(Context::Composer, key("ctrl+enter")), Some(Action::Send));
    assert_eq!(keymap.action(Context::Composer, key("enter")), Some(Action::Newline));
    assert_eq!(keymap.action(Context::Composer, key("tab")), None);
    assert_eq!(keymap.action(Context::Composer, key("ctrl+w")), Some(Action::DeleteToSpace));
    assert!(taken.is_empty(), "{taken:?}");
}

#[test]
fn key_binding_taken_from_another_action_is_reported() {
    let (keymap, taken) = Keymap::with_own("[composer]\nundo = ['ctrl+y']").unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].from, taken[0].by), (Action::Yank, Action::Undo));
    assert!(keymap.keys(Context::Composer, Action::Yank).is_empty());
    let (_, swapped) = Keymap::with_own("[composer]\nundo = 'ctrl+y'\nyank = 'ctrl+_'").unwrap();
    assert!(swapped.is_empty(), "{swapped:?}");
}

#[test]
fn key_binding_errors_name_line_and_allowed_values() {
    for (text, says) in [
        ("[composer]\nsend = ", "line 2: "),
        (
            "[editor]",
            "line 1: `[editor]` is not a section of this file; the sections are composer,",
        ),
        (
            "\n[global]\nsned = 'x'",
            "line 3: `sned` is not an action of [global]; allowed are page_up,",
        ),
        ("[global]\nsend = 'f3'", "line 2: `send` is not an action of [global]"),
        (
            "[global]\nquit = 3",
            "line 2: `quit` must be a key such as \"ctrl+r\" or a list of keys, not integer",
        ),
        (
            "[global]\nquit = [\n'f3',\n'hyper+x']",
            "line 4: `hyper` is not a modifier key; use ctrl,",
        ),
        ("[global]\nquit = 'f99'", "line 2: `f99` is not a key; allowed are"),
        (
            "[global]\nquit = 'f3'\nhelp = ['f1', 'F3']",
            "line 3: `f3` does both `quit` and `help` in [global]",
        ),
        (
            "[global]\nquit = 'shift+q'",
            "line 2: `shift+q` types text and cannot do anything else in [global]",
        ),
        ("global = 1", "line 1: `global` must be"),
    ] {
        let complaint = complaint(text);
        assert!(complaint.starts_with(says), "{complaint}");
    }
}
