//! Templates of bodies, paths and headers: text with placeholders such as `{prompt}` or `{first_frame:base64}`.
//! A part whose placeholders all have no value is left out, so one template serves every request. It knows no
//! request: a [`TemplateScope`] gives the values.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use crate::servers::UpstreamError;

/// The name of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueName {
    Model,
    Prompt,
    NegativePrompt,
    Seed,
    Seconds,
    Size,
    Width,
    Height,
    Ratio,
    Tier,
    Audio,
    FirstFrame,
    LastFrame,
    Image,
    Sound,
    Images,
    Audios,
    Key,
    Id,
    Path,
}

/// What a value is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Text,
    Number,
    Seed,
    Tier,
    Slashed,
    Reference,
}

impl ValueName {
    const ALL: [(Self, &'static str, ValueKind); 20] = [
        (Self::Model, "model", ValueKind::Slashed),
        (Self::Prompt, "prompt", ValueKind::Text),
        (Self::NegativePrompt, "negative_prompt", ValueKind::Text),
        (Self::Seed, "seed", ValueKind::Seed),
        (Self::Seconds, "seconds", ValueKind::Number),
        (Self::Size, "size", ValueKind::Text),
        (Self::Width, "width", ValueKind::Number),
        (Self::Height, "height", ValueKind::Number),
        (Self::Ratio, "ratio", ValueKind::Text),
        (Self::Tier, "tier", ValueKind::Tier),
        (Self::Audio, "audio", ValueKind::Number),
        (Self::FirstFrame, "first_frame", ValueKind::Reference),
        (Self::LastFrame, "last_frame", ValueKind::Reference),
        (Self::Image, "image", ValueKind::Reference),
        (Self::Sound, "sound", ValueKind::Reference),
        (Self::Images, "images", ValueKind::Reference),
        (Self::Audios, "audios", ValueKind::Reference),
        (Self::Key, "key", ValueKind::Text),
        (Self::Id, "id", ValueKind::Slashed),
        (Self::Path, "path", ValueKind::Slashed),
    ];

    /// Whether it is a picture or a sound.
    pub(crate) fn is_reference(self) -> bool {
        let mut rows = Self::ALL.iter();
        rows.any(|(name, _, kind)| *name == self && *kind == ValueKind::Reference)
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// As it is; a reference as its public URL, otherwise as a `data:` URL.
    Plain,
    /// `:text`: a number or flag as text.
    Text,
    /// `:31`: the low 31 bits of a number, for servers with signed ones.
    Bits31,
    /// `:upper`: in capitals.
    Upper,
    /// `:path`: its slashes separate segments of a path.
    Path,
    /// `:2`: that many segments of it.
    Segments(usize),
    /// `:url`: a URL that the server can read.
    Url,
    /// `:data_url`: a `data:` URL.
    DataUrl,
    /// `:base64`: the bytes in base64.
    Base64,
    /// `:media_type`: `image/png`.
    MediaType,
    /// `:file`: a part of a form.
    File,
}

/// `{name:form@table}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    pub(crate) name: ValueName,
    pub(crate) form: ValueForm,
    /// The table of `[lookup]` that translates the value.
    pub(crate) table: Option<String>,
    /// As the file has it, without braces.
    text: String,
}

impl FromStr for Placeholder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, table) = match text.split_once('@') {
            Some((rest, table)) => (rest, Some(table.to_owned())),
            None => (text, None),
        };
        let (name, form) = rest.split_once(':').unwrap_or((rest, ""));
        let found = ValueName::ALL.iter().find(|(_, one, _)| *one == name);
        let Some((name, _, kind)) = found else {
            let known: Vec<&str> = ValueName::ALL.iter().map(|(_, one, _)| *one).collect();
            return Err(format!(
                "unknown placeholder {{{text}}}; use one of: {} (write {{{{ for a brace)",
                known.join(", ")
            ));
        };
        let form = match (form, kind) {
            ("", _) => Some(ValueForm::Plain),
            ("text", ValueKind::Number | ValueKind::Seed) => Some(ValueForm::Text),
            ("31", ValueKind::Seed) => Some(ValueForm::Bits31),
            ("upper", ValueKind::Tier) => Some(ValueForm::Upper),
            ("path", ValueKind::Slashed) => Some(ValueForm::Path),
            (count, ValueKind::Slashed) => count
                .parse()
                .ok()
                .filter(|count| (1..=9).contains(count))
                .map(ValueForm::Segments),
            ("url", ValueKind::Reference) => Some(ValueForm::Url),
            ("data_url", ValueKind::Reference) => Some(ValueForm::DataUrl),
            ("base64", ValueKind::Reference) => Some(ValueForm::Base64),
            ("media_type", ValueKind::Reference) => Some(ValueForm::MediaType),
            ("file", ValueKind::Reference) => Some(ValueForm::File),
            _ => None,
        };
        let form = form.ok_or_else(|| {
            let forms = match kind {
                ValueKind::Text => "no form after a colon",
                ValueKind::Number => ":text",
                ValueKind::Seed => ":text or :31",
                ValueKind::Tier => ":upper",
                ValueKind::Slashed => ":path or a number of segments from :1 to :9",
                ValueKind::Reference => ":url, :data_url, :base64, :media_type or :file",
            };
            format!("{{{text}}} has a form that it cannot have; it takes {forms}")
        })?;
        if table.is_some() && *kind == ValueKind::Reference {
            return Err(format!("{{{text}}}: a picture or sound is in no table"));
        }
        Ok(Self {
            name: *name,
            form,
            table,
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.text)
    }
}

/// The values of one request or job.
pub(crate) trait TemplateScope {
    /// The value of a placeholder; in a repeated table `item` is the number of the repetition.
    ///
    /// # Errors
    /// If the request has a value that cannot be written so.
    fn value(
        &self,
        placeholder: &Placeholder,
        item: Option<usize>,
    ) -> Result<Option<Value>, UpstreamError>;

    /// How often a table is repeated.
    fn count(&self, _each: EachReference) -> usize {
        0
    }
}

/// What a table of a list is repeated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EachReference {
    Image,
    Sound,
}

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct TextTemplate(Vec<TextPiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TextPiece {
    Literal(String),
    Hole(Placeholder),
}

impl TryFrom<String> for TextTemplate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), &*text);
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if after.starts_with(brace) {
                literal.push_str(brace);
                rest = &after[1..];
            } else if brace == "{" {
                let unclosed = || format!("{text:?} has a brace that is not closed; write {{{{");
                let (hole, after) = after.split_once('}').ok_or_else(unclosed)?;
                if !literal.is_empty() {
                    pieces.push(TextPiece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(TextPiece::Hole(hole.parse()?));
                rest = after;
            } else {
                literal.push('}');
                rest = after;
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(TextPiece::Literal(literal));
        }
        Ok(Self(pieces))
    }
}

impl TextTemplate {
    /// The only placeholder, if the text is nothing else.
    pub(crate) fn single(&self) -> Option<&Placeholder> {
        match self.0.as_slice() {
            [TextPiece::Hole(hole)] => Some(hole),
            _ => None,
        }
    }

    /// Its placeholders.
    pub(crate) fn holes(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            TextPiece::Hole(hole) => Some(hole),
            TextPiece::Literal(_) => None,
        })
    }

    /// The text without placeholders; `None` with any.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TextPiece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Joins the literal pieces and the values, each as `write` writes it.
    pub(crate) fn join<E>(
        &self,
        mut write: impl FnMut(Result<&str, &Placeholder>) -> Result<String, E>,
    ) -> Result<String, E> {
        let pieces = self.0.iter().map(|piece| match piece {
            TextPiece::Literal(text) => write(Ok(text)),
            TextPiece::Hole(hole) => write(Err(hole)),
        });
        pieces.collect()
    }

    fn fill(&self, scope: &dyn TemplateScope, item: Option<usize>) -> FilledResult {
        if let Some(hole) = self.single() {
            let value = scope.value(hole, item)?;
            return Ok(Filled {
                has_holes: true,
                has_values: value.is_some(),
                value: value.unwrap_or_default(),
            });
        }
        let mut has_values = false;
        let text = self.join(|piece| match piece {
            Ok(literal) => Ok(literal.to_owned()),
            Err(hole) => {
                let value = scope.value(hole, item)?;
                has_values |= value.is_some();
                Ok::<_, UpstreamError>(value.map_or_else(String::new, text_of))
            }
        })?;
        Ok(Filled {
            value: Value::String(text),
            has_holes: self.holes().next().is_some(),
            has_values,
        })
    }

    /// The text for `scope`; `None` if none of its placeholders has a value.
    pub(crate) fn text(&self, scope: &dyn TemplateScope) -> Result<Option<String>, UpstreamError> {
        let filled = self.fill(scope, None)?;
        Ok((!filled.is_left_out()).then(|| text_of(filled.value)))
    }
}

/// A value as text: strings unchanged, everything else as JSON.
pub(crate) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A body, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Template {
    /// A number or flag.
    Constant(Value),
    Text(TextTemplate),
    Table(Vec<(String, Self)>),
    List(Vec<ListItem>),
}

/// An item of a list, which may stand for several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListItem {
    each: Option<EachReference>,
    template: Template,
}

/// The key that repeats a table of a list.
const FOR_EACH: &str = "for_each";

#[derive(Default)]
struct Filled {
    value: Value,
    has_holes: bool,
    has_values: bool,
}

type FilledResult = Result<Filled, UpstreamError>;

impl Filled {
    const fn is_left_out(&self) -> bool {
        self.has_holes && !self.has_values
    }

    /// Whether `part` stays, as a part of this.
    fn add(&mut self, part: &Self) -> bool {
        self.has_holes |= part.has_holes;
        self.has_values |= part.has_values;
        !part.is_left_out()
    }
}

impl Template {
    /// The value for `scope`. `None`: it is left out.
    pub(crate) fn value(&self, scope: &dyn TemplateScope) -> Result<Option<Value>, UpstreamError> {
        let filled = self.fill(scope, None)?;
        Ok((!filled.is_left_out()).then_some(filled.value))
    }

    /// The entries of the table; none of anything else.
    pub(crate) fn entries(&self) -> &[(String, Self)] {
        match self {
            Self::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The placeholder that this is, if it is nothing else.
    pub(crate) fn single(&self) -> Option<&Placeholder> {
        match self {
            Self::Text(text) => text.single(),
            _ => None,
        }
    }

    fn fill(&self, scope: &dyn TemplateScope, item: Option<usize>) -> FilledResult {
        let mut whole = Filled::default();
        match self {
            Self::Constant(value) => whole.value = value.clone(),
            Self::Text(text) => return text.fill(scope, item),
            Self::Table(entries) => {
                let mut table = Map::new();
                for (name, template) in entries {
                    let part = template.fill(scope, item)?;
                    if whole.add(&part) {
                        table.insert(name.clone(), part.value);
                    }
                }
                whole.value = Value::Object(table);
            }
            Self::List(items) => {
                let mut list = Vec::new();
                for ListItem { each, template } in items {
                    whole.has_holes |= each.is_some();
                    let numbers = match each {
                        Some(each) => (0..scope.count(*each)).map(Some).collect(),
                        None => vec![item],
                    };
                    for number in numbers {
                        let part = template.fill(scope, number)?;
                        if whole.add(&part) {
                            list.push(part.value);
                        }
                    }
                }
                whole.value = Value::Array(list);
            }
        }
        Ok(whole)
    }

    /// Visits every placeholder, with its place in the template and the repetition that it is in.
    pub(crate) fn visit<'t>(
        &'t self,
        place: &str,
        each: Option<EachReference>,
        visit: &mut dyn FnMut(&str, &'t Placeholder, Option<EachReference>),
    ) {
        match self {
            Self::Constant(_) => {}
            Self::Text(text) => text.holes().for_each(|hole| visit(place, hole, each)),
            Self::Table(entries) => {
                for (name, template) in entries {
                    template.visit(&format!("{place}.{name}"), each, visit);
                }
            }
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let each = item.each.or(each);
                    item.template
                        .visit(&format!("{place}[{index}]"), each, visit);
                }
            }
        }
    }

    /// The place of a `for_each` that stands outside a list.
    pub(crate) fn stray_for_each(&self, place: &str) -> Option<String> {
        match self {
            Self::Constant(_) | Self::Text(_) => None,
            Self::Table(entries) => entries.iter().find_map(|(name, template)| {
                let place = format!("{place}.{name}");
                if name == FOR_EACH {
                    return Some(place);
                }
                template.stray_for_each(&place)
            }),
            Self::List(items) => items.iter().enumerate().find_map(|(index, item)| {
                item.template.stray_for_each(&format!("{place}[{index}]"))
            }),
        }
    }

    /// Takes over the entries of `other`, table by table; anything but a table is replaced.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (Self::Table(entries), Self::Table(others)) = (&mut *self, other) else {
            *self = other.clone();
            return;
        };
        for (name, template) in others {
            match entries.iter_mut().find(|(one, _)| one == name) {
                Some((_, own)) => own.merge(template),
                None => entries.push((name.clone(), template.clone())),
            }
        }
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TemplateVisitor)
    }
}

struct TemplateVisitor;

impl<'de> Visitor<'de> for TemplateVisitor {
    type Value = Template;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a template: text, a number, a flag, a list or a table")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Template, E> {
        let text = TextTemplate::try_from(text.to_owned());
        text.map(Template::Text).map_err(E::custom)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Template, E> {
        Ok(Template::Constant(flag.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Template, E> {
        Ok(Template::Constant(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Template, E> {
        let number =
            Number::from_f64(number).ok_or_else(|| E::custom("JSON has no such number"))?;
        Ok(Template::Constant(number.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Template, A::Error> {
        let mut list = Vec::new();
        while let Some(mut template) = items.next_element::<Template>()? {
            let each = take_each(&mut template).map_err(A::Error::custom)?;
            list.push(ListItem { each, template });
        }
        Ok(Template::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Template, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry::<String, Template>()? {
            // The name by which `toml` passes a date.
            if entry.0.starts_with("$__") {
                return Err(A::Error::custom("JSON has no dates; write it as a text"));
            }
            table.push(entry);
        }
        Ok(Template::Table(table))
    }
}

/// Takes `for_each` out of a table of a list.
fn take_each(template: &mut Template) -> Result<Option<EachReference>, String> {
    let Template::Table(entries) = template else {
        return Ok(None);
    };
    let Some(at) = entries.iter().position(|(name, _)| name == FOR_EACH) else {
        return Ok(None);
    };
    let (_, value) = entries.remove(at);
    let what = match &value {
        Template::Text(text) => text.literal(),
        _ => None,
    };
    match what {
        Some("images") => Ok(Some(EachReference::Image)),
        Some("audios") => Ok(Some(EachReference::Sound)),
        _ => Err("for_each must be \"images\" or \"audios\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Some placeholders have values, and the values look like placeholders.
    struct Some3 {
        has: [bool; 3],
        images: usize,
    }

    impl TemplateScope for Some3 {
        fn value(
            &self,
            hole: &Placeholder,
            item: Option<usize>,
        ) -> Result<Option<Value>, UpstreamError> {
            let [prompt, seed, frame] = self.has;
            Ok(match hole.name {
                ValueName::Prompt => prompt.then(|| json!("{seed}")),
                ValueName::Seed => seed.then(|| json!(7)),
                ValueName::FirstFrame => frame.then(|| json!("https://e.org/{prompt}")),
                ValueName::Image => item.map(|item| json!(item)),
                _ => None,
            })
        }

        fn count(&self, _each: EachReference) -> usize {
            self.images
        }
    }

    fn template(text: &str) -> Template {
        let table: toml::Table = toml::from_str(&format!("a = {text}")).unwrap();
        Template::deserialize(table["a"].clone()).unwrap()
    }

    fn filled(text: &str, has: [bool; 3], images: usize) -> Option<Value> {
        template(text).value(&Some3 { has, images }).unwrap()
    }

    #[test]
    fn what_has_no_value_is_left_out_and_constants_go_with_it() {
        let nothing = [false; 3];
        let text = r#"{ a = 1, b = "{prompt}", c = { type = "x", u = { v = "{first_frame}" } }, d = { e = 2 } }"#;
        assert_eq!(
            filled(text, [true, false, true], 0),
            Some(json!({
                "a": 1, "b": "{seed}", "c": {"type": "x", "u": {"v": "https://e.org/{prompt}"}}, "d": {"e": 2},
            }))
        );
        assert_eq!(
            filled(text, [true, false, false], 0),
            Some(json!({"a": 1, "b": "{seed}", "d": {"e": 2}}))
        );
        assert_eq!(filled(text, nothing, 0), None);
        assert_eq!(
            filled("{ a = 1, b = [true, 2.5] }", nothing, 0),
            Some(json!({"a": 1, "b": [true, 2.5]}))
        );
        assert_eq!(
            filled(r#"["{prompt}", "{seed}", "c"]"#, [false, true, false], 0),
            Some(json!([7, "c"]))
        );
        assert_eq!(filled(r#"["{prompt}", "c"]"#, nothing, 0), None);
    }

    #[test]
    fn a_text_is_typed_alone_and_joined_with_others() {
        assert_eq!(filled(r#""{seed}""#, [true; 3], 0), Some(json!(7)));
        assert_eq!(filled(r#""{seed}s""#, [true; 3], 0), Some(json!("7s")));
        assert_eq!(filled(r#""{seed}s""#, [false; 3], 0), None);
        assert_eq!(
            filled(r#""{{seed}} } {prompt}""#, [true; 3], 0),
            Some(json!("{seed} } {seed}"))
        );
    }

    #[test]
    fn a_table_is_repeated_for_each_reference() {
        let text = r#"[{ type = "t", t = "{prompt}" }, { for_each = "images", role = "r", n = { m = "{image}" } }]"#;
        let item = |n| json!({"role": "r", "n": {"m": n}});
        let text_item = json!({"type": "t", "t": "{seed}"});
        assert_eq!(
            filled(text, [true; 3], 2),
            Some(json!([text_item, item(0), item(1)]))
        );
        assert_eq!(filled(text, [true; 3], 0), Some(json!([text_item])));
        assert_eq!(
            filled(r#"[{ for_each = "images", n = "{image}" }]"#, [true; 3], 0),
            None
        );
    }

    /// Whether a value has an empty table or list, or a text of ours that was not filled.
    fn is_unclean(value: &Value) -> bool {
        match value {
            Value::Object(entries) => entries.is_empty() || entries.values().any(is_unclean),
            Value::Array(items) => items.is_empty() || items.iter().any(is_unclean),
            Value::String(text) => {
                text.is_empty() || text.contains("{first_frame}") || text.contains("{image}")
            }
            value => value.is_null(),
        }
    }

    fn any_template() -> impl Strategy<Value = Template> {
        let leaf = prop_oneof![
            Just("\"{prompt}\""),
            Just("\"{seed}\""),
            Just("\"{first_frame}\""),
            Just("\"x{first_frame}\""),
            Just("1"),
        ];
        let leaf = leaf.prop_map(template);
        leaf.prop_recursive(4, 24, 4, |inner| {
            let item = (any::<bool>(), inner.clone()).prop_map(|(each, template)| ListItem {
                each: each.then_some(EachReference::Image),
                template,
            });
            prop_oneof![
                prop::collection::vec(("[a-c]", inner), 1..4).prop_map(Template::Table),
                prop::collection::vec(item, 1..4).prop_map(Template::List),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_empty_and_no_placeholder_is_sent(
            template in any_template(), has in any::<[bool; 3]>(), images in 0_usize..3,
        ) {
            if let Some(value) = template.value(&Some3 { has, images }).unwrap() {
                prop_assert!(!is_unclean(&value), "{value}");
            }
        }

        #[test]
        fn a_placeholder_is_shown_as_it_is_written(text in "\\{[a-z_]{2,15}(:[a-z0-9_]{1,10})?(@[a-z]{1,5})?\\}") {
            if let Ok(template) = TextTemplate::try_from(text.clone()) {
                prop_assert_eq!(template.single().unwrap().to_string(), text);
            }
        }
    }
}
