//! Random histories of a pool against a model of the nodes: which services really exist where.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Duration;

use cxi_site::pool::{
    Allotment, Change, Changed, Event, PoolError, ReserveError, Snapshot, Timestamp, VniPool,
    VniRequest,
};
use cxi_site::{IdSet, JobId, NodeName};
use proptest::prelude::*;

use super::actions::{Action, REST, action, blue, config, job, node, nodes, request};

struct World {
    pool: VniPool,
    log: Vec<Event>,
    now: Timestamp,
    /// Services with a VNI on a node, by holder; a leak has no job.
    services: BTreeSet<(u16, NodeName, Option<JobId>)>,
    living: BTreeMap<u16, JobId>,
    /// When the services of a VNI were last known destroyed everywhere.
    freed: BTreeMap<u16, Timestamp>,
    /// Leaks that the pool was shown.
    shown: BTreeSet<(u16, NodeName)>,
}

impl World {
    fn new() -> Self {
        Self {
            pool: VniPool::new(config(0)).unwrap(),
            log: Vec::new(),
            now: Timestamp::from_millis(1),
            services: BTreeSet::new(),
            living: BTreeMap::new(),
            freed: BTreeMap::new(),
            shown: BTreeSet::new(),
        }
    }

    fn started(&mut self, number: u8, asked: &VniRequest, vnis: &Allotment, usable_before: &IdSet) {
        let name = job(number);
        for vni in vnis.iter().map(cxi::Vni::get) {
            assert!(![0, 1, 10].contains(&vni), "{vni} handed out");
            assert!(usable_before.contains(vni), "{vni} is not in the configuration");
            let holder = self.living.insert(vni, name.clone());
            assert_eq!(holder, None, "VNI {vni} in two jobs");
            let others = self.services.iter().find(|(used, node, owner)| {
                *used == vni && (owner.is_some() || self.shown.contains(&(vni, node.clone())))
            });
            assert_eq!(others, None, "VNI {vni} reused before confirmation");
            if let Some(freed) = self.freed.get(&vni) {
                assert!(self.now.since(*freed) >= REST, "VNI {vni} did not rest");
            }
            for node in nodes(number) {
                self.services.insert((vni, node, Some(name.clone())));
            }
        }
        let blue_part = self.pool.config().tenants().get(&blue());
        let in_blue = |vni: u16| blue_part.is_some_and(|part| part.contains(vni));
        let for_blue = *asked == request(5);
        assert!(vnis.iter().all(|vni| in_blue(vni.get()) == for_blue), "{vnis} crosses tenants");
    }

    /// A node destroys what carries the job's VNIs (that is what it can go by), a leak too.
    fn destroyed(&mut self, vnis: &Allotment, on: Option<&NodeName>) {
        let ids: IdSet = vnis.iter().map(cxi::Vni::get).collect();
        let concerned =
            |vni: u16, node: &NodeName| ids.contains(vni) && on.is_none_or(|on| on == node);
        self.services.retain(|(vni, node, _)| !concerned(*vni, node));
        self.shown.retain(|(vni, node)| !concerned(*vni, node));
        self.freed.extend(ids.iter().map(|vni| (vni, self.now)));
    }

    fn ended(&mut self, number: u8) {
        let name = job(number);
        self.living.retain(|_, holder| *holder != name);
    }

    fn usable(&self) -> IdSet {
        let config = self.pool.config();
        config.vnis().difference(&config.excluded())
    }

    fn reserve(&mut self, number: u8, which: u8) {
        let (name, asked, now) = (job(number), request(which), self.now);
        let before = self.pool.clone();
        let known = before.job(&name).map(|held| held.vnis.clone());
        match self.pool.reserve(&name, &asked, now) {
            Ok(reserved) => {
                if let Some(known) = known {
                    assert_eq!(reserved.result, known, "a re-run got other VNIs");
                } else {
                    let usable = self.usable();
                    self.started(number, &asked, &reserved.result, &usable);
                }
                self.log.extend(reserved.event);
            }
            Err(error) => {
                assert_eq!(self.pool, before, "a refusal changed the pool: {error}");
                if let ReserveError::Short(shortage) = &error
                    && (1..=5).contains(&which)
                {
                    let count = if which == 5 { 1 } else { usize::from(which) };
                    assert!(shortage.part.free < count, "{error}");
                }
            }
        }
    }

    fn act(&mut self, action: &Action) {
        let now = self.now;
        match *action {
            Action::Reserve { job, request } => self.reserve(job, request),
            Action::Cancel(number) => {
                let name = job(number);
                if let Ok(cancelled) = self.pool.cancel(&name, now) {
                    self.log.extend(cancelled.event);
                    self.services.retain(|(.., owner)| owner.as_ref() != Some(&name));
                    self.ended(number);
                }
            }
            Action::Release(number) => {
                if let Ok(released) = self.pool.release(&job(number), &nodes(number), now) {
                    self.log.extend(released.event);
                    self.ended(number);
                }
            }
            Action::Destroy { job: number, node: on } => {
                self.confirmed(number, Some(&node(on)), |pool, name| {
                    pool.confirm(name, &node(on), now)
                });
            }
            Action::ConfirmAll(number) => {
                self.confirmed(number, None, |pool, name| {
                    pool.confirm_all(slice::from_ref(name), now)
                });
            }
            Action::Leak { node: on, vni } => {
                self.services.insert((vni, node(on), None));
            }
            Action::Mop(on) => {
                self.services.retain(|(_, at, owner)| owner.is_some() || *at != node(on));
            }
            Action::Look(on) => self.look(&node(on)),
            Action::Reconfigure(which) => {
                let changed = self.pool.reconfigure(config(which), now).unwrap();
                self.log.extend(changed.event);
            }
            Action::Save => {
                self.log.extend(self.pool.save(now).unwrap().event);
            }
            Action::Wait(millis) => self.now = now + Duration::from_millis(millis.into()),
        }
    }

    fn confirmed(
        &mut self,
        number: u8,
        on: Option<&NodeName>,
        confirm: impl Fn(&mut VniPool, &JobId) -> Result<Changed, PoolError>,
    ) {
        let name = job(number);
        let vnis = self.pool.job(&name).map(|held| held.vnis.clone());
        if let Ok(confirmed) = confirm(&mut self.pool, &name) {
            self.destroyed(&vnis.unwrap(), on);
            self.log.extend(confirmed.event);
        }
    }

    fn look(&mut self, on: &NodeName) {
        let there = self.services.iter().filter(|(_, node, _)| node == on);
        let seen: IdSet = there.map(|(vni, ..)| *vni).collect();
        let compared = self.pool.reconcile(on, &seen, self.now);
        for (vni, node, owner) in &self.services {
            // A leak inside a live job's VNI cannot be distinguished from the job's own service.
            if node == on && owner.is_none() && !self.living.contains_key(vni) {
                self.shown.insert((*vni, node.clone()));
            }
        }
        let usable = self.usable();
        for (vni, at) in self.shown.clone() {
            if at == *on && !seen.contains(vni) {
                self.shown.remove(&(vni, at));
            } else if !usable.contains(vni) {
                // Not in the pool now: whether it comes back is for a later look to find out.
                self.shown.remove(&(vni, at));
            }
        }
        assert!(compared.result.outside.intersection(&usable).is_empty());
        self.log.extend(compared.event);
    }

    /// Every VNI is in exactly one state, and the numbers agree with the lists.
    fn audit(&self) {
        let metrics = self.pool.metrics(self.now);
        assert_eq!(
            metrics.total,
            metrics.free + metrics.reserved + metrics.draining + metrics.resting,
            "{metrics:?}"
        );
        assert_eq!(metrics.total, self.usable().len());
        let mut seen = BTreeSet::new();
        let held = self.pool.jobs().flat_map(|(_, held)| held.vnis.iter());
        for vni in held.chain(self.pool.strays().map(|(vni, _)| vni)) {
            assert!(seen.insert(vni), "VNI {vni} twice in the books");
        }
        let in_books = metrics.reserved + metrics.draining + metrics.outside;
        assert_eq!(seen.len(), in_books, "{metrics:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_vni_in_two_jobs_and_none_reused_before_confirmation(actions in proptest::collection::vec(action(), 1..150)) {
        let mut world = World::new();
        for action in &actions {
            world.act(action);
            world.audit();
        }
    }

    #[test]
    fn recovery_gives_the_pool_as_it_was(actions in proptest::collection::vec(action(), 1..120)) {
        let mut world = World::new();
        let mut states = vec![(0, world.pool.clone())];
        for action in &actions {
            world.act(action);
            let restored = VniPool::restore(world.pool.snapshot()).unwrap();
            prop_assert_eq!(&restored, &world.pool);
            states.push((world.log.len(), world.pool.clone()));
        }
        for (length, state) in states {
            let log = &world.log[..length];
            let saved = log.iter().rposition(|event| matches!(event.change, Change::Saved { .. }));
            for begin in [0, saved.unwrap_or(0)] {
                let replayed = VniPool::replay(config(0), &log[begin..]).unwrap();
                prop_assert_eq!(&replayed, &state);
            }
        }
    }

    #[test]
    fn a_recovered_pool_continues_the_same(before in proptest::collection::vec(action(), 1..80), after in proptest::collection::vec(action(), 1..40)) {
        let mut world = World::new();
        for action in &before {
            world.act(action);
        }
        let snapshot: Snapshot = world.pool.snapshot();
        let logged = world.log.len();
        let mut twin = World { pool: VniPool::restore(snapshot).unwrap(), log: Vec::new(), ..World::new() };
        twin.services.clone_from(&world.services);
        twin.living.clone_from(&world.living);
        twin.freed.clone_from(&world.freed);
        twin.shown.clone_from(&world.shown);
        twin.now = world.now;
        for action in &after {
            world.act(action);
            twin.act(action);
        }
        prop_assert_eq!(&world.log[logged..], &twin.log[..]);
        prop_assert_eq!(world.pool, twin.pool);
    }

    #[test]
    fn any_log_is_taken_or_refused_with_a_reason(actions in proptest::collection::vec(action(), 1..60), swaps in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4)) {
        let mut world = World::new();
        for action in &actions {
            world.act(action);
        }
        let mut log = world.log;
        if log.is_empty() {
            return Ok(());
        }
        for (a, b) in swaps {
            let (a, b) = (a.index(log.len()), b.index(log.len()));
            log.swap(a, b);
        }
        // In order by number, so that what contradicts is what they say.
        for (sequence, event) in (1..).zip(&mut log) {
            event.sequence = sequence;
        }
        if let Err(error) = VniPool::replay(config(0), &log) {
            let upto = error.index;
            prop_assert!(VniPool::replay(config(0), &log[..upto]).is_ok());
            prop_assert_eq!(&*error.change, &log[upto].change);
            let start = format!("event {upto} (");
            prop_assert!(error.to_string().starts_with(&start));
        }
    }
}
