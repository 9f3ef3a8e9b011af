//! What the words say of the camera's way: a verb of the camera, and the direction that stands near it, as in
//! "pans slowly to the left", "zooms out" or "schwenkt nach links".

use super::language::Language;
use super::{Framing, Meaning};

/// Tokens behind a verb in which its direction is looked for.
const NEAR: usize = 5;
/// The same, of verbs that others than the camera do.
const NEXT: [&str; 6] = ["push", "pushes", "pushing", "pull", "pulls", "pulling"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Left,
    Right,
    Up,
    Down,
    In,
    Out,
}

/// Verbs, and where they go when no direction is named; `None`: then they say nothing of the camera.
const VERBS: &[(Language, &str, Option<Way>)] = &[
    (
        Language::English,
        "pan pans panning panned",
        Some(Way::Right),
    ),
    (
        Language::English,
        "tilt tilts tilting tilted",
        Some(Way::Up),
    ),
    (Language::English, "crane craning", None),
    (
        Language::English,
        "zoom zooms zooming zoomed",
        Some(Way::In),
    ),
    (Language::English, "dolly dollies dollying", Some(Way::In)),
    (
        Language::English,
        "track tracks tracking truck trucks trucking",
        None,
    ),
    (
        Language::English,
        "push pushes pushing pull pulls pulling",
        None,
    ),
    (Language::English, "camera", None),
    (
        Language::Spanish,
        "paneo panea paneando panorámica cámara",
        None,
    ),
    (Language::Spanish, "zoom", Some(Way::In)),
    (Language::French, "panoramique travelling caméra", None),
    (Language::French, "zoom zoome", Some(Way::In)),
    (
        Language::German,
        "schwenk schwenkt kameraschwenk kamera",
        None,
    ),
    (Language::German, "zoom zoomt", Some(Way::In)),
];

const WAYS: &[(&str, Way)] = &[
    (
        "left leftward leftwards right-to-left izquierda gauche links",
        Way::Left,
    ),
    (
        "right rightward rightwards left-to-right derecha droite rechts",
        Way::Right,
    ),
    ("up upward upwards arriba haut oben hoch", Way::Up),
    (
        "down downward downwards abajo bas unten herunter",
        Way::Down,
    ),
    (
        "in closer forward forwards acerca adentro avant hinein heran",
        Way::In,
    ),
    (
        "out back away backward backwards aleja afuera atrás arrière heraus hinaus zurück",
        Way::Out,
    ),
];

fn way(token: &str) -> Option<Way> {
    let named = |(words, _): &&(&str, Way)| words.split(' ').any(|word| word == token);
    WAYS.iter().find(named).map(|(_, way)| *way)
}

/// The way that the tokens behind a verb name: of "from left to right" the second.
fn named(tokens: &[String], near: usize) -> Option<Way> {
    let near = tokens.iter().take(near).take_while(|token| *token != ",");
    let near: Vec<&str> = near.map(String::as_str).collect();
    let mut ways = near.iter().enumerate().filter_map(|(at, token)| {
        let from = at > 0 && ["from", "desde", "von"].contains(&near[at - 1]);
        Some((way(token)?, from))
    });
    let (first, from) = ways.next()?;
    match from {
        true => ways.next().map(|(second, _)| second),
        false => Some(first),
    }
}

/// What the verb at `tokens[at]` says, if it is one of the camera.
pub(super) fn at(tokens: &[String], at: usize, language: Language) -> Option<&'static [Meaning]> {
    let verb = |(of, words, _): &&(Language, &str, Option<Way>)| {
        *of == language && words.split(' ').any(|word| word == tokens[at])
    };
    let (_, _, alone) = VERBS.iter().find(verb)?;
    // "A slow left pan".
    let before = at.checked_sub(1).and_then(|before| way(&tokens[before]));
    let near = match NEXT.contains(&tokens[at].as_str()) {
        true => 1,
        false => NEAR,
    };
    let way = named(&tokens[at + 1..], near).or(before).or(*alone)?;
    let turns = ["tilt", "tilts", "tilting", "tilted"].contains(&tokens[at].as_str());
    Some(match way {
        Way::Left => &[Meaning::Framing(Framing::PanLeft)],
        Way::Right => &[Meaning::Framing(Framing::PanRight)],
        Way::Up => &[Meaning::Framing(Framing::TiltUp)],
        Way::Down => &[Meaning::Framing(Framing::TiltDown)],
        // Nobody tilts in.
        Way::In | Way::Out if turns => &[Meaning::Framing(Framing::TiltUp)],
        Way::In => &[Meaning::Framing(Framing::PushIn)],
        Way::Out => &[Meaning::Framing(Framing::PullOut)],
    })
}

#[cfg(test)]
mod tests {
    use super::super::read::read;
    use super::Framing;

    #[test]
    fn cameras_go_where_the_words_say() {
        for (text, framing) in [
            ("the camera pans left over the sea", Framing::PanLeft),
            ("panning slowly to the left", Framing::PanLeft),
            ("a slow left pan across the city", Framing::PanLeft),
            ("pan right", Framing::PanRight),
            ("the camera pans from left to right", Framing::PanRight),
            ("a right-to-left pan", Framing::PanLeft),
            ("it pans over the hills", Framing::PanRight),
            ("zooms out of the forest", Framing::PullOut),
            ("the camera zooms in on a cat", Framing::PushIn),
            ("slow zoom", Framing::PushIn),
            ("tilting up to the sky", Framing::TiltUp),
            ("the camera tilts down", Framing::TiltDown),
            ("crane up over the roofs", Framing::TiltUp),
            ("the camera moves slowly backwards", Framing::PullOut),
            ("pull back from the house", Framing::PullOut),
            ("dolly out", Framing::PullOut),
            (
                "la cámara se mueve hacia la izquierda sobre el mar",
                Framing::PanLeft,
            ),
            (
                "la caméra avance, panoramique vers la gauche sur la mer",
                Framing::PanLeft,
            ),
            (
                "die Kamera schwenkt langsam nach rechts über den See",
                Framing::PanRight,
            ),
            ("die Kamera zoomt heraus", Framing::PullOut),
            ("镜头向左平移", Framing::PanLeft),
        ] {
            assert_eq!(read(text, "").framing.first(), Some(&framing), "{text}");
        }
    }

    #[test]
    fn what_is_no_camera_moves_none() {
        for text in [
            "un pan sobre la mesa",
            "a boy pushes a cart up the hill",
            "a camera on a table",
            "train tracks",
        ] {
            assert_eq!(read(text, "").framing, [], "{text}");
        }
    }
}
