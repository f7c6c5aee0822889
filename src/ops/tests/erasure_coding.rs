//! Erasure coding: policies, directories that have one, files made below them. Texts are those of a Java name node.

use super::*;
use crate::read::erasure_coding::{get_erasure_coding_policies, get_erasure_coding_policy};
use crate::read::file_info::get_file_info;
use crate::read::summary::get_content_summary;
use crate::status::StatusFlags;
use crate::write::append::Append;
use crate::write::attributes::SetReplication;
use crate::write::create::Create;
use crate::write::erasure_coding::*;
use vocab::BlockId;
use vocab::erasure_coding::PolicyState;

fn wish(codec: &str, data_units: u32, parity_units: u32, cell_size: u32) -> NewPolicy {
    NewPolicy { codec: codec.into(), data_units, parity_units, cell_size, options: vec![("k".into(), "v".into())] }
}

fn illegal<T>(text: &str) -> Result<T, Refusal> {
    Err(Refusal::HadoopIllegalArgument(text.into()))
}

impl World {
    fn set(&mut self, path: &str, policy: &str) -> Result<(), Refusal> {
        self.write(&superuser(), &SetErasureCodingPolicy { path: path.into(), policy: Some(policy.into()) })
    }
    fn unset(&mut self, path: &str) -> Result<(), Refusal> {
        self.write(&superuser(), &UnsetErasureCodingPolicy { path: path.into() })
    }
    fn enable(&mut self, name: &str) -> Result<(), Refusal> {
        self.write(&superuser(), &EnableErasureCodingPolicy { name: name.into() })
    }
    fn disable(&mut self, name: &str) -> Result<(), Refusal> {
        self.write(&superuser(), &DisableErasureCodingPolicy { name: name.into() })
    }
    fn in_effect(&self, path: &str) -> Option<String> {
        let found = self.view(&superuser(), |v| get_erasure_coding_policy(v, path.as_bytes())).expect("is told");
        found.map(|policy| policy.name.to_string())
    }
    fn state_of(&self, name: &str) -> PolicyState {
        let all = self.view(&superuser(), get_erasure_coding_policies).expect("are told");
        all.iter().find(|p| *p.name == *name).expect("is there").state
    }
    /// Replication, marks and policy of a file's status.
    fn told(&self, path: &str) -> (u16, u32, Option<String>) {
        self.view(&superuser(), |v| {
            let status = get_file_info(v, path.as_bytes()).expect("is told").expect("is there");
            let policy = status.erasure_coding.as_ref().map(|p| p.name.to_string());
            (status.replication, status.flags.0 & StatusFlags::ERASURE_CODED, policy)
        })
    }
}

#[test]
fn policies_are_added_each_for_itself() {
    let mut w = World::new();
    let policies = vec![
        wish("rs", 2, 1, 65_536),
        wish("lrc", 2, 1, 65_536),
        wish("rs", 14, 3, 65_536),
        wish("rs", 2, 1, 8 << 20),
        wish("rs", 2, 1, 65_536),
    ];
    let add = AddErasureCodingPolicies { policies };
    let who = w.fresh_ids(&superuser());
    let answers = w.write(&who, &add).expect("is answered");
    let first = answers[0].as_ref().expect("is added");
    assert_eq!((first.id, &*first.name, first.state), (64, "RS-2-1-64k", PolicyState::Disabled));
    let text = |i: usize| answers[i].clone().map(|p| p.name);
    assert_eq!(text(1), illegal("Codec name lrc is not supported"));
    assert_eq!(text(2), illegal("Number of data and parity blocks in an EC group 17 should not exceed maximum 16"));
    assert_eq!(text(3), illegal("Cell size 8388608 should not exceed maximum 4194304 bytes"));
    assert_eq!(text(4), Ok("RS-2-1-64k".into()), "what is there already is answered, and not logged again");
    assert_eq!(w.logged(), 1);
    assert_eq!(w.write(&who, &add).expect("is answered again")[0], answers[0]);
    w.settings.erasure_coding_user_defined = false;
    let answers = w.write(&superuser(), &AddErasureCodingPolicies { policies: vec![wish("xor", 2, 1, 1024)] });
    assert_eq!(
        answers.expect("is answered")[0],
        illegal("Addition of user defined erasure coding policy is disabled.")
    );
    let alice = w.write(&alice(), &add).expect_err("is no superuser");
    assert!(matches!(alice, Refusal::SuperuserRequired(_)), "{alice:?}");
    w.restart();
    assert_eq!(w.state_of("RS-2-1-64k"), PolicyState::Disabled);
}

#[test]
fn policies_are_enabled_disabled_and_removed() {
    let mut w = World::new();
    w.write(&superuser(), &AddErasureCodingPolicies { policies: vec![wish("rs", 2, 1, 65_536)] }).expect("is added");
    assert_eq!(w.state_of("RS-6-3-1024k"), PolicyState::Enabled, "the default one is");
    let logged = w.logged();
    w.enable("RS-6-3-1024k").expect("is enabled to last");
    assert_eq!(w.logged(), logged + 1);
    w.enable("RS-6-3-1024k").expect("is enabled");
    w.disable("RS-3-2-1024k").expect("is disabled");
    assert_eq!(w.logged(), logged + 1, "nothing changed");
    w.disable("RS-6-3-1024k").expect("is disabled");
    assert_eq!(w.state_of("RS-6-3-1024k"), PolicyState::Disabled);
    assert_eq!(w.enable("x"), illegal("The policy name x does not exist"));
    assert_eq!(w.disable("x"), illegal("The policy name x does not exist"));
    let remove = |name: &str| RemoveErasureCodingPolicy { name: name.into() };
    assert_eq!(w.write(&superuser(), &remove("x")), illegal("The policy name x does not exist"));
    let built_in = w.write(&superuser(), &remove("XOR-2-1-1024k"));
    assert_eq!(built_in, illegal("System erasure coding policy XOR-2-1-1024k cannot be removed"));
    w.enable("RS-2-1-64k").expect("is enabled");
    w.write(&superuser(), &remove("RS-2-1-64k")).expect("is removed");
    assert_eq!(w.state_of("RS-2-1-64k"), PolicyState::Removed);
}

#[test]
fn directories_have_the_nearest_policy() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d/e/r", 0o755).expect("is made");
    w.create("/d/f");
    let names = "Policy 'RS-3-2-1024k' does not match any enabled erasure coding policies: [RS-6-3-1024k]. An erasure coding policy can be enabled by enableErasureCodingPolicy API.";
    assert_eq!(w.set("/d", "RS-3-2-1024k"), illegal(names));
    assert_eq!(w.set("/x", "RS-6-3-1024k"), Err(Refusal::not_found("Path not found: /x")));
    let file = "Attempt to set an erasure coding policy for a file /d/f";
    assert_eq!(w.set("/d/f", "RS-6-3-1024k"), Err(Refusal::io(file)));
    let none = Refusal::NoErasureCodingPolicy("No erasure coding policy explicitly set on /d/e".into());
    w.set("/d", "RS-6-3-1024k").expect("is set");
    assert_eq!(w.unset("/d/e"), Err(none.clone()));
    assert_eq!(w.unset("//d/e/"), Err(none), "the path that it leads to");
    assert_eq!(w.unset("/d/f"), Err(Refusal::io("Cannot unset an erasure coding policy on a file /d/f")));
    assert_eq!(w.in_effect("/d/e/r").as_deref(), Some("RS-6-3-1024k"));
    assert_eq!(w.in_effect("/d/f"), None, "files keep what they were made with");
    w.enable("XOR-2-1-1024k").expect("is enabled");
    w.set("/d/e", "XOR-2-1-1024k").expect("is set");
    w.set("/d/e", "RS-6-3-1024k").expect("is replaced");
    w.set("/d/e/r", "Replication").expect("is set");
    assert_eq!(w.in_effect("/d/e/r"), None);
    assert_eq!(w.told("/d/e/r"), (0, 0, None));
    assert_eq!(w.told("/d/e"), (0, 4, Some("RS-6-3-1024k".into())));
    let summary = |w: &World, path: &str| {
        w.view(&superuser(), |v| get_content_summary(v, path.as_bytes())).expect("is told").erasure_coding_policy
    };
    assert_eq!((&*summary(&w, "/"), &*summary(&w, "/d")), ("", "RS-6-3-1024k"));
    assert_eq!((&*summary(&w, "/d/f"), &*summary(&w, "/d/e/r")), ("Replicated", "replication"));
    w.unset("/d/e").expect("is unset");
    w.restart();
    assert_eq!(w.in_effect("/d/e").as_deref(), Some("RS-6-3-1024k"));
    assert_eq!(w.in_effect("/d/e/r"), None);
}

#[test]
fn files_are_striped_below_a_policy_or_by_name() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d", 0o755).expect("is made");
    w.set("/d", "RS-6-3-1024k").expect("is set");
    w.create("/d/striped");
    assert_eq!(w.told("/d/striped"), (1, 4, Some("RS-6-3-1024k".into())));
    let create = |path: &str| Create { ..World::create_op(path, "c") };
    let replicated = Create { should_replicate: true, ..create("/d/replicated") };
    assert_eq!(w.write(&superuser(), &replicated).expect("is made").replication, 3);
    let named = Create { erasure_coding_policy: Some("RS-6-3-1024k".into()), ..create("/named") };
    assert_eq!(w.write(&superuser(), &named).expect("is made").flags.0 & StatusFlags::ERASURE_CODED, 4);
    let copies = Create { erasure_coding_policy: Some("replication".into()), ..create("/d/copies") };
    assert_eq!(w.write(&superuser(), &copies).expect("is made").erasure_coding, None);
    w.settings.block_size_min = 1024;
    let small = Create { block_size: 65_536, ..create("/d/small") };
    let text = "Specified block size (65536) is less than the cell size (1048576) of the erasure coding policy (ErasureCodingPolicy=[Name=RS-6-3-1024k, Schema=[ECSchema=[Codec=rs, numDataUnits=6, numParityUnits=3]], CellSize=1048576, Id=1]).";
    assert_eq!(w.write(&superuser(), &small), Err(Refusal::io(text)));
    let many = Create { replication: 1_000, ..create("/d/many") };
    assert!(w.write(&superuser(), &many).is_ok(), "the replication of a striped file is not looked at");
    let set = SetReplication { path: b"/d/striped".to_vec(), replication: 5 };
    assert_eq!(w.write(&superuser(), &set), Ok(false));
    let append = Append { path: b"/d/striped".to_vec(), client: "c".into(), new_block: false };
    let refusal = w.write(&superuser(), &append).expect_err("is refused");
    let text = "Append on EC file without new block is not supported. Use NEW_BLOCK create flag while appending file.";
    assert_eq!(refusal, Refusal::Unsupported(text.into()));
}

#[test]
fn a_striped_file_is_written_and_found_by_its_internal_blocks() {
    let mut w = World::with_datanodes(5);
    w.enable("RS-3-2-1024k").expect("is enabled");
    w.mkdirs(&superuser(), "/d", 0o755).expect("is made");
    w.set("/d", "RS-3-2-1024k").expect("is set");
    let id = w.open("/d/f", "c");
    let added = w.add_block("/d/f", id, "c", None).expect("is added").located;
    assert_eq!(added.block.id, BlockId(i64::MIN + 16));
    assert_eq!(added.indices.as_deref(), Some(&[0, 1, 2, 3, 4][..]));
    let written = Block { length: 3 << 20, ..added.block };
    let node_of = |w: &World, at: usize| {
        let target = w.state.blocks.target(added.locations[at].storage).expect("is there");
        let node = w.state.blocks.node(target.node).expect("is there");
        node.id.uuid.trim_start_matches("uuid-").parse::<u32>().expect("a number")
    };
    let nodes: Vec<u32> = (0..5).map(|at| node_of(&w, at)).collect();
    let internal = |index: usize| Block { id: BlockId(written.id.0 + index as i64), length: 1 << 20, ..written };
    w.received(nodes[4], internal(4));
    w.received(nodes[0], internal(0));
    assert_eq!(w.complete("/d/f", id, "c", Some(written)), Ok(false), "two of three blocks that have data");
    w.received(nodes[2], internal(2));
    assert_eq!(w.complete("/d/f", id, "c", Some(written)), Ok(true));
    let file = w.view(&superuser(), |v| crate::read::block_locations::get_block_locations(v, b"/d/f", 0, 1 << 30));
    let located = file.expect("is told");
    let group = &located.blocks.blocks[0].located;
    assert_eq!((located.blocks.file_length, group.indices.as_deref()), (3 << 20, Some(&[4, 0, 2][..])));
    let more = w.open("/d/g", "c");
    assert_eq!(w.add_block("/d/g", more, "c", None).expect("is added").located.block.id, BlockId(i64::MIN + 32));
    let few = w.write(
        &superuser(),
        &Create { erasure_coding_policy: Some("RS-6-3-1024k".into()), ..World::create_op("/h", "c") },
    );
    let refusal = w.add_block("/h", few.expect("is made").id, "c", None).expect_err("six nodes are needed");
    let text = "File /h could only be written to 5 of the 6 required nodes for RS-6-3-1024k. There are 5 datanode(s) running and 5 node(s) are excluded in this operation.";
    assert_eq!(refusal, Refusal::NoTarget(text.into()));
}
