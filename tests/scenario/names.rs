//! Commands that make, move and remove names.

use super::Printed;
use super::line::Line;
use super::world::World;
use ops::write::concat::Concat;
use ops::write::create::Create;
use ops::write::delete::Delete;
use ops::write::mkdirs::Mkdirs;
use ops::write::new_node::CreateModes;
use ops::write::rename::{Rename, Rename2};
use ops::write::snapshots::{AllowSnapshot, CreateSnapshot, DeleteSnapshot, DisallowSnapshot, RenameSnapshot};
use ops::write::symlink::CreateSymlink;
use vocab::Mode;

fn modes(line: &Line, usual: u16) -> CreateModes {
    let unmasked = line.option("unmasked").map(|text| u16::from_str_radix(text, 8).expect("an octal mode"));
    CreateModes { masked: Mode::new(line.mode(usual)), unmasked: unmasked.map(Mode::new) }
}

/// What a create asks: `create PATH [overwrite] [append-only] [alone] [lazy] replication= block-size= mode= policy= ec=`.
fn create(line: &Line) -> Create {
    Create {
        path: line.path(0),
        modes: modes(line, 0o644),
        client: line.client(),
        create: !line.has("overwrite-only"),
        overwrite: line.has("overwrite") || line.has("overwrite-only"),
        create_parents: !line.has("alone"),
        replication: line.option_number("replication").unwrap_or(3),
        block_size: line.option_number("block-size").unwrap_or(1_000),
        lazy_persist: line.has("lazy"),
        should_replicate: line.has("replicated"),
        erasure_coding_policy: line.option("ec").map(Into::into),
        storage_policy: line.option("policy").map(Into::into),
        versions: vec![2],
        data_key: super::secrets::data_key(line),
    }
}

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    Some(match line.name.as_str() {
        "mkdir" => {
            let modes = modes(line, 0o755);
            world.ask_whether(line, &Mkdirs { path: line.path(0), modes, create_parents: !line.has("alone") })
        }
        "create" => world.write(line, &create(line)).map(|status| format!("inode {}", status.id)),
        "rename" => world.ask_whether(line, &Rename { source: line.path(0), target: line.path(1) }),
        "rename2" => {
            let (overwrite, to_trash) = (line.has("overwrite"), line.has("trash"));
            world.ask(line, &Rename2 { source: line.path(0), target: line.path(1), overwrite, to_trash })
        }
        "delete" => {
            let answer = world.ask_whether(line, &Delete { path: line.path(0), recursive: line.has("recursive") });
            world.reclaim();
            answer
        }
        "concat" => world.ask(line, &Concat { target: line.path(0), sources: line.paths(1) }),
        "symlink" => {
            let (modes, create_parents) = (modes(line, 0o777), line.has("parents"));
            world.ask(line, &CreateSymlink { link: line.path(0), target: line.path(1), modes, create_parents })
        }
        "allow-snapshot" => world.ask(line, &AllowSnapshot { path: line.path(0) }),
        "disallow-snapshot" => world.ask(line, &DisallowSnapshot { path: line.path(0) }),
        "snapshot" => {
            let made = world.write(line, &CreateSnapshot { path: line.path(0), name: line.path(1) });
            made.map(|path| path.to_string())
        }
        "rename-snapshot" => {
            world.ask(line, &RenameSnapshot { path: line.path(0), old: line.path(1), new: line.path(2) })
        }
        "delete-snapshot" => {
            let answer = world.ask(line, &DeleteSnapshot { path: line.path(0), name: line.path(1) });
            world.reclaim();
            answer
        }
        _ => return None,
    })
}
