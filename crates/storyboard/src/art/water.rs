//! What is at home in or by the water: boats, fish, whales, lighthouses.

use tiny_skia::Transform;

use super::super::colour::Rgb;
use super::super::pen::{Ink, Pen, smooth, svg};
use super::Look;

pub(super) fn boat(pen: &mut Pen, look: &Look) {
    pen.stroke(&[(50.0, 80.0), (50.0, 6.0)], 1.3, look.dark);
    let sail = svg("M52 9 Q76 42 85 72 Q66 75 52 72 Z");
    pen.fill(sail.clone(), look.main);
    pen.fill(
        sail,
        Ink::Line([
            (84.0, 60.0, Rgb::BLACK, 0.22),
            (52.0, 30.0, Rgb::WHITE, 0.12),
        ]),
    );
    let jib = svg("M48 16 Q40 46 17 73 Q34 76 48 72 Z");
    pen.fill(jib.clone(), look.pale);
    pen.fill(
        jib,
        Ink::Line([
            (20.0, 60.0, Rgb::BLACK, 0.16),
            (48.0, 30.0, Rgb::BLACK, 0.0),
        ]),
    );
    pen.shape(&[(50.0, 6.0), (50.0, 11.0), (60.0, 8.5)], look.main);
    pen.fill(
        svg("M10 79 Q50 83 92 77 Q86 93 72 95 L30 95 Q15 92 10 79 Z"),
        look.dark,
    );
    pen.fill(
        svg("M10 79 Q50 83 92 77 L90.6 81 Q50 87 11.4 83 Z"),
        look.pale,
    );
}

pub(super) fn fish(pen: &mut Pen, look: &Look, t: f32) {
    const SCHOOL: [(f32, f32, f32); 11] = [
        (54.0, 50.0, 1.0),
        (32.0, 42.0, 0.8),
        (36.0, 61.0, 0.85),
        (74.0, 40.0, 0.75),
        (77.0, 59.0, 0.8),
        (14.0, 52.0, 0.65),
        (18.0, 34.0, 0.5),
        (55.0, 30.0, 0.55),
        (57.0, 71.0, 0.6),
        (90.0, 49.0, 0.55),
        (20.0, 71.0, 0.5),
    ];
    for (index, (x, y, size)) in SCHOOL.into_iter().enumerate() {
        let phase = index as f32 * 1.9;
        let (dx, dy) = (
            1.6 * (t * 0.9 + phase).sin(),
            1.3 * (t * 1.1 + phase * 1.3).sin(),
        );
        let wag = (t * 7.0 + phase).sin();
        let onto = Transform::from_translate(x + dx, y + dy).pre_scale(size, size);
        let colour = if index % 4 == 1 { look.trim } else { look.main };
        pen.within(onto, |pen| {
            pen.shape(
                &[
                    (-6.0, 0.0),
                    (-12.0, -4.6 + wag * 1.6),
                    (-10.4, wag),
                    (-12.0, 4.6 + wag * 1.6),
                ],
                colour.lift(-0.08),
            );
            pen.fill(svg("M9 0 C6 -5 -2 -6 -8 0 C-2 6 6 5 9 0 Z"), colour);
            pen.fill(
                svg("M9 0 C6 -5 -2 -6 -8 0 C-2 -1 5 -1 9 0 Z"),
                Ink::Flat(Rgb::WHITE, 0.14),
            );
            pen.circle(5.4, -1.0, 0.8, look.dark);
        });
    }
}

/// A point of a whale's body at rest, where its beating tail carries it.
fn bent(t: f32, x: f32, y: f32) -> (f32, f32) {
    let share = ((40.0 - x) / 40.0).clamp(0.0, 1.2);
    (x, y + (t * 1.15).sin() * 9.0 * share * share)
}

fn flukes(pen: &mut Pen, look: &Look, t: f32) {
    let fluke = bent(t, 2.0, 47.0);
    let lift = (t * 1.15).sin() * 4.0;
    let flukes = [
        fluke,
        (fluke.0 - 7.0, fluke.1 - 11.0 + lift),
        (fluke.0 - 13.0, fluke.1 - 12.0 + lift * 1.4),
        (fluke.0 - 8.0, fluke.1 - 1.0),
        (fluke.0 - 12.0, fluke.1 + 8.0 + lift * 1.4),
        (fluke.0 - 5.0, fluke.1 + 6.0 + lift),
    ];
    pen.fill(smooth(&flukes), look.main.lift(-0.05));
}

pub(super) fn whale(pen: &mut Pen, look: &Look, t: f32) {
    let at = |x: f32, y: f32| bent(t, x, y);
    flukes(pen, look, t);
    let body = [
        at(0.0, 46.0),
        at(16.0, 42.0),
        at(34.0, 35.0),
        (54.0, 30.0),
        (76.0, 31.0),
        (92.0, 39.0),
        (98.0, 49.0),
        (93.0, 58.0),
        (76.0, 66.0),
        (56.0, 66.0),
        at(34.0, 58.0),
        at(16.0, 50.0),
        at(0.0, 49.0),
    ];
    pen.fill(smooth(&body), look.main);
    let belly = [
        (97.5, 52.0),
        (90.0, 53.0),
        (72.0, 55.0),
        (52.0, 58.0),
        at(32.0, 56.0),
        at(36.0, 58.8),
        (56.0, 65.6),
        (76.0, 65.6),
        (92.6, 58.0),
    ];
    pen.fill(smooth(&belly), look.pale);
    for n in 0..6 {
        let y = 55.6 + n as f32 * 1.7;
        pen.stroke(
            &[(90.0 - n as f32 * 2.5, y), (60.0, y + 1.2)],
            0.35,
            look.main.mix(look.pale, 0.4),
        );
    }
    pen.fill(
        smooth(&body),
        Ink::Line([
            (60.0, 30.0, Rgb::WHITE, 0.16),
            (60.0, 66.0, Rgb::BLACK, 0.24),
        ]),
    );
    let stroke = (t * 0.8).sin() * 4.0;
    pen.fill(
        smooth(&[
            (70.0, 59.0),
            (62.0, 61.0),
            (50.0, 76.0 + stroke),
            (54.0, 77.0 + stroke),
            (69.0, 66.0),
        ]),
        look.main.lift(-0.07),
    );
    pen.circle(85.0, 49.0, 1.0, look.dark);
    pen.stroke(&[(97.0, 51.5), (88.0, 52.6), (82.0, 52.0)], 0.5, look.dark);
}

pub(super) fn lighthouse(pen: &mut Pen, look: &Look, t: f32) {
    if look.lit {
        for (turn, side) in [(0.0, 1.0), (0.0, -1.0_f32)] {
            // A beam sweeping around seems to lengthen, shorten and change sides.
            let sweep = (t * 0.8 + turn).cos() * side;
            let reach = 215.0 * sweep;
            if sweep > 0.02 {
                let fade = [
                    (50.0, 13.0, look.lamp, 0.42 * sweep.sqrt()),
                    (50.0 + reach, 13.0, look.lamp, 0.0),
                ];
                let spread = 16.0 * sweep + 2.0;
                pen.shape(
                    &[
                        (50.0, 11.5),
                        (50.0 + reach, 13.0 - spread),
                        (50.0 + reach, 13.0 + spread),
                        (50.0, 14.5),
                    ],
                    Ink::Line(fade),
                );
            } else if sweep < -0.02 {
                let fade = [
                    (50.0, 13.0, look.lamp, 0.42 * (-sweep).sqrt()),
                    (50.0 + reach, 13.0, look.lamp, 0.0),
                ];
                let spread = 16.0 * -sweep + 2.0;
                pen.shape(
                    &[
                        (50.0, 11.5),
                        (50.0 + reach, 13.0 - spread),
                        (50.0 + reach, 13.0 + spread),
                        (50.0, 14.5),
                    ],
                    Ink::Line(fade),
                );
            }
        }
        pen.glow(50.0, 13.0, 22.0, look.lamp, 0.8);
    }
    let tower = svg("M43 22 L57 22 L62 98 L38 98 Z");
    pen.fill(tower.clone(), look.pale);
    for (top, bottom) in [(30.0, 43.0), (56.0, 69.0), (82.0, 92.0)] {
        let half = |y: f32| 7.0 + (y - 22.0) * 5.0 / 76.0;
        pen.shape(
            &[
                (50.0 - half(top), top),
                (50.0 + half(top), top),
                (50.0 + half(bottom), bottom),
                (50.0 - half(bottom), bottom),
            ],
            look.main,
        );
    }
    pen.fill(
        tower,
        Ink::Line([(62.0, 60.0, Rgb::BLACK, 0.4), (46.0, 60.0, Rgb::BLACK, 0.0)]),
    );
    pen.rect(40.0, 19.6, 20.0, 2.6, look.dark);
    pen.rect(
        44.6,
        9.0,
        10.8,
        10.8,
        if look.lit { look.lamp } else { look.pale },
    );
    pen.rect(49.4, 9.0, 1.2, 10.8, look.dark);
    pen.fill(svg("M43 9.4 Q50 0 57 9.4 Z"), look.main.lift(-0.05));
    pen.shape(
        &[(47.0, 98.0), (47.0, 93.0), (53.0, 93.0), (53.0, 98.0)],
        look.dark,
    );
}
