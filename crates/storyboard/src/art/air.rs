//! What flies: balloons, birds, kites, butterflies, planes, rockets, saucers, planets.

use tiny_skia::Transform;

use super::super::colour::Rgb;
use super::super::pen::{Ink, Pen, smooth, svg};
use super::Look;

const ENVELOPE: &str =
    "M50 3 C78 3 91 22 91 41 C91 60 67 71 57 82 L43 82 C33 71 9 60 9 41 C9 22 22 3 50 3 Z";

pub(super) fn balloon(pen: &mut Pen, look: &Look) {
    pen.fill(svg(ENVELOPE), look.main);
    pen.fill(
        svg("M50 3 C68 3 76 22 76 41 C76 60 60 73 55 82 L45 82 C40 73 24 60 24 41 C24 22 32 3 50 3 Z"),
        look.trim,
    );
    pen.fill(
        svg("M50 3 C60 3 64 22 64 41 C64 60 55 74 53 82 L47 82 C45 74 36 60 36 41 C36 22 40 3 50 3 Z"),
        look.main,
    );
    let shade = [
        (91.0, 45.0, Rgb::BLACK, 0.34),
        (40.0, 30.0, Rgb::BLACK, 0.0),
    ];
    pen.fill(svg(ENVELOPE), Ink::Line(shade));
    pen.fill(
        svg(ENVELOPE),
        Ink::Round(33.0, 22.0, 26.0, [(Rgb::WHITE, 0.28), (Rgb::WHITE, 0.0)]),
    );
    for (from, to) in [(43.5, 46.0), (56.5, 54.0), (50.0, 50.0)] {
        pen.stroke(&[(from, 82.0), (to, 92.0)], 0.5, look.dark);
    }
    if look.lit {
        pen.glow(50.0, 80.0, 26.0, look.lamp, 0.55);
    }
    pen.fill(
        svg("M44.5 91 L55.5 91 L54.5 98.5 Q50 100 45.5 98.5 Z"),
        look.dark,
    );
    pen.rect(44.0, 90.4, 12.0, 1.6, look.dark.mix(look.trim, 0.4));
}

pub(super) fn toy_balloon(pen: &mut Pen, look: &Look, t: f32) {
    let wave = |at: f32| 3.0 * (t * 1.6 + at * 2.2).sin() * at;
    let string: Vec<(f32, f32)> = (0..=20)
        .map(|n| n as f32 / 20.0)
        .map(|at| (50.0 + wave(at), 65.0 + at * 35.0))
        .collect();
    pen.stroke(&string, 0.6, look.dark.mix(look.pale, 0.5));
    let body =
        svg("M50 6 C68 6 76 21 76 34 C76 49 62 60 50 64 C38 60 24 49 24 34 C24 21 32 6 50 6 Z");
    pen.fill(body.clone(), look.main);
    pen.fill(
        body,
        Ink::Round(41.0, 24.0, 44.0, [(Rgb::WHITE, 0.22), (Rgb::BLACK, 0.24)]),
    );
    pen.ellipse(40.0, 22.0, 4.5, 7.5, Ink::Flat(Rgb::WHITE, 0.55));
    pen.shape(
        &[(50.0, 63.0), (46.5, 68.0), (53.5, 68.0)],
        look.main.lift(-0.08),
    );
}

pub(super) fn birds(pen: &mut Pen, look: &Look, t: f32) {
    const PLACES: [(f32, f32, f32); 7] = [
        (50.0, 44.0, 10.0),
        (31.0, 52.0, 8.5),
        (71.0, 50.0, 8.5),
        (15.0, 61.0, 7.0),
        (87.0, 60.0, 7.0),
        (58.0, 63.0, 6.0),
        (38.0, 36.0, 5.0),
    ];
    for (index, (x, y, span)) in PLACES.into_iter().enumerate() {
        let beat = (t * 5.2 + index as f32 * 1.37).sin();
        let glide = 0.35 + 0.65 * (t * 0.7 + index as f32).sin().max(0.0);
        let tip = -0.34 - 0.42 * beat * glide;
        let y = y + 1.4 * (t * 1.3 + index as f32).sin();
        for side in [-1.0, 1.0] {
            let wing = [
                (x, y),
                (x + side * span * 0.42, y + (tip * 0.75 - 0.12) * span),
                (x + side * span, y + tip * span * 0.45),
                (x + side * span * 0.5, y + (tip * 0.5 + 0.08) * span),
            ];
            pen.fill(smooth(&wing), look.dark);
        }
        pen.ellipse(x, y + 0.04 * span, 0.2 * span, 0.1 * span, look.dark);
    }
}

pub(super) fn kite(pen: &mut Pen, look: &Look, t: f32) {
    let ribbon: Vec<(f32, f32)> = (0..=26)
        .map(|n| n as f32 / 26.0)
        .map(|at| {
            (
                50.0 + 7.0 * at * (t * 3.0 - at * 8.0).sin() - 16.0 * at,
                72.0 + at * 42.0,
            )
        })
        .collect();
    pen.stroke(&ribbon, 0.9, look.trim);
    for at in [6, 12, 18, 24] {
        let (x, y) = ribbon[at];
        pen.shape(&[(x, y), (x - 4.0, y - 2.0), (x - 4.0, y + 3.0)], look.main);
        pen.shape(&[(x, y), (x + 4.0, y - 2.0), (x + 4.0, y + 3.0)], look.trim);
    }
    pen.shape(
        &[(50.0, 14.0), (76.0, 40.0), (50.0, 76.0), (24.0, 40.0)],
        look.main,
    );
    pen.shape(&[(50.0, 14.0), (76.0, 40.0), (50.0, 40.0)], look.trim);
    pen.shape(
        &[(50.0, 76.0), (24.0, 40.0), (50.0, 40.0)],
        look.trim.lift(-0.06),
    );
    pen.stroke(&[(50.0, 14.0), (50.0, 76.0)], 0.7, look.dark);
    pen.stroke(&[(24.0, 40.0), (76.0, 40.0)], 0.7, look.dark);
}

pub(super) fn butterfly(pen: &mut Pen, look: &Look, t: f32) {
    let open = 0.3 + 0.7 * (t * 5.0).sin().abs();
    for side in [-1.0, 1.0] {
        let onto = Transform::from_translate(50.0, 50.0).pre_scale(side * open, 1.0);
        pen.within(onto, |pen| {
            pen.fill(
                svg("M0 0 C10 -34 44 -40 44 -20 C44 -4 18 4 0 4 Z"),
                look.main,
            );
            pen.fill(
                svg("M0 2 C20 2 36 12 32 26 C28 38 8 30 0 8 Z"),
                look.main.lift(-0.06),
            );
            pen.circle(30.0, -20.0, 6.0, look.trim);
            pen.circle(21.0, 18.0, 4.5, look.trim);
            pen.line(
                svg("M0 0 C10 -34 44 -40 44 -20 C44 -4 18 4 0 4"),
                2.2,
                look.dark,
            );
        });
    }
    pen.ellipse(50.0, 52.0, 2.4, 15.0, look.dark);
    pen.line(svg("M50 38 Q46 28 41 25"), 0.8, look.dark);
    pen.line(svg("M50 38 Q54 28 59 25"), 0.8, look.dark);
}

pub(super) fn plane(pen: &mut Pen, look: &Look) {
    let trail = [(2.0, 53.0, Rgb::WHITE, 0.0), (-40.0, 53.0, Rgb::WHITE, 0.0)];
    pen.rect(-40.0, 52.0, 42.0, 2.0, Ink::Line(trail));
    pen.fill(
        svg("M36 50 L16 30 L24 30 L56 50 Z"),
        look.dark.mix(look.pale, 0.45),
    );
    pen.fill(
        svg("M4 50 Q6 46 18 46 L82 45 Q95 46 98 51 Q95 56 84 57 L22 57 Q6 57 4 50 Z"),
        look.pale,
    );
    pen.fill(svg("M6 48 L1 32 L9 32 L20 47 Z"), look.main);
    pen.fill(
        svg("M44 54 L22 78 L31 78 L66 55 Z"),
        look.pale.mix(look.dark, 0.3),
    );
    pen.rect(16.0, 52.4, 70.0, 1.6, look.main);
    for n in 0..11 {
        pen.circle(26.0 + n as f32 * 5.0, 49.6, 0.9, look.dark);
    }
}

pub(super) fn rocket(pen: &mut Pen, look: &Look, t: f32) {
    let flare = 1.0 + 0.12 * (t * 17.0).sin() + 0.07 * (t * 29.0).sin();
    pen.glow(50.0, 84.0, 30.0, look.lamp, 0.55);
    let flame = |wide: f32, long: f32| {
        [
            (50.0 - wide, 76.0),
            (50.0 + wide, 76.0),
            (50.0 + wide * 0.7, 84.0),
            (50.0, 76.0 + long),
            (50.0 - wide * 0.7, 84.0),
        ]
    };
    pen.fill(smooth(&flame(6.0, 24.0 * flare)), Rgb::hex(0xff_8a3c));
    pen.fill(smooth(&flame(3.4, 15.0 * flare)), Rgb::hex(0xff_e9a8));
    pen.fill(svg("M38 56 L26 78 Q34 76 40 74 Z"), look.main);
    pen.fill(svg("M62 56 L74 78 Q66 76 60 74 Z"), look.main);
    let body = svg("M50 2 C64 16 66 44 60 76 L40 76 C34 44 36 16 50 2 Z");
    pen.fill(body.clone(), look.pale);
    pen.fill(
        svg("M50 2 C57 9 60.5 18 62 27 L38 27 C39.5 18 43 9 50 2 Z"),
        look.main,
    );
    pen.fill(
        body,
        Ink::Line([
            (64.0, 40.0, Rgb::BLACK, 0.35),
            (42.0, 40.0, Rgb::BLACK, 0.0),
        ]),
    );
    pen.circle(50.0, 40.0, 6.0, look.trim);
    pen.circle(50.0, 40.0, 4.4, look.dark);
    pen.rect(41.0, 74.0, 18.0, 4.0, look.dark);
}

pub(super) fn saucer(pen: &mut Pen, look: &Look, t: f32) {
    pen.glow(50.0, 62.0, 40.0, look.lamp, 0.22);
    pen.ellipse(50.0, 42.0, 19.0, 17.0, look.trim.mix(Rgb::WHITE, 0.25));
    pen.ellipse(44.0, 36.0, 6.0, 6.0, Ink::Flat(Rgb::WHITE, 0.35));
    let hull = svg("M2 54 Q20 40 50 40 Q80 40 98 54 Q80 68 50 68 Q20 68 2 54 Z");
    pen.fill(hull.clone(), look.main);
    pen.fill(
        hull,
        Ink::Line([
            (50.0, 42.0, Rgb::WHITE, 0.3),
            (50.0, 68.0, Rgb::BLACK, 0.45),
        ]),
    );
    pen.ellipse(50.0, 47.0, 25.0, 4.5, Ink::Flat(Rgb::BLACK, 0.18));
    for n in 0..7 {
        let away = (n as f32 - 3.0) / 3.0;
        let bright = 0.5 + 0.5 * (t * 2.4 - n as f32 * 0.9).sin();
        let (x, y) = (50.0 + away * 36.0, 58.5 - away * away * 3.0);
        pen.glow(x, y, 5.0, look.lamp, 0.6 * bright);
        pen.circle(x, y, 1.6, look.lamp.mix(look.dark, 0.6 * (1.0 - bright)));
    }
}

pub(super) fn planet(pen: &mut Pen, look: &Look) {
    let ring = |pen: &mut Pen, front: bool| {
        let tilt = Transform::from_translate(50.0, 50.0)
            .pre_rotate(-16.0)
            .pre_scale(1.0, 0.26);
        pen.within(tilt, |pen| {
            for (radius, width, alpha) in [(43.0, 5.0, 0.8), (36.5, 3.5, 0.5), (48.0, 1.6, 0.45)] {
                let (from, to) = if front { (0, 30) } else { (30, 60) };
                let arc: Vec<(f32, f32)> = (from..=to)
                    .map(|n| n as f32 / 60.0 * std::f32::consts::TAU)
                    .map(|angle| (radius * angle.cos(), radius * angle.sin()))
                    .collect();
                pen.stroke(&arc, width, Ink::Flat(look.trim, alpha));
            }
        });
    };
    ring(pen, false);
    pen.circle(50.0, 50.0, 26.0, look.main);
    for (y, tall, lift) in [
        (36.0, 4.0, 0.06),
        (45.0, 6.0, -0.05),
        (57.0, 5.0, 0.05),
        (66.0, 4.0, -0.06),
    ] {
        let half = (26.0_f32.powi(2) - (y - 50.0_f32).powi(2)).max(0.0).sqrt() - 0.4;
        pen.ellipse(
            50.0,
            y,
            half,
            tall * 0.5,
            Ink::Flat(look.main.lift(lift), 0.8),
        );
    }
    pen.circle(
        50.0,
        50.0,
        26.0,
        Ink::Round(38.0, 38.0, 46.0, [(Rgb::WHITE, 0.18), (Rgb::BLACK, 0.8)]),
    );
    ring(pen, true);
}
