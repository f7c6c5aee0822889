//! The `ironroot` binary: an HDFS NameNode.

mod cli;
mod config;
mod node;
mod tools;

/// Many threads allocate and free answers of all sizes: an allocator whose fragmentation stays bounded.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
