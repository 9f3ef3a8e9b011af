//! Assigns numbers, colours, sizes and actions to the subjects near them, passes the colour of clothes to their wearer, and
//! merges mentions that describe one figure. It uses the word order of each language and parses no grammar.

use super::language::Language;
use super::reading::{BoundWords, ColourTint, Mention, Role, possible_act};
use super::scan::{ScanItem, WordToken};
use super::{Meaning, is_one_of};
use crate::raster::colour::Rgb;
use crate::subject::{Act, BodyKind, Stance, Subject};

/// Number of figures for a plural without a number.
const SEVERAL: u32 = 3;
/// Number of figures for a plural of small animals, which live in larger groups.
const SWARM: u32 = 5;
/// Maximum number of tokens between a number or a size and its noun.
const NEAR: usize = 4;
/// Maximum number of tokens between a subject and its action.
const DOES: usize = 9;

pub(super) fn bind(items: &[ScanItem], text: &TokenText<'_>) -> BoundWords {
    let mut bound = BoundWords::default();
    for (index, item) in items.iter().enumerate() {
        let mentions = item.subjects().map(|subject| mention(subject, item, index));
        bound.mentions.extend(mentions);
    }
    // Numbers, sizes and colours first: actions look at the mentions as they are then.
    for index in 0..items.len() {
        if items[index].denied || items[index].subject().is_some() {
            continue;
        }
        for meaning in items[index].meanings.clone() {
            match meaning {
                Meaning::Count(count) => bound.assign_count(items, index, count),
                Meaning::Size(size) => bound.assign_size(items, index, size),
                Meaning::Colour(colour) => match text.colour_owner(items, index, &bound.mentions) {
                    Some(ColourOwner::Wearer(who)) => {
                        bound.mentions[who].role.colour = Some(colour);
                    }
                    Some(ColourOwner::Undrawn) => bound.unowned.push(items[index].written.clone()),
                    None => bound.assign_colour(items, index, colour),
                },
                _ => {}
            }
        }
    }
    for index in 0..items.len() {
        let act = items[index].meanings.iter().find_map(Meaning::act);
        if let Some(act) = act.filter(|_| !items[index].denied) {
            bound.assign_act(items, index, act, text);
        }
    }
    merge_mentions(&mut bound, items);
    bound
}

/// The properties that an item's words give to its subject.
fn mention(subject: Subject, item: &ScanItem, index: usize) -> Mention {
    let mut role = Role::new(subject);
    for meaning in &item.meanings {
        match meaning {
            Meaning::Count(count) => role.count = *count,
            Meaning::Size(size) => role.size *= size,
            Meaning::Colour(colour) => role.colour = Some(*colour),
            _ => {}
        }
    }
    let counted = role.count > 1;
    if item.plural && !counted && may_be_many(subject) {
        role.count = match subject {
            Subject::Birds | Subject::Fish | Subject::Bee | Subject::Butterfly => SWARM,
            _ => SEVERAL,
        };
    }
    Mention {
        item: index,
        role,
        counted,
    }
}

/// Whether a plural means several figures: a drawing that already shows many stays one.
fn may_be_many(subject: Subject) -> bool {
    use Subject::{Campfire, Couple, Crowd, Fireworks, Flower, Waterfall};
    !subject.is_orb()
        && !matches!(
            subject,
            Fireworks | Crowd | Couple | Flower | Waterfall | Campfire
        )
}

impl BoundWords {
    /// The mention that the word at `index` describes: the next one, else the previous one.
    fn nearest_mention(&self, items: &[ScanItem], index: usize) -> Option<usize> {
        let (at, end) = (items[index].at, items[index].at + items[index].count);
        let stops = |from: usize, to: usize| items[from..to].iter().any(ScanItem::is_stop);
        // Within four tokens ahead ("two of the small dogs"), else within two behind, and never
        // across the end of a clause.
        let next = self.mentions.iter().position(|one| one.item >= index);
        let next = next.filter(|one| {
            let item = self.mentions[*one].item;
            item == index || items[item].at < end + NEAR && !stops(index, item)
        });
        next.or_else(|| {
            let before = self.mentions.iter().rposition(|one| one.item < index)?;
            let item = self.mentions[before].item;
            (items[item].at + items[item].count + 3 > at && !stops(item, index)).then_some(before)
        })
    }

    /// All mentions from the item of mention `one`.
    fn of_same_item(&mut self, one: usize) -> impl Iterator<Item = &mut Mention> {
        let item = self.mentions[one].item;
        self.mentions
            .iter_mut()
            .filter(move |mention| mention.item == item)
    }

    fn assign_count(&mut self, items: &[ScanItem], index: usize, count: u32) {
        let Some(near) = self.nearest_mention(items, index) else {
            self.unowned
                .extend((count > 1).then(|| items[index].written.clone()));
            return;
        };
        for mention in self.of_same_item(near) {
            // "One of three cats": the nearer number wins.
            if mention.item != index
                && (!mention.counted || items[mention.item].at > items[index].at)
            {
                mention.role.count = count.max(1);
                mention.counted = true;
            }
        }
    }

    fn assign_size(&mut self, items: &[ScanItem], index: usize, size: f32) {
        match self.nearest_mention(items, index) {
            Some(near) if self.mentions[near].item != index => {
                self.of_same_item(near).for_each(|one| one.role.size = size);
            }
            Some(_) => {}
            None => self.unowned.push(items[index].written.clone()),
        }
    }

    /// Paints the next thing within four tokens, else the one just before the colour (the order of Romance
    /// languages), else the whole picture.
    fn assign_colour(&mut self, items: &[ScanItem], index: usize, colour: Rgb) {
        let (at, end) = (items[index].at, items[index].at + items[index].count);
        let next_touches = items
            .get(index + 1)
            .is_some_and(|item| item.at == end && is_paintable(item));
        // "El faro rojo junto al mar": a thing just before wins over one farther behind.
        let touched = index
            .checked_sub(1)
            .filter(|before| items[*before].at + items[*before].count == at && !next_touches)
            .filter(|before| is_paintable(&items[*before]));
        // If "a red balloon" loses its balloon, nothing is red.
        let denied = items
            .get(index + 1)
            .is_some_and(|item| item.denied && item.at <= end + 2);
        if denied && touched.is_none() {
            return;
        }
        let target = touched
            .or_else(|| {
                (index + 1..items.len())
                    .take_while(|one| items[*one].at <= end + 3 && !items[*one].is_stop())
                    .take_while(|one| !matches!(items[*one].meanings[..], [Meaning::Colour(_)]))
                    .find(|one| is_paintable(&items[*one]))
            })
            // "A cat in blue", "猫是蓝色的".
            .or_else(|| {
                (index.saturating_sub(3)..index)
                    .rev()
                    .take_while(|one| {
                        !items[*one].is_stop() && items[*one].at + items[*one].count + 2 >= at
                    })
                    .find(|one| matches!(items[*one].meanings[..], [Meaning::Subject(_), ..]))
            });
        let Some(target) = target else {
            self.tints.push(ColourTint::Whole(colour));
            return;
        };
        let named = self
            .mentions
            .iter()
            .position(|one| one.item == target && !one.role.subject.is_orb());
        if let Some(named) = named {
            for mention in self.of_same_item(named) {
                mention.role.colour = mention.role.colour.or(Some(colour));
            }
            return;
        }
        let tint = items[target]
            .meanings
            .iter()
            .find_map(|meaning| match meaning {
                Meaning::Subject(_) | Meaning::Heaven | Meaning::Hour(_) => {
                    Some(ColourTint::Heaven(colour))
                }
                Meaning::Ground => Some(ColourTint::Ground(colour)),
                Meaning::Place(_) => Some(ColourTint::Place(colour)),
                _ => None,
            });
        self.tints.extend(tint);
    }

    /// Gives an action to its subject: the one just after a participle, else the previous one in the same clause
    /// with those that "and" joins to it, else the next.
    fn assign_act(&mut self, items: &[ScanItem], index: usize, act: Act, text: &TokenText<'_>) {
        let item = &items[index];
        let (at, end) = (item.at, item.at + item.count);
        let able = |mention: &Mention| possible_act(mention.role.subject, act).is_some();
        // Only words that describe the noun can stand between it and a participle.
        let next = self.mentions.iter().position(|one| one.item > index);
        let next = next.filter(|one| {
            let item = self.mentions[*one].item;
            let qualities = items[index + 1..item].iter().all(is_quality);
            qualities && items[item].at <= end + NEAR
        });
        let leads = text.language.leads(&item.written.to_lowercase());
        let stop = items[..index]
            .iter()
            .rposition(ScanItem::is_stop)
            .map_or(0, |stop| stop + 1);
        let doer = self
            .mentions
            .iter()
            .rfind(|one| one.item < index && one.item >= stop);
        if at > 0 && text.is_undrawn(at - 1) && doer.is_none() {
            // "Ants eating a spider": what is not drawn does it, and nothing behind it.
            self.idle.push(item.written.clone());
            return;
        }
        let animal = doer.is_some_and(|one| one.role.subject.facts().body == BodyKind::Quadruped);
        let mut subjects = self.mentions.iter().map(|one| one.role.subject);
        if act == Act::Play && animal && subjects.any(is_instrument) {
            // An animal that plays jumps, and holds no guitar.
            self.idle.push(item.written.clone());
            return;
        }
        if let Some(next) = next.filter(|next| leads && able(&self.mentions[*next])) {
            self.give_act(item, next, act);
            return;
        }
        let before = self.mentions.iter().rposition(|one| {
            one.item < index && one.item >= stop && items[one.item].at + DOES >= at && able(one)
        });
        let object = self.flown_object(items, index, act);
        if let (Some(_), Some(object)) = (before, object) {
            // "A boy flies a kite": the kite flies.
            self.give_act(item, object, act);
        } else if let Some(before) = before {
            self.give_act_to_all(items, index, before, act);
        } else if let Some(next) = next.filter(|next| able(&self.mentions[*next])) {
            self.give_act(item, next, act);
        } else if self
            .mentions
            .iter()
            .all(|one| one.item > index || one.item < stop)
        {
            // "It sails on": an earlier sentence names the subject.
            let earlier = self
                .mentions
                .iter()
                .rposition(|one| one.item < index && able(one));
            match earlier {
                Some(earlier) => self.give_act(item, earlier, act),
                None if scenery(items, stop, index) => {}
                None => self.loose.push((act, item.written.clone())),
            }
        } else if !scenery(items, stop, index) {
            self.idle.push(item.written.clone());
        }
    }

    /// The object of a person who flies something: the next thing that can fly, just behind the verb.
    fn flown_object(&self, items: &[ScanItem], index: usize, act: Act) -> Option<usize> {
        let end = items[index].at + items[index].count;
        let before = self.mentions.iter().rposition(|one| one.item < index)?;
        let person = self.mentions[before].role.subject.facts().body == BodyKind::Person;
        let next = self.mentions.iter().position(|one| one.item > index)?;
        let Mention { item, role, .. } = self.mentions[next];
        let near =
            items[item].at <= end + NEAR && !items[index..item].iter().any(ScanItem::is_stop);
        let flies = role.subject.facts().stance == Stance::Flies;
        (act == Act::Fly && person && near && flies).then_some(next)
    }

    /// Gives an action, the word `item`, to the subjects of a mention; a subject does the first one only.
    fn give_act(&mut self, item: &ScanItem, mention: usize, act: Act) {
        let mut done = false;
        for Mention { role, .. } in self.of_same_item(mention) {
            let can = possible_act(role.subject, act);
            role.act = role.act.or(can);
            done |= role.act == can;
        }
        self.idle.extend((!done).then(|| item.written.clone()));
    }

    /// Gives an action to `last` and to the mentions that "and" joins to it: "a man and a dog run".
    fn give_act_to_all(&mut self, items: &[ScanItem], index: usize, last: usize, act: Act) {
        self.give_act(&items[index], last, act);
        for one in (0..last).rev() {
            let (from, to) = (self.mentions[one].item, self.mentions[one + 1].item);
            if from == to {
                continue;
            }
            let between = &items[from + 1..to];
            let joined = between.iter().any(|item| item.says(Meaning::And));
            let acts = between
                .iter()
                .any(|item| item.meanings.iter().any(|one| one.act().is_some()));
            if !joined || acts {
                break;
            }
            self.give_act(&items[index], one, act);
        }
    }
}

/// Whether a colour can paint what the item names.
fn is_paintable(item: &ScanItem) -> bool {
    use Meaning::{Ground, Heaven, Hour, Place, Subject};
    !item.denied
        && item.has_meaning(|one| matches!(one, Subject(_) | Heaven | Ground | Place(_) | Hour(_)))
}

fn is_instrument(subject: Subject) -> bool {
    use Subject::{Drum, Guitar, Piano, Violin};
    matches!(subject, Guitar | Piano | Violin | Drum)
}

/// Whether an item only describes the noun behind it.
fn is_quality(item: &ScanItem) -> bool {
    use Meaning::{Colour, Count, Mood, Motion, Size};
    !item.is_stop()
        && item
            .meanings
            .iter()
            .all(|one| matches!(one, Count(_) | Size(_) | Colour(_) | Motion(_) | Mood(_)))
}

/// Whether the nearest thing before an action is scenery, which already moves ("waves roll in").
fn scenery(items: &[ScanItem], from: usize, index: usize) -> bool {
    use Meaning::{Heaven, Hour, Place, Season, Subject, Verb, Weather};
    let mut meanings = items[from..index]
        .iter()
        .rev()
        .flat_map(|item| &item.meanings);
    let thing = meanings.find_map(|meaning| match meaning {
        Subject(subject) => Some(subject.is_orb()),
        Weather(_) | Place(_) | Hour(_) | Heaven | Verb(_) | Season(_) => Some(true),
        _ => None,
    });
    thing.unwrap_or(false)
}

/// Words for driving or riding the thing behind them. Words for passing it are not in this list.
const DRIVES: &str = "drive drives driving ride rides riding row rows rowing conduce fährt fahren guida dirige \
     едет";

/// Merges the mentions that describe one figure.
fn merge_mentions(bound: &mut BoundWords, items: &[ScanItem]) {
    merge_list(&mut bound.mentions, items);
    merge_player(&mut bound.mentions);
    merge_driver(bound, items);
}

fn is_person(mention: &Mention) -> bool {
    mention.role.subject.facts().body == BodyKind::Person
}

/// "Three people: a king, a queen and a knight" means these three.
fn merge_list(mentions: &mut Vec<Mention>, items: &[ScanItem]) {
    let found = mentions.iter().enumerate().find_map(|(at, all)| {
        let many = all.role.subject == Subject::Person && all.role.count > 1;
        let stop = items.get(all.item + 1).is_some_and(ScanItem::is_stop);
        let mut left = all.role.count;
        let listed = mentions[at + 1..].iter().take_while(|one| {
            let ours = is_person(one) && left > 0;
            left = left.saturating_sub(one.role.count);
            ours
        });
        let sum = listed.fold(0_u32, |sum, one| sum.saturating_add(one.role.count));
        (many && stop && sum == all.role.count).then_some(at)
    });
    if let Some(at) = found {
        mentions.remove(at);
    }
}

/// The drawing of a player includes the guitar; a person at a piano stands without one.
fn merge_player(mentions: &mut Vec<Mention>) {
    if !mentions.iter().any(plays) {
        return;
    }
    let mut subjects = mentions.iter().map(|one| one.role.subject);
    if subjects.any(|one| one == Subject::Guitar) {
        mentions.retain(|one| one.role.subject != Subject::Guitar);
    } else if mentions
        .iter()
        .any(|one| one.role.subject == Subject::Piano)
    {
        for one in mentions.iter_mut() {
            if plays(one) {
                one.role.act = Some(Act::Stand);
            } else if one.role.subject == Subject::Piano {
                one.role.act = Some(Act::Play);
            }
        }
    }
}

/// Whether a person makes music.
fn plays(one: &Mention) -> bool {
    let act = one.role.act.unwrap_or(one.role.subject.facts().usual);
    is_person(one) && act == Act::Play
}

/// Puts a driver into the car and a rider onto the horse. A warning names combinations without a drawing.
fn merge_driver(bound: &mut BoundWords, items: &[ScanItem]) {
    let found = bound
        .mentions
        .windows(2)
        .enumerate()
        .find_map(|(at, pair)| {
            let [who, what] = pair else {
                return None;
            };
            let between = items.get(who.item + 1..what.item)?;
            let verb = between
                .iter()
                .find(|item| is_one_of(DRIVES, &item.written.to_lowercase()))?;
            // Beside a person in the bus an animal rides along.
            let animal = at == 0 && who.role.subject.facts().body == BodyKind::Quadruped;
            let fits = (animal || is_person(who))
                && !between
                    .iter()
                    .any(|item| item.is_stop() || item.says(Meaning::And));
            fits.then(|| (at, verb.written.clone()))
        });
    let Some((at, verb)) = found else {
        return;
    };
    let (who, what) = (bound.mentions[at].role, &mut bound.mentions[at + 1].role);
    let facts = what.subject.facts();
    if who.subject.facts().body == BodyKind::Quadruped {
        bound.idle.push(verb);
        return;
    }
    if what.subject == Subject::Horse {
        what.subject = Subject::Rider;
        what.act = Some(Act::Run);
    } else if carries(what.subject) {
        what.act = Some(Act::Move);
    } else {
        let mount = facts.body == BodyKind::Quadruped || what.subject == Subject::Motorcycle;
        bound.idle.extend(mount.then_some(verb));
        return;
    }
    what.count = what.count.max(who.count);
    bound.mentions.remove(at);
}

/// Whether its drawing shows a driver when it moves, or hides the people inside.
fn carries(subject: Subject) -> bool {
    let facts = subject.facts();
    let rolls = facts.body == BodyKind::Vehicle && facts.stance == Stance::Rolls;
    rolls && subject != Subject::Motorcycle || subject == Subject::Canoe
}

/// Maximum number of tokens between clothes and their wearer.
const WORN: usize = 8;

const CLOTHES: &str = "dress coat robe skirt shirt jacket suit hat scarf cloak gown sweater uniform costume \
     trousers jeans hoodie kimono cape raincoat manteau jupe chemise veste chapeau écharpe pull \
     pantalon tenue vestido abrigo falda camisa chaqueta sombrero bufanda traje capa pantalón \
     vestito abito cappotto gonna camicia giacca cappello sciarpa mantello casaco saia chapéu \
     cachecol jaqueta kleid mantel hemd jacke hut schal anzug umhang платье платьем пальто юбке \
     рубашке куртке шляпе плаще";

/// The owner of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColourOwner {
    /// The mention that wears it, by index.
    Wearer(usize),
    /// A thing without a drawing.
    Undrawn,
}

/// The tokens of a text with its unknown words.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenText<'a> {
    pub(super) tokens: &'a [WordToken],
    /// Unknown words and their token indices.
    pub(super) unknown: &'a [(String, usize)],
    pub(super) language: Language,
}

impl TokenText<'_> {
    fn is_cloth(&self, at: usize) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| is_one_of(CLOTHES, &token.text))
    }

    fn is_unknown(&self, at: usize) -> bool {
        let token = self.tokens.get(at);
        let text = token.map(|token| &token.written);
        // The list has an unknown word once, at its first position.
        text.is_some_and(|text| self.unknown.iter().any(|(one, _)| one == text))
    }

    /// Whether the token at `at` is a noun without a drawing.
    fn is_undrawn(&self, at: usize) -> bool {
        let spaced = self.tokens.get(at).is_some_and(|token| !token.unspaced);
        spaced && self.unknown.iter().any(|(_, one)| *one == at)
    }

    /// The owner of the colour at `items[index]`; `None` if the colour is for a drawn thing beside it.
    fn colour_owner(
        &self,
        items: &[ScanItem],
        index: usize,
        mentions: &[Mention],
    ) -> Option<ColourOwner> {
        let (at, end) = (items[index].at, items[index].at + items[index].count);
        let after = (end..end + 2).find(|one| self.is_cloth(*one));
        let before = (at.saturating_sub(2)..at).find(|one| self.is_cloth(*one));
        if let Some(cloth) = after.or(before) {
            let away = |one: &Mention| items[one.item].at.abs_diff(cloth);
            let wearers = mentions
                .iter()
                .filter(|one| one.role.subject.facts().body == BodyKind::Person);
            let near = wearers.filter(|one| away(one) <= WORN);
            let nearest = near.min_by_key(|one| (items[one.item].at > cloth, away(one)))?;
            let wearer = mentions.iter().position(|one| one.item == nearest.item)?;
            return Some(ColourOwner::Wearer(wearer));
        }
        let follows = matches!(
            self.language,
            Language::Spanish | Language::French | Language::Italian | Language::Portuguese
        );
        let undrawn = if follows {
            at > 0 && self.is_unknown(at - 1)
        } else {
            // An unknown word before a known thing may only describe it: the car of "a red plaid car" is red.
            self.is_unknown(end) && mentions.iter().all(|one| items[one.item].at != end + 1)
        };
        undrawn.then_some(ColourOwner::Undrawn)
    }
}
