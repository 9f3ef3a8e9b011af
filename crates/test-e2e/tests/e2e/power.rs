//! Power loss: one run of the service under load is recorded, and the service is started on disks as a
//! cut at random moments of it may leave them. What it had answered before the cut holds there.

mod image;
mod load;

use std::sync::{Mutex, OnceLock};

use kinora_test_e2e::replay::{Disk, Entry, Loss, Op, Recording};

use self::image::Witness;
use self::load::Recorded;
use crate::dice::Dice;
use crate::kills::asked;

/// Images of one run; `KINORA_POWER` asks for another number, `KINORA_POWER_SEED` for other ones.
const IMAGES: u64 = 20;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// One recording serves all tests.
fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(load::record)
}

/// A moment to cut the power at, and the seed of what gets lost; `None`: all that is not certain.
#[derive(Clone, Copy, Debug)]
struct Cut {
    moment: usize,
    torn: Option<u64>,
}

/// Half of them lose all that they can, half of them some of it; half of either come right behind an
/// answer that promises something: no moment is worse for an answer that came too early.
fn cuts(recording: &Recording, promises: &[usize], count: u64, dice: &mut Dice) -> Vec<Cut> {
    // Nobody has been told anything before the first promise.
    let first = promises[0] + 1;
    let mut cuts: Vec<Cut> = (0..count)
        .map(|number| Cut {
            moment: match number % 4 {
                0 | 1 => promises[dice.index(promises.len())] + 1,
                _ => first + dice.index(recording.moments - first),
            },
            torn: (number % 2 == 1).then(|| 1 + dice.below(u64::MAX - 1)),
        })
        .collect();
    cuts.sort_by_key(|cut| cut.moment);
    cuts
}

/// An image on which something does not hold.
struct Wrong {
    cut: Cut,
    image: Vec<Entry>,
    found: Vec<String>,
}

/// The image that a cut leaves. `disk` has seen no later moment.
fn image(recording: &Recording, disk: &mut Disk, cut: Cut) -> Vec<Entry> {
    disk.advance(recording, cut.moment);
    let mut dice = Dice(cut.torn.unwrap_or(1));
    let mut chance = |bound| dice.below(bound);
    disk.after(match cut.torn {
        Some(_) => Loss::Some(&mut chance),
        None => Loss::All,
    })
}

/// The images of `cuts`, which are in order, on which something does not hold; as many at a time as there
/// are cores.
fn judged(witness: &Witness<'_>, recording: &Recording, cuts: &[Cut]) -> Vec<Wrong> {
    let next = Mutex::new((Disk::default(), cuts.iter()));
    let wrong = Mutex::new(Vec::new());
    let judge = || {
        loop {
            let (cut, image) = {
                let mut next = next.lock().unwrap();
                let Some(cut) = next.1.next() else { return };
                (*cut, image(recording, &mut next.0, *cut))
            };
            let found = witness.judge(&image, cut.moment);
            if !found.is_empty() {
                wrong.lock().unwrap().push(Wrong { cut, image, found });
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(judge);
        }
    });
    wrong.into_inner().unwrap()
}

/// Another run is recorded at other moments: an image that failed is kept, to be looked at.
fn shown(wrong: &[Wrong]) -> String {
    let Some(first) = wrong.first() else {
        return String::new();
    };
    let folder = tempfile::TempDir::with_prefix("kinora-power-loss-").unwrap();
    let folder = folder.keep().join("data");
    for entry in &first.image {
        entry.write(&folder).unwrap();
    }
    let all = wrong
        .iter()
        .map(|one| format!("{:?}: {:#?}", one.cut, one.found));
    let all: Vec<String> = all.collect();
    format!(
        "{}\nthe first is kept as {}",
        all.join("\n"),
        folder.display()
    )
}

#[test]
fn p01_p02_p04_p06_what_was_answered_before_a_power_loss_holds_after_it() {
    let seed = SEED ^ asked("KINORA_POWER_SEED", 0);
    println!("seed {seed}");
    let recorded = recorded();
    let witness = Witness::of(recorded);
    let cuts = cuts(
        &recorded.recording,
        &witness.promises(),
        asked("KINORA_POWER", IMAGES),
        &mut Dice(seed),
    );
    let wrong = judged(&witness, &recorded.recording, &cuts);
    println!("{} images, {} wrong", cuts.len(), wrong.len());
    assert!(wrong.is_empty(), "seed {seed}:\n{}", shown(&wrong));
}

/// Syncs that a service could forget, and what is found then.
struct Forgotten<'f> {
    what: &'f str,
    /// By moment and path.
    syncs: &'f dyn Fn(usize, &str) -> bool,
    /// The answer behind which the power is cut.
    answer: usize,
    found: &'f str,
}

/// A service that forgets syncs is found out: the recording is judged without them.
#[test]
fn a_service_that_forgets_to_sync_loses_what_it_answered() {
    let recorded = recorded();
    let (witness, recording) = (Witness::of(recorded), &recorded.recording);
    let last = *witness.promises().last().unwrap();
    let (answered, task) = witness.last_accepted();
    let written = first_write_of(recording, task);
    assert!(written < answered, "{task} was answered and not written");
    // The database, its log, and the files beside them.
    let of_store = |path: &str| path.starts_with("kinora.");
    for forgotten in [
        Forgotten {
            what: "the store, in the second half",
            syncs: &|at, path| at > recording.moments / 2 && of_store(path),
            answer: last,
            found: "is lost",
        },
        // As if its answer had not waited for the commit.
        Forgotten {
            what: "the store, between a task's write and its answer",
            syncs: &|at, path| (written..answered).contains(&at) && of_store(path),
            answer: answered,
            found: &format!("{task} is lost"),
        },
        Forgotten {
            what: "the data folder",
            syncs: &|_, path| path.is_empty(),
            answer: last,
            found: "everything is lost",
        },
        Forgotten {
            what: "the bytes of results",
            syncs: &|_, path| path.starts_with("results/staging/"),
            answer: last,
            found: "is not whole",
        },
        Forgotten {
            what: "the folders of results",
            syncs: &|_, path| path.starts_with("results/objects/videos"),
            answer: last,
            found: "is not whole",
        },
    ] {
        assert_found(&witness, recording, &forgotten);
    }
}

/// The moment in which a task's row is written for the first time.
fn first_write_of(recording: &Recording, task: &str) -> usize {
    let names_task = |bytes: &[u8]| {
        bytes
            .windows(task.len())
            .any(|part| part == task.as_bytes())
    };
    let writes = recording.ops.iter().find_map(|(at, op)| match op {
        Op::Write { bytes, .. } if names_task(bytes) => Some(*at),
        _ => None,
    });
    writes.unwrap_or_else(|| panic!("{task} was never written"))
}

fn assert_found(witness: &Witness<'_>, recording: &Recording, forgotten: &Forgotten<'_>) {
    let without = recording
        .without(|at, op| matches!(op, Op::Sync { path, .. } if (forgotten.syncs)(at, path)));
    assert!(
        without.ops.len() < recording.ops.len(),
        "{} was never synced",
        forgotten.what
    );
    let worst = Cut {
        moment: forgotten.answer + 1,
        torn: None,
    };
    let wrong = judged(witness, &without, &[worst]);
    let found: Vec<&String> = wrong.iter().flat_map(|one| &one.found).collect();
    let fitting = found.iter().filter(|one| one.contains(forgotten.found));
    println!(
        "without syncs of {}: {} {}",
        forgotten.what,
        fitting.clone().count(),
        forgotten.found
    );
    assert!(fitting.count() > 0, "{}: {found:#?}", forgotten.what);
}
