//! What a text says of a scene, and how one shot inherits from another. No words in here.

use super::super::colour::Rgb;
use super::{Framing, Hour, Mood, Motion, Place, Subject, Weather};

/// What a colour word paints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Tint {
    Subject(Subject, Rgb),
    Ground(Rgb),
    Heaven(Rgb),
    Place(Rgb),
    Whole(Rgb),
}

/// What the words said; what they left open is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Reading {
    pub(in super::super) hour: Option<Hour>,
    pub(in super::super) weather: Vec<Weather>,
    pub(in super::super) place: Option<Place>,
    /// Two or more places are common: "mountains by the sea".
    pub(in super::super) places: Vec<Place>,
    pub(in super::super) subjects: Vec<Subject>,
    pub(in super::super) tints: Vec<Tint>,
    pub(in super::super) motions: Vec<Motion>,
    pub(in super::super) framing: Vec<Framing>,
    pub(in super::super) mood: Option<Mood>,
    pub(in super::super) neon: bool,
}

impl Reading {
    pub(in super::super) fn has(&self, weather: Weather) -> bool {
        self.weather.contains(&weather)
    }

    pub(in super::super) fn moves(&self, motion: Motion) -> bool {
        self.motions.contains(&motion)
    }

    pub(in super::super) fn frames(&self, framing: Framing) -> bool {
        self.framing.contains(&framing)
    }

    /// The colour that the words give to `subject`.
    pub(in super::super) fn colour_of(&self, subject: Subject) -> Option<Rgb> {
        self.tints.iter().find_map(|tint| match tint {
            Tint::Subject(one, colour) if *one == subject => Some(*colour),
            _ => None,
        })
    }

    /// Fills what this reading leaves open from `other`: what went before, or what the prompt
    /// says of the whole film. A shot that names its own place keeps no weather and no ground
    /// colours of another.
    pub(in super::super) fn inherit(&mut self, other: &Self) {
        let moved = self.place.is_some() && other.place.is_some() && self.place != other.place;
        self.hour = self.hour.or(other.hour);
        if self.weather.is_empty() && !moved {
            self.weather.clone_from(&other.weather);
        }
        let homely = |subject: &&Subject| subject.home().is_some();
        if self.subjects.iter().find(homely).is_none() && self.place.is_none() {
            self.subjects.extend(other.subjects.iter().filter(homely));
        }
        if self.place.is_none() {
            self.place = other.place;
            self.places.clone_from(&other.places);
        }
        let open = |tint: &&Tint| match tint {
            Tint::Subject(one, _) => self.colour_of(*one).is_none(),
            Tint::Ground(_) | Tint::Place(_) => !moved && self.is_plain(),
            Tint::Heaven(_) | Tint::Whole(_) => self.is_plain(),
        };
        let inherited: Vec<Tint> = other.tints.iter().filter(open).copied().collect();
        self.tints.extend(inherited);
        self.mood = self.mood.or(other.mood);
        self.neon |= other.neon && !moved;
    }

    /// Whether no colour but those of subjects is named.
    fn is_plain(&self) -> bool {
        self.tints
            .iter()
            .all(|tint| matches!(tint, Tint::Subject(..)))
    }

    /// "The balloon" is the hot-air balloon that was spoken of before.
    pub(in super::super) fn recognise(&mut self, known: &[Subject]) {
        if !known.contains(&Subject::Balloon) {
            return;
        }
        for subject in &mut self.subjects {
            if *subject == Subject::ToyBalloon {
                *subject = Subject::Balloon;
            }
        }
        for tint in &mut self.tints {
            if let Tint::Subject(subject @ Subject::ToyBalloon, _) = tint {
                *subject = Subject::Balloon;
            }
        }
        self.subjects.dedup();
    }
}
