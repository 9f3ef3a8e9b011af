//! What stands or rolls on land: trees, houses, cars, trains, flowers.

use tiny_skia::Transform;

use super::super::colour::Rgb;
use super::super::pen::{Ink, Pen, smooth, svg};
use super::Look;

pub(super) fn tree(pen: &mut Pen, look: &Look) {
    pen.fill(
        svg("M45 98 Q48 76 46 56 L54 56 Q52 76 56 98 Q50 95 45 98 Z"),
        look.dark,
    );
    pen.stroke(&[(50.0, 68.0), (36.0, 52.0)], 2.4, look.dark);
    pen.stroke(&[(50.5, 64.0), (65.0, 48.0)], 2.2, look.dark);
    const CROWN: [(f32, f32, f32); 9] = [
        (32.0, 50.0, 17.0),
        (68.0, 48.0, 18.0),
        (50.0, 52.0, 18.0),
        (24.0, 38.0, 14.0),
        (76.0, 36.0, 14.0),
        (40.0, 30.0, 18.0),
        (61.0, 28.0, 18.0),
        (50.0, 18.0, 15.0),
        (50.0, 40.0, 20.0),
    ];
    for (x, y, radius) in CROWN {
        pen.circle(x, y, radius, look.main.lift(-0.07));
    }
    for (x, y, radius) in CROWN {
        pen.circle(x - 2.0, y - 3.0, radius * 0.8, look.main);
    }
    for (x, y, radius) in CROWN.into_iter().skip(3) {
        pen.circle(
            x - 4.5,
            y - 5.5,
            radius * 0.42,
            Ink::Flat(look.main.lift(0.07), 0.8),
        );
    }
}

pub(super) fn house(pen: &mut Pen, look: &Look) {
    pen.rect(66.0, 30.0, 8.0, 20.0, look.dark.mix(look.main, 0.4));
    pen.rect(18.0, 56.0, 64.0, 42.0, look.pale);
    pen.rect(50.0, 56.0, 32.0, 42.0, Ink::Flat(Rgb::BLACK, 0.1));
    pen.shape(&[(50.0, 24.0), (10.0, 58.0), (90.0, 58.0)], look.main);
    pen.shape(
        &[(50.0, 24.0), (50.0, 58.0), (90.0, 58.0)],
        Ink::Flat(Rgb::BLACK, 0.12),
    );
    let glass = if look.lit {
        look.lamp
    } else {
        look.dark.mix(look.trim, 0.5)
    };
    for x in [25.0, 63.0] {
        if look.lit {
            pen.glow(x + 6.0, 71.0, 16.0, look.lamp, 0.4);
        }
        pen.rect(x, 65.0, 12.0, 12.0, glass);
        pen.rect(x + 5.4, 65.0, 1.2, 12.0, look.pale);
        pen.rect(x, 70.4, 12.0, 1.2, look.pale);
    }
    pen.rect(44.0, 74.0, 12.0, 24.0, look.trim.mix(look.dark, 0.4));
    pen.circle(53.6, 87.0, 0.9, look.pale);
}

pub(super) fn car(pen: &mut Pen, look: &Look, t: f32) {
    pen.ellipse(50.0, 97.4, 47.0, 2.4, Ink::Flat(Rgb::BLACK, 0.3));
    if look.lit {
        let beam = [(95.0, 80.0, look.lamp, 0.5), (150.0, 86.0, look.lamp, 0.0)];
        pen.shape(
            &[(95.0, 77.0), (150.0, 72.0), (150.0, 98.0), (95.0, 82.0)],
            Ink::Line(beam),
        );
    }
    let body = svg(
        "M3 88 Q2 74 12 72 L26 70 Q36 55 48 54 L63 54 Q74 55 82 70 Q96 72 97 80 L97 88 Q97 91 93 91 L7 91 Q3 91 3 88 Z",
    );
    pen.fill(body.clone(), look.main);
    pen.fill(
        body,
        Ink::Line([
            (50.0, 54.0, Rgb::WHITE, 0.16),
            (50.0, 91.0, Rgb::BLACK, 0.28),
        ]),
    );
    let glass = look.dark.mix(look.trim, 0.3).mix(look.pale, 0.2);
    pen.fill(svg("M31 70 Q39 59 48 58 L53 58 L53 70 Z"), glass);
    pen.fill(svg("M56 70 L56 58 L63 58 Q70 59 76 70 Z"), glass);
    pen.rect(3.0, 82.0, 94.0, 1.4, Ink::Flat(Rgb::BLACK, 0.22));
    pen.ellipse(
        94.4,
        79.0,
        2.4,
        2.6,
        if look.lit { look.lamp } else { look.pale },
    );
    pen.rect(2.6, 76.5, 3.0, 4.4, Rgb::hex(0xc8_3030));
    for x in [22.0, 78.0] {
        pen.circle(x, 90.0, 8.6, look.dark);
        pen.circle(x, 90.0, 4.6, look.pale.mix(look.dark, 0.3));
        pen.within(
            Transform::from_translate(x, 90.0).pre_rotate(t * 260.0),
            |pen| {
                pen.rect(-4.2, -0.6, 8.4, 1.2, look.dark);
                pen.rect(-0.6, -4.2, 1.2, 8.4, look.dark);
            },
        );
    }
}

pub(super) fn train(pen: &mut Pen, look: &Look) {
    let glass = if look.lit {
        look.lamp
    } else {
        look.dark.mix(look.trim, 0.5)
    };
    for wagon in 0..5 {
        let left = -60.0 + wagon as f32 * 31.0;
        let lead = wagon == 4;
        let body = if lead {
            smooth(&[
                (left, 76.0),
                (left + 18.0, 76.0),
                (left + 30.0, 86.0),
                (left + 33.0, 93.0),
                (left + 24.0, 95.0),
                (left, 95.0),
            ])
        } else {
            svg(&format!(
                "M{left} 76 L{r} 76 L{r} 95 L{left} 95 Z",
                r = left + 30.0
            ))
        };
        pen.fill(body, look.main);
        pen.rect(left, 89.0, if lead { 31.0 } else { 30.0 }, 1.8, look.trim);
        for n in 0..(if lead { 3 } else { 5 }) {
            pen.rect(left + 2.4 + n as f32 * 5.5, 79.5, 4.0, 5.4, glass);
        }
        pen.rect(
            left,
            75.0,
            if lead { 18.0 } else { 30.0 },
            1.4,
            look.main.lift(-0.1),
        );
        for n in [5.0, 10.0, 20.0, 25.0] {
            pen.circle(left + n, 95.6, 2.0, look.dark);
        }
    }
    pen.rect(-210.0, 97.4, 520.0, 0.9, look.dark);
    if look.lit {
        pen.glow(96.0, 90.0, 26.0, look.lamp, 0.5);
    }
}

pub(super) fn flowers(pen: &mut Pen, look: &Look, t: f32) {
    const BUNCH: [(f32, f32, f32); 6] = [
        (22.0, 52.0, 0.7),
        (80.0, 50.0, 0.75),
        (36.0, 34.0, 0.9),
        (66.0, 30.0, 0.95),
        (50.0, 20.0, 1.15),
        (52.0, 62.0, 0.7),
    ];
    let leaf = Rgb::hex(0x4f_8a4a).under(look.pale);
    for (index, (x, y, size)) in BUNCH.into_iter().enumerate() {
        let lean = 2.2 * (t * 1.2 + index as f32 * 0.9).sin();
        let foot = 50.0 + (x - 50.0) * 0.35;
        let (hx, hy) = (x + lean, y);
        let stem: Vec<(f32, f32)> = (0..=12)
            .map(|n| n as f32 / 12.0)
            .map(|s| (foot + (hx - foot) * s * s, 98.0 + (hy - 98.0) * s))
            .collect();
        pen.stroke(&stem, 1.6, leaf);
        let (lx, ly) = stem[4];
        pen.fill(
            smooth(&[
                (lx, ly),
                (lx + 6.0, ly - 7.0),
                (lx + 13.0, ly - 8.0),
                (lx + 8.0, ly - 2.0),
            ]),
            leaf,
        );
        pen.within(
            Transform::from_translate(hx, hy).pre_scale(size, size),
            |pen| {
                for petal in 0..7 {
                    let turn = Transform::from_rotate(petal as f32 * 360.0 / 7.0 + lean * 2.0);
                    pen.within(turn, |pen| {
                        let tone = look.main.lift(if petal % 2 == 0 { 0.03 } else { -0.03 });
                        pen.ellipse(0.0, -9.0, 4.9, 8.4, tone);
                    });
                }
                pen.circle(0.0, 0.0, 5.0, look.trim.mix(Rgb::hex(0xf2_c14e), 0.5));
                pen.circle(-0.8, -0.8, 2.6, look.dark.mix(look.trim, 0.4));
            },
        );
    }
}
