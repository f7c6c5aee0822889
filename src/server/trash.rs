//! The emptier of the trash: from time to time what was thrown away gets a folder by the time, and folders that are old enough go. It acts as
//! the user of the name node, by the operations that a client would call (Hadoop's `TrashPolicyDefault.Emptier`).

use crate::service::{Shared, audit, own_caller};
use engine::HaState;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ops::read::file_info::get_file_info;
use ops::read::listing::{ListingVisitor, get_listing};
use ops::status::{FileStatus, LocatedBlocks};
use ops::write::delete::Delete;
use ops::write::rename::Rename2;
use record::KindTag;
use std::sync::Arc;
use std::time::Duration;
use vocab::{Caller, Refusal};

/// Where things go that are thrown away, below a user's home.
const TRASH: &str = ".Trash";
/// What was thrown away since the last round.
const CURRENT: &str = "Current";
/// Names tried for a folder of this second.
const ATTEMPTS: u32 = 1_000;

/// When what goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trash {
    /// How long folders stay, in milliseconds (`fs.trash.interval`).
    pub keep_ms: i64,
    /// How often a round is made, in milliseconds (`fs.trash.checkpoint.interval`).
    pub every_ms: i64,
    /// Whether what is no folder of the emptier's goes at once (`fs.trash.clean.trashroot.enable`).
    pub clean: bool,
    /// Where homes are (`dfs.user.home.dir.prefix`).
    pub homes: String,
}

impl Trash {
    /// The emptier of a configuration in minutes; `None` if there is no trash. An interval of rounds that is 0 or longer than things are kept
    /// is that long.
    pub fn new(keep_minutes: u64, every_minutes: u64, clean: bool, homes: String) -> Option<Trash> {
        let every = if every_minutes == 0 || every_minutes > keep_minutes { keep_minutes } else { every_minutes };
        let ms = |minutes: u64| i64::try_from(minutes.saturating_mul(60_000)).unwrap_or(i64::MAX);
        (keep_minutes > 0).then(|| Trash { keep_ms: ms(keep_minutes), every_ms: ms(every), clean, homes })
    }

    /// Makes rounds at whole multiples of the interval, as long as this is the active name node.
    pub async fn run(self, shared: Arc<Shared>) {
        loop {
            let now = shared.engine.now().wall.0;
            let wait = self.every_ms - now.rem_euclid(self.every_ms);
            tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())).await;
            if shared.engine.gate().state() == HaState::Active {
                self.round(&shared).await;
            }
        }
    }

    /// One round over the trash of all users.
    pub async fn round(&self, shared: &Shared) {
        let caller = own_caller(&shared.engine);
        let homes = list(shared, &caller, &self.homes).unwrap_or_default();
        for (home, _) in homes.iter().filter(|(_, kind)| *kind == KindTag::Directory) {
            let trash = format!("{}/{home}/{TRASH}", self.homes.trim_end_matches('/'));
            let done = self.of_one(shared, &caller, &trash).await;
            if let Err(refusal) = done {
                tracing::warn!("Trash caught: {refusal:?}. Skipping {trash}.");
            }
        }
    }

    async fn of_one(&self, shared: &Shared, caller: &Caller, trash: &str) -> Result<(), Refusal> {
        if kind_of(shared, caller, trash)? != Some(KindTag::Directory) {
            return Ok(());
        }
        let now = shared.engine.now().wall.0;
        for (name, _) in list(shared, caller, trash)? {
            let path = format!("{trash}/{name}");
            match time_of(&name) {
                _ if name == CURRENT => {}
                Some(time) if now - self.keep_ms > time => delete(shared, caller, &path).await?,
                Some(_) => {}
                None if self.clean => delete(shared, caller, &path).await?,
                None => tracing::warn!("Unexpected item in trash: {path}. Ignoring."),
            }
        }
        set_aside(shared, caller, trash, now).await
    }
}

#[derive(Default)]
struct Names(Vec<(String, KindTag)>);

impl ListingVisitor for Names {
    fn entry(&mut self, status: &FileStatus<'_>, _: Option<&LocatedBlocks>) {
        self.0.push((String::from_utf8_lossy(&status.name).into_owned(), status.kind));
    }
}

/// Names in a directory; none if there is no such directory.
fn list(shared: &Shared, caller: &Caller, path: &str) -> Result<Vec<(String, KindTag)>, Refusal> {
    let mut names = Names::default();
    loop {
        let after = names.0.last().map_or_else(Vec::new, |(name, _)| name.clone().into_bytes());
        let page = shared
            .engine
            .view("trash", caller, |view| get_listing(view, path.as_bytes(), &after, false, &mut names))?;
        if page.is_none_or(|page| page.remaining == 0) {
            return Ok(names.0);
        }
    }
}

fn kind_of(shared: &Shared, caller: &Caller, path: &str) -> Result<Option<KindTag>, Refusal> {
    shared.engine.view("trash", caller, |view| Ok(get_file_info(view, path.as_bytes())?.map(|status| status.kind)))
}

async fn delete(shared: &Shared, caller: &Caller, path: &str) -> Result<(), Refusal> {
    let operation = Delete { path: path.as_bytes().to_vec(), recursive: true };
    let engine = &shared.engine;
    let deleted = engine.fence(engine.write(&operation, caller)).await?;
    audit::log(shared, caller, deleted, "delete", Some(path), "rpc");
    if deleted {
        tracing::info!("Deleted trash checkpoint: {path}");
    } else {
        tracing::warn!("Couldn't delete checkpoint: {path} Ignoring.");
    }
    Ok(())
}

/// Gives what was thrown away since the last round a folder by the time.
async fn set_aside(shared: &Shared, caller: &Caller, trash: &str, now: i64) -> Result<(), Refusal> {
    let current = format!("{trash}/{CURRENT}");
    if kind_of(shared, caller, &current)?.is_none() {
        return Ok(());
    }
    let base = format!("{trash}/{}", name_of(now));
    for attempt in 0..=ATTEMPTS {
        let target = if attempt == 0 { base.clone() } else { format!("{base}-{attempt}") };
        let operation = Rename2 {
            source: current.clone().into_bytes(),
            target: target.clone().into_bytes(),
            overwrite: false,
            to_trash: false,
        };
        let engine = &shared.engine;
        match engine.fence(engine.write(&operation, caller)).await {
            Ok(_) => {
                audit::rename(shared, caller, &current, &target);
                tracing::info!("Created trash checkpoint: {target}");
                return Ok(());
            }
            Err(Refusal::FileAlreadyExists(_)) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Err(Refusal::io(format!("Failed to checkpoint trash: {base}")))
}

/// The folder of a time, in the local zone: `yyMMddHHmmss`.
fn name_of(time_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(time_ms).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%y%m%d%H%M%S").to_string()
}

/// The time of a folder, milliseconds since 1970: twelve digits with seconds, or ten without; what follows does not count.
fn time_of(name: &str) -> Option<i64> {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let two = |at: usize| name.get(at..at + 2).and_then(|text| text.parse::<i8>().ok());
    let seconds = match digits {
        12.. => two(10)?,
        10 | 11 => 0,
        _ => return None,
    };
    let year = 2_000 + i16::from(two(0)?);
    let time = DateTime::new(year, two(2)?, two(4)?, two(6)?, two(8)?, seconds, 0).ok()?;
    Some(time.to_zoned(TimeZone::system()).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::table::PortKind;
    use crate::service::tests::world;
    use ops::write::mkdirs::Mkdirs;
    use ops::write::new_node::CreateModes;
    use vocab::Mode;

    #[test]
    fn names_of_times() {
        let now = 1_796_061_337_000;
        assert_eq!(time_of(&name_of(now)), Some(now));
        assert_eq!(time_of(&format!("{}-12", name_of(now))), Some(now));
        assert_eq!(time_of(&name_of(now)[..10]), Some(now - 37_000));
        for other in ["Current", "", "2611", "269930120934"] {
            assert_eq!(time_of(other), None, "{other}");
        }
        assert_eq!(Trash::new(0, 5, false, String::new()), None);
        let trash = Trash::new(10, 0, false, String::new()).unwrap();
        assert_eq!((trash.keep_ms, trash.every_ms), (600_000, 600_000));
    }

    #[tokio::test]
    async fn what_is_old_goes_and_what_is_new_is_set_aside() {
        let world = world::start(PortKind::Client);
        let (shared, caller) = (&world.shared, own_caller(&world.shared.engine));
        let now = shared.engine.now().wall.0;
        let modes = CreateModes { masked: Mode::new(0o755), unmasked: None };
        let mkdirs = async |path: String| {
            let operation = Mkdirs { path: path.into_bytes(), modes, create_parents: true };
            assert!(shared.engine.fence(shared.engine.write(&operation, &caller)).await.unwrap());
        };
        let trash = "/user/alice/.Trash";
        let (old, new) = (name_of(now - 601_000), name_of(now - 300_000));
        for name in [CURRENT, &old, &new, "mine"] {
            mkdirs(format!("{trash}/{name}/x")).await;
        }
        mkdirs("/user/bob".to_owned()).await;
        let emptier = Trash::new(10, 5, false, "/user".to_owned()).unwrap();
        emptier.round(shared).await;
        let names = || list(shared, &caller, trash).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(), [new.clone(), name_of(now), "mine".to_owned()]);
        mkdirs(format!("{trash}/{CURRENT}")).await;
        Trash { clean: true, ..emptier }.round(shared).await;
        assert_eq!(names(), [new, name_of(now), format!("{}-1", name_of(now))]);
    }
}
