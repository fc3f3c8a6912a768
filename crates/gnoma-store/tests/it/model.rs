//! The store against a tree in memory: whatever is done in whatever order, both tell the same.

use std::collections::{BTreeMap, BTreeSet};

use gnoma_core::store::{
    Durability, EntryId, NewEntry, PageRequest, Parent, Record, SessionId, SessionStore,
};
use gnoma_store::Store;
use proptest::prelude::*;

use crate::support::{ALL, begin, open, says, wait};

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Say { session: usize, parent: Where, flush: bool },
    Hide { session: usize, entry: usize },
    Fork { session: usize, entry: usize },
    Rename { session: usize },
    Delete { session: usize },
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Where {
    Tip,
    Start,
    After(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let parent = prop_oneof![
        4 => Just(Where::Tip),
        1 => Just(Where::Start),
        2 => any::<usize>().prop_map(Where::After)
    ];
    let two = || (any::<usize>(), any::<usize>());
    prop_oneof![
        2 => Just(Step::Begin),
        10 => (any::<usize>(), parent, prop::bool::weighted(0.1))
            .prop_map(|(session, parent, flush)| Step::Say { session, parent, flush }),
        1 => two().prop_map(|(session, entry)| Step::Hide { session, entry }),
        2 => two().prop_map(|(session, entry)| Step::Fork { session, entry }),
        1 => any::<usize>().prop_map(|session| Step::Rename { session }),
        1 => any::<usize>().prop_map(|session| Step::Delete { session }),
        1 => Just(Step::Reopen),
    ]
}

#[derive(Default)]
struct Model {
    sessions: BTreeMap<SessionId, Branch>,
    entries: BTreeMap<EntryId, (Option<EntryId>, Record)>,
    hidden: BTreeSet<EntryId>,
}

struct Branch {
    tip: Option<EntryId>,
    /// Entries this session may build on: its own and the past it shares.
    known: BTreeSet<EntryId>,
    title: String,
}

impl Model {
    fn pick(&self, which: usize) -> Option<SessionId> {
        let ids: Vec<_> = self.sessions.keys().collect();
        (!ids.is_empty()).then(|| ids[which % ids.len()].clone())
    }

    fn pick_entry(&self, session: &SessionId, which: usize) -> Option<EntryId> {
        let known: Vec<_> = self.sessions[session].known.iter().collect();
        (!known.is_empty()).then(|| *known[which % known.len()])
    }

    fn path(&self, tip: Option<EntryId>) -> Vec<(EntryId, Record)> {
        let mut path = Vec::new();
        let mut next = tip;
        while let Some(id) = next {
            let (parent, record) = &self.entries[&id];
            if !self.hidden.contains(&id) {
                path.push((id, record.clone()));
            }
            next = *parent;
        }
        path.reverse();
        path
    }

    fn add(&mut self, session: &SessionId, id: EntryId, parent: Option<EntryId>, record: Record) {
        if let Record::Tombstone { of } = &record {
            self.hidden.insert(*of);
        }
        self.entries.insert(id, (parent, record));
        let branch = self.sessions.get_mut(session).unwrap();
        branch.tip = Some(id);
        branch.known.insert(id);
    }
}

fn append(
    store: &Store,
    session: &SessionId,
    parent: Parent,
    record: &Record,
    flush: bool,
) -> EntryId {
    wait(store.append(NewEntry {
        session: session.clone(),
        parent,
        at_ms: 0,
        record: record.clone(),
        durability: if flush { Durability::Disk } else { Durability::Process },
    }))
    .unwrap()
}

fn say(store: &Store, model: &mut Model, session: &SessionId, place: Where, flush: bool) {
    let tip = model.sessions[session].tip;
    let (parent, after) = match place {
        Where::Tip => (Parent::Tip, tip),
        Where::Start => (Parent::Start, None),
        Where::After(which) => match model.pick_entry(session, which) {
            Some(entry) => (Parent::After(entry), Some(entry)),
            None => (Parent::Tip, tip),
        },
    };
    let text = format!("said {}", model.entries.len());
    let record = says(text.clone());
    let id = append(store, session, parent, &record, flush);
    model.add(session, id, after, record);
    let branch = model.sessions.get_mut(session).unwrap();
    if branch.title.is_empty() {
        branch.title = text;
    }
}

fn act(store: &Store, model: &mut Model, step: &Step) -> Option<()> {
    match *step {
        Step::Begin => {
            let id = begin(store, 0);
            let branch = Branch { tip: None, known: BTreeSet::new(), title: String::new() };
            model.sessions.insert(id, branch);
        }
        Step::Say { session, parent, flush } => {
            let session = model.pick(session)?;
            say(store, model, &session, parent, flush);
        }
        Step::Hide { session, entry } => {
            let session = model.pick(session)?;
            let of = model.pick_entry(&session, entry)?;
            let record = Record::Tombstone { of };
            let id = append(store, &session, Parent::Tip, &record, false);
            let tip = model.sessions[&session].tip;
            model.add(&session, id, tip, record);
        }
        Step::Fork { session, entry } => {
            let session = model.pick(session)?;
            let at = model.pick_entry(&session, entry)?;
            let id = wait(store.fork(session.clone(), at, 0)).unwrap();
            let mut known = BTreeSet::new();
            let mut next = Some(at);
            while let Some(id) = next {
                known.insert(id);
                next = model.entries[&id].0;
            }
            let title = model.sessions[&session].title.clone();
            model.sessions.insert(id, Branch { tip: Some(at), known, title });
        }
        Step::Rename { session } => {
            let session = model.pick(session)?;
            let title = format!("title {}", model.entries.len());
            wait(store.rename(session.clone(), title.clone(), 0)).unwrap();
            let page = wait(store.load(session.clone(), PageRequest { max_entries: 1, ..ALL }));
            let id = page.unwrap().entries[0].id;
            let tip = model.sessions[&session].tip;
            model.add(&session, id, tip, Record::Title { text: title.clone() });
            model.sessions.get_mut(&session).unwrap().title = title;
        }
        Step::Delete { session } => {
            let session = model.pick(session)?;
            wait(store.delete(session.clone())).unwrap();
            model.sessions.remove(&session);
        }
        Step::Reopen => {}
    }
    Some(())
}

fn compare(store: &Store, model: &Model) {
    let listed: BTreeSet<_> =
        wait(store.list(1000)).unwrap().into_iter().map(|facts| (facts.id, facts.title)).collect();
    let expected: BTreeSet<_> =
        model.sessions.iter().map(|(id, branch)| (id.clone(), branch.title.clone())).collect();
    assert_eq!(listed, expected);
    for (session, branch) in &model.sessions {
        for tip in branch.known.iter().copied().map(Some).chain([None]) {
            let page = wait(store.load(session.clone(), PageRequest { tip, ..ALL })).unwrap();
            let path: Vec<_> =
                page.entries.into_iter().map(|entry| (entry.id, entry.record)).collect();
            assert_eq!(path, model.path(tip.or(branch.tip)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn session_store_matches_a_tree_model(steps in prop::collection::vec(step(), 1..60)) {
        let home = tempfile::tempdir().unwrap();
        let mut store = open(home.path());
        let mut model = Model::default();
        for step in &steps {
            if matches!(step, Step::Reopen) {
                drop(store);
                store = open(home.path());
            }
            act(&store, &mut model, step);
        }
        compare(&store, &model);
        wait(store.check_integrity()).unwrap();
    }
}
