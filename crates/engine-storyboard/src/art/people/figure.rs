//! Draws one person: the garments of an outfit on the bones of a posture, back to front.

use tiny_skia::Transform;

use super::outfit::{GarmentTint, Outfit};
use super::skeleton::{Bone, Mouth, Posture, Skeleton};
use crate::art::rig::{PartPose, Rig};
use crate::art::{ActMoment, SubjectColours};
use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::subject::Act;

const LIMBS: &str = "parts-people-limbs";
const TORSOS: &str = "parts-people-torsos";
const HEADS: &str = "parts-people-heads";
const HAIR: &str = "parts-people-hair";
const HATS: &str = "parts-people-hats";
const PROPS: &str = "parts-people-props";

/// Hair that does not cover the ear.
const EARS: [&str; 9] = [
    "short", "crop", "tousled", "ponytail", "bun", "bald", "shaved", "tuft", "pigtails",
];

/// Draws the part `name` of a sheet, in the sheet's own coordinates.
pub(super) fn draw_part(pen: &mut Pen, look: &SubjectColours, sheet: &str, name: &str) {
    if let Some(rig) = Rig::named(sheet).filter(|_| !name.is_empty()) {
        rig.draw(pen, look, &|part| PartPose::shown_if(part == name));
    }
}

/// Draws the part `name` of a sheet with its point `rest` at `at`, turned about it.
pub(super) fn draw_part_at(
    pen: &mut Pen,
    look: &SubjectColours,
    (sheet, name): (&str, &str),
    (rest, at): ((f32, f32), (f32, f32)),
    degrees: f32,
) {
    let place = Transform::from_translate(at.0 - rest.0, at.1 - rest.1)
        .pre_concat(Transform::from_rotate_at(degrees, rest.0, rest.1));
    pen.within(place, |pen| draw_part(pen, look, sheet, name));
}

fn draw_on_bone(pen: &mut Pen, bone: &Bone, look: &SubjectColours, sheet: &str, name: &str) {
    pen.within(bone.onto(), |pen| draw_part(pen, look, sheet, name));
}

/// The look of a garment with that main colour.
fn tinted(look: &SubjectColours, tint: GarmentTint) -> SubjectColours {
    let main = match tint {
        GarmentTint::Main => look.main,
        GarmentTint::Deep => look.main.lift(-0.12),
        GarmentTint::Trim => look.trim,
        GarmentTint::Dark => look.dark.lift(0.06),
        GarmentTint::Pale => look.pale,
        GarmentTint::Skin => look.skin,
        GarmentTint::Hair => look.hair,
        GarmentTint::Fixed(code) => look.under_light(Rgb::hex(code)),
    };
    SubjectColours { main, ..*look }
}

/// The darker look of the far side.
fn far_side(look: &SubjectColours) -> SubjectColours {
    SubjectColours {
        main: look.main.lift(-0.06),
        trim: look.trim.lift(-0.06),
        skin: look.skin.lift(-0.06),
        ..*look
    }
}

/// A person, dressed and posed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersonFigure<'a> {
    outfit: &'a Outfit,
    posture: Posture,
    pub(super) bones: Skeleton,
    act: Act,
    t: f32,
    nth: u8,
}

impl<'a> PersonFigure<'a> {
    pub(super) fn new(outfit: &'a Outfit, posture: Posture, m: &ActMoment) -> Self {
        Self {
            outfit,
            posture,
            bones: Skeleton::new(&outfit.build, &posture),
            act: m.act,
            t: m.t,
            nth: m.nth,
        }
    }

    pub(super) fn draw(&self, pen: &mut Pen, look: &SubjectColours) {
        self.draw_around(pen, look, &|_| {});
    }

    /// Draws it with `between` behind the near limbs and before the far ones (a horse, a bicycle).
    pub(super) fn draw_around(
        &self,
        pen: &mut Pen,
        look: &SubjectColours,
        between: &dyn Fn(&mut Pen),
    ) {
        let hair = tinted(look, self.outfit.hair_tint).main;
        let look = &SubjectColours { hair, ..*look };
        pen.within(self.bones.whole, |pen| {
            self.behind(pen, look);
            self.prop(pen, look);
            // Back to front: what hangs behind, the far side, the body, the near side.
            self.arm(pen, &far_side(look), 1, self.far_arm_is_behind());
            self.leg(pen, &far_side(look), 1);
            between(pen);
            self.leg(pen, look, 0);
            self.trunk(pen, look);
            self.head(pen, look);
            self.before(pen, look);
            self.arm(pen, look, 0, true);
        });
    }

    /// Draws it with `tail` instead of legs.
    pub(super) fn draw_tailed(
        &self,
        pen: &mut Pen,
        look: &SubjectColours,
        tail: &dyn Fn(&mut Pen),
    ) {
        let hair = tinted(look, self.outfit.hair_tint).main;
        let look = &SubjectColours { hair, ..*look };
        pen.within(self.bones.whole, |pen| {
            self.behind(pen, look);
            self.arm(pen, &far_side(look), 1, self.far_arm_is_behind());
            self.trunk(pen, look);
            tail(pen);
            self.head(pen, look);
            self.before(pen, look);
            self.arm(pen, look, 0, true);
        });
    }

    fn far_arm_is_behind(&self) -> bool {
        !matches!(self.act, Act::Play | Act::Read | Act::Sleep)
    }

    fn behind(&self, pen: &mut Pen, look: &SubjectColours) {
        let (outfit, bones) = (self.outfit, &self.bones);
        let lies = matches!(self.act, Act::Sit | Act::Sleep | Act::Swim);
        if !(lies && outfit.back == "cape-back") {
            draw_on_bone(pen, &bones.torso, look, TORSOS, outfit.back);
        }
        for (sheet, name) in [(HAIR, outfit.hair), (HATS, outfit.hat)] {
            let name = match name {
                "bob" => "bob-back",
                "long" => "long-back",
                "ponytail" => "ponytail-back",
                "bun" => "bun-back",
                "curly" => "curly-back",
                "pigtails" => "pigtails-back",
                "veil" if !lies => "veil-back",
                "knight-helm" => "plume-back",
                _ => continue,
            };
            draw_on_bone(pen, &bones.head, look, sheet, name);
        }
    }

    fn arm(&self, pen: &mut Pen, look: &SubjectColours, side: usize, whole: bool) {
        let [upper, lower, hand] = &self.bones.arms[side];
        let cloth = tinted(look, self.outfit.sleeve);
        // The near sleeve stands out from the chest.
        let sleeve = SubjectColours {
            main: cloth.main.lift(if side == 0 { 0.022 } else { 0.0 }),
            ..cloth
        };
        draw_on_bone(pen, upper, &sleeve, LIMBS, self.outfit.arm[0]);
        if whole {
            let (name, tint) = self.outfit.hand;
            let spread = match self.act {
                Act::Wave => side == 1,
                Act::Dance | Act::Jump | Act::Open | Act::Fall | Act::Fly => true,
                _ => false,
            };
            let name = if spread && name == "hand" {
                "hand-open"
            } else {
                name
            };
            draw_on_bone(pen, hand, &tinted(look, tint), LIMBS, name);
            draw_on_bone(pen, lower, &sleeve, LIMBS, self.outfit.arm[1]);
        }
    }

    fn leg(&self, pen: &mut Pen, look: &SubjectColours, side: usize) {
        let [thigh, shin, foot] = &self.bones.legs[side];
        let (names, tint) = self.outfit.leg;
        let leg = tinted(look, tint);
        let (name, tint) = self.outfit.foot;
        let shoe = tinted(look, tint);
        let boots = name.contains("boot");
        if !boots {
            draw_on_bone(pen, foot, &shoe, LIMBS, name);
        }
        draw_on_bone(pen, shin, &leg, LIMBS, names[1]);
        if boots {
            draw_on_bone(pen, foot, &shoe, LIMBS, name);
        }
        draw_on_bone(pen, thigh, &leg, LIMBS, names[0]);
    }

    fn trunk(&self, pen: &mut Pen, look: &SubjectColours) {
        let robot = self.outfit.torso == "tank";
        let neck = if robot { "neck-tube" } else { "neck" };
        let outfit = self.outfit;
        // A coat hangs from under its belt; the skirt of a dress begins at the waist.
        let dress = matches!(outfit.torso, "dress" | "bodice" | "tutu");
        if !dress {
            self.skirt(pen, look);
        }
        draw_on_bone(pen, &self.bones.torso, look, HEADS, neck);
        draw_on_bone(pen, &self.bones.torso, look, TORSOS, outfit.torso);
        if dress {
            self.skirt(pen, look);
        }
    }

    fn skirt(&self, pen: &mut Pen, look: &SubjectColours) {
        if let Some(skirt) = &self.outfit.skirt {
            skirt.draw(pen, look, &self.bones, (self.t * 1.7).sin());
        }
    }

    fn head(&self, pen: &mut Pen, look: &SubjectColours) {
        let bone = &self.bones.head;
        let head = |pen: &mut Pen, name: &str| draw_on_bone(pen, bone, look, HEADS, name);
        // About every three and a half seconds for a seventh of one, each person at another time.
        let blink = (self.t * 0.29 + f32::from(self.nth) * 0.37).fract() < 0.04;
        let robot = self.outfit.torso == "tank";
        let open = if self.posture.asleep || blink {
            "-closed"
        } else {
            ""
        };
        if robot {
            head(pen, "robot-head");
            head(pen, &format!("robot-eyes{open}"));
            return;
        }
        head(pen, "face");
        head(pen, &format!("eyes{open}"));
        head(
            pen,
            match (self.posture.mouth, self.posture.asleep) {
                (_, true) | (Mouth::Smile, _) => "smile",
                (Mouth::Open, _) => "mouth-open",
                (Mouth::Oh, _) => "mouth-oh",
            },
        );
        for name in self.outfit.face {
            let hidden = match *name {
                "lips" => self.posture.mouth != Mouth::Smile,
                "lashes" => !open.is_empty(),
                _ => false,
            };
            if !hidden {
                head(pen, name);
            }
        }
        draw_on_bone(pen, bone, look, HAIR, self.outfit.hair);
        if EARS.contains(&self.outfit.hair) {
            head(pen, "ear");
        }
        draw_on_bone(pen, bone, look, HATS, self.outfit.hat);
    }

    /// Objects in front of the chest: a guitar or a book, and the far hand on it.
    fn before(&self, pen: &mut Pen, look: &SubjectColours) {
        let bones = &self.bones;
        match self.act {
            Act::Play => {
                let at = bones.torso.point(52.0, 51.0);
                draw_part_at(pen, look, (PROPS, "guitar"), ((50.0, 50.0), at), 0.0);
            }
            Act::Read => {
                let (near, far) = (bones.hand(0), bones.hand(1));
                let (x, y) = ((near.0 + far.0) * 0.5 + 1.0, (near.1 + far.1) * 0.5);
                let place = Transform::from_translate(x, y)
                    .pre_concat(Transform::from_rotate(-8.0))
                    .pre_scale(1.15, 1.15)
                    .pre_translate(-50.0, -51.0);
                pen.within(place, |pen| draw_part(pen, look, PROPS, "book"));
            }
            _ => {}
        }
        if !self.far_arm_is_behind() {
            let [_, lower, hand] = &bones.arms[1];
            let (name, tint) = self.outfit.hand;
            draw_on_bone(pen, hand, &tinted(look, tint), LIMBS, name);
            let sleeve = tinted(look, self.outfit.sleeve);
            draw_on_bone(pen, lower, &sleeve, LIMBS, self.outfit.arm[1]);
        }
    }

    /// The object in the far hand.
    fn prop(&self, pen: &mut Pen, look: &SubjectColours) {
        let name = match self.act {
            Act::Eat => "snack",
            Act::Stand | Act::Walk | Act::Run | Act::Move => self.outfit.held,
            _ => "",
        };
        let sway = 1.6 * (self.t * 1.1).sin();
        let onto = ((50.0, 50.0), self.bones.hand(1));
        draw_part_at(pen, look, (PROPS, name), onto, sway);
    }
}
