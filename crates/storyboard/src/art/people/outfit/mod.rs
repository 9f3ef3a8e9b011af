//! Outfits: one row for each role, and several rows for roles whose people should differ. It names drawings and draws
//! none.

mod base;
mod everyday;
mod tales;
mod work;

use crate::subject::Subject;
pub(super) use base::{Outfit, Tint};

/// Row `nth` of `rows`, modulo their number.
fn pick<const N: usize>(rows: &[Outfit; N], nth: u8) -> Outfit {
    rows[usize::from(nth) % N]
}

/// `worn`, with other `hair` for every second person.
fn or(worn: Outfit, hair: &'static str, nth: u8) -> Outfit {
    pick(&[worn, Outfit { hair, ..worn }], nth)
}

/// The outfit of the `nth` person of `subject`.
pub(super) fn outfit(subject: Subject, nth: u8) -> Outfit {
    match subject {
        Subject::Man => pick(&everyday::MEN, nth),
        Subject::Woman => pick(&everyday::WOMEN, nth),
        Subject::Boy => pick(&everyday::BOYS, nth),
        Subject::Girl => pick(&everyday::GIRLS, nth),
        Subject::Baby => everyday::BABY,
        Subject::OldMan => everyday::OLD_MAN,
        Subject::OldWoman => everyday::OLD_WOMAN,
        Subject::Umbrella => Outfit {
            held: "umbrella",
            ..pick(&everyday::PEOPLE, nth % 2)
        },
        Subject::King => tales::KING,
        Subject::Queen => tales::QUEEN,
        Subject::Wizard => tales::WIZARD,
        Subject::Witch => tales::WITCH,
        Subject::Knight => tales::KNIGHT,
        Subject::Pirate => tales::PIRATE,
        Subject::Bride => tales::BRIDE,
        Subject::Clown => tales::CLOWN,
        Subject::Mermaid => tales::MERMAID,
        Subject::Monk => tales::MONK,
        Subject::Skier => work::SKIER,
        Subject::Cyclist => work::CYCLIST,
        Subject::Rider => work::RIDER,
        Subject::Diver => work::DIVER,
        Subject::Fisherman => work::FISHERMAN,
        Subject::Dancer => work::DANCER,
        Subject::Chef => work::CHEF,
        Subject::Farmer => work::FARMER,
        Subject::Firefighter => work::FIREFIGHTER,
        Subject::Police => work::POLICE,
        Subject::Soldier => work::SOLDIER,
        Subject::Astronaut => work::ASTRONAUT,
        Subject::Robot => work::ROBOT,
        Subject::Musician => or(work::MUSICIAN, "curly", nth),
        Subject::Painter => or(work::PAINTER, "crop", nth),
        Subject::Doctor => or(work::DOCTOR, "crop", nth),
        _ => pick(&everyday::PEOPLE, nth),
    }
}
