//! Purpose: start-up of a whole name node, ours and Java's on the same directory in the same run: load, save, memory.
//! Called by: the command line (`bench startup`).
//! Calls: the two programs through their start commands, their web pages, their RPC port, /proc.
//! Never: links the product: it is measured from outside, as a rival is.
//! Invariants: each start gets a directory of its own (the image is a second name of one file); a start counts only if the name node tells
//! the generator's figures, answers status and blocks of 10,000 files taken at random, and counts what was made.

mod ask;
mod generate;
mod page;
pub mod process;
mod report;
mod restart;
mod shape;

use ask::Expected;
use generate::Figures;
pub use generate::{Generated, Profile, blocks, generate, generate_single, single_blocks, version};
use process::{Side, Started};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What is measured and how often.
struct Options {
    /// Sizes, one after the other.
    files: Vec<u64>,
    profiles: Vec<Profile>,
    image: Option<PathBuf>,
    rounds: usize,
    java: bool,
    save: bool,
    /// Whether a restart from the arena file is measured too.
    arena: bool,
    /// Heap of the Java name node, in megabytes.
    heap: Option<u64>,
    json: Option<PathBuf>,
    html: Option<PathBuf>,
    work: PathBuf,
}

pub const USAGE: &str =
    "bench startup [--files N[,N...]] [--profile fresh|aged|both] [--image FILE] [--rounds N] [--no-java] [--no-save] [--arena]
                     [--heap MEGABYTES] [--json FILE] [--html FILE] [--work FOLDER]";

fn options(words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        files: vec![1_000_000],
        profiles: vec![Profile::Fresh],
        image: None,
        rounds: 1,
        java: true,
        save: true,
        arena: false,
        heap: None,
        json: None,
        html: None,
        work: std::env::temp_dir().join(format!("bench-startup-{}", std::process::id())),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &String| text.replace('_', "").parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--files" => {
                options.files = value()?.split(',').map(|n| number(&n.to_owned())).collect::<Result<_, _>>()?
            }
            "--rounds" => options.rounds = number(value()?)? as usize,
            "--heap" => options.heap = Some(number(value()?)?),
            "--image" => options.image = Some(value()?.into()),
            "--json" => options.json = Some(value()?.into()),
            "--html" => options.html = Some(value()?.into()),
            "--work" => options.work = value()?.into(),
            "--no-java" => options.java = false,
            "--no-save" => options.save = false,
            "--arena" => options.arena = true,
            "--profile" => {
                options.profiles = match value()?.as_str() {
                    "fresh" => vec![Profile::Fresh],
                    "aged" => vec![Profile::Aged],
                    "both" => vec![Profile::Fresh, Profile::Aged],
                    other => return Err(format!("no profile {other}")),
                }
            }
            other => return Err(format!("{other} is not known\n{USAGE}")),
        }
    }
    Ok(options)
}

/// One start.
pub struct Sample {
    pub side: Side,
    pub started: Started,
}

/// All starts on one image.
pub struct Series {
    pub name: String,
    pub figures: Figures,
    pub md5sum_s: f64,
    pub samples: Vec<Sample>,
    /// Of ours, from the arena file.
    pub restart: Option<Started>,
}

/// Runs `measure`. Its folder `work` goes afterwards, also if it failed, unless the arguments `words` asked for a folder of one's own (`--work`), in which
/// other things may lie.
///
/// # Errors
/// Those of `measure`.
pub fn in_folder<T>(work: &Path, words: &[String], measure: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let done = measure();
    if !words.iter().any(|word| word == "--work") {
        _ = fs::remove_dir_all(work);
    }
    done
}

/// Runs `bench startup`.
pub fn run(words: &[String]) -> Result<(), String> {
    let options = options(words)?;
    let all = in_folder(&options.work, words, || measure(&options))?;
    for series in &all {
        println!("{}", report::table(series));
    }
    if let Some(path) = &options.json {
        fs::write(path, report::json(&all)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if let Some(path) = &options.html {
        fs::write(path, page::html(&all)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

fn measure(options: &Options) -> Result<Vec<Series>, String> {
    let mut all = Vec::new();
    if let Some(image) = &options.image {
        let source = options.work.join("source");
        let figures = copy(image, &source)?;
        all.push(series(options, "image", &source, figures, None)?);
        return Ok(all);
    }
    for profile in &options.profiles {
        for files in &options.files {
            let source = options.work.join(format!("source-{}-{files}", profile.name()));
            let Generated { figures, expected } =
                generate(&source, *files, *profile).map_err(|e| format!("{}: {e}", source.display()))?;
            all.push(series(options, profile.name(), &source, figures, Some(&expected))?);
            fs::remove_dir_all(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        }
    }
    Ok(all)
}

/// A directory around a copy of an image and its digest; VERSION comes from beside it.
fn copy(image: &Path, folder: &Path) -> Result<Figures, String> {
    let (current, beside) = (folder.join("current"), image.parent().unwrap_or(Path::new(".")));
    let name = image.file_name().and_then(|n| n.to_str()).ok_or("an image has a name")?.to_owned();
    let txid =
        name.strip_prefix("fsimage_").and_then(|n| n.parse::<u64>().ok()).ok_or("an image is called fsimage_N")?;
    let failed = |e: std::io::Error| format!("{}: {e}", image.display());
    fs::create_dir_all(&current).map_err(failed)?;
    for file in [name.clone(), format!("{name}.md5"), "VERSION".to_owned()] {
        fs::copy(beside.join(&file), current.join(&file)).map_err(|e| format!("{file}: {e}"))?;
    }
    fs::write(current.join("seen_txid"), format!("{txid}\n")).map_err(failed)?;
    let image_bytes = fs::metadata(image).map_err(failed)?.len();
    Ok(Figures { image_bytes, ..Figures::default() })
}

fn series(
    options: &Options,
    name: &str,
    source: &Path,
    figures: Figures,
    expected: Option<&Expected>,
) -> Result<Series, String> {
    let md5sum_s = md5sum(source)?;
    let mut samples = Vec::new();
    for round in 0..options.rounds {
        let mut sides = vec![Side::Ironroot];
        if options.java {
            sides.insert(round % 2, Side::Java);
        }
        for side in sides {
            let folder = options.work.join(format!("{name}-{}-{round}", side.name()));
            let heap = options.heap.unwrap_or_else(|| report::heap_mb(&figures));
            let started = process::start(side, source, &folder, heap, options.save, expected)
                .map_err(|e| format!("{}: {e}", side.name()))?;
            fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            let told = (started.inodes, started.blocks);
            if figures.inodes > 0 && told != (figures.inodes, figures.blocks) {
                let wanted = (figures.inodes, figures.blocks);
                return Err(format!("{} tells {told:?} inodes and blocks, not {wanted:?}", side.name()));
            }
            samples.push(Sample { side, started });
        }
    }
    let mut restart = None;
    if options.arena {
        let folder = options.work.join(format!("{name}-arena"));
        restart = Some(restart::measure(source, &folder, expected)?);
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let told = samples.first().map(|s| (s.started.inodes, s.started.blocks)).unwrap_or_default();
    let figures = Figures { inodes: told.0, blocks: told.1, ..figures };
    Ok(Series { name: name.to_owned(), figures, md5sum_s, samples, restart })
}

/// Wall time of `md5sum` of the image, which is in the page cache afterwards.
fn md5sum(source: &Path) -> Result<f64, String> {
    let current = source.join("current");
    let entries = fs::read_dir(&current).map_err(|e| format!("{}: {e}", current.display()))?;
    let is_image = |path: &PathBuf| {
        path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("fsimage_")) && path.extension().is_none()
    };
    let image = entries.flatten().map(|e| e.path()).find(is_image).ok_or("no image")?;
    let mut best = f64::INFINITY;
    for _ in 0..2 {
        let since = Instant::now();
        let output = Command::new("md5sum").arg(&image).output().map_err(|e| format!("md5sum: {e}"))?;
        if !output.status.success() {
            return Err("md5sum fails".into());
        }
        best = best.min(since.elapsed().as_secs_f64());
    }
    Ok(best)
}
