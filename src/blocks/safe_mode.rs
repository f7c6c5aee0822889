//! Safe mode: closed until enough blocks are reported, by hand, or for want of disk (Hadoop's `BlockManagerSafeMode` and the two flags of
//! `FSNamesystem`).

use crate::{Blocks, Settings};
use vocab::time::{MonotonicMs, Now};

/// Where start-up stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Startup {
    /// Thresholds are not reached.
    Pending,
    /// They are; the extension runs.
    Extension,
    /// Start-up is over.
    #[default]
    Off,
}

/// State of safe mode.
#[derive(Clone, Debug, Default)]
pub struct SafeMode {
    startup: Startup,
    manual: bool,
    resources_low: bool,
    /// Complete blocks.
    total: i64,
    /// Those of them with enough replicas.
    safe: i64,
    threshold: i64,
    ratio: f32,
    /// Safe blocks that are enough to look for those with too few replicas.
    queues_threshold: i64,
    queues_ratio: f32,
    datanodes_min: u32,
    extension_ms: u64,
    reached: MonotonicMs,
    entered: MonotonicMs,
    bytes_in_future: u64,
    bytes_in_future_of_groups: u64,
    live: u32,
}

const AUTOMATIC: &str = "Safe mode will be turned off automatically ";

impl SafeMode {
    /// Enters start-up safe mode with this many complete blocks.
    pub(crate) fn activate(&mut self, settings: &Settings, total: u64, now: Now) {
        *self = SafeMode {
            startup: Startup::Pending,
            manual: self.manual,
            resources_low: self.resources_low,
            ratio: settings.safe_threshold,
            queues_ratio: settings.queues_threshold,
            datanodes_min: settings.safe_datanodes_min,
            extension_ms: settings.safe_extension_ms,
            entered: now.monotonic,
            ..SafeMode::default()
        };
        self.set_total(total as i64);
    }

    fn set_total(&mut self, total: i64) {
        self.total = total;
        // Quirk: safe_threshold_is_single_precision: Hadoop multiplies floats
        self.threshold = (total as f32 * self.ratio) as i64;
        self.queues_threshold = (total as f32 * self.queues_ratio) as i64;
    }

    /// Whether the name node is in safe mode for any reason.
    pub fn is_on(&self) -> bool {
        self.startup != Startup::Off || self.manual || self.resources_low
    }
    /// Whether start-up is not over: reports are not to be trusted for deletions.
    pub fn is_startup(&self) -> bool {
        self.startup != Startup::Off
    }
    /// Where start-up stands.
    pub fn startup(&self) -> Startup {
        self.startup
    }
    /// Whether blocks are being counted.
    pub(crate) fn counts(&self) -> bool {
        self.startup != Startup::Off
    }
    /// Blocks with enough replicas, and all that count.
    pub fn blocks(&self) -> (u64, u64) {
        (self.safe.max(0) as u64, self.total.max(0) as u64)
    }
    /// Enters by an administrator's order.
    pub fn enter_manual(&mut self) {
        self.manual = true;
    }
    /// Enters or leaves for want of disk.
    pub fn set_resources_low(&mut self, low: bool) {
        self.resources_low = low;
    }
    /// Whether disks are too full.
    pub fn resources_low(&self) -> bool {
        self.resources_low
    }
    /// Bytes of replicas from the future that were reported.
    pub fn bytes_in_future(&self) -> u64 {
        self.bytes_in_future
    }
    /// Those of them that are of internal blocks of striped groups.
    pub fn bytes_in_future_of_groups(&self) -> u64 {
        self.bytes_in_future_of_groups
    }
    pub(crate) fn add_bytes_in_future(&mut self, bytes: u64, striped: bool) {
        self.bytes_in_future += bytes;
        self.bytes_in_future_of_groups += if striped { bytes } else { 0 };
    }
    /// A block became safe, or stopped being so.
    pub(crate) fn adjust_safe(&mut self, by: i64) {
        self.safe += by;
    }
    /// Blocks were added or removed, `safe` of them safe.
    pub(crate) fn adjust_total(&mut self, by: i64, safe: i64) {
        self.safe += safe;
        self.set_total(self.total + by);
    }
    /// How long safe mode has been on.
    pub fn since(&self) -> MonotonicMs {
        self.entered
    }

    fn reached(&self) -> bool {
        self.safe >= self.threshold && self.live >= self.datanodes_min
    }

    /// Leaves at an administrator's order. `false`, and nothing changes, when replicas from the future would be lost and `force` is not
    /// given.
    pub(crate) fn leave(&mut self, force: bool) -> bool {
        if self.bytes_in_future > 0 && !force {
            return false;
        }
        if force {
            (self.bytes_in_future, self.bytes_in_future_of_groups) = (0, 0);
        }
        self.manual = false;
        self.resources_low = false;
        self.startup = Startup::Off;
        true
    }

    /// The text that clients and administrators read, without the host name.
    pub fn status(&self, now: MonotonicMs) -> String {
        const HAND: &str = "Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off.";
        const DISK: &str = "Resources are low on NN. Please add or free up more resources. NOTE:  If you turn off safe mode before \
                            adding resources, the NN will immediately return to safe mode. ";
        if self.resources_low {
            return DISK.to_owned();
        }
        if self.manual {
            return format!("It was turned on manually. {HAND}");
        }
        self.startup_status(now)
    }

    fn startup_status(&self, now: MonotonicMs) -> String {
        let (safe, total, ratio) = (self.safe, self.total, self.ratio);
        let enough = safe >= self.threshold;
        let mut text = if enough {
            format!("The reported blocks {safe} has reached the threshold {ratio:.4} of total blocks {total}. ")
        } else {
            format!(
                "The reported blocks {safe} needs additional {} blocks to reach the threshold {ratio:.4} of total blocks {total}.\n",
                self.threshold - safe
            )
        };
        let (live, min) = (self.live, self.datanodes_min);
        text += &match (min > 0, enough) {
            (false, _) => "The minimum number of live datanodes is not required. ".to_owned(),
            (true, false) => "The number of live datanodes is not calculated \
                              since reported blocks hasn't reached the threshold. "
                .to_owned(),
            (true, true) if live < min => format!(
                "The number of live datanodes {live} needs an additional {} live datanodes to reach the minimum number {min}.\n",
                min - live
            ),
            (true, true) => format!("The number of live datanodes {live} has reached the minimum number {min}. "),
        };
        if self.bytes_in_future > 0 {
            return text + &future_warning(self.bytes_in_future);
        }
        let seconds = self.extension_left(now) / 1_000;
        text += &match self.startup {
            Startup::Pending => format!("{AUTOMATIC}once the thresholds have been reached."),
            Startup::Extension => format!("In safe mode extension. {AUTOMATIC}in {seconds} seconds."),
            Startup::Off => format!("{AUTOMATIC}soon."),
        };
        text
    }

    fn extension_left(&self, now: MonotonicMs) -> u64 {
        self.extension_ms.saturating_sub(now.since(self.reached))
    }
}

fn future_warning(bytes: u64) -> String {
    format!(
        "Name node detected blocks with generation stamps in future. This means that Name node metadata is inconsistent. This \
         can happen if Name node metadata files have been manually replaced. Exiting safe mode will cause loss of {bytes} \
         byte(s). Please restart name node with right metadata or use \"hdfs dfsadmin -safemode forceExit\" if you \
         are certain that the NameNode was started with the correct FsImage and edit logs. If you encountered this during \
         a rollback, it is safe to exit with -safemode forceExit."
    )
}

impl Blocks {
    /// Looks whether start-up safe mode can go on to its extension, or end. To be called about once a second and after reports.
    pub fn safe_mode_check(&mut self, now: Now) {
        self.tick_clock(now);
        self.safe_mode.live = self.live_count() as u32;
        let mode = &mut self.safe_mode;
        match mode.startup {
            Startup::Off => {}
            Startup::Pending if mode.reached() => {
                mode.startup = Startup::Extension;
                mode.reached = now.monotonic;
                if mode.extension_ms == 0 || mode.total == 0 {
                    self.try_end_startup();
                }
            }
            Startup::Pending => {}
            // blocks may have gone again, but Hadoop's extension runs on; it only does not end before they are back
            Startup::Extension if mode.extension_left(now.monotonic) == 0 && mode.reached() => self.try_end_startup(),
            Startup::Extension => {}
        }
        if self.safe_mode.is_startup() && self.safe_mode.safe >= self.safe_mode.queues_threshold {
            self.begin_queues_once();
        }
    }

    /// What need not be waited for at all, at the very start: no extension then, as in Hadoop.
    pub(crate) fn end_startup_if_reached(&mut self) {
        self.safe_mode.live = self.live_count() as u32;
        if self.safe_mode.reached() {
            self.try_end_startup();
        }
    }

    fn try_end_startup(&mut self) {
        if self.safe_mode.bytes_in_future > 0 {
            return;
        }
        self.safe_mode.startup = Startup::Off;
        self.begin_queues_once();
    }

    /// They may have begun in safe mode.
    fn begin_queues_once(&mut self) {
        if !self.populating_queues() {
            self.begin_queues();
        }
    }

    /// Leaves safe mode at an administrator's order; `false` where that was refused because of replicas from the future.
    pub fn leave_safe_mode(&mut self, force: bool) -> bool {
        let startup = self.safe_mode.is_startup();
        if !self.safe_mode.leave(force) {
            return false;
        }
        if startup {
            self.begin_queues_once();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(total: u64, safe: i64) -> SafeMode {
        let mut mode = SafeMode::default();
        mode.activate(&Settings::default(), total, Now::default());
        mode.adjust_safe(safe);
        mode
    }

    /// T16: what a client reads after a restart without DataNodes.
    #[test]
    fn refusal_text_of_start_up_clickhouse_24117() {
        assert_eq!(
            mode(1000, 0).status(MonotonicMs(0)),
            "The reported blocks 0 needs additional 999 blocks to reach the threshold 0.9990 of total blocks 1000.\n\
             The minimum number of live datanodes is not required. \
             Safe mode will be turned off automatically once the thresholds have been reached."
        );
    }

    #[test]
    fn status_in_extension() {
        let mut m = mode(2, 2);
        m.startup = Startup::Extension;
        m.reached = MonotonicMs(10_000);
        assert_eq!(
            m.status(MonotonicMs(12_500)),
            "The reported blocks 2 has reached the threshold 0.9990 of total blocks 2. \
             The minimum number of live datanodes is not required. \
             In safe mode extension. Safe mode will be turned off automatically in 27 seconds."
        );
    }

    #[test]
    fn safe_threshold_is_single_precision() {
        let m = mode(100_000_007, 0);
        assert_eq!(m.threshold, (100_000_007i64 as f32 * 0.999f32) as i64);
    }
}
