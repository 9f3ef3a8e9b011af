//! Power loss: one run of the service under load is recorded, and the service is started on disks as a
//! cut at random moments of it may leave them. What it had answered before the cut holds there.

mod image;
mod load;

use std::path::Path;
use std::sync::{Mutex, OnceLock};

use kinora_e2e::DataFolder;
use kinora_e2e::replay::{Disk, Entry, Loss, Op, Recording};

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

/// Half of them take all that they can, half of them some of it.
fn cuts(recording: &Recording, count: u64, dice: &mut Dice) -> Vec<Cut> {
    // Nobody has been told anything before the first answer.
    let first = recording.answers[0].at;
    let span = (recording.moments - first) as u64;
    let mut cuts: Vec<Cut> = (0..count)
        .map(|number| Cut {
            moment: first + dice.index(span as usize),
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

fn write(image: &[Entry], folder: &Path) {
    for entry in image {
        entry.write(folder).unwrap();
    }
}

/// The images of `cuts` on which something does not hold; as many at a time as there are cores.
fn judged(recorded: &Recorded, recording: &Recording, cuts: &[Cut]) -> Vec<Wrong> {
    let witness = Witness::of(recorded);
    let next = Mutex::new((Disk::default(), cuts.iter()));
    let wrong = Mutex::new(Vec::new());
    let judge = || {
        loop {
            let (cut, image) = {
                let mut next = next.lock().unwrap();
                let Some(cut) = next.1.next() else { return };
                (*cut, image(recording, &mut next.0, *cut))
            };
            let folder = DataFolder::with_key(&recorded.key);
            write(&image, &folder.path());
            let found = witness.judge(&folder, cut.moment);
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
    let folder = tempfile::Builder::new().prefix("kinora-power-loss-");
    let folder = folder.tempdir().unwrap().keep().join("data");
    write(&first.image, &folder);
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
    let cuts = cuts(
        &recorded.recording,
        asked("KINORA_POWER", IMAGES),
        &mut Dice(seed),
    );
    let wrong = judged(recorded, &recorded.recording, &cuts);
    println!("{} images, {} wrong", cuts.len(), wrong.len());
    assert!(wrong.is_empty(), "seed {seed}:\n{}", shown(&wrong));
}

/// A service that forgets syncs is found out: the recording is judged without them.
#[test]
fn a_service_that_forgets_to_sync_loses_what_it_answered() {
    let recorded = recorded();
    let recording = &recorded.recording;
    let last = recording.answers.last().unwrap().at;
    let worst = Cut {
        moment: last + 1,
        torn: None,
    };
    let of_database = |path: &str| path.starts_with("kinora.db");
    let forgotten: [(&str, &dyn Fn(usize, &str) -> bool, &str); 3] = [
        (
            "the log, in the second half",
            &|at, path| at > recording.moments / 2 && of_database(path),
            "is lost",
        ),
        (
            "the bytes of results",
            &|_, path| path.starts_with("results/staging/"),
            "is not whole",
        ),
        (
            "the folders of results",
            &|_, path| path.starts_with("results/objects"),
            "is not whole",
        ),
    ];
    for (what, is_forgotten, wanted) in forgotten {
        let without = recording
            .without(|at, op| matches!(op, Op::Sync { path, .. } if is_forgotten(at, path)));
        let wrong = judged(recorded, &without, &[worst]);
        let found: Vec<&String> = wrong.iter().flat_map(|one| &one.found).collect();
        let lost = found.iter().filter(|one| one.contains(wanted)).count();
        println!("without syncs of {what}: {lost} {wanted}");
        assert!(lost > 0, "{what}: {found:#?}");
    }
}
