//! Who asks for what most: calls by command and user over the last minutes (Hadoop's nntop). Counted are the events that the audit log is for, whether
//! it is kept or not.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The command that stands for all.
const ALL: &str = "*";
/// Pairs of a command and a user that are counted; what further users ask counts for none. Names are the callers' own choice, so there is an end.
const PAIRS_MAX: usize = 50_000;
/// Parts of windows of all pairs: with windows of many parts fewer pairs are counted.
const PARTS_MAX: usize = 4 << 20;
/// How often it is looked whether there is room again, in milliseconds: that looks at all pairs.
const FORGET_MS: u64 = 1_000;

/// What is counted, and what of it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopSettings {
    /// Lengths of the windows (`dfs.namenode.top.windows.minutes`), in milliseconds.
    pub windows_ms: BTreeSet<u64>,
    /// Parts of a window that it moves on by (`dfs.namenode.top.window.num.buckets`).
    pub buckets: usize,
    /// Users told of each command (`dfs.namenode.top.num.users`).
    pub users: usize,
}

/// What one command counts in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The command, as audit lines have it; `*` for all.
    pub name: Box<str>,
    /// All its calls.
    pub total: u64,
    /// Users who asked most, most first; for `*` those who are among them for any command, with all that they asked.
    pub top: Vec<(Arc<str>, u64)>,
    /// All users, most first; for `*` the same as `top`, as Hadoop tells it.
    pub all: Vec<(Arc<str>, u64)>,
}

/// One window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its length, in milliseconds.
    pub length_ms: u64,
    /// `*` first, then what is asked most. Empty if nothing was asked.
    pub operations: Vec<Operation>,
}

/// A part of a window: its number since 1970, and what was counted in it.
#[derive(Clone, Copy, Default)]
struct Bucket {
    number: u64,
    count: u64,
}

/// The parts of all windows of one command and user, window after window.
type Buckets = Box<[Bucket]>;

#[derive(Default)]
struct Counts {
    commands: HashMap<Box<str>, HashMap<Arc<str>, Buckets>>,
    pairs: usize,
    /// When it was looked who may be forgotten.
    forgot_ms: u64,
}

/// The counts.
pub struct Top {
    settings: TopSettings,
    counts: Mutex<Counts>,
}

impl Top {
    /// Nothing counted yet.
    pub fn new(settings: TopSettings) -> Top {
        Top { settings, counts: Mutex::default() }
    }

    /// Number of the part of a window that a time lies in.
    fn number(&self, window_ms: u64, now_ms: u64) -> u64 {
        now_ms / (window_ms / self.settings.buckets.max(1) as u64).max(1)
    }

    /// A user asked `times` times for a command. Times are milliseconds since 1970.
    pub fn count(&self, now_ms: u64, command: &str, user: &Arc<str>, times: u64) {
        let mut counts = self.counts.lock();
        let known = counts.commands.get_mut(command).and_then(|users| users.get_mut(user));
        let buckets = match known {
            Some(buckets) => buckets,
            None => {
                let parts = self.settings.windows_ms.len() * self.settings.buckets;
                let most = PAIRS_MAX.min(PARTS_MAX / parts.max(1));
                if counts.pairs >= most && now_ms.abs_diff(counts.forgot_ms) >= FORGET_MS {
                    self.forget(&mut counts, now_ms);
                }
                if counts.pairs >= most {
                    return;
                }
                counts.pairs += 1;
                let users = counts.commands.entry(command.into()).or_default();
                users.entry(user.clone()).or_insert_with(|| vec![Bucket::default(); parts].into())
            }
        };
        for (window_ms, parts) in self.settings.windows_ms.iter().zip(buckets.chunks_mut(self.settings.buckets.max(1)))
        {
            let number = self.number(*window_ms, now_ms);
            let at = (number % parts.len() as u64) as usize;
            if parts[at].number != number {
                parts[at] = Bucket { number, count: 0 };
            }
            parts[at].count += times;
        }
    }

    /// What a window has counted by now.
    fn sum(&self, buckets: &[Bucket], window: usize, window_ms: u64, now_ms: u64) -> u64 {
        let (now, parts) = (self.number(window_ms, now_ms), self.settings.buckets);
        let of_window = &buckets[window * parts..][..parts];
        of_window.iter().filter(|part| now.saturating_sub(part.number) < parts as u64).map(|part| part.count).sum()
    }

    /// Drops who has asked nothing for as long as the longest window.
    fn forget(&self, counts: &mut Counts, now_ms: u64) {
        counts.forgot_ms = now_ms;
        let windows = || self.settings.windows_ms.iter().enumerate();
        counts.commands.values_mut().for_each(|users| {
            users.retain(|_, buckets| windows().any(|(at, ms)| self.sum(buckets, at, *ms, now_ms) > 0));
        });
        counts.commands.retain(|_, users| !users.is_empty());
        counts.pairs = counts.commands.values().map(HashMap::len).sum();
    }

    /// How many windows there are.
    pub fn window_count(&self) -> usize {
        self.settings.windows_ms.len()
    }

    /// What is told, shortest window first.
    pub fn windows(&self, now_ms: u64) -> Vec<Window> {
        let mut counts = self.counts.lock();
        self.forget(&mut counts, now_ms);
        let window = |(at, ms): (usize, &u64)| {
            let mut operations = Vec::new();
            let mut by_user: BTreeMap<Arc<str>, u64> = BTreeMap::new();
            for (name, users) in &counts.commands {
                let sums = users.iter().map(|(user, buckets)| (user.clone(), self.sum(buckets, at, *ms, now_ms)));
                let all = most_first(sums.filter(|(_, sum)| *sum > 0));
                all.iter().for_each(|(user, sum)| *by_user.entry(user.clone()).or_default() += sum);
                let total = all.iter().map(|(_, sum)| sum).sum();
                let top = all[..all.len().min(self.settings.users)].to_vec();
                if total > 0 {
                    operations.push(Operation { name: name.clone(), total, top, all });
                }
            }
            operations.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
            if !operations.is_empty() {
                let total = by_user.values().sum();
                let leading: BTreeSet<&Arc<str>> =
                    operations.iter().flat_map(|o| &o.top).map(|(user, _)| user).collect();
                let top = most_first(by_user.iter().filter(|(u, _)| leading.contains(u)).map(|(u, n)| (u.clone(), *n)));
                operations.insert(0, Operation { name: ALL.into(), total, all: top.clone(), top });
            }
            Window { length_ms: *ms, operations }
        };
        self.settings.windows_ms.iter().enumerate().map(window).collect()
    }
}

fn most_first(users: impl Iterator<Item = (Arc<str>, u64)>) -> Vec<(Arc<str>, u64)> {
    let mut users: Vec<_> = users.collect();
    users.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top(users: usize) -> Top {
        Top::new(TopSettings { windows_ms: [60_000, 300_000].into(), buckets: 10, users })
    }

    fn told(window: &Window) -> Vec<String> {
        let users = |users: &[(Arc<str>, u64)]| {
            users.iter().map(|(user, count)| format!("{user}={count}")).collect::<Vec<_>>().join(" ")
        };
        let line = |o: &Operation| format!("{} {}: {} of {}", o.name, o.total, users(&o.top), users(&o.all));
        window.operations.iter().map(line).collect()
    }

    #[test]
    fn windows_move_on_and_the_top_of_all_is_the_top_of_any() {
        let top = top(2);
        let now = 1_700_000_000_000;
        for (user, count) in [("zed", 1), ("amy", 3), ("bob", 3), ("carl", 2)] {
            top.count(now, "getfileinfo", &user.into(), count);
            top.count(now, "delete", &user.into(), 1);
        }
        let windows = top.windows(now + 1_000);
        assert_eq!(
            told(&windows[0]),
            [
                "* 13: amy=4 bob=4 of amy=4 bob=4",
                "getfileinfo 9: amy=3 bob=3 of amy=3 bob=3 carl=2 zed=1",
                "delete 4: amy=1 bob=1 of amy=1 bob=1 carl=1 zed=1"
            ]
        );
        assert_eq!(told(&windows[0]), told(&windows[1]));
        top.count(now + 59_000, "delete", &"zed".into(), 1);
        let windows = top.windows(now + 61_000);
        assert_eq!(told(&windows[0]), ["* 1: zed=1 of zed=1", "delete 1: zed=1 of zed=1"]);
        assert_eq!(windows[1].operations[0].total, 14);
        assert!(top.windows(now + 400_000).iter().all(|window| window.operations.is_empty()));
        assert_eq!(top.counts.lock().pairs, 0);
    }

    #[test]
    fn names_that_callers_make_up_have_an_end() {
        let top = top(1);
        for i in 0..PAIRS_MAX + 10 {
            top.count(1_000_000, "mkdirs", &format!("user{i}").into(), 1);
        }
        let of = |top: &Top| {
            let counts = top.counts.lock();
            (counts.pairs, counts.forgot_ms)
        };
        assert_eq!(of(&top), (PAIRS_MAX, 1_000_000));
        // not looked through for each new name
        top.count(1_000_999, "mkdirs", &"other".into(), 1);
        assert_eq!(of(&top), (PAIRS_MAX, 1_000_000));
        top.count(1_001_000, "mkdirs", &"other".into(), 1);
        assert_eq!(of(&top), (PAIRS_MAX, 1_001_000));
        top.count(2_000_000, "mkdirs", &"late".into(), 1);
        assert_eq!(top.counts.lock().pairs, 1);
    }

    #[test]
    fn windows_of_many_parts_take_no_more_memory() {
        let top = Top::new(TopSettings { windows_ms: [60_000, 120_000].into(), buckets: 60_000, users: 1 });
        for i in 0..100 {
            top.count(1_000_000, "mkdirs", &format!("user{i}").into(), 1);
        }
        assert_eq!(top.counts.lock().pairs, PARTS_MAX / 120_000);
    }
}
