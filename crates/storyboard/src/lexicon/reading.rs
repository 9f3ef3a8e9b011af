//! The scene that a text describes, and its inheritance from shot to shot. It knows no words.

use super::super::colour::Rgb;
use super::super::subject::{Act, Subject};
use super::able::able;
use super::{Framing, Hour, Meaning, Mood, Motion, Place, Season, Weather};

/// The target of a colour word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Tint {
    Ground(Rgb),
    Heaven(Rgb),
    Place(Rgb),
    Whole(Rgb),
}

/// A subject and its properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Role {
    pub(in super::super) subject: Subject,
    /// Number of figures; 0 if an edit removed it and its place stays empty.
    pub(in super::super) count: u32,
    pub(in super::super) colour: Option<Rgb>,
    /// Its size as a share of the usual one.
    pub(in super::super) size: f32,
    pub(in super::super) act: Option<Act>,
    /// The subject that holds it.
    pub(in super::super) holder: Option<Subject>,
    /// Whether only an earlier shot asks for it.
    pub(in super::super) inherited: bool,
}

impl Role {
    /// One of the usual size.
    pub(in super::super) const fn of(subject: Subject) -> Self {
        Self {
            subject,
            count: 1,
            colour: None,
            size: 1.0,
            act: None,
            holder: None,
            inherited: false,
        }
    }
}

/// The ends of a shot that fade, because the words ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Fades {
    pub(in super::super) from_black: bool,
    pub(in super::super) to_black: bool,
}

/// Sounds that the words forbid. One such shot applies to the whole clip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Hearing {
    pub(in super::super) silent: bool,
    pub(in super::super) no_music: bool,
}

/// The words that are not drawn as they say, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Lost {
    /// Nothing is drawn for these.
    pub(in super::super) missed: Vec<String>,
    /// Another thing is drawn for these: the word and the word for what is drawn.
    pub(in super::super) near: Vec<(String, String)>,
    /// Styles, qualities and relations.
    pub(in super::super) styles: Vec<String>,
    /// The other words: drawn.
    pub(in super::super) drawn: Vec<String>,
}

/// The meaning of the words; fields that they do not mention are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Reading {
    pub(in super::super) hour: Option<Hour>,
    /// Whether the words only imply the hour.
    pub(in super::super) implied: bool,
    /// The hour at the end of the shot, if it changes.
    pub(in super::super) turns: Option<Hour>,
    pub(in super::super) season: Option<Season>,
    pub(in super::super) weather: Vec<Weather>,
    pub(in super::super) place: Option<Place>,
    /// Two or more places are common: "mountains by the sea".
    pub(in super::super) places: Vec<Place>,
    pub(in super::super) roles: Vec<Role>,
    pub(in super::super) tints: Vec<Tint>,
    pub(in super::super) motions: Vec<Motion>,
    pub(in super::super) framing: Vec<Framing>,
    pub(in super::super) mood: Option<Mood>,
    pub(in super::super) neon: bool,
    /// The meanings that the words exclude.
    pub(in super::super) without: Vec<Meaning>,
    pub(in super::super) fades: Fades,
    pub(in super::super) hearing: Hearing,
    pub(in super::super) crescent: bool,
    /// Actions, and as written, for a subject of another shot.
    pub(in super::super) loose: Vec<(Act, String)>,
    /// The subject at the left of another one.
    pub(in super::super) order: Option<(Subject, Subject)>,
    /// The words that are not drawn as they say.
    pub(in super::super) lost: Lost,
    /// The readings before each edit, the first version first. They fix the places of the figures.
    pub(in super::super) past: Vec<Self>,
}

impl Reading {
    pub(in super::super) fn has(&self, weather: Weather) -> bool {
        self.weather.contains(&weather)
    }

    /// Whether snow covers the ground.
    pub(in super::super) fn is_snowy(&self) -> bool {
        self.has(Weather::Snow) || self.season == Some(Season::Winter)
    }

    pub(in super::super) fn moves(&self, motion: Motion) -> bool {
        self.motions.contains(&motion)
    }

    pub(in super::super) fn frames(&self, framing: Framing) -> bool {
        self.framing.contains(&framing)
    }

    /// The role of `subject`, if the words name it.
    pub(in super::super) fn role(&self, subject: Subject) -> Option<&Role> {
        self.roles
            .iter()
            .find(|role| role.subject == subject && role.count > 0)
    }

    /// Whether the words name `subject`.
    pub(in super::super) fn shows(&self, subject: Subject) -> bool {
        self.role(subject).is_some()
    }

    /// The colour that the words give `subject`.
    pub(in super::super) fn colour_of(&self, subject: Subject) -> Option<Rgb> {
        self.role(subject).and_then(|role| role.colour)
    }

    /// Fills the empty fields of this reading from `other`: the previous shot, or the prompt's words about the
    /// whole film. A shot that names its own place inherits no weather and no ground colours.
    pub(in super::super) fn inherit(&mut self, other: &Self) {
        let moved = self.place.is_some() && other.place.is_some() && self.place != other.place;
        self.hour = self.hour.or(other.turns).or(other.hour);
        self.season = self.season.or(other.season);
        if self.weather.is_empty() && !moved {
            self.weather.clone_from(&other.weather);
        }
        let homely = |role: &&Role| role.subject.home().is_some();
        if self.roles.iter().find(homely).is_none() && self.place.is_none() {
            let homely = other.roles.iter().filter(homely);
            self.roles.extend(homely.map(|role| Role {
                inherited: true,
                ..*role
            }));
        }
        for role in &mut self.roles {
            // The red car stays red.
            role.colour = role.colour.or(other.colour_of(role.subject));
        }
        if self.place.is_none() {
            self.place = other.place;
            self.places.clone_from(&other.places);
        }
        let open = |tint: &&Tint| match tint {
            Tint::Ground(_) | Tint::Place(_) => !moved && self.is_plain(),
            Tint::Heaven(_) | Tint::Whole(_) => self.is_plain(),
        };
        let inherited: Vec<Tint> = other.tints.iter().filter(open).copied().collect();
        self.tints.extend(inherited);
        self.mood = self.mood.or(other.mood);
        self.neon |= other.neon && !moved;
        self.crescent |= other.crescent && !moved;
    }

    /// Gives the action without a subject in this text to the subjects of this shot.
    pub(in super::super) fn act(&mut self) {
        let loose = std::mem::take(&mut self.loose);
        for (nth, (act, word)) in loose.into_iter().enumerate() {
            let mut done = false;
            for role in &mut self.roles {
                let can = able(role.subject, act);
                role.act = if nth == 0 {
                    can.or(role.act)
                } else {
                    role.act.or(can)
                };
                done |= can.is_some() && role.act == can;
            }
            match done {
                true => self.lost.drawn.push(word),
                false => self.lost.missed.push(word),
            }
        }
    }

    /// Whether the words colour only subjects.
    fn is_plain(&self) -> bool {
        self.tints.is_empty()
    }

    /// "The balloon" means the hot-air balloon that an earlier sentence names.
    pub(in super::super) fn recognise(&mut self, known: &[Subject]) {
        if !known.contains(&Subject::Balloon) {
            return;
        }
        let is_toy = |role: &Role| role.subject == Subject::ToyBalloon;
        if let Some(named) = self.role(Subject::Balloon).copied() {
            let same = |role: &Role| role.colour.is_none() || role.colour == named.colour;
            self.roles
                .retain(|role| !(is_toy(role) && role.count == 1 && same(role)));
            return;
        }
        for role in self.roles.iter_mut().filter(|role| is_toy(role)) {
            role.subject = Subject::Balloon;
        }
    }
}
