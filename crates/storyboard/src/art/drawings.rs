//! The drawings, by name. The binary contains them; nothing is read from disk.

macro_rules! drawings {
    ($($name:literal)*) => {
        /// The SVG of that name, without its ending.
        pub(super) fn source(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../../drawings/", $name, ".svg"))),)*
                _ => None,
            }
        }

        /// The names of all drawings.
        #[cfg(test)]
        pub(super) const NAMES: &[&str] = &[$($name),*];
    };
}

drawings! {
    "airship"
    "ambulance"
    "apple"
    "ball"
    "balloon"
    "banana"
    "bare-tree"
    "barn"
    "bat"
    "bear"
    "bed"
    "bee"
    "bell"
    "bench"
    "bicycle"
    "bird"
    "boat"
    "book"
    "bottle"
    "bread"
    "bridge"
    "burger"
    "bus"
    "bush"
    "butterfly"
    "cactus"
    "cake"
    "camel"
    "camera"
    "campfire"
    "candle"
    "canoe"
    "car"
    "carrot"
    "castle"
    "cat"
    "chair"
    "cheese"
    "cherry-tree"
    "chicken"
    "church"
    "clock"
    "cow"
    "crab"
    "crocodile"
    "crown"
    "crystal"
    "cup"
    "deer"
    "dinosaur"
    "dog"
    "dolphin"
    "donkey"
    "door"
    "doughnut"
    "dragon"
    "dragonfly"
    "drone"
    "drum"
    "duck"
    "eagle"
    "egg"
    "elephant"
    "factory"
    "ferris-wheel"
    "fire-engine"
    "fish"
    "flamingo"
    "flower"
    "fountain"
    "fox"
    "frog"
    "gift"
    "giraffe"
    "glass"
    "globe"
    "goat"
    "grapes"
    "guitar"
    "heart"
    "hedgehog"
    "helicopter"
    "hippo"
    "horse"
    "hot-air-balloon"
    "hourglass"
    "house"
    "ice-cream"
    "iceberg"
    "igloo"
    "jellyfish"
    "kangaroo"
    "key"
    "kite"
    "ladybug"
    "lamp"
    "lamp-post"
    "lantern"
    "laptop"
    "lemon"
    "letter"
    "lighthouse"
    "lion"
    "monkey"
    "motorcycle"
    "mouse"
    "mushroom"
    "octopus"
    "orange"
    "owl"
    "palm-tree"
    "panda"
    "parrot"
    "parts-bird"
    "parts-building"
    "parts-fair"
    "parts-flame"
    "parts-heads"
    "parts-light"
    "parts-palm"
    "parts-people-bicycle"
    "parts-people-hair"
    "parts-people-hats"
    "parts-people-heads"
    "parts-people-horse"
    "parts-people-limbs"
    "parts-people-odd"
    "parts-people-props"
    "parts-people-torsos"
    "parts-petals"
    "parts-train"
    "parts-vehicle"
    "penguin"
    "phone"
    "piano"
    "pig"
    "pine"
    "pizza"
    "plane"
    "planet"
    "polar-bear"
    "police-car"
    "pumpkin"
    "pyramid"
    "rabbit"
    "rhino"
    "rocket"
    "rose"
    "sailing-ship"
    "satellite"
    "seal"
    "shark"
    "sheep"
    "ship"
    "skyscraper"
    "sled"
    "snail"
    "snake"
    "snowman"
    "sofa"
    "soup"
    "spaceship"
    "spider"
    "squirrel"
    "statue"
    "steam-train"
    "strawberry"
    "submarine"
    "suitcase"
    "sunflower"
    "swan"
    "sword"
    "table"
    "taxi"
    "teapot"
    "teddy-bear"
    "telescope"
    "television"
    "temple"
    "tent"
    "tiger"
    "tower"
    "tractor"
    "train"
    "tram"
    "treasure-chest"
    "tree"
    "truck"
    "tulip"
    "turtle"
    "unicorn"
    "vase"
    "violin"
    "volcano"
    "waterfall"
    "watermelon"
    "whale"
    "windmill"
    "wolf"
    "zebra"
}

#[cfg(test)]
mod tests {
    use super::{NAMES, source};
    use crate::art::rig::Rig;

    #[test]
    fn every_drawing_is_of_the_subset() {
        for name in NAMES {
            let svg = source(name).unwrap();
            let rig = Rig::parse(svg);
            assert!(rig.is_ok(), "{name}: {:?}", rig.err());
        }
    }

    #[test]
    fn every_file_is_a_drawing() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/drawings");
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter_map(|name| name.strip_suffix(".svg").map(str::to_owned))
            .collect();
        names.sort();
        let mut known: Vec<&str> = NAMES.to_vec();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
