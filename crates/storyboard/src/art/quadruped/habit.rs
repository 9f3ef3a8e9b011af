//! The habits of each animal: how it runs, sits and sleeps, and how low its mouth reaches. One row for each kind
//! that differs from a hoofed animal.

use super::gait::{BOUND, GALLOP, Gait, HOP, TROT, WALK};
use crate::subject::Subject;

/// How an animal sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sit {
    /// On its haunches, fore legs straight.
    Haunches,
    /// On its bottom, trunk upright, fore paws free.
    Upright,
    /// Lies down with its head up.
    Down,
    /// It always sits.
    Always,
}

/// How an animal sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleep {
    /// Curled up with its tail around it: the part `curl` replaces body and legs.
    Curled,
    /// On its belly, head on the ground.
    Down,
    /// In its usual pose with closed eyes.
    Still,
}

/// The habits of an animal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Habit {
    pub(super) walk: Gait,
    pub(super) run: Gait,
    pub(super) sit: Sit,
    pub(super) sleep: Sleep,
    /// Angle of the trunk when it sits, degrees up.
    pub(super) raise: f32,
}

const HOOFED: Habit = Habit {
    walk: WALK,
    run: GALLOP,
    sit: Sit::Down,
    sleep: Sleep::Down,
    raise: 0.0,
};
const PAWED: Habit = Habit {
    sit: Sit::Haunches,
    sleep: Sleep::Curled,
    raise: 40.0,
    ..HOOFED
};
const SLOW: Habit = Habit {
    run: TROT,
    ..HOOFED
};
const CRAWLER: Habit = Habit {
    run: TROT,
    sit: Sit::Always,
    sleep: Sleep::Still,
    ..HOOFED
};

pub(super) fn habit(subject: Subject) -> Habit {
    match subject {
        Subject::Cat | Subject::Dog | Subject::Fox | Subject::Wolf => PAWED,
        Subject::Lion | Subject::Tiger => Habit {
            sleep: Sleep::Down,
            ..PAWED
        },
        Subject::Bear | Subject::PolarBear => Habit {
            raise: 48.0,
            sleep: Sleep::Down,
            sit: Sit::Upright,
            ..PAWED
        },
        Subject::Panda => Habit {
            run: TROT,
            raise: 58.0,
            sleep: Sleep::Down,
            sit: Sit::Upright,
            ..PAWED
        },
        Subject::Monkey => Habit {
            raise: 52.0,
            sleep: Sleep::Down,
            sit: Sit::Upright,
            ..PAWED
        },
        Subject::Elephant
        | Subject::Giraffe
        | Subject::Rhino
        | Subject::Hippo
        | Subject::Camel
        | Subject::Pig
        | Subject::Dinosaur
        | Subject::Dragon => SLOW,
        Subject::Rabbit | Subject::Mouse => Habit {
            walk: BOUND,
            run: BOUND,
            sit: Sit::Always,
            sleep: Sleep::Curled,
            raise: 0.0,
        },
        Subject::Frog => Habit {
            walk: BOUND,
            run: BOUND,
            ..CRAWLER
        },
        Subject::Kangaroo | Subject::Squirrel => Habit {
            walk: HOP,
            run: HOP,
            ..CRAWLER
        },
        Subject::Hedgehog
        | Subject::Turtle
        | Subject::Crocodile
        | Subject::Snake
        | Subject::Snail => CRAWLER,
        _ => HOOFED,
    }
}
