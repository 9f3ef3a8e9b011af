//! Drawings as data: SVG files in the binary whose groups are named parts that turn about joints. It reads the subset that
//! `drawings/README.md` describes, nothing from disk, and poses parts as the caller decides.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use roxmltree::{Document, Node};
use tiny_skia::{Path, PathBuilder, Point, Rect, Transform};

use super::SubjectColours;
use crate::raster::colour::Rgb;
use crate::raster::pen::{Ink, Pen};

/// A drawing in a square of 100 by 100, y down, or a part of one: shapes and smaller parts about a joint.
#[derive(Clone, Debug)]
pub(super) struct Rig {
    name: String,
    joint: (f32, f32),
    place: Transform,
    items: Vec<RigItem>,
}

#[derive(Clone, Debug)]
enum RigItem {
    Shape(Box<RigShape>),
    Part(Rig),
}

impl Rig {
    /// The drawing of that name, parsed at its first use; `None` if there is none.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        static RIGS: Mutex<BTreeMap<String, Option<&'static Rig>>> = Mutex::new(BTreeMap::new());
        let mut rigs = RIGS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rigs.get(name) {
            return *known;
        }
        // Leaks once per drawing, so the number of drawings bounds the leak.
        let rig = source(name)
            .and_then(|svg| Self::parse(svg).ok())
            .map(|rig| &*Box::leak(Box::new(rig)));
        rigs.insert(name.to_owned(), rig);
        rig
    }

    /// Reads an SVG.
    ///
    /// # Errors
    /// A sentence that names the element outside the subset.
    fn parse(svg: &str) -> Result<Self, String> {
        let document = Document::parse(svg).map_err(|error| error.to_string())?;
        parse_part(document.root_element(), 0)
    }

    /// Draws it. `pose` gives the pose of each part by its name.
    pub(super) fn draw(
        &self,
        pen: &mut Pen,
        look: &SubjectColours,
        pose: &dyn Fn(&str) -> PartPose,
    ) {
        // Groups without a name only place what is in them.
        let posed = if self.name.is_empty() {
            PartPose::REST
        } else {
            pose(&self.name)
        };
        if posed.hidden {
            return;
        }
        pen.within(self.place.pre_concat(posed.about(self.joint)), |pen| {
            for item in &self.items {
                match item {
                    RigItem::Part(part) => part.draw(pen, look, pose),
                    RigItem::Shape(shape) => shape.draw(pen, look),
                }
            }
        });
    }

    /// The joint of the first part of that name, at rest.
    pub(super) fn joint(&self, name: &str) -> Option<(f32, f32)> {
        self.joint_under(name, Transform::identity())
    }

    fn joint_under(&self, name: &str, outer: Transform) -> Option<(f32, f32)> {
        let onto = outer.pre_concat(self.place);
        if self.name == name {
            let mut point = Point::from(self.joint);
            onto.map_point(&mut point);
            return Some((point.x, point.y));
        }
        self.items.iter().find_map(|item| match item {
            RigItem::Part(part) => part.joint_under(name, onto),
            RigItem::Shape(_) => None,
        })
    }

    /// The names of it and its parts.
    #[cfg(test)]
    pub(super) fn parts(&self) -> Vec<&str> {
        let mut names = vec![self.name.as_str()];
        for item in &self.items {
            if let RigItem::Part(part) = item {
                names.extend(part.parts());
            }
        }
        names
    }
}

/// The pose of a part about its joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PartPose {
    /// Clockwise, in a picture that faces right.
    pub(super) degrees: f32,
    pub(super) shift: (f32, f32),
    pub(super) scale: (f32, f32),
    pub(super) hidden: bool,
}

impl PartPose {
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
        Self::REST.shift(right, down)
    }

    pub(super) const fn scaled(across: f32, down: f32) -> Self {
        Self::REST.scale(across, down)
    }

    /// It, with that offset.
    pub(super) const fn shift(self, right: f32, down: f32) -> Self {
        Self {
            shift: (right, down),
            ..self
        }
    }

    /// It, with that scale.
    pub(super) const fn scale(self, across: f32, down: f32) -> Self {
        Self {
            scale: (across, down),
            ..self
        }
    }

    /// At rest if `shown`, otherwise hidden.
    pub(super) const fn shown_if(shown: bool) -> Self {
        if shown { Self::REST } else { Self::HIDDEN }
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
enum ShapeHue {
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
struct RigShape {
    path: Path,
    hue: ShapeHue,
    lift: f32,
    alpha: f32,
    /// Width of a line; `None`: filled.
    line: Option<f32>,
    /// A linear fade of the opacity to 0.0, from one point to the other.
    fade: Option<[f32; 4]>,
    /// Visible only by lamplight.
    lit_only: bool,
    /// Visible only in snow.
    snow_only: bool,
}

impl RigShape {
    fn draw(&self, pen: &mut Pen, look: &SubjectColours) {
        if self.lit_only && !look.lit || self.snow_only && !look.snowy {
            return;
        }
        // Unlit lamps are painted in a dull mixture, so that they read as lamps by day too.
        let own = match self.hue {
            ShapeHue::Main => look.main,
            ShapeHue::Trim => look.trim,
            ShapeHue::Dark => look.dark,
            ShapeHue::Pale => look.pale,
            ShapeHue::Lamp if look.lit => look.lamp,
            ShapeHue::Lamp => look.dark.mix(look.trim, 0.5),
            ShapeHue::Skin => look.skin,
            ShapeHue::Hair => look.hair,
            ShapeHue::Fixed(colour) => look.under_light(colour),
            ShapeHue::Shade(colour) => colour,
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

// Parses the subset of SVG that `drawings/README.md` describes into parts and shapes. It draws
// nothing.

/// Maximum nesting of parts, across files.
const DEPTH_MAX: usize = 12;

fn parse_part(node: Node<'_, '_>, depth: usize) -> Result<Rig, String> {
    if depth > DEPTH_MAX {
        return Err("parts are nested too deeply".to_owned());
    }
    let mut items = Vec::new();
    for child in node.children().filter(Node::is_element) {
        match child.tag_name().name() {
            "g" => items.push(RigItem::Part(parse_part(child, depth + 1)?)),
            "use" => items.push(RigItem::Part(parse_use(child, depth + 1)?)),
            "title" | "desc" | "style" | "metadata" | "defs" => {}
            _ => items.push(RigItem::Shape(Box::new(parse_shape(child)?))),
        }
    }
    let joint = match node.attribute("data-joint") {
        Some(text) => match parse_numbers(text)?.as_slice() {
            [x, y] => (*x, *y),
            _ => return Err(format!("data-joint=\"{text}\" is not two numbers")),
        },
        None => (50.0, 50.0),
    };
    Ok(Rig {
        name: node.attribute("id").unwrap_or_default().to_owned(),
        joint,
        place: parse_transform(node)?,
        items,
    })
}

/// `<use href="FILE#PART">`: a part of another drawing, or of the same one without a file name.
fn parse_use(node: Node<'_, '_>, depth: usize) -> Result<Rig, String> {
    let href = node.attribute("href").unwrap_or_default();
    let (file, id) = href
        .split_once('#')
        .ok_or_else(|| format!("href=\"{href}\" names no part"))?;
    // Parts are copied when they are used; `depth` goes on counting, so that two files that use
    // each other end in an error.
    let other;
    let document = if file.is_empty() {
        node.document()
    } else {
        let name = file.strip_suffix(".svg").unwrap_or(file);
        let svg = source(name).ok_or_else(|| format!("there is no drawing {name}"))?;
        other = Document::parse(svg).map_err(|error| error.to_string())?;
        &other
    };
    let found = document
        .root_element()
        .descendants()
        .find(|node| node.attribute("id") == Some(id))
        .ok_or_else(|| format!("there is no part \"{href}\""))?;
    let inner = parse_part(found, depth)?;
    Ok(Rig {
        name: node.attribute("id").unwrap_or_default().to_owned(),
        joint: inner.joint,
        place: parse_transform(node)?,
        items: vec![RigItem::Part(inner)],
    })
}

fn parse_transform(node: Node<'_, '_>) -> Result<Transform, String> {
    let Some(text) = node.attribute("transform") else {
        return Ok(Transform::identity());
    };
    let all: svgtypes::Transform = text
        .parse()
        .map_err(|error| format!("transform=\"{text}\": {error}"))?;
    let [a, b, c, d, e, f] = [all.a, all.b, all.c, all.d, all.e, all.f].map(|one| one as f32);
    Ok(Transform::from_row(a, b, c, d, e, f))
}

fn parse_numbers(text: &str) -> Result<Vec<f32>, String> {
    text.split([' ', ','])
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.parse::<f32>()
                .map_err(|_| format!("\"{word}\" is not a number"))
        })
        .collect()
}

/// The number in an attribute, or `usual` without it.
fn parse_number(node: Node<'_, '_>, name: &str, usual: f32) -> Result<f32, String> {
    node.attribute(name).map_or(Ok(usual), |text| {
        text.parse::<f32>()
            .map_err(|_| format!("{name}=\"{text}\" is not a number"))
    })
}

fn parse_shape(node: Node<'_, '_>) -> Result<RigShape, String> {
    let classes: Vec<&str> = node
        .attribute("class")
        .unwrap_or_default()
        .split(' ')
        .collect();
    let line = if classes.contains(&"line") {
        Some(parse_number(node, "stroke-width", 1.0)?)
    } else {
        None
    };
    let fade = node.attribute("data-fade").map(parse_numbers).transpose()?;
    let fade = match fade.as_deref() {
        None => None,
        Some([x1, y1, x2, y2]) => Some([*x1, *y1, *x2, *y2]),
        Some(_) => return Err("data-fade is not four numbers".to_owned()),
    };
    Ok(RigShape {
        path: parse_outline(node)?,
        hue: parse_hue(node, &classes)?,
        lift: parse_number(node, "data-lift", 0.0)?,
        alpha: parse_number(node, "opacity", 1.0)?,
        line,
        fade,
        lit_only: classes.contains(&"lit"),
        snow_only: classes.contains(&"snow"),
    })
}

fn parse_hue(node: Node<'_, '_>, classes: &[&str]) -> Result<ShapeHue, String> {
    for class in classes {
        match *class {
            "main" => return Ok(ShapeHue::Main),
            "trim" => return Ok(ShapeHue::Trim),
            "dark" => return Ok(ShapeHue::Dark),
            "pale" => return Ok(ShapeHue::Pale),
            "lamp" => return Ok(ShapeHue::Lamp),
            "skin" => return Ok(ShapeHue::Skin),
            "hair" => return Ok(ShapeHue::Hair),
            "shade" => return Ok(ShapeHue::Shade(Rgb::BLACK)),
            "shine" => return Ok(ShapeHue::Shade(Rgb::WHITE)),
            _ => {}
        }
    }
    let colour = node.attribute("fill").or_else(|| node.attribute("stroke"));
    let code = colour
        .and_then(|text| text.strip_prefix('#'))
        .filter(|hex| hex.len() == 6)
        .and_then(|hex| u32::from_str_radix(hex, 16).ok());
    code.map(|code| ShapeHue::Fixed(Rgb::hex(code)))
        .ok_or_else(|| format!("{} has neither a class nor #rrggbb", node.tag_name().name()))
}

/// The outline of a basic shape.
fn parse_outline(node: Node<'_, '_>) -> Result<Path, String> {
    let name = node.tag_name().name();
    let get = |attribute: &str| parse_number(node, attribute, 0.0);
    let path = match name {
        "path" => return parse_path(node.attribute("d").unwrap_or_default()),
        "circle" => PathBuilder::from_circle(get("cx")?, get("cy")?, get("r")?),
        "ellipse" => {
            let (x, y, across, down) = (get("cx")?, get("cy")?, get("rx")?, get("ry")?);
            Rect::from_xywh(x - across, y - down, across * 2.0, down * 2.0)
                .and_then(PathBuilder::from_oval)
        }
        "rect" => Rect::from_xywh(get("x")?, get("y")?, get("width")?, get("height")?)
            .map(PathBuilder::from_rect),
        "line" => {
            let mut path = PathBuilder::new();
            path.move_to(get("x1")?, get("y1")?);
            path.line_to(get("x2")?, get("y2")?);
            path.finish()
        }
        "polygon" | "polyline" => {
            let points = parse_numbers(node.attribute("points").unwrap_or_default())?;
            let mut path = PathBuilder::new();
            for (nth, point) in points.as_chunks::<2>().0.iter().enumerate() {
                match nth {
                    0 => path.move_to(point[0], point[1]),
                    _ => path.line_to(point[0], point[1]),
                }
            }
            if name == "polygon" {
                path.close();
            }
            path.finish()
        }
        other => return Err(format!("<{other}> is not drawn")),
    };
    path.ok_or_else(|| format!("a <{name}> without an outline"))
}

fn parse_path(data: &str) -> Result<Path, String> {
    use svgtypes::SimplePathSegment as Segment;
    let mut path = PathBuilder::new();
    for segment in svgtypes::SimplifyingPathParser::from(data) {
        match segment.map_err(|error| format!("d=\"{data}\": {error}"))? {
            Segment::MoveTo { x, y } => path.move_to(x as f32, y as f32),
            Segment::LineTo { x, y } => path.line_to(x as f32, y as f32),
            Segment::Quadratic { x1, y1, x, y } => {
                path.quad_to(x1 as f32, y1 as f32, x as f32, y as f32);
            }
            Segment::CurveTo {
                x1,
                y1,
                x2,
                y2,
                x,
                y,
            } => path.cubic_to(
                x1 as f32, y1 as f32, x2 as f32, y2 as f32, x as f32, y as f32,
            ),
            Segment::ClosePath => path.close(),
        }
    }
    path.finish()
        .ok_or_else(|| format!("d=\"{data}\" has no outline"))
}

macro_rules! drawings {
    ($($name:literal)*) => {
        /// The SVG of that name, without its ending.
        pub(super) fn source(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../../drawings/", $name, ".svg"))),)*
                _ => None,
            }
        }

        /// The names of all drawings.
        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];
    };
}

drawings! {
    "airship" "ambulance" "apple" "ball" "balloon" "banana" "bare-tree" "barn" "bat" "bear" "bed"
    "bee" "bell" "bench" "bicycle" "bird" "boat" "book" "bottle" "bread" "bridge" "burger" "bus"
    "bush" "butterfly" "cactus" "cake" "camel" "camera" "campfire" "candle" "canoe" "car" "carrot"
    "castle" "cat" "chair" "cheese" "cherry-tree" "chicken" "church" "clock" "cow" "crab"
    "crocodile" "crown" "crystal" "cup" "deer" "dinosaur" "dog" "dolphin" "donkey" "door" "doughnut"
    "dragon" "dragonfly" "drone" "drum" "duck" "eagle" "egg" "elephant" "factory" "ferris-wheel"
    "fire-engine" "fish" "flamingo" "flower" "fountain" "fox" "frog" "gift" "giraffe" "glass"
    "globe" "goat" "grapes" "guitar" "heart" "hedgehog" "helicopter" "hippo" "horse"
    "hot-air-balloon" "hourglass" "house" "ice-cream" "iceberg" "igloo" "jellyfish" "kangaroo" "key"
    "kite" "ladybug" "lamp" "lamp-post" "lantern" "laptop" "lemon" "letter" "lighthouse" "lion"
    "monkey" "motorcycle" "mouse" "mushroom" "octopus" "orange" "owl" "palm-tree" "panda" "parrot"
    "parts-bird" "parts-building" "parts-fair" "parts-flame" "parts-heads" "parts-light"
    "parts-palm" "parts-people-bicycle" "parts-people-hair" "parts-people-hats" "parts-people-heads"
    "parts-people-horse" "parts-people-limbs" "parts-people-odd" "parts-people-props"
    "parts-people-torsos" "parts-petals" "parts-train" "parts-vehicle" "penguin" "phone" "piano"
    "pig" "pine" "pizza" "plane" "planet" "polar-bear" "police-car" "pumpkin" "pyramid" "rabbit"
    "rhino" "rocket" "rose" "sailing-ship" "satellite" "seal" "shark" "sheep" "ship" "skyscraper"
    "sled" "snail" "snake" "snowman" "sofa" "soup" "spaceship" "spider" "squirrel" "statue"
    "steam-train" "strawberry" "submarine" "suitcase" "sunflower" "swan" "sword" "table" "taxi"
    "teapot" "teddy-bear" "telescope" "television" "temple" "tent" "tiger" "tower" "tractor" "train"
    "tram" "treasure-chest" "tree" "truck" "tulip" "turtle" "unicorn" "vase" "violin" "volcano"
    "waterfall" "watermelon" "whale" "windmill" "wolf" "zebra"
}

#[cfg(test)]
mod tests {
    use super::{NAMES, source};
    use crate::art::rig::Rig;

    #[test]
    fn every_drawing_is_of_the_subset() {
        for name in NAMES {
            let svg = source(name).unwrap();
            let rig = Rig::parse(svg);
            assert!(rig.is_ok(), "{name}: {:?}", rig.err());
        }
    }

    #[test]
    fn every_file_is_a_drawing() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/drawings");
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter_map(|name| name.strip_suffix(".svg").map(str::to_owned))
            .collect();
        names.sort();
        let mut known: Vec<&str> = NAMES.to_vec();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
