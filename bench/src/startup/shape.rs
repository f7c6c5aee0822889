//! The tree of a generated namespace, by arithmetic: inodes are numbered in order of their creation, and everything about one follows from its
//! number and the seed.
//!
//! `/user/hive/warehouse/db_00000.db/table_00000/dt=2015-01-01/part-00000-1234abcd.c000`

/// Leaf directories in a table, tables in a database.
const LEAVES: usize = 200;
const TABLES: usize = 20;
/// The first id: that of the root.
const ROOT: u64 = 16_385;
/// The mean gap between live ids of an aged namespace.
const GAP: u64 = 20;
/// Directories above the databases: root, user, hive, warehouse.
const TOP: [&str; 4] = ["", "user", "hive", "warehouse"];
/// Most entries of the large directory.
const LARGE: u64 = 1_000_000;

/// One inode.
pub struct Node {
    pub index: u64,
    pub id: u64,
    pub name: String,
    pub is_directory: bool,
    pub owner: u64,
    pub random: u64,
}

/// A directory: its own number, how many numbers follow that are its files, and the directories in it.
#[derive(Clone, Default)]
struct Directory {
    index: u64,
    files: u64,
    /// Depth: 0 to 3 top, 4 database, 5 table, 6 leaf.
    level: u8,
    /// Which of its kind.
    number: u32,
}

/// A namespace.
pub struct Shape {
    directories: Vec<Directory>,
    inodes: u64,
    /// Ids by number, of an aged namespace.
    ids: Vec<u64>,
    /// Numbers in the order in which Java would store them, of an aged namespace.
    order: Vec<u32>,
    /// Whether each file has one block.
    single: bool,
}

/// A good mix of a number (splitmix64).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Shape {
    /// So many files.
    pub fn new(files: u64, aged: bool) -> Shape {
        let mut shape = Shape { directories: Vec::new(), inodes: 0, ids: Vec::new(), order: Vec::new(), single: false };
        for (level, _) in TOP.iter().enumerate() {
            shape.directory(level as u8, 0, 0);
        }
        let mut left = files;
        if aged {
            let large = (files / 5).min(LARGE);
            shape.directory(6, u32::MAX, large);
            left -= large;
        }
        let mut leaf = 0;
        while left > 0 {
            if leaf % (LEAVES * TABLES) == 0 {
                shape.directory(4, (leaf / (LEAVES * TABLES)) as u32, 0);
            }
            if leaf % LEAVES == 0 {
                shape.directory(5, (leaf / LEAVES) as u32, 0);
            }
            // 50 in the mean
            let here = (1 + mix(leaf as u64) % 99).min(left);
            shape.directory(6, leaf as u32, here);
            left -= here;
            leaf += 1;
        }
        if aged {
            shape.age();
        }
        shape
    }

    /// The same with one block for each file.
    pub fn single(files: u64, aged: bool) -> Shape {
        Shape { single: true, ..Shape::new(files, aged) }
    }

    fn directory(&mut self, level: u8, number: u32, files: u64) {
        self.directories.push(Directory { index: self.inodes, files, level, number });
        self.inodes += 1 + files;
    }

    /// Thins the ids, and puts records in the order of the buckets of Java's inode map, which goes round about as often as a large one does.
    fn age(&mut self) {
        let mut id = ROOT;
        self.ids = (0..self.inodes)
            .map(|index| {
                let this = id;
                id += 1 + mix(index ^ 0xa6ed) % (2 * GAP - 1);
                this
            })
            .collect();
        let mask = (self.inodes.next_power_of_two() >> 1) - 1;
        self.order = (0..self.inodes as u32).collect();
        let ids = &self.ids;
        self.order.sort_unstable_by_key(|index| {
            let id = ids[*index as usize];
            (id & mask, id)
        });
    }

    pub fn aged(&self) -> bool {
        !self.ids.is_empty()
    }
    pub fn inodes(&self) -> u64 {
        self.inodes
    }
    pub fn last_id(&self) -> u64 {
        self.id(self.inodes - 1)
    }
    fn id(&self, index: u64) -> u64 {
        if self.aged() { self.ids[index as usize] } else { ROOT + index }
    }
    pub fn id_of(&self, directory: usize) -> u64 {
        self.id(self.directories[directory].index)
    }

    fn holder(&self, index: u64) -> usize {
        self.directories.partition_point(|d| d.index <= index) - 1
    }
    fn node(&self, index: u64, holder: usize) -> Node {
        let directory = &self.directories[holder];
        let random = mix(index);
        // a multiple of a hundred is a file of one block
        let random = if self.single { random - random % 100 } else { random };
        let is_directory = directory.index == index;
        let name = match (is_directory, directory.level) {
            (true, level @ 0..4) => TOP[usize::from(level)].to_owned(),
            (true, 4) => format!("db_{:05}.db", directory.number),
            (true, 5) => format!("table_{:05}", directory.number),
            (true, _) if directory.number == u32::MAX => "large".to_owned(),
            (true, _) => leaf_name(directory.number as usize % LEAVES),
            (false, _) => {
                let at = self.place(directory, index - directory.index - 1);
                format!("part-{at:07}-{:06x}.c000", random & 0xff_ffff)
            }
        };
        let owner = u64::from(directory.number) / (LEAVES * TABLES) as u64;
        Node { index, id: self.id(index), name, is_directory, owner, random }
    }
    /// Place in the order of names of the `at`th file of a directory: the same in a fresh namespace, scattered in an aged one.
    fn place(&self, directory: &Directory, at: u64) -> u64 {
        if self.aged() { at * stride(directory.files) % directory.files } else { at }
    }

    /// Files.
    pub fn files(&self) -> u64 {
        self.directories.iter().map(|d| d.files).sum()
    }
    /// Directories, the root included.
    pub fn directory_count(&self) -> u64 {
        self.directories.len() as u64
    }
    /// So many files taken at random, some perhaps twice, with their paths.
    pub fn sample(&self, count: u64) -> Vec<(Node, String)> {
        let files = (0..).map(|n| mix(n ^ 0x5a3_791e) % self.inodes);
        let files = files.map(|index| (index, self.holder(index)));
        let is_file = |(index, holder): &(u64, usize)| self.directories[*holder].index != *index;
        let with_path = |(index, holder)| {
            let (node, folder) = (self.node(index, holder), self.folder(holder));
            let path = format!("{folder}/{}", node.name);
            (node, path)
        };
        if self.files() == 0 {
            return Vec::new();
        }
        files.filter(is_file).take(count as usize).map(with_path).collect()
    }
    /// The path of a directory that holds files.
    fn folder(&self, holder: usize) -> String {
        let directory = &self.directories[holder];
        if directory.number == u32::MAX {
            return "/large".to_owned();
        }
        let leaf = directory.number as usize;
        let (table, database) = (leaf / LEAVES, leaf / (LEAVES * TABLES));
        let top = TOP.join("/");
        format!("{top}/db_{database:05}.db/table_{table:05}/{}", leaf_name(leaf % LEAVES))
    }

    /// All inodes in the order of the INODE section.
    pub fn stored(&self) -> impl Iterator<Item = Node> + '_ {
        let (mut at, mut holder) = (0, 0);
        std::iter::from_fn(move || {
            if at == self.inodes {
                return None;
            }
            let index = if self.aged() { u64::from(self.order[at as usize]) } else { at };
            if self.aged() {
                holder = self.holder(index);
            } else if self.directories.get(holder + 1).is_some_and(|next| next.index <= index) {
                holder += 1;
            }
            at += 1;
            Some(self.node(index, holder))
        })
    }
    /// Directories in the order of the INODE_DIR section.
    pub fn stored_directories(&self) -> Vec<usize> {
        if !self.aged() {
            return (0..self.directories.len()).collect();
        }
        let of = |index: u32| {
            let holder = self.holder(u64::from(index));
            (self.directories[holder].index == u64::from(index)).then_some(holder)
        };
        self.order.iter().filter_map(|index| of(*index)).collect()
    }
    /// Ids of the children of a directory in order of their names.
    pub fn children(&self, at: usize, each: &mut dyn FnMut(u64)) {
        let directory = &self.directories[at];
        let below = |level: u8| {
            let later = self.directories[at + 1..].iter();
            later.take_while(move |d| d.level >= level).filter(move |d| d.level == level)
        };
        match directory.level {
            0..3 => {
                // the large directory lies in the root and comes first
                if directory.level == 0
                    && let Some(large) = self.directories.iter().find(|d| d.number == u32::MAX)
                {
                    each(self.id(large.index));
                }
                each(self.id(directory.index + 1));
            }
            3 => below(4).for_each(|d| each(self.id(d.index))),
            4 => below(5).for_each(|d| each(self.id(d.index))),
            5 => below(6).for_each(|d| each(self.id(d.index))),
            _ => {
                let mut files = vec![0; directory.files as usize];
                (0..directory.files).for_each(|f| files[self.place(directory, f) as usize] = directory.index + 1 + f);
                files.iter().for_each(|index| each(self.id(*index)));
            }
        }
    }
}

fn leaf_name(day: usize) -> String {
    format!("dt=2021-{:02}-{:02}", 1 + day / 28, 1 + day % 28)
}

/// A number without a common factor with `files`, so that multiples of it reach every place.
fn stride(files: u64) -> u64 {
    let common = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (7919..).find(|n| common(*n, files.max(1)) == 1).unwrap_or(1)
}
