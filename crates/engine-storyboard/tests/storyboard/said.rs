//! What is not drawn is said, in every language, and nothing else is: a warning names the words
//! that nothing was drawn for.

use std::sync::Arc;

use kinora_engine::{ClipPlanner, JobMaterials};
use kinora_engine_storyboard::{Storyboard, nouns};

use super::support::*;

/// What the engine says of a prompt, one message a line.
fn said(prompt: &str) -> String {
    said_as("", prompt)
}

/// Its messages of the code `code`; all of them if it is empty.
fn said_as(code: &str, prompt: &str) -> String {
    let warnings = Storyboard::default().warnings(&spec(prompt, SMALL, 2, 1), &NONE);
    let ours = warnings
        .into_iter()
        .filter(|one| code.is_empty() || one.code == code);
    let messages: Vec<String> = ours.map(|one| one.message).collect();
    messages.join("\n")
}

/// Prompts whose every word is common and can be shown.
const PLAIN: [&str; 48] = [
    "three red boats on a calm lake at dawn",
    "a yellow dog runs across a snowy field",
    "heavy rain falls on a city street at night",
    "two children fly a kite on the beach, the camera pans left",
    "un gato negro duerme junto a la ventana",
    "cuatro camellos cruzan el desierto al atardecer",
    "llueve en la ciudad, una mujer con un paraguas rojo camina por la calle",
    "la cámara se mueve hacia la derecha sobre un pueblo junto al mar",
    "deux chevaux blancs galopent sur la plage",
    "un chat dort sur une chaise à côté de la fenêtre",
    "il neige sur la montagne, un homme marche lentement",
    "la caméra monte le long d'un grand arbre",
    "ein rotes Auto fährt durch den Wald",
    "drei Boote auf einem See, im Hintergrund die Berge",
    "es regnet in der Stadt, eine Frau geht über die Straße",
    "die Kamera schwenkt langsam nach links über die Wiese",
    "un cane bianco corre nel prato",
    "tre barche rosse sul lago al tramonto",
    "nevica in montagna, un uomo cammina da solo",
    "la luna piena sopra il mare di notte",
    "dois cavalos correm na praia",
    "um gato preto dorme na janela",
    "chove na cidade à noite, uma mulher caminha na rua",
    "um barco vermelho num lago calmo ao amanhecer",
    "красная лодка на озере на рассвете",
    "две кошки спят у окна",
    "ночью в городе идёт дождь",
    "белая лошадь бежит по полю",
    "夜晚的城市下着雨",
    "两只猫坐在窗边",
    "一艘红色的小船在湖上",
    "一匹白马在草地上奔跑",
    "夜の街に雨が降っている",
    "二匹の猫が窓辺で寝ている",
    "湖の上の赤い舟、カメラがゆっくりズームイン",
    "白い馬が草原を走る",
    "밤에 도시에 비가 내린다",
    "고양이 두 마리가 창가에 앉아 있다",
    "호수 위의 빨간 배",
    "하얀 말이 들판을 달린다",
    "قارب أحمر على البحيرة عند الفجر",
    "قطتان تنامان بجانب النافذة",
    "تمطر في المدينة ليلا",
    "حصان أبيض يركض في الحقل",
    "झील पर एक लाल नाव",
    "दो बिल्लियाँ खिड़की के पास सो रही हैं",
    "रात में शहर में बारिश हो रही है",
    "एक सफ़ेद घोड़ा मैदान में दौड़ रहा है",
];

#[test]
fn nothing_is_said_of_prompts_that_are_shown() {
    let wrong: Vec<String> = PLAIN
        .iter()
        .map(|prompt| (prompt, said(prompt)))
        .filter(|(_, message)| !message.is_empty())
        .map(|(prompt, message)| format!("{prompt}: {message}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_noun_that_can_be_drawn_is_read() {
    let names = nouns().into_iter().chain(["sun", "moon"]);
    let wrong: Vec<String> = names
        .filter_map(|noun| {
            let message = said(&format!("the {noun}"));
            (!message.is_empty()).then(|| format!("{noun}: {message}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_thing_that_cannot_be_drawn_is_named() {
    let mut wrong = Vec::new();
    for (prompt, noun) in [
        ("a glimworfle on a meadow", "glimworfle"),
        ("two glimworfles and a dog", "glimworfle"),
        ("un glimorfo en un prado", "glimorfo"),
        ("un glimorfe dans un pré", "glimorfe"),
        ("ein Glimworfel auf einer Wiese", "glimworfel"),
        ("un glimorfo su un prato", "glimorfo"),
        ("um glimorfo num prado", "glimorfo"),
        ("глимворфл на лугу", "глимворфл"),
        ("جليمورف في الحقل", "جليمورف"),
        ("मैदान में एक ग्लिमवर्फ", "ग्लिमवर्फ"),
        ("草地上的魍魎", "魍魎"),
        ("草原のグリモーフ", "グリモーフ"),
        ("들판 위의 글림워플", "글림워플"),
    ] {
        let message = said(prompt).to_lowercase();
        if !message.contains(noun) {
            wrong.push(format!("{prompt}: {message:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn nouns_that_end_like_adjectives_are_named() {
    let mut wrong = Vec::new();
    for (prompt, nouns) in [
        ("a family has a picnic in the park", &["picnic"][..]),
        ("picnic in the park", &["picnic"]),
        ("a dog beside a mechanic", &["mechanic"]),
        ("a glimworfly on a meadow", &["glimworfly"]),
        ("the red glimworfic, two dogs", &["glimworfic"]),
        ("a glimworfish has a dog", &["glimworfish"]),
        ("un glimoso en un prado", &["glimoso"]),
        ("une glimeuse sur la plage", &["glimeuse"]),
        ("ein Hund und eine Glimmige", &["glimmige"]),
        ("un glimorfoso su un prato", &["glimorfoso"]),
        ("um glimorfoso num prado", &["glimorfoso"]),
        ("девочка с глимкой", &["глимкой"]),
    ] {
        let message = said(prompt).to_lowercase();
        if !nouns.iter().all(|noun| message.contains(noun)) {
            wrong.push(format!("{prompt}: {message:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn adjectives_and_adverbs_are_qualities() {
    for prompt in [
        "a glamorous cat sleeps peaceably on a fabulous sofa",
        "a fantastic, luminous forest",
        "the house is photographic",
        "a gigantic and monstrous dragon flies elegantly over the sea",
        "un perro peligroso en la calle",
        "un cane peloso corre nel parco",
        "un chat courageux sur la plage",
        "ein riesiger, freundlicher Hund am Strand",
        "огромный пушистый кот спит у окна",
        "мальчик играет с собакой",
        "a girl happily waves",
        "waves at sunset",
    ] {
        assert_eq!(said_as("not_drawn", prompt), "", "{prompt}");
    }
    let message = said("a glamorous cat sleeps peaceably on a fabulous sofa");
    assert!(
        message.ends_with("\"glamorous\", \"peaceably\", \"fabulous\"."),
        "{message}"
    );
}

#[test]
fn what_is_drawn_as_something_near_is_said() {
    for (prompt, near) in [
        ("a tornado over a field", "\"tornado\" as \"storm\""),
        ("a medieval market", "\"market\" as \"city\""),
        (
            "a leopard in a cafe",
            "\"leopard\" as \"tiger\", \"cafe\" as \"room\"",
        ),
        ("two nurses", "\"nurses\" as \"doctor\""),
        ("ein Leopard im Wald", "\"Leopard\" as \"tiger\""),
        ("un leopardo en el bosque", "\"leopardo\" as \"tigre\""),
        ("森林里的考拉", "\"考拉\" as \"熊猫\""),
    ] {
        let message = said_as("approximated", prompt);
        assert!(message.contains(near), "{prompt}: {message}");
        assert_eq!(said_as("not_drawn", prompt), "", "{prompt}");
    }
}

#[test]
fn styles_and_relations_are_said() {
    for (prompt, words) in [
        (
            "a cat, watercolor painting",
            &["watercolor", "painting"][..],
        ),
        ("a boat, pixel art", &["pixel art"]),
        (
            "a panda drinking coffee, Van Gogh style",
            &["Van Gogh style"],
        ),
        ("a girl with pink hair", &["pink", "hair"]),
        ("a woman holding a cat", &["holding"]),
        ("a man wearing a hat", &["wearing"]),
        ("a cat inside a box", &["inside"]),
        ("a dog between two trees", &["between"]),
        ("a futuristic car behind a house", &["futuristic", "behind"]),
        ("a cat on the left of three dogs", &["on the left of"]),
        ("a ship sails, black and white", &["black and white"]),
        (
            "ein Hund hinter einem Haus, Aquarell",
            &["hinter", "Aquarell"],
        ),
        ("un perro debajo de una mesa", &["debajo de"]),
        (
            "un chat derrière une maison, aquarelle",
            &["derrière", "aquarelle"],
        ),
        ("一只熊猫，水彩画", &["水彩画"]),
    ] {
        let message = said_as("style_not_drawn", prompt);
        for word in words {
            assert!(
                message.contains(&format!("\"{word}\"")),
                "{prompt}: {message}"
            );
        }
    }
    for prompt in [
        "a balloon above the sea",
        "a cat under the stars",
        "mountains in the background",
    ] {
        assert_eq!(said(prompt), "", "{prompt}");
    }
}

#[test]
fn names_are_units() {
    for (prompt, name) in [
        ("Will Smith eats a pizza", "Will Smith"),
        ("Iron Man flies over a city", "Iron Man"),
        ("the Golden Gate at night", "Golden Gate"),
        ("la Torre Eiffel de noche", "Torre Eiffel"),
        ("una calle de Los Angeles", "Los Angeles"),
        ("ein Hund vor dem Eiffelturm", "Eiffelturm"),
        ("一只猫在埃菲尔铁塔前", "埃菲尔铁塔"),
        ("格温·斯泰西在海边", "格温·斯泰西"),
    ] {
        let message = said_as("not_drawn", prompt);
        assert!(
            message.contains(&format!("\"{name}\"")),
            "{prompt}: {message}"
        );
    }
}

#[test]
fn no_word_is_taken_for_another() {
    for (prompt, absent) in [
        ("Hund spielt im Schnee, Kinder lachen", "fish"),
        ("Frauen lachen im Park", "fish"),
        ("a boxing match", "gift"),
        ("a garden, Van Gogh style", "car"),
        ("a space shuttle launch, with flames and smoke", "campfire"),
        ("a girl walks home in evening wear", "sun"),
        ("雨中飞驰的摩托车", "bird"),
        ("海马", "horse"),
        ("a couple with umbrellas", "umbrella"),
        ("ein Ritter kämpft gegen einen Drachen", "kite"),
        ("una bailarina de flamenco en una plaza", "flamingo"),
    ] {
        let seen =
            kinora_engine_storyboard::figures_in_frame(&spec(prompt, SMALL, 2, 1), 0).unwrap();
        assert!(
            seen.iter().all(|one| one.name != absent),
            "{prompt}: {seen:?}"
        );
    }
    for (prompt, word) in [
        ("雨中飞驰的摩托车", "飞驰"),
        ("a polar bear is playing guitar", "playing"),
        ("ants eating a spider", "eating"),
        ("un perro conduce un tractor", "conduce"),
        ("a boy pulls a cart", "pulls"),
        ("a boat on a river in the city", "city"),
    ] {
        let message = said_as("not_drawn", prompt);
        assert!(
            message.contains(&format!("\"{word}\"")),
            "{prompt}: {message}"
        );
    }
}

/// What is said of an edit of a video: of one that this engine made, and of one that it did not.
fn said_of_edits(prompt: &str) -> [String; 2] {
    let first = spec("a dog on the beach", SMALL, 2, 1);
    let edit = kinora_contract::VideoSpec {
        seconds: kinora_contract::VideoLength::Auto,
        edit: Some(kinora_contract::EditSpec {
            task_id: kinora_contract::id::TaskId::from_parts(1, [3; 10]),
            strength: 0.6,
        }),
        ..spec(prompt, SMALL, 2, 1)
    };
    let frame = vec![90; SMALL.pixels() as usize * 3];
    let seen = JobMaterials {
        source: Some(Arc::new(Memory::new(SMALL, 24, vec![frame; 48]))),
        ..NONE.clone()
    };
    let own = JobMaterials {
        script: vec![Arc::new(first)],
        ..seen.clone()
    };
    [own, seen].map(|materials| {
        let warnings = Storyboard::default().warnings(&edit, &materials);
        let messages: Vec<String> = warnings.into_iter().map(|one| one.message).collect();
        messages.join("\n")
    })
}

#[test]
fn edits_name_what_they_do_not_change() {
    for prompt in [
        "make it night",
        "snow falls",
        "in a thunderstorm at sunset",
        "everything purple",
        "moonlight",
        "sad",
    ] {
        assert_eq!(said_of_edits(prompt), ["", ""], "{prompt}");
    }
    for (prompt, named) in [
        ("add a dog", "\"dog\""),
        ("replace the dog with a cat", "\"dog\", \"cat\""),
        ("remove the dog at night", "\"dog\""),
        ("in the desert", "\"desert\""),
        ("add a moon", "\"moon\""),
        ("stop the rain", "\"rain\""),
        ("in autumn", "\"autumn\""),
        ("make it dance", "\"dance\""),
        ("zoom in", "\"zoom\""),
        ("la playa de noche", "\"playa\""),
    ] {
        let [own, seen] = said_of_edits(prompt);
        assert_eq!(own, "", "{prompt}");
        assert!(
            seen.ends_with(&format!("nothing for {named}.")),
            "{prompt}: {seen}"
        );
    }
    let [own, _] = said_of_edits("add 40 sheep");
    assert_eq!(
        own,
        "The storyboard engine drew fewer figures than the prompt asks for: 12 of 40 \"sheep\"."
    );
    let [own, seen] = said_of_edits("add a glimworfle");
    assert!(own.contains("glimworfle") && seen.contains("glimworfle"));
}

#[test]
fn a_language_that_is_not_read_is_said() {
    for prompt in [
        "μια κόκκινη βάρκα στη θάλασσα",
        "เรือสีแดงในทะเล",
        "סירה אדומה בים",
    ] {
        assert!(!said(prompt).is_empty(), "{prompt}");
    }
}

#[test]
fn what_is_denied_is_not_missed() {
    for prompt in ["a street without glimworfles", "eine Wiese ohne Glimworfel"] {
        assert_eq!(said(prompt), "", "{prompt}");
    }
}

#[test]
fn warnings_stay_short_however_much_is_missed() {
    let words: Vec<String> = (0..400)
        .map(|nth| format!("the glimworfle{nth}x"))
        .collect();
    let message = said(&words.join(" and "));
    assert!(!message.is_empty());
    assert!(
        message.chars().count() < 2_000,
        "{} characters",
        message.len()
    );
}
