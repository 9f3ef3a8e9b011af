//! Edits in languages whose verb stands last, or whose joining word is a part of the next, brought into the
//! order that the others have. It knows a few forms of "change … into …" and nothing else.

/// A verb and a joining word that every clause gets in its new order.
const TURNS_IT: &str = "把";
const GIVES: &str = "换成";
/// The old thing ends with one of the first, the new one with one of the second; then stems of the verb.
const LAST: [(&[&str], &[&str], &[&str]); 3] = [
    (
        &["を"],
        &["に", "へ", "と"],
        &["変え", "換え", "替え", "かえ", "して"],
    ),
    (&["를", "을"], &["으로", "로"], &["바꾸", "바꿔", "교체"]),
    (&[" को"], &[" से", " में"], &["बदल"]),
];
/// Arabic: the verb, and the letter that the new thing begins with.
const ARABIC: ([&str; 2], char) = (["استبدل", "بدّل"], 'ب');

/// `clause` with its verb first, if it has one of these forms.
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
        Some(format!("{TURNS_IT} {old} {GIVES} {new}"))
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
    Some(format!("{TURNS_IT} {} {GIVES} {new}", old.join(" ")))
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
