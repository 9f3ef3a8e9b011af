//! Drawing on a plane in stage coordinates: a thin layer over the rasteriser in which scenes and
//! subjects read as shapes. It clips shapes to the plane and never fails.

use tiny_skia::{
    Color, FillRule, GradientStop, LineCap, LineJoin, LinearGradient, Paint, Path, PathBuilder,
    Pixmap, Point, RadialGradient, Rect, Shader, SpreadMode, Stroke, Transform,
};

use super::canvas::{Canvas, blend_over};
use super::colour::Rgb;

/// Fill of a shape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ink {
    Flat(Rgb, f32),
    /// Linear gradient between two points, each with its colour and opacity.
    Line([(f32, f32, Rgb, f32); 2]),
    /// Radial gradient around `(x, y, radius)`, from the inner to the outer colour and opacity.
    Round(f32, f32, f32, [(Rgb, f32); 2]),
}

impl From<Rgb> for Ink {
    fn from(colour: Rgb) -> Self {
        Self::Flat(colour, 1.0)
    }
}

impl Ink {
    /// A vertical gradient.
    pub(crate) fn down(top: f32, upper: Rgb, bottom: f32, lower: Rgb) -> Self {
        Self::Line([(0.0, top, upper, 1.0), (0.0, bottom, lower, 1.0)])
    }
}

fn color(rgb: Rgb, alpha: f32) -> Color {
    Color::from_rgba(unit(rgb.r), unit(rgb.g), unit(rgb.b), unit(alpha)).unwrap_or(Color::BLACK)
}

/// A value between 0.0 and 1.0.
fn unit(value: f32) -> f32 {
    value.clamp(0.0, 1.0)
}

fn paint(ink: Ink) -> Option<Paint<'static>> {
    let shader = match ink {
        Ink::Flat(rgb, alpha) => Some(Shader::SolidColor(color(rgb, alpha))),
        Ink::Line([a, b]) => LinearGradient::new(
            Point::from_xy(a.0, a.1),
            Point::from_xy(b.0, b.1),
            gradient_stops((a.2, a.3), (b.2, b.3)),
            SpreadMode::Pad,
            Transform::identity(),
        ),
        Ink::Round(x, y, radius, [inner, outer]) => RadialGradient::new(
            Point::from_xy(x, y),
            0.0,
            Point::from_xy(x, y),
            radius.max(0.01),
            gradient_stops(inner, outer),
            SpreadMode::Pad,
            Transform::identity(),
        ),
    }?;
    Some(Paint {
        shader,
        anti_alias: true,
        ..Paint::default()
    })
}

/// The two ends of a gradient.
fn gradient_stops(a: (Rgb, f32), b: (Rgb, f32)) -> Vec<GradientStop> {
    vec![
        GradientStop::new(0.0, color(a.0, a.1)),
        GradientStop::new(1.0, color(b.0, b.1)),
    ]
}

/// A plane and the way from stage coordinates onto it.
#[derive(Debug)]
pub(crate) struct Pen {
    pub(crate) pixmap: Pixmap,
    transform: Transform,
}

impl Pen {
    /// A pen on a clear plane; `None` when the plane would be empty or absurdly large.
    pub(crate) fn new(width: u32, height: u32, transform: Transform) -> Option<Self> {
        if width > 16_384 || height > 16_384 {
            return None;
        }
        Some(Self {
            pixmap: Pixmap::new(width, height)?,
            transform,
        })
    }

    /// Lays the plane over `canvas`, its corner at column `left` of row `top`, with opacity `alpha`.
    pub(crate) fn stamp(&self, canvas: &mut Canvas, (left, top): (usize, usize), alpha: f32) {
        // 8-bit parts times 128 are 15-bit parts: 255 becomes 32,640, which is `canvas::FULL`.
        let gain = (alpha * 128.0) as u16;
        let width = self.pixmap.width() as usize * 4;
        let mut line = vec![0_u16; width];
        for (row, y) in self.pixmap.data().chunks_exact(width).zip(top..) {
            if row.iter().all(|byte| *byte == 0) {
                continue;
            }
            for (out, byte) in line.iter_mut().zip(row) {
                *out = u16::from(*byte) * gain;
            }
            blend_over(&mut canvas.row(y)[left * 4..][..width], &line);
        }
    }

    /// The stage row of the plane's upper edge.
    pub(crate) fn top(&self) -> f32 {
        -self.transform.ty / self.transform.sy
    }

    /// Draws with further coordinates inside the present ones.
    pub(crate) fn within(&mut self, inner: Transform, draw: impl FnOnce(&mut Self)) {
        let outer = self.transform;
        self.transform = outer.pre_concat(inner);
        draw(self);
        self.transform = outer;
    }

    pub(crate) fn fill(&mut self, path: Option<Path>, ink: impl Into<Ink>) {
        let (Some(path), Some(paint)) = (path, paint(ink.into())) else {
            return;
        };
        self.pixmap
            .fill_path(&path, &paint, FillRule::Winding, self.transform, None);
    }

    pub(crate) fn line(&mut self, path: Option<Path>, width: f32, ink: impl Into<Ink>) {
        let (Some(path), Some(paint)) = (path, paint(ink.into())) else {
            return;
        };
        let stroke = Stroke {
            width,
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            ..Stroke::default()
        };
        self.pixmap
            .stroke_path(&path, &paint, &stroke, self.transform, None);
    }

    pub(crate) fn circle(&mut self, x: f32, y: f32, radius: f32, ink: impl Into<Ink>) {
        self.fill(PathBuilder::from_circle(x, y, radius), ink);
    }

    pub(crate) fn ellipse(&mut self, x: f32, y: f32, across: f32, down: f32, ink: impl Into<Ink>) {
        let oval = Rect::from_xywh(x - across, y - down, across * 2.0, down * 2.0);
        self.fill(oval.and_then(PathBuilder::from_oval), ink);
    }

    pub(crate) fn rect(&mut self, x: f32, y: f32, width: f32, height: f32, ink: impl Into<Ink>) {
        self.fill(
            Rect::from_xywh(x, y, width, height).map(PathBuilder::from_rect),
            ink,
        );
    }

    pub(crate) fn shape(&mut self, points: &[(f32, f32)], ink: impl Into<Ink>) {
        self.fill(polygon(points), ink);
    }

    pub(crate) fn stroke(&mut self, points: &[(f32, f32)], width: f32, ink: impl Into<Ink>) {
        self.line(polyline(points), width, ink);
    }

    /// A soft-edged spot.
    pub(crate) fn glow(&mut self, x: f32, y: f32, radius: f32, rgb: Rgb, alpha: f32) {
        self.circle(
            x,
            y,
            radius,
            Ink::Round(x, y, radius, [(rgb, alpha), (rgb, 0.0)]),
        );
    }
}

fn open_path(points: &[(f32, f32)]) -> Option<PathBuilder> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.0, first.1);
    for point in rest {
        path.line_to(point.0, point.1);
    }
    Some(path)
}

fn polyline(points: &[(f32, f32)]) -> Option<Path> {
    open_path(points)?.finish()
}

fn polygon(points: &[(f32, f32)]) -> Option<Path> {
    let mut path = open_path(points)?;
    path.close();
    path.finish()
}

/// A closed smooth curve through `points` (Catmull-Rom, as cubic Béziers).
pub(crate) fn smooth(points: &[(f32, f32)]) -> Option<Path> {
    let count = points.len();
    let first = points.first()?;
    let mut path = PathBuilder::new();
    path.move_to(first.0, first.1);
    for index in 0..count {
        let [before, from, to, after] =
            [0, 1, 2, 3].map(|offset| points[(index + offset + count - 1) % count]);
        let (out, into) = (sixth_of_chord(before, to), sixth_of_chord(from, after));
        path.cubic_to(
            from.0 + out.0,
            from.1 + out.1,
            to.0 - into.0,
            to.1 - into.1,
            to.0,
            to.1,
        );
    }
    path.close();
    path.finish()
}

fn sixth_of_chord(a: (f32, f32), b: (f32, f32)) -> (f32, f32) {
    // The control points of a Catmull-Rom segment lie a sixth of the chord between the
    // neighbours away from its ends.
    ((b.0 - a.0) / 6.0, (b.1 - a.1) / 6.0)
}
