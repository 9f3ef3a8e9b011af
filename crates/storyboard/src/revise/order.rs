//! Reorders edits in languages that put the verb last or join the preposition to the next word. It knows a few forms
//! of "change … into …" and nothing else.

/// The verb and the joining word of every reordered clause.
const VERB: &str = "把";
const JOIN: &str = "换成";
/// Endings of the old thing, endings of the new thing, and stems of the verb.
const LAST: [(&[&str], &[&str], &[&str]); 3] = [
    (
        &["を"],
        &["に", "へ", "と"],
        &["変え", "換え", "替え", "かえ", "して"],
    ),
    (&["를", "을"], &["으로", "로"], &["바꾸", "바꿔", "교체"]),
    (&[" को"], &[" से", " में"], &["बदल"]),
];
/// Arabic: forms of the verb, and the first letter of the new thing.
const ARABIC: ([&str; 2], char) = (["استبدل", "بدّل"], 'ب');

/// `clause` with its verb first; `None` if it has none of these forms.
pub(super) fn ordered(clause: &str) -> Option<String> {
    verb_last(clause).or_else(|| arabic(clause))
}

fn verb_last(clause: &str) -> Option<String> {
    LAST.iter().find_map(|(ends, joins, verbs)| {
        let verb = verbs.iter().filter_map(|verb| clause.rfind(verb)).max()?;
        let head = &clause[..verb];
        let (at, end) = ends
            .iter()
            .filter_map(|end| Some((head.find(end)?, end)))
            .min()?;
        let rest = head[at + end.len()..].trim();
        let new = joins.iter().find_map(|join| rest.strip_suffix(join))?;
        let old = &head[..at];
        Some(format!("{VERB} {old} {JOIN} {new}"))
    })
}

fn arabic(clause: &str) -> Option<String> {
    let (verbs, join) = ARABIC;
    let words: Vec<&str> = clause.split_whitespace().collect();
    let verb = words.iter().position(|word| verbs.contains(word))?;
    let new = words[verb..]
        .iter()
        .position(|word| word.starts_with(join) && word.chars().count() > 2)?;
    let (old, new) = words[verb + 1..].split_at(new.checked_sub(1)?);
    let new = new.join(" ");
    let new = new.strip_prefix(join)?;
    Some(format!("{VERB} {} {JOIN} {new}", old.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verb_comes_first() {
        for (clause, ordered_is) in [
            ("犬を猫に変えて", Some("把 犬 换成 猫")),
            ("개를 고양이로 바꿔", Some("把 개 换成 고양이")),
            ("कुत्ते को बिल्ली से बदलो", Some("把 कुत्ते 换成 बिल्ली")),
            ("استبدل الكلب بقطة", Some("把 الكلب 换成 قطة")),
            ("make it night", None),
            ("犬を追加して", None),
        ] {
            assert_eq!(ordered(clause).as_deref(), ordered_is, "{clause}");
        }
    }
}
