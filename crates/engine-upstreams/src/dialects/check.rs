//! Checks that a dialect can be meant, beyond what its types say: each mistake is named with its key and with what
//! is right.

use std::fmt::Display;

use hyper::header::{HeaderName, HeaderValue};
use kinora_engine::KindError;

use super::calls::{BodyForm, HttpMethod, InputKind, RepeatRule};
use super::dialect::{ServerDialect, holes};
use super::template::{EachReference, Placeholder, Template, ValueForm, ValueName};
use crate::servers::base_url;

type Checked = Result<(), KindError>;

fn wrong(key: impl Display, problem: impl Display) -> Checked {
    Err(KindError(format!("{key}: {problem}")))
}

impl ServerDialect {
    /// # Errors
    /// The first mistake.
    pub(crate) fn check(&self) -> Checked {
        for (key, text) in [("title", &self.title), ("source", &self.source)] {
            if text.trim().is_empty() {
                return wrong(key, "must not be empty");
            }
        }
        if let Some(base) = &self.base_url
            && base_url(base).is_none()
        {
            return wrong(
                "base_url",
                "must be a URL such as https://api.example.com/v1",
            );
        }
        self.check_headers()?;
        self.check_submit()?;
        self.check_jobs()?;
        self.check_answer()?;
        self.check_words()
    }

    fn check_headers(&self) -> Checked {
        check_header("auth.header", &self.auth.header)?;
        let mut holes = self.auth.value.holes();
        let is_key = |hole: &Placeholder| hole.name == ValueName::Key && hole.table.is_none();
        if !holes.next().is_some_and(is_key) || holes.next().is_some() {
            return wrong(
                "auth.value",
                "must have {key} once, and no other placeholder",
            );
        }
        for (name, value) in &self.headers {
            let key = format!("headers.{name}");
            check_header(&key, name)?;
            if HeaderValue::try_from(value.as_str()).is_err() {
                return wrong(key, "the value fits into no header");
            }
        }
        for name in self.submit.headers.keys() {
            check_header(&format!("submit.headers.{name}"), name)?;
        }
        match &self.submit.idempotency_header {
            Some(name) => check_header("submit.idempotency_header", name),
            None => Ok(()),
        }
    }

    fn check_submit(&self) -> Checked {
        let submit = &self.submit;
        if submit.method == HttpMethod::Get {
            return wrong(
                "submit.method",
                "must be a method with a body, such as \"POST\"",
            );
        }
        if let Some(seconds) = &submit.auto_seconds
            && !seconds.is_string()
            && !seconds.is_number()
        {
            return wrong("submit.auto_seconds", "must be a text or a number");
        }
        for kind in InputKind::ALL {
            self.check_body(kind)?;
            let mut problem = Ok(());
            submit.visit(kind, &mut |place, hole, each| {
                if problem.is_ok() {
                    problem = self.check_request_hole(place, hole, each);
                }
            });
            problem?;
            if !submit.names(kind, ValueName::Prompt) {
                return wrong(body_key(kind), "must name {prompt}");
            }
        }
        self.check_limits()?;
        let (key, rule) = ("submit.repeat", submit.repeat);
        match (&submit.idempotency_header, rule) {
            (Some(_), Some(RepeatRule::Never | RepeatRule::Freely)) => wrong(
                key,
                "must be \"with_key\", or omitted, beside submit.idempotency_header",
            ),
            (None, Some(RepeatRule::WithKey)) if !submit.names(InputKind::Text, ValueName::Key) => {
                wrong(
                    key,
                    "\"with_key\" needs submit.idempotency_header, or {key} in the body",
                )
            }
            _ => Ok(()),
        }
    }

    /// Checks the shape of a body: a table, whose files are parts of a form.
    fn check_body(&self, kind: InputKind) -> Checked {
        let (body, key) = (self.submit.body(kind), body_key(kind));
        if !matches!(body, Template::Table(_)) {
            return wrong(key, "must be a table");
        }
        if let Some(place) = body.stray_for_each(&key) {
            return wrong(place, "stands in a table of a list only");
        }
        for (name, template) in body.entries() {
            let key = format!("{key}.{name}");
            if name.contains(['"', '\r', '\n']) && self.submit.form != BodyForm::Json {
                return wrong(key, "the name fits into no form");
            }
            let is_file = |hole: &Placeholder| hole.form == ValueForm::File;
            let is_part = template.single().is_some_and(is_file);
            if is_part && self.submit.form != BodyForm::Json {
                continue;
            }
            let mut place = None;
            template.visit(&key, None, &mut |at, hole, _| {
                if is_file(hole) {
                    place.get_or_insert_with(|| at.to_owned());
                }
            });
            if let Some(place) = place {
                return wrong(
                    place,
                    ":file is the whole value of a key of the body, with form = \"multipart\" or \"json_unless_file\"",
                );
            }
        }
        Ok(())
    }

    fn check_request_hole(
        &self,
        place: &str,
        hole: &Placeholder,
        each: Option<EachReference>,
    ) -> Checked {
        self.check_table(place, hole)?;
        if matches!(hole.name, ValueName::Id | ValueName::Path) {
            return wrong(place, format!("{hole} has a value only after the submit"));
        }
        if hole.name.is_reference() && !place.contains("body") {
            return wrong(place, format!("{hole} belongs into the body"));
        }
        match (hole.name, each) {
            (ValueName::Image, Some(EachReference::Sound)) => wrong(
                place,
                "{image} stands in a table with for_each = \"images\"",
            ),
            (ValueName::Sound, Some(EachReference::Image)) => wrong(
                place,
                "{sound} stands in a table with for_each = \"audios\"",
            ),
            _ => Ok(()),
        }
    }

    fn check_table(&self, place: &str, hole: &Placeholder) -> Checked {
        match &hole.table {
            Some(table) if !self.lookup.contains_key(table) => {
                wrong(place, format!("{hole}: there is no [lookup.{table}]"))
            }
            _ => Ok(()),
        }
    }

    fn check_limits(&self) -> Checked {
        for (key, each, limit) in [
            ("images", EachReference::Image, self.limits.images),
            ("audios", EachReference::Sound, self.limits.audios),
        ] {
            let key = format!("limits.{key}");
            match limit {
                Some(1..=64) => {}
                Some(_) => return wrong(key, "must be from 1 to 64"),
                None if self.names_references(each).1 => {
                    return wrong(key, "must say how many of them one request may have");
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Checks the calls about a job.
    fn check_jobs(&self) -> Checked {
        for (key, path, body) in self.job_calls() {
            let holes = holes(path, body);
            for hole in &holes {
                self.check_table(key, hole)?;
                if !matches!(
                    hole.name,
                    ValueName::Id | ValueName::Path | ValueName::Model
                ) {
                    let problem = format!(
                        "{hole} has no value after the submit; use {{id}}, {{path}} or {{model}}"
                    );
                    return wrong(key, problem);
                }
            }
            if !holes.iter().any(|hole| hole.name == ValueName::Id) {
                return wrong(key, "must name {id}");
            }
        }
        if self.poll.body.is_some() && self.poll.method == HttpMethod::Get {
            return wrong("poll.method", "must be one with a body, such as \"POST\"");
        }
        let mut holes = self.probe.iter().flat_map(|call| call.path.holes());
        if holes.any(|hole| hole.name != ValueName::Model) {
            return wrong("probe.path", "takes no placeholder but {model}");
        }
        let mut holes = self.uploads.iter().flat_map(|call| call.path.holes());
        match holes.next() {
            Some(_) => wrong("uploads.path", "takes no placeholder"),
            None => Ok(()),
        }
    }

    fn check_answer(&self) -> Checked {
        let answer = &self.answer;
        if answer.id.is_empty() {
            return wrong("answer.id", "must name at least one pointer");
        }
        if answer.status.is_some() && answer.done.is_some() {
            return wrong("answer.done", "stands instead of answer.status");
        }
        if !(answer.progress_max.is_finite() && answer.progress_max > 0.0) {
            return wrong("answer.progress_max", "must be larger than zero");
        }
        let has_result = !answer.result.is_empty();
        if !has_result && self.result.path.is_none() {
            return wrong(
                "answer.result",
                "name it, or result.path: where is the film?",
            );
        }
        if !has_result && self.result.lookup.is_some() {
            return wrong(
                "answer.result",
                "must say where the answer to result.lookup has the address",
            );
        }
        if let Some(cost) = &answer.cost
            && !(cost.per_unit.is_finite() && cost.per_unit > 0.0)
        {
            return wrong("answer.cost.per_unit", "must be larger than zero");
        }
        Ok(())
    }

    fn check_words(&self) -> Checked {
        let all = self.statuses.all();
        for (index, (key, words, _)) in all.iter().enumerate() {
            for word in *words {
                let earlier = all[..index]
                    .iter()
                    .find(|(_, others, _)| others.contains(word));
                if let Some((other, _, _)) = earlier {
                    let problem = format!("{word:?} stands in statuses.{other} as well");
                    return wrong(format!("statuses.{key}"), problem);
                }
            }
        }
        let has_end = all
            .iter()
            .any(|(key, words, _)| *key == "completed" && !words.is_empty());
        if self.answer.done.is_none() && !has_end {
            return wrong(
                "statuses.completed",
                "must name the word of a finished task",
            );
        }
        Ok(())
    }
}

fn body_key(kind: InputKind) -> String {
    match kind {
        InputKind::Text => "submit.body".to_owned(),
        kind => format!("submit.body (for {})", kind.name()),
    }
}

fn check_header(key: &str, name: &str) -> Checked {
    match HeaderName::try_from(name) {
        Ok(_) => Ok(()),
        Err(_) => wrong(key, format!("{name:?} is not the name of a header")),
    }
}
