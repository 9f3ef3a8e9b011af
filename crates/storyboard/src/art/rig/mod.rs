//! Drawings as data: SVG files whose groups are named parts that turn about joints. It reads the subset
//! that `drawings/README.md` describes and poses parts; what they do is decided by the caller.

mod parse;

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use roxmltree::Document;
use tiny_skia::{Path, Transform};

use super::super::colour::Rgb;
use super::super::pen::{Ink, Pen};
use super::Look;
use super::drawings;
use parse::part;

/// How a part is posed, about its joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pose {
    /// Clockwise, as the picture faces right.
    pub(super) degrees: f32,
    pub(super) shift: (f32, f32),
    pub(super) scale: (f32, f32),
    pub(super) hidden: bool,
}

impl Pose {
    pub(super) const REST: Self = Self {
        degrees: 0.0,
        shift: (0.0, 0.0),
        scale: (1.0, 1.0),
        hidden: false,
    };
    pub(super) const HIDDEN: Self = Self {
        hidden: true,
        ..Self::REST
    };

    pub(super) const fn turned(degrees: f32) -> Self {
        Self {
            degrees,
            ..Self::REST
        }
    }

    pub(super) const fn shifted(right: f32, down: f32) -> Self {
        Self {
            shift: (right, down),
            ..Self::REST
        }
    }

    pub(super) const fn scaled(across: f32, down: f32) -> Self {
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
enum Hue {
    Main,
    Trim,
    Dark,
    Pale,
    Lamp,
    Skin,
    Hair,
    /// A colour of its own, under the scene's light.
    Fixed(Rgb),
    /// Black or white laid over what is below, under no light.
    Shade(Rgb),
}

#[derive(Clone, Debug)]
struct Shape {
    path: Path,
    hue: Hue,
    lift: f32,
    alpha: f32,
    /// Width of a line; `None`: filled.
    line: Option<f32>,
    /// A straight fade of the opacity to nothing, from one point to the other.
    fade: Option<[f32; 4]>,
    /// Shown by lamplight only.
    lit_only: bool,
    /// Shown only where snow lies.
    snow_only: bool,
}

#[derive(Clone, Debug)]
enum Item {
    Shape(Box<Shape>),
    Part(Part),
}

#[derive(Clone, Debug)]
struct Part {
    name: String,
    joint: (f32, f32),
    place: Transform,
    items: Vec<Item>,
}

/// A drawing in a square of 100 by 100, y down.
#[derive(Clone, Debug)]
pub(super) struct Rig {
    root: Part,
}

impl Rig {
    /// The drawing of that name, read at its first use; `None` when there is none.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        static RIGS: OnceLock<Mutex<BTreeMap<String, Option<&'static Rig>>>> = OnceLock::new();
        let rigs = RIGS.get_or_init(Mutex::default);
        let mut rigs = rigs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rigs.get(name) {
            return *known;
        }
        // Leaked once per drawing: the number of drawings bounds it.
        let rig = drawings::source(name)
            .and_then(|svg| Self::parse(svg).ok())
            .map(|rig| &*Box::leak(Box::new(rig)));
        rigs.insert(name.to_owned(), rig);
        rig
    }

    /// Reads an SVG.
    ///
    /// # Errors
    /// A sentence that names the element that is not of the subset.
    pub(super) fn parse(svg: &str) -> Result<Self, String> {
        let document = Document::parse(svg).map_err(|error| error.to_string())?;
        Ok(Self {
            root: part(document.root_element(), 0)?,
        })
    }

    /// Draws it with every part posed by `pose`, which is asked by name.
    pub(super) fn draw(&self, pen: &mut Pen, look: &Look, pose: &dyn Fn(&str) -> Pose) {
        draw(&self.root, pen, look, pose);
    }

    /// Where the joint of the first part of that name is when nothing is posed.
    pub(super) fn joint(&self, name: &str) -> Option<(f32, f32)> {
        joint(&self.root, name, Transform::identity())
    }

    /// The names of its parts.
    #[cfg(test)]
    pub(super) fn parts(&self) -> Vec<&str> {
        fn walk<'a>(part: &'a Part, names: &mut Vec<&'a str>) {
            names.push(&part.name);
            for item in &part.items {
                if let Item::Part(part) = item {
                    walk(part, names);
                }
            }
        }
        let mut names = Vec::new();
        walk(&self.root, &mut names);
        names
    }
}

fn joint(part: &Part, name: &str, outer: Transform) -> Option<(f32, f32)> {
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

fn draw(part: &Part, pen: &mut Pen, look: &Look, pose: &dyn Fn(&str) -> Pose) {
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
