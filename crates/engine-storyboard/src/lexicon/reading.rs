//! The scene that a text describes, its inheritance from shot to shot, and the actions that each subject can do. It knows
//! bodies, not words.

use super::{Framing, Hour, Meaning, Mood, Motion, Place, Season, Weather};
use crate::raster::colour::Rgb;
use crate::subject::{Act, BodyKind, Stance, Subject};

/// The target of a colour word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ColourTint {
    Ground(Rgb),
    Heaven(Rgb),
    Place(Rgb),
    Whole(Rgb),
}

/// A subject and its properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Role {
    pub(crate) subject: Subject,
    /// Number of figures; 0 if an edit removed it and its place stays empty.
    pub(crate) count: u32,
    pub(crate) colour: Option<Rgb>,
    /// Its size as a share of the usual one.
    pub(crate) size: f32,
    pub(crate) act: Option<Act>,
    /// The subject that holds it.
    pub(crate) holder: Option<Subject>,
    /// Whether only an earlier shot asks for it.
    pub(crate) inherited: bool,
}

impl Role {
    /// One of the usual size.
    pub(crate) const fn new(subject: Subject) -> Self {
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
pub(crate) struct LineFades {
    pub(crate) from_black: bool,
    pub(crate) to_black: bool,
}

/// Sounds that the words forbid. One such shot applies to the whole clip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SoundWishes {
    pub(crate) silent: bool,
    pub(crate) no_music: bool,
}

/// The words that are not drawn as they say, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LostWords {
    /// Words for which nothing is drawn.
    pub(crate) missed: Vec<String>,
    /// Words for which another thing is drawn, with the word for that thing.
    pub(crate) near: Vec<(String, String)>,
    /// Styles, qualities and relations.
    pub(crate) styles: Vec<String>,
    /// The other words: drawn.
    pub(crate) drawn: Vec<String>,
}

/// The meaning of the words; fields that they do not mention are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) hour: Option<Hour>,
    /// Whether the words only imply the hour.
    pub(crate) implied: bool,
    /// The hour at the end of the shot, if it changes.
    pub(crate) turns: Option<Hour>,
    pub(crate) season: Option<Season>,
    pub(crate) weather: Vec<Weather>,
    pub(crate) place: Option<Place>,
    /// Two or more places are common: "mountains by the sea".
    pub(crate) places: Vec<Place>,
    pub(crate) roles: Vec<Role>,
    pub(crate) tints: Vec<ColourTint>,
    pub(crate) motions: Vec<Motion>,
    pub(crate) framing: Vec<Framing>,
    pub(crate) mood: Option<Mood>,
    pub(crate) neon: bool,
    /// The meanings that the words exclude.
    pub(crate) without: Vec<Meaning>,
    pub(crate) fades: LineFades,
    pub(crate) hearing: SoundWishes,
    pub(crate) crescent: bool,
    /// Actions, and as written, for a subject of another shot.
    pub(crate) loose: Vec<(Act, String)>,
    /// The subject at the left of another one.
    pub(crate) order: Option<(Subject, Subject)>,
    /// The words that are not drawn as they say.
    pub(crate) lost: LostWords,
    /// The readings before each edit, the first version first. They fix the places of the figures.
    pub(crate) past: Vec<Self>,
}

impl Reading {
    pub(crate) fn has_weather(&self, weather: Weather) -> bool {
        self.weather.contains(&weather)
    }

    /// Whether rain falls.
    pub(crate) fn is_rainy(&self) -> bool {
        self.has_weather(Weather::Rain) || self.has_weather(Weather::Storm)
    }

    /// Whether snow covers the ground.
    pub(crate) fn is_snowy(&self) -> bool {
        self.has_weather(Weather::Snow) || self.season == Some(Season::Winter)
    }

    pub(crate) fn has_motion(&self, motion: Motion) -> bool {
        self.motions.contains(&motion)
    }

    pub(crate) fn has_framing(&self, framing: Framing) -> bool {
        self.framing.contains(&framing)
    }

    /// The role of `subject`, if the words name it.
    pub(crate) fn role(&self, subject: Subject) -> Option<&Role> {
        self.roles
            .iter()
            .find(|role| role.subject == subject && role.count > 0)
    }

    /// Whether the words name `subject`.
    pub(crate) fn shows(&self, subject: Subject) -> bool {
        self.role(subject).is_some()
    }

    /// The colour that the words give `subject`.
    pub(crate) fn colour_of(&self, subject: Subject) -> Option<Rgb> {
        self.role(subject).and_then(|role| role.colour)
    }

    /// Fills the empty fields of this reading from `other`: the previous shot, or the prompt's words about the
    /// whole film. A shot that names its own place inherits no weather and no ground colours.
    pub(crate) fn inherit(&mut self, other: &Self) {
        let moved = self.place.is_some() && other.place.is_some() && self.place != other.place;
        // After a shot in which night turned into day it is day.
        self.hour = self.hour.or(other.turns).or(other.hour);
        self.season = self.season.or(other.season);
        if self.weather.is_empty() && !moved {
            self.weather.clone_from(&other.weather);
        }
        if self.roles.iter().find(has_home).is_none() && self.place.is_none() {
            let has_home = other.roles.iter().filter(has_home);
            self.roles.extend(has_home.map(|role| Role {
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
        let inherited: Vec<ColourTint> = other
            .tints
            .iter()
            .filter(|tint| match tint {
                ColourTint::Ground(_) | ColourTint::Place(_) => !moved && self.is_plain(),
                ColourTint::Heaven(_) | ColourTint::Whole(_) => self.is_plain(),
            })
            .copied()
            .collect();
        self.tints.extend(inherited);
        self.mood = self.mood.or(other.mood);
        self.neon |= other.neon && !moved;
        self.crescent |= other.crescent && !moved;
    }

    /// Gives the action without a subject in this text to the subjects of this shot.
    pub(crate) fn assign_loose_acts(&mut self) {
        let loose = std::mem::take(&mut self.loose);
        for (nth, (act, word)) in loose.into_iter().enumerate() {
            let mut done = false;
            for role in &mut self.roles {
                let can = possible_act(role.subject, act);
                role.act = if nth == 0 {
                    can.or(role.act)
                } else {
                    role.act.or(can)
                };
                done |= can.is_some() && role.act == can;
            }
            if done {
                self.lost.drawn.push(word);
            } else {
                self.lost.missed.push(word);
            }
        }
    }

    /// Whether the words colour only subjects.
    fn is_plain(&self) -> bool {
        self.tints.is_empty()
    }

    /// "The balloon" means the hot-air balloon that an earlier sentence names.
    pub(crate) fn recognise(&mut self, known: &[Subject]) {
        if !known.contains(&Subject::Balloon) {
            return;
        }
        if let Some(named) = self.role(Subject::Balloon).copied() {
            self.roles.retain(|role| {
                !(is_toy_balloon(role)
                    && role.count == 1
                    && (role.colour.is_none() || role.colour == named.colour))
            });
            return;
        }
        for role in self.roles.iter_mut().filter(|role| is_toy_balloon(role)) {
            role.subject = Subject::Balloon;
        }
    }
}

/// Whether a role is the balloon of a child.
fn is_toy_balloon(role: &Role) -> bool {
    role.subject == Subject::ToyBalloon
}

/// Whether a role is at home in a certain place.
fn has_home(role: &&Role) -> bool {
    // Sun, moon and birds belong nowhere: a shot that names only these still shows the scene
    // before.
    role.subject.facts().home.is_some()
}

// The subjects that a text names, with their properties.

/// A subject of the text, the item that names it, and its properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    pub(super) item: usize,
    pub(super) role: Role,
    pub(super) counted: bool,
}

/// The subjects, colours and actions of a text.
#[derive(Debug, Default)]
pub(super) struct BoundWords {
    pub(super) mentions: Vec<Mention>,
    pub(super) tints: Vec<ColourTint>,
    /// Actions, and as written, without a subject here: a subject of another shot may do them.
    pub(super) loose: Vec<(Act, String)>,
    /// Actions, as written, that no subject here can do.
    pub(super) idle: Vec<String>,
    /// Colours, sizes and numbers, as written, of things without a drawing.
    pub(super) unowned: Vec<String>,
}

/// The action of `subject` for a prompt that asks for `act`; `None` if it cannot do it.
pub(crate) fn possible_act(subject: Subject, act: Act) -> Option<Act> {
    let facts = subject.facts();
    let (body, stance) = (facts.body, facts.stance);
    let lives = body.lives();
    let walks = lives && matches!(stance, Stance::Walks);
    // An arm returns at once where the act becomes another: a car that "runs" moves, a cat that
    // "plays" jumps.
    let can = match act {
        Act::Stand => true,
        Act::Walk | Act::Run => match stance {
            Stance::Walks if lives => return Some(act),
            Stance::Walks | Stance::Rolls | Stance::Floats => return Some(Act::Move),
            _ => false,
        },
        Act::Move => match stance {
            Stance::Walks if lives && subject != Subject::Skier => return Some(Act::Walk),
            Stance::Flies => return Some(Act::Fly),
            Stance::Swims => return Some(Act::Swim),
            Stance::Walks | Stance::Rolls | Stance::Floats => true,
            _ => subject == Subject::Ball,
        },
        Act::Fly => !matches!(stance, Stance::Hangs) && body != BodyKind::Plant,
        Act::Land => stance == Stance::Flies,
        Act::Rise | Act::Fall => stance == Stance::Flies || subject.is_orb(),
        Act::Swim => lives || matches!(stance, Stance::Floats | Stance::Swims),
        Act::Sit | Act::Sleep => lives && stance != Stance::Swims,
        Act::Jump => walks || stance == Stance::Swims || subject == Subject::Ball,
        Act::Dance => body == BodyKind::Person || body == BodyKind::Quadruped,
        Act::Eat => lives,
        Act::Open => matches!(
            body,
            BodyKind::Building | BodyKind::Plant | BodyKind::Thing | BodyKind::Person
        ),
        Act::Wave | Act::Read => body == BodyKind::Person,
        Act::Play if body == BodyKind::Quadruped => return Some(Act::Jump),
        Act::Play => {
            body == BodyKind::Person || matches!(subject, Subject::Piano | Subject::Guitar)
        }
        Act::Turn if body == BodyKind::Person => return Some(Act::Dance),
        Act::Turn => !lives,
        Act::Burn => matches!(
            subject,
            Subject::Candle
                | Subject::Campfire
                | Subject::Lantern
                | Subject::Lamp
                | Subject::LampPost
                | Subject::Volcano
                | Subject::Fireworks
                | Subject::Lighthouse
        ),
    };
    can.then_some(act)
}
