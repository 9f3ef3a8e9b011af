//! Creatures on land: cats, dogs, horses, camels, people. Legs follow a gait, drawn by time.

use super::super::colour::Rgb;
use super::super::pen::{Ink, Pen, smooth, svg};
use super::Look;

fn cat_tail(pen: &mut Pen, look: &Look, t: f32) {
    let sway = (t * 1.3).sin();
    let tail = [
        (64.0, 93.0),
        (76.0, 94.0),
        (84.0 + sway * 1.5, 86.0),
        (84.0 + sway * 4.0, 74.0),
        (89.0 + sway * 7.0, 65.0),
    ];
    let at = |n: usize| tail[n.clamp(1, 5) - 1];
    let curve = |s: f32| {
        let place = s * 3.999;
        let (n, f) = (place as usize + 1, place.fract());
        let spline = |a: f32, b: f32, c: f32, d: f32| {
            let bend = (2.0 * a - 5.0 * b + 4.0 * c - d) * f + (3.0 * (b - c) + d - a) * f * f;
            b + 0.5 * f * (c - a + bend)
        };
        let (a, b, c, d) = (at(n - 1), at(n), at(n + 1), at(n + 2));
        (spline(a.0, b.0, c.0, d.0), spline(a.1, b.1, c.1, d.1))
    };
    let points: Vec<(f32, f32)> = (0..=40).map(|n| curve(n as f32 / 40.0)).collect();
    pen.stroke(&points, 6.0, look.main.lift(-0.03));
}

pub(super) fn cat(pen: &mut Pen, look: &Look, t: f32) {
    cat_tail(pen, look, t);
    let turn = 1.2 * (t * 0.5).sin();
    let body = [
        (50.0, 43.0),
        (62.0, 52.0),
        (69.0, 72.0),
        (70.0, 90.0),
        (66.0, 97.5),
        (50.0, 98.5),
        (34.0, 97.5),
        (30.0, 90.0),
        (31.0, 72.0),
        (38.0, 52.0),
    ];
    pen.fill(smooth(&body), look.main);
    let head = format!(
        "M{a} 14 L{b} 24 Q{m} 21 {c} 24 L{d} 14 C{e} 24 {f} 32 {g} 38 C{h} 52 {i} 52 {j} 38 C{k} 32 {l} 24 {a} 14 Z",
        a = 34.0 + turn,
        b = 42.0 + turn,
        m = 50.0 + turn,
        c = 58.0 + turn,
        d = 66.0 + turn,
        e = 69.0 + turn,
        f = 70.0 + turn,
        g = 69.0 + turn,
        h = 66.0 + turn,
        i = 34.0 + turn,
        j = 31.0 + turn,
        k = 30.0 + turn,
        l = 31.0 + turn,
    );
    pen.fill(svg(&head), look.main);
    pen.fill(
        smooth(&body),
        Ink::Line([
            (72.0, 70.0, Rgb::BLACK, 0.25),
            (46.0, 60.0, Rgb::BLACK, 0.0),
        ]),
    );
    pen.stroke(
        &[(43.0, 97.0), (41.0, 86.0)],
        0.8,
        Ink::Flat(Rgb::BLACK, 0.25),
    );
    pen.stroke(
        &[(57.0, 97.0), (59.0, 86.0)],
        0.8,
        Ink::Flat(Rgb::BLACK, 0.25),
    );
    for n in 0..3 {
        let y = 56.0 + n as f32 * 8.0;
        pen.stroke(
            &[(45.0, y), (50.0, y + 2.0), (55.0, y)],
            1.4,
            Ink::Flat(look.dark, 0.25),
        );
    }
}

pub(super) fn dog(pen: &mut Pen, look: &Look, t: f32) {
    let wag = (t * 6.0).sin() * 5.0;
    pen.stroke(
        &[
            (33.0, 88.0),
            (24.0, 84.0),
            (17.0, 75.0 + wag * 0.4),
            (14.0 + wag, 66.0),
        ],
        4.6,
        look.main,
    );
    let body = [
        (32.0, 97.0),
        (28.0, 86.0),
        (31.0, 73.0),
        (40.0, 60.0),
        (50.0, 49.0),
        (62.0, 48.0),
        (67.0, 58.0),
        (66.0, 76.0),
        (66.0, 97.0),
        (58.0, 98.0),
        (56.0, 88.0),
        (52.0, 98.0),
    ];
    pen.fill(smooth(&body), look.main);
    pen.fill(svg("M66 97 L58 97 L57 70 L66 66 Z"), look.main);
    pen.ellipse(65.0, 97.0, 6.0, 2.4, look.main);
    pen.ellipse(48.0, 97.0, 8.0, 2.6, look.main);
    let nod = (t * 1.7).sin() * 0.8;
    let head = [
        (52.0, 44.0 + nod),
        (51.0, 30.0 + nod),
        (60.0, 22.0 + nod),
        (70.0, 24.0 + nod),
        (75.0, 31.0 + nod),
        (87.0, 34.0 + nod),
        (88.0, 40.0 + nod),
        (78.0, 44.0 + nod),
        (70.0, 47.0 + nod),
        (64.0, 54.0),
        (54.0, 54.0),
    ];
    pen.fill(smooth(&head), look.main);
    pen.fill(
        svg("M57 25 C48 26 45 38 49 49 C56 48 60 36 61 28 Z"),
        look.main.lift(-0.12),
    );
    pen.circle(87.0, 35.6 + nod, 2.2, look.dark);
    pen.circle(70.0, 31.5 + nod, 1.5, look.dark);
    pen.fill(svg("M54 53 Q60 58 67 54 L67 57 Q60 61 54 56 Z"), look.trim);
}

/// One leg of two bones; `swing` in -1.0 to 1.0 carries the foot forward.
fn leg(pen: &mut Pen, hip: (f32, f32), length: f32, swing: f32, bend: f32, width: f32, ink: Rgb) {
    let knee = (
        hip.0 + swing * length * 0.26 + bend * 2.0,
        hip.1 + length * 0.5,
    );
    let lift = bend.max(0.0) * length * 0.16;
    let foot = (hip.0 + swing * length * 0.5, hip.1 + length - lift);
    pen.shape(
        &[
            (hip.0 - width, hip.1),
            (hip.0 + width, hip.1),
            (knee.0 + width * 0.55, knee.1),
            (knee.0 - width * 0.55, knee.1),
        ],
        ink,
    );
    pen.stroke(&[knee, foot], width * 0.8, ink);
    pen.stroke(&[foot, (foot.0 + 1.6, foot.1)], width * 0.9, ink);
}

fn legs(
    pen: &mut Pen,
    look: &Look,
    t: f32,
    rate: f32,
    hips: [(f32, f32); 2],
    length: f32,
    stride: f32,
) {
    let far = look.main.lift(-0.08);
    for (index, (back, turn)) in [(true, 3.4), (false, 0.5), (true, 0.0), (false, 2.5)]
        .into_iter()
        .enumerate()
    {
        let angle = t * rate + turn;
        let hip = hips[usize::from(!back)];
        let ink = if index < 2 { far } else { look.main };
        let hip = if index < 2 { (hip.0 + 2.0, hip.1) } else { hip };
        leg(
            pen,
            hip,
            length,
            angle.sin() * stride,
            angle.cos(),
            3.1,
            ink,
        );
    }
}

pub(super) fn horse(pen: &mut Pen, look: &Look, t: f32) {
    let bounce = (t * 7.6).sin() * 1.2;
    pen.within(tiny_skia::Transform::from_translate(0.0, bounce), |pen| {
        let flow = (t * 5.0).sin() * 3.0;
        pen.fill(
            smooth(&[
                (17.0, 50.0),
                (8.0, 50.0 + flow * 0.4),
                (-4.0, 60.0 + flow),
                (-2.0, 66.0 + flow),
                (9.0, 60.0),
                (18.0, 56.0),
            ]),
            look.dark,
        );
        legs(pen, look, t, 7.6, [(24.0, 60.0), (58.0, 60.0)], 38.0, 1.0);
        let body = [
            (15.0, 54.0),
            (20.0, 46.0),
            (34.0, 46.0),
            (50.0, 46.0),
            (62.0, 40.0),
            (72.0, 26.0),
            (78.0, 18.0),
            (84.0, 20.0),
            (94.0, 32.0),
            (95.0, 37.0),
            (90.0, 38.0),
            (82.0, 33.0),
            (78.0, 36.0),
            (72.0, 50.0),
            (64.0, 62.0),
            (50.0, 67.0),
            (34.0, 65.0),
            (20.0, 66.0),
        ];
        pen.fill(smooth(&body), look.main);
        pen.shape(&[(78.0, 20.0), (79.0, 11.0), (83.0, 19.0)], look.main);
        let mane = [
            (80.0, 17.0),
            (73.0, 17.0 + flow * 0.3),
            (64.0, 25.0 + flow * 0.5),
            (55.0, 36.0 + flow),
            (56.0, 42.0),
            (64.0, 38.0),
            (73.0, 27.0),
        ];
        pen.fill(smooth(&mane), look.dark);
        pen.circle(84.5, 25.5, 0.9, look.dark);
    });
}

pub(super) fn camel(pen: &mut Pen, look: &Look, t: f32) {
    let nod = (t * 2.2).sin() * 0.8;
    pen.stroke(&[(17.0, 54.0), (12.0, 62.0), (12.5, 70.0)], 1.6, look.dark);
    legs(pen, look, t, 2.2, [(23.0, 60.0), (57.0, 60.0)], 38.0, 0.42);
    let body = [
        (15.0, 56.0),
        (20.0, 47.0),
        (29.0, 42.0),
        (38.0, 27.0),
        (45.0, 27.0),
        (52.0, 42.0),
        (61.0, 45.0),
        (70.0, 50.0),
        (77.0, 42.0),
        (79.0, 28.0 + nod),
        (83.0, 20.0 + nod),
        (90.0, 20.0 + nod),
        (98.0, 26.0 + nod),
        (98.0, 30.0 + nod),
        (90.0, 30.0 + nod),
        (87.0, 33.0 + nod),
        (85.0, 46.0),
        (77.0, 59.0),
        (64.0, 66.0),
        (44.0, 66.0),
        (24.0, 67.0),
    ];
    pen.fill(smooth(&body), look.main);
    pen.shape(
        &[(83.0, 21.0 + nod), (82.0, 15.0 + nod), (86.0, 19.0 + nod)],
        look.main,
    );
    pen.fill(
        smooth(&[
            (30.0, 42.0),
            (38.0, 28.0),
            (45.0, 28.0),
            (53.0, 42.0),
            (52.0, 56.0),
            (32.0, 56.0),
        ]),
        look.trim,
    );
    pen.stroke(&[(31.0, 52.0), (53.0, 52.0)], 1.2, look.pale);
    pen.circle(89.0, 23.5 + nod, 0.8, look.dark);
}

pub(super) fn person(pen: &mut Pen, look: &Look, t: f32) {
    let stride = (t * 4.2).sin();
    for (sign, ink) in [(-1.0, look.dark.lift(-0.03)), (1.0, look.dark)] {
        let swing = stride * sign;
        let knee = (50.0 + swing * 4.0 + 1.0, 78.0);
        let foot = (
            50.0 + swing * 9.0,
            97.0 - (stride * sign * 2.0).max(0.0) * 0.6,
        );
        pen.stroke(&[(50.0, 60.0), knee, foot], 4.6, ink);
        pen.stroke(&[foot, (foot.0 + 3.4, foot.1)], 3.4, ink);
    }
    pen.stroke(
        &[
            (47.0, 38.0),
            (44.0 - stride * 5.0, 50.0),
            (46.0 - stride * 9.0, 60.0),
        ],
        3.6,
        look.main.lift(-0.07),
    );
    let coat = [
        (50.0, 30.0),
        (56.0, 34.0),
        (57.0, 48.0),
        (60.0, 68.0),
        (50.0, 71.0),
        (40.0, 68.0),
        (43.0, 48.0),
        (44.0, 34.0),
    ];
    pen.fill(smooth(&coat), look.main);
    pen.fill(
        smooth(&coat),
        Ink::Line([
            (60.0, 50.0, Rgb::BLACK, 0.24),
            (46.0, 50.0, Rgb::BLACK, 0.0),
        ]),
    );
    pen.stroke(
        &[
            (53.0, 38.0),
            (56.0 + stride * 5.0, 50.0),
            (54.0 + stride * 9.0, 60.0),
        ],
        3.6,
        look.main.lift(0.02),
    );
    pen.stroke(&[(44.5, 33.5), (50.0, 35.0), (55.5, 33.5)], 3.4, look.trim);
    let skin = Rgb::hex(0xd8_a482).under(look.pale);
    pen.ellipse(50.6, 23.4, 5.8, 7.0, skin);
    pen.fill(
        svg("M44 25 C42 13 59 12 57 22 Q52 18 48 20 Q47 25 45.6 29 Z"),
        look.dark,
    );
}

pub(super) fn umbrella(pen: &mut Pen, look: &Look, t: f32) {
    let sway = (t * 1.4).sin() * 0.8;
    person(
        pen,
        &Look {
            main: look.dark.mix(look.pale, 0.25),
            ..*look
        },
        t,
    );
    pen.stroke(&[(56.0, 52.0), (55.0 + sway, 8.0)], 1.1, look.dark);
    let x = 54.0 + sway;
    let top = svg(&format!(
        "M{} 22 C{} 2 {} 2 {} 22 Q{} 18 {} 22 Q{} 18 {} 22 Q{} 18 {} 22 Z",
        x - 28.0,
        x - 22.0,
        x + 22.0,
        x + 28.0,
        x + 18.0,
        x + 9.5,
        x,
        x - 9.5,
        x - 18.0,
        x - 28.0,
    ));
    pen.fill(top.clone(), look.main);
    pen.fill(
        top,
        Ink::Line([
            (x + 28.0, 14.0, Rgb::BLACK, 0.3),
            (x - 10.0, 6.0, Rgb::WHITE, 0.14),
        ]),
    );
    pen.stroke(&[(x, 7.0), (x, 4.0)], 1.0, look.dark);
}
