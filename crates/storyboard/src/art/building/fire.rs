//! A volcano's smoke and, in an eruption, its lava and its glowing rocks.

use crate::art::effects::{Puffs, chance, smoke};
use crate::art::{Look, Moment};
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};
use crate::subject::Act;

const MOUTH: (f32, f32) = (50.0, 30.0);
const HOT: [u32; 3] = [0xff_5a1e, 0xff_9a34, 0xff_e08a];

fn erupts(m: &Moment) -> bool {
    m.act == Act::Burn
}

/// Smoke over the mouth; an eruption's is black and high.
pub(super) fn column(pen: &mut Pen, look: &Look, m: &Moment) {
    let (count, high, wide, dark) = if erupts(m) {
        (8, -52.0, 16.0, 0.85)
    } else {
        (5, -26.0, 8.0, 0.3)
    };
    if erupts(m) {
        pen.glow(MOUTH.0, MOUTH.1, 36.0, Rgb::hex(HOT[0]), 0.5);
    }
    for (nth, lean) in [-14.0, 6.0].into_iter().enumerate() {
        let puffs = Puffs {
            from: (MOUTH.0 + lean * 0.2, MOUTH.1 - 4.0),
            drift: (lean, high),
            radius: (5.0, wide),
            count,
            life_s: 4.2,
            colour: smoke(look, dark - 0.12 * nth as f32),
            alpha: 0.9,
            soft: false,
        };
        puffs.draw(pen, m.t + nth as f32 * 0.9);
    }
}

pub(super) fn eruption(pen: &mut Pen, m: &Moment) {
    if !erupts(m) {
        return;
    }
    streams(pen, m.t);
    bombs(pen, m.t);
    let pulse = 0.8 + 0.2 * (m.t * 7.0).sin();
    pen.glow(MOUTH.0, MOUTH.1 + 1.0, 16.0, Rgb::hex(HOT[2]), 0.7 * pulse);
}

/// Lava on the slopes; bright clots run down in it.
fn streams(pen: &mut Pen, t: f32) {
    const WAYS: [[(f32, f32); 6]; 3] = [
        [
            (45.0, 31.0),
            (42.0, 44.0),
            (43.0, 56.0),
            (36.0, 70.0),
            (37.0, 84.0),
            (30.0, 97.0),
        ],
        [
            (52.0, 31.5),
            (54.0, 46.0),
            (52.0, 60.0),
            (57.0, 74.0),
            (54.0, 86.0),
            (58.0, 97.0),
        ],
        [
            (58.0, 31.0),
            (62.0, 42.0),
            (69.0, 54.0),
            (72.0, 66.0),
            (82.0, 80.0),
            (86.0, 92.0),
        ],
    ];
    for (nth, way) in WAYS.iter().enumerate() {
        pen.stroke(way, 3.4, Rgb::hex(0xc8_3414));
        pen.stroke(way, 1.9, Rgb::hex(HOT[0]));
        let spans = way.len() as f32 - 1.0;
        for clot in 0..7_u32 {
            let share = (t * 0.22 + clot as f32 / 7.0 + nth as f32 * 0.13).rem_euclid(1.0);
            let at = |share: f32| {
                let along = share.min(0.999) * spans;
                let index = along as usize;
                let (a, b) = (way[index], way[index + 1]);
                let part = along - index as f32;
                (a.0 + (b.0 - a.0) * part, a.1 + (b.1 - a.1) * part)
            };
            let clot = [at(share), at(share + 0.045)];
            let fade = Ink::Flat(Rgb::hex(HOT[2]), 1.0 - 0.6 * share);
            pen.stroke(&clot, 1.1, fade);
        }
    }
}

/// Glowing rocks on parabolas, each with a short tail.
fn bombs(pen: &mut Pen, t: f32) {
    const COUNT: u32 = 22;
    const LIFE_S: f32 = 1.5;
    for nth in 0..COUNT {
        let turn = t / LIFE_S + nth as f32 / COUNT as f32;
        let age = turn.rem_euclid(1.0);
        let throw = (turn.floor() as i32 as u32).wrapping_mul(97) ^ (nth * 13);
        let aside = (chance(throw) - 0.5) * 74.0;
        let high = 34.0 + 30.0 * chance(throw.wrapping_add(1));
        let at = |age: f32| {
            let up = high * 4.0 * age * (1.0 - age) - 34.0 * age * age;
            (MOUTH.0 + aside * age, MOUTH.1 - up)
        };
        let colour = Rgb::hex(HOT[(nth % 3) as usize]).mix(Rgb::hex(0x8a_1c10), age * age);
        let size = 1.2 + 1.6 * chance(throw.wrapping_add(2));
        let alpha = ((1.0 - age) * 5.0).min(1.0);
        pen.stroke(
            &[at((age - 0.05).max(0.0)), at(age)],
            size,
            Ink::Flat(colour, alpha),
        );
    }
}
