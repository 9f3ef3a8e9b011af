//! The parts of a drawing: shapes about joints, posed and drawn.

use tiny_skia::{Path, Transform};

use crate::art::Look;
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};

/// The pose of a part about its joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::art) struct Pose {
    /// Clockwise, in a picture that faces right.
    pub(in crate::art) degrees: f32,
    pub(in crate::art) shift: (f32, f32),
    pub(in crate::art) scale: (f32, f32),
    pub(in crate::art) hidden: bool,
}

impl Pose {
    pub(in crate::art) const REST: Self = Self {
        degrees: 0.0,
        shift: (0.0, 0.0),
        scale: (1.0, 1.0),
        hidden: false,
    };
    pub(in crate::art) const HIDDEN: Self = Self {
        hidden: true,
        ..Self::REST
    };

    pub(in crate::art) const fn turned(degrees: f32) -> Self {
        Self {
            degrees,
            ..Self::REST
        }
    }

    pub(in crate::art) const fn shifted(right: f32, down: f32) -> Self {
        Self {
            shift: (right, down),
            ..Self::REST
        }
    }

    pub(in crate::art) const fn scaled(across: f32, down: f32) -> Self {
        Self {
            scale: (across, down),
            ..Self::REST
        }
    }

    fn about(self, joint: (f32, f32)) -> Transform {
        Transform::from_translate(joint.0 + self.shift.0, joint.1 + self.shift.1)
            .pre_concat(Transform::from_rotate(self.degrees))
            .pre_scale(self.scale.0, self.scale.1)
            .pre_translate(-joint.0, -joint.1)
    }
}

/// The colour of a shape, before the scene's light.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hue {
    Main,
    Trim,
    Dark,
    Pale,
    Lamp,
    Skin,
    Hair,
    /// A fixed colour under the scene's light.
    Fixed(Rgb),
    /// Black or white over the shapes below, without the scene's light.
    Shade(Rgb),
}

#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) path: Path,
    pub(super) hue: Hue,
    pub(super) lift: f32,
    pub(super) alpha: f32,
    /// Width of a line; `None`: filled.
    pub(super) line: Option<f32>,
    /// A linear fade of the opacity to 0.0, from one point to the other.
    pub(super) fade: Option<[f32; 4]>,
    /// Visible only by lamplight.
    pub(super) lit_only: bool,
    /// Visible only in snow.
    pub(super) snow_only: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Item {
    Shape(Box<Shape>),
    Part(Part),
}

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) joint: (f32, f32),
    pub(super) place: Transform,
    pub(super) items: Vec<Item>,
}

pub(super) fn joint(part: &Part, name: &str, outer: Transform) -> Option<(f32, f32)> {
    let onto = outer.pre_concat(part.place);
    if part.name == name {
        let mut point = tiny_skia::Point::from_xy(part.joint.0, part.joint.1);
        onto.map_point(&mut point);
        return Some((point.x, point.y));
    }
    part.items.iter().find_map(|item| match item {
        Item::Part(part) => joint(part, name, onto),
        Item::Shape(_) => None,
    })
}

pub(super) fn draw(part: &Part, pen: &mut Pen, look: &Look, pose: &dyn Fn(&str) -> Pose) {
    let posed = if part.name.is_empty() {
        Pose::REST
    } else {
        pose(&part.name)
    };
    if posed.hidden {
        return;
    }
    pen.within(part.place.pre_concat(posed.about(part.joint)), |pen| {
        for item in &part.items {
            match item {
                Item::Part(part) => draw(part, pen, look, pose),
                Item::Shape(shape) => shape.draw(pen, look),
            }
        }
    });
}

impl Shape {
    fn draw(&self, pen: &mut Pen, look: &Look) {
        if self.lit_only && !look.lit || self.snow_only && !look.snowy {
            return;
        }
        let own = match self.hue {
            Hue::Main => look.main,
            Hue::Trim => look.trim,
            Hue::Dark => look.dark,
            Hue::Pale => look.pale,
            Hue::Lamp if look.lit => look.lamp,
            Hue::Lamp => look.dark.mix(look.trim, 0.5),
            Hue::Skin => look.skin,
            Hue::Hair => look.hair,
            Hue::Fixed(colour) => look.shown(colour),
            Hue::Shade(colour) => colour,
        };
        let colour = if self.lift == 0.0 {
            own
        } else {
            own.lift(self.lift)
        };
        let ink = match self.fade {
            Some([x1, y1, x2, y2]) => {
                Ink::Line([(x1, y1, colour, self.alpha), (x2, y2, colour, 0.0)])
            }
            None => Ink::Flat(colour, self.alpha),
        };
        match self.line {
            Some(width) => pen.line(Some(self.path.clone()), width, ink),
            None => pen.fill(Some(self.path.clone()), ink),
        }
    }
}
