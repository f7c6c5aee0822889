//! Calls about the whole: coding policies, cache pools and directives, tokens, encryption zones, what administrators ask and order.

use super::generate::{Generator, quoted};
use super::pair::Pair;
use super::side::SAVE;
use super::writers::node_id;

const POOLS: [&str; 5] = ["p1", "p2", "p3", "\u{e9}", "with space"];
/// Calls without arguments that change nothing here.
const QUESTIONS: [&str; 17] = [
    "msync",
    "getServerDefaults",
    "getStoragePolicies",
    "getErasureCodingPolicies",
    "getErasureCodingCodecs",
    "getFsStats",
    "getFsReplicatedBlockStats",
    "getFsECBlockGroupStats",
    "getHAServiceState",
    "getSlowDatanodeReport",
    "getDataEncryptionKey",
    "getCurrentEditLogTxid",
    "upgradeStatus",
    "finalizeUpgrade",
    "refreshNodes",
    "rollEdits",
    "getSnapshottableDirListing",
];
/// While there is no key server; each must be refused or empty.
const OF_ZONES: [&str; 4] =
    ["createEncryptionZone", "reencryptEncryptionZone", "listEncryptionZones", "listReencryptionStatus"];

impl Generator {
    /// One call about the whole.
    pub(super) fn whole(&mut self, pair: &mut Pair) {
        match self.dice.below(100) {
            0..=31 => self.question(pair),
            32..=53 => self.caches(pair),
            54..=65 => self.policies(pair),
            66..=72 => self.tokens(pair),
            73..=80 => self.zones(pair),
            81 => self.safe_mode(pair),
            _ => self.orders(pair),
        }
    }

    fn ask(&mut self, pair: &mut Pair, method: &'static str, request: String) {
        let user = self.user();
        let call = self.call(user, method, request, &[]);
        self.run(pair, call);
    }

    fn question(&mut self, pair: &mut Pair) {
        let method = self.pick(&QUESTIONS);
        self.ask(pair, method, String::new());
    }

    fn orders(&mut self, pair: &mut Pair) {
        let (method, request) = match self.dice.below(10) {
            0 => {
                let arg = self.pick(&["true", "false", "check", "", "x"]);
                ("restoreFailedStorage", format!("arg: \"{arg}\""))
            }
            1 => {
                let bytes = self.pick(&[0, 1, 1 << 20, 1 << 40, i64::MAX, -1]);
                ("setBalancerBandwidth", format!("bandwidth: {bytes}"))
            }
            2 => ("metaSave", "filename: \"facts\"".to_owned()),
            3 => ("rollingUpgrade", format!("action: {}", self.pick(&["QUERY", "QUERY", "FINALIZE"]))),
            4 => ("getDatanodeReport", format!("type: {}", self.report())),
            5 => ("getDatanodeStorageReport", format!("type: {}", self.report())),
            6 => ("setSafeMode", format!("action: SAFEMODE_GET checked: {}", self.one_in(2))),
            7 => ("saveNamespace", "timeWindow: 0 txGap: 0".to_owned()),
            8 => ("getEditsFromTxid", "txid: 4611686018427387904".to_owned()),
            _ => {
                // of a block that there is not
                let block =
                    format!("poolId: \"§P§\" blockId: 77 generationStamp: 1001 numBytes: {}", self.dice.below(9));
                let place = format!("locs {{ id {{ {} }} }} storageIDs: \"DS-1-0\"", node_id(1));
                let token = "blockToken { identifier: \"\" password: \"\" kind: \"\" service: \"\" }";
                ("reportBadBlocks", format!("blocks {{ b {{ {block} }} offset: 0 {place} corrupt: false {token} }}"))
            }
        };
        self.ask(pair, method, request);
    }

    fn report(&mut self) -> &'static str {
        self.pick(&["ALL", "LIVE", "DEAD", "DECOMMISSIONING", "ENTERING_MAINTENANCE", "IN_MAINTENANCE"])
    }

    /// Some calls in safe mode, and an image.
    fn safe_mode(&mut self, pair: &mut Pair) {
        for (number, (method, request)) in SAVE.into_iter().enumerate() {
            let _ = pair.ask("hdfs", method, request);
            for _ in 0..(if number < 2 { self.dice.below(5) } else { 0 }) {
                // a writer's calls wait for reports, which count otherwise here
                let call = match self.dice.below(4) {
                    0 => self.names(),
                    1 => self.attributes(),
                    2 => self.rare(),
                    _ => self.reads(),
                };
                self.run(pair, call);
            }
        }
    }

    fn tokens(&mut self, pair: &mut Pair) {
        if self.tokens == 0 || self.one_in(3) {
            let renewer = self.pick(&["hdfs", "alice", "bob", "", "alice/x@REALM"]);
            let user = self.user();
            if pair.ask(user, "getDelegationToken", &format!("renewer: \"{renewer}\"")).is_ok() {
                self.tokens = pair.tokens.len();
            }
            return;
        }
        let method = if self.one_in(3) { "cancelDelegationToken" } else { "renewDelegationToken" };
        let token = match self.dice.below(12) {
            0 => "identifier: \"\" password: \"\" kind: \"HDFS_DELEGATION_TOKEN\" service: \"\"".to_owned(),
            1 => "identifier: \"x\" password: \"x\" kind: \"x\" service: \"x\"".to_owned(),
            _ => {
                let recent = self.dice.below(self.tokens.min(6));
                format!("§T{}§", self.tokens - 1 - recent)
            }
        };
        self.ask(pair, method, format!("token {{ {token} }}"));
    }

    fn zones(&mut self, pair: &mut Pair) {
        let path = quoted(&self.path());
        let method = self.pick(&OF_ZONES);
        let request = match method {
            "createEncryptionZone" => format!("src: {path} keyName: \"{}\"", self.pick(&["k", ""])),
            "reencryptEncryptionZone" => {
                format!("action: {} zone: {path}", self.pick(&["START_REENCRYPT", "CANCEL_REENCRYPT"]))
            }
            _ => format!("id: {}", self.pick(&[0, 1, -1, 16_386])),
        };
        self.ask(pair, method, request);
    }

    fn policies(&mut self, pair: &mut Pair) {
        let known = ["RS-3-2-1024k", "RS-10-4-1024k", "XOR-2-1-1024k", "RS-LEGACY-6-3-1024k"];
        let made = ["XOR-3-1-64k", "RS-4-2-128k", "RS-2-2-64k", "x", "", "replication"];
        let name = if self.one_in(2) { self.pick(&known) } else { self.pick(&made) };
        match self.dice.below(8) {
            0 => {
                let codec = self.pick(&["rs", "xor", "RS", "none", ""]);
                // Hadoop takes a policy without data or parity units too, which no file can have; ours refuses it
                let (data, parity) = (self.pick(&[2, 3, 4]), self.pick(&[1, 2]));
                let cell = self.pick(&[65_536, 131_072, 1_000, 0, 1 << 30]);
                let schema = format!("schema {{ codecName: \"{codec}\" dataUnits: {data} parityUnits: {parity} }}");
                let parts = [format!("name: \"{name}\""), schema, format!("cellSize: {cell}")];
                let left_out = self.dice.below(30);
                let parts = parts.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, part)| &**part);
                let parts = parts.collect::<Vec<_>>().join(" ");
                let request = format!("ecPolicies {{ {parts} id: {} }}", self.pick(&[0, 0, 0, 1, 70]));
                self.ask(pair, "addErasureCodingPolicies", request);
            }
            1 => self.ask(pair, "removeErasureCodingPolicy", format!("ecPolicyName: \"{name}\"")),
            2 => {
                let other = self.pick(&known);
                let request = self.pick(&["", "p"]);
                let request = if request.is_empty() { String::new() } else { format!("policies: \"{other}\"") };
                self.ask(pair, "getECTopologyResultForPolicies", format!("policies: \"{name}\" {request}"));
            }
            3..=5 => self.ask(pair, "enableErasureCodingPolicy", format!("ecPolicyName: \"{name}\"")),
            _ => self.ask(pair, "disableErasureCodingPolicy", format!("ecPolicyName: \"{name}\"")),
        }
    }

    fn pool(&mut self) -> String {
        match self.dice.below(30) {
            0 => String::new(),
            1 => "n".repeat(300),
            _ => self.pick(&POOLS).to_owned(),
        }
    }

    fn expiration(&mut self) -> &'static str {
        self.pick(&[
            "",
            "",
            " expiration { millis: 30000000 isRelative: true }",
            " expiration { millis: -1 isRelative: true }",
            " expiration { millis: 2305843009213693951 isRelative: true }",
            " expiration { millis: 10000000000000 isRelative: false }",
            " expiration { millis: 9223372036854775807 isRelative: true }",
        ])
    }

    /// A directive as a request has it.
    fn directive(&mut self, whole: bool) -> String {
        let mut out = String::new();
        if whole || self.one_in(2) {
            out += &format!(" path: {}", quoted(&self.path()));
        }
        if whole || self.one_in(3) {
            out += &format!(" pool: {}", quoted(&self.pool()));
        }
        if self.one_in(3) {
            out += &format!(" replication: {}", self.pick(&[1, 2, 3, 0, 70_000]));
        }
        out + self.expiration()
    }

    fn caches(&mut self, pair: &mut Pair) {
        let flags = self.pick(&["", "", " cacheFlags: 1"]);
        // few enough that most are there
        let id = self.pick(&[0, -1, i64::MAX]);
        let id = if self.one_in(10) { id } else { self.directives as i64 - self.dice.below(8) as i64 };
        match self.dice.below(20) {
            0..=2 => {
                let (pool, info) = (self.pool(), self.pool_info());
                self.ask(pair, "addCachePool", format!("info {{ poolName: {}{info} }}", quoted(&pool)));
            }
            3..=5 => {
                let (pool, info) = (self.pool(), self.pool_info());
                self.ask(pair, "modifyCachePool", format!("info {{ poolName: {}{info} }}", quoted(&pool)));
            }
            6 | 7 => {
                let pool = self.pool();
                self.ask(pair, "removeCachePool", format!("poolName: {}", quoted(&pool)));
            }
            8 | 9 => {
                let after = if self.one_in(2) { String::new() } else { self.pool() };
                self.ask(pair, "listCachePools", format!("prevPoolName: {}", quoted(&after)));
            }
            10..=12 => {
                let (user, info) = (self.user(), self.directive(true));
                if let Ok(answer) = pair.ask(user, "addCacheDirective", &format!("info {{{info} }}{flags}")) {
                    self.directives = super::generate::number(&answer, &["id"]).unwrap_or(0);
                }
            }
            13 | 14 => {
                let info = self.directive(false);
                self.ask(pair, "modifyCacheDirective", format!("info {{ id: {id}{info} }}{flags}"));
            }
            15 | 16 => self.ask(pair, "removeCacheDirective", format!("id: {id}")),
            _ => {
                let filter = if self.one_in(2) { String::new() } else { self.directive(false) };
                let after = if self.one_in(3) { id } else { 0 };
                self.ask(pair, "listCacheDirectives", format!("prevId: {after} filter {{{filter} }}"));
            }
        }
    }

    fn pool_info(&mut self) -> String {
        let mut out = String::new();
        if self.one_in(3) {
            out += &format!(" ownerName: \"{}\"", self.pick(&["alice", "bob", ""]));
        }
        if self.one_in(3) {
            out += &format!(" groupName: \"{}\"", self.pick(&["staff", "ops", ""]));
        }
        if self.one_in(2) {
            out += &format!(" mode: {}", self.pick(&[0o755, 0o777, 0o700, 0, 0o222]));
        }
        if self.one_in(3) {
            out += &format!(" limit: {}", self.pick(&[0, 1 << 20, 1 << 30, -1, i64::MAX]));
        }
        if self.one_in(4) {
            out += &format!(" maxRelativeExpiry: {}", self.pick(&[0, 60_000, 40_000_000, -1, i64::MAX >> 2]));
        }
        if self.one_in(5) {
            // Hadoop's image does not keep it: after one every pool has 1
            out += " defaultReplication: 1";
        }
        out
    }
}
